import Foundation
import Larder
import LarderShared
import LarderTestSupport
import Testing

/// Machines that share a cache on a real server.
@Suite(.withRedisServer, .timeLimit(.minutes(10)))
final class SharedServerTests {
  private struct Machine {
    let store: Store
    let tier: SharedTier
    let shared: SharedCache<Int, String>
  }

  private let directory: TemporaryDirectory
  private let server: RedisServer

  init() throws {
    directory = try TemporaryDirectory()
    server = try RedisServer()
  }

  private func machine(_ number: Int) async throws -> Machine {
    let store = try Store(at: URL(filePath: directory.path("machine \(number)")))
    let cache = try store.cache("texts", of: String.self, keyedBy: Int.self)
    let isUp = Watched(false)
    let tier = try SharedTier(namespace: "test") { [server] leaseKey, observer in
      SocketLink(
        server.path,
        observer: { effect in
          observer(effect)
          if case .leased = effect { isUp.change { $0 = true } }
        })
    }
    await isUp.wait { $0 }
    return Machine(store: store, tier: tier, shared: try SharedCache(cache, in: tier))
  }

  @Test("What a machine loads, saves and removes, another one finds.")
  func found() async throws {
    let (first, second) = (try await machine(0), try await machine(1))
    #expect(try await first.shared.value(for: 1) { "a" } == "a")
    #expect(try await second.shared.value(for: 1) { "b" } == "a")
    try await second.shared.save("c", for: 1)
    // They hear of it soon, or are cancelled by the time limit.
    while try await first.shared.value(for: 1, load: { "d" }) != "c" { await Task.yield() }
    try await first.shared.remove(1)
    while try await second.shared.entry(for: 1, load: { _ in .unsaved("none") })?.value != "none" {
      await Task.yield()
    }
    for machine in [first, second] { try machine.store.close() }
  }

  @Test("After races of loads, saves and removals, all machines have what the server has.")
  func races() async throws {
    let seed = testSeed()
    var machines: [Machine] = []
    for number in 0..<3 { machines.append(try await machine(number)) }
    let shared = machines.map(\.shared)
    await withTaskGroup { group in
      for task in 0..<12 {
        group.addTask {
          var random = SplitMix64(seed: seed &+ UInt64(task))
          for step in 0..<300 {
            let (cache, key) = (shared[task % 3], random.below(3))
            let value = "\(task).\(step)"
            do {
              switch random.below(8) {
              case 0: try await cache.save(value, for: key)
              case 1: try await cache.remove(key)
              default: _ = try await cache.value(for: key) { value }
              }
            } catch {
              Issue.record(error)
            }
          }
        }
      }
    }
    // Each machine has heard of all writes once its own question is answered.
    for machine in machines { try await machine.shared.save("last", for: 100) }
    for key in 0..<3 {
      var values: Set<String> = []
      for machine in machines {
        _ = try await machine.shared.entry(for: -1) { _ in .absent }
        let entry = try await machine.shared.entry(for: key) { _ in .unsaved("none") }
        #expect(entry?.isConfirmed == true || entry?.value == "none", "seed \(seed)")
        values.insert(entry?.value ?? "nil")
        machine.store.releaseMemory()
        let asked = try await machine.shared.entry(for: key) { _ in .unsaved("none") }
        #expect(asked?.value == entry?.value, "seed \(seed)")
      }
      #expect(values.count == 1, "seed \(seed): \(values)")
    }
    for machine in machines { try machine.store.close() }
  }
}
