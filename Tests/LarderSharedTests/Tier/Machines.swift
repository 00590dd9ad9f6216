import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting

/// Machines that share a cache of texts over a simulated network, each with a store of its own.
final class Machines {
  struct Machine {
    let store: Store
    let tier: SharedTier
    let cache: Cache<String, String>
    let shared: SharedCache<String, String>
  }

  let network: SimulatedNetwork
  let clock = ManualClock()
  private(set) var all: [Machine] = []
  private let directory: TemporaryDirectory

  init(_ count: Int = 2, _ options: SharedTier.Options = .init()) throws {
    directory = try TemporaryDirectory()
    network = SimulatedNetwork(clients: count, clock)
    for number in 0..<count { all.append(try machine(number, network.tier(options))) }
  }

  subscript(number: Int) -> SharedCache<String, String> { all[number].shared }

  func machine(_ number: Int, _ tier: SharedTier) throws -> Machine {
    var options = Store.Options()
    options.clock = clock
    let store = try Store(at: place(of: number), options: options)
    let cache = try store.cache("texts", of: String.self, lifetime: .fresh(for: .hours(1)))
    return Machine(
      store: store, tier: tier, cache: cache, shared: try SharedCache(cache, in: tier))
  }

  /// The directory of a machine's store.
  func place(of number: Int) -> URL { URL(filePath: directory.path("machine \(number)")) }

  /// Closes the store of a machine and opens it again, with the same connection.
  func reopen(_ number: Int) throws {
    try all[number].store.close()
    all[number] = try machine(number, all[number].tier)
  }

  func close() throws { for machine in all { try machine.store.close() } }
}

extension SharedCache<String, String> {
  /// The value of a key, without loading it.
  func found(_ key: String = "k") async throws -> LoadedEntry<String>? {
    try await entry(for: key)
  }

  /// As ``found(_:)``, as a load finds it; nil if there was nothing for it.
  func foundByLoad(_ key: String = "k") async throws -> LoadedEntry<String>? {
    let entry = try await entry(for: key) { _ in .unsaved("") }
    return entry?.origin == .loaded ? nil : entry
  }
}
