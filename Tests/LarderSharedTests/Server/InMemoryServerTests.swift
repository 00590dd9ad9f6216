import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// Shared caches with the server for users' tests.
///
/// `SimulatedServerTests` shows that it replies as a real server does.
@Suite(.timeLimit(.minutes(10)))
struct InMemoryServerTests {
  private let clock = ManualClock()
  private let server: InMemoryServer

  init() { server = InMemoryServer(clock: clock) }

  private struct Machine {
    let store: Store
    let tier: SharedTier
    let texts: SharedCache<String, String>
  }

  /// A machine with a store in memory, or in a directory.
  private func machine(at path: String? = nil) throws -> Machine {
    var options = Store.Options()
    options.clock = clock
    let store =
      try path.map { try Store(at: URL(filePath: $0), options: options) }
      ?? Store.inMemory(options: options)
    let tier = try SharedTier(server, namespace: "test")
    let cache = try store.cache("texts", of: String.self, lifetime: .fresh(for: .hours(1)))
    return Machine(store: store, tier: tier, texts: try SharedCache(cache, in: tier))
  }

  @Test("What one machine saves or removes, the other one reads or misses, and confirmed.")
  func shares() async throws {
    let (here, there) = (try machine(), try machine())
    #expect(try await here.texts.save("old", for: "k") == .shared)
    #expect(try await there.texts.value(for: "k") == "old")
    #expect(try await here.texts.save("new", for: "k") == .shared)
    let entry = try #require(try await there.texts.entry(for: "k"))
    #expect(entry.value == "new" && entry.isConfirmed && entry.origin == .shared)
    #expect(try await there.texts.remove("k") == .shared)
    #expect(try await here.texts.value(for: "k") == nil)
  }

  @Test("Without the server, changes are local; when it is back, other machines miss old values.")
  func unreachable() async throws {
    let (here, there) = (try machine(), try machine())
    try await here.texts.save("old", for: "k")
    _ = try await there.texts.value(for: "k")
    server.isReachable = false
    #expect(!server.isReachable)
    guard case .localOnly = try await here.texts.save("new", for: "k") else {
      Issue.record("saved on a server that cannot be reached")
      return
    }
    let local = try #require(try await there.texts.entry(for: "k"))
    #expect(local.value == "old" && !local.isConfirmed)
    server.isReachable = true
    try await here.store.waitUntilIdle()
    #expect(try await there.texts.value(for: "k") == nil)
    #expect(try await there.texts.value(for: "k") { "loaded" } == "loaded")
    #expect(try await here.texts.value(for: "k") == "loaded")
  }

  @Test("A tier tells when its server is lost, when it is back, and when the tier is closed.")
  func states() async throws {
    let tier = try machine().tier
    var states = tier.states.makeAsyncIterator()
    #expect(await states.next() == .connected)
    server.isReachable = false
    #expect(await states.next()?.description.hasPrefix("degraded") == true)
    server.isReachable = true
    #expect(await states.next() == .connected)
    try await tier.waitUntilConnected()
    #expect(tier.statistics.connections == 2)
    tier.close()
    #expect(await states.next() == .closed)
    #expect(await states.next() == nil)
    #expect(tier.state == .closed)
  }

  @Test("A tier begins degraded if the server cannot be reached, and is connected later.")
  func beginsUnreachable() async throws {
    server.isReachable = false
    let machine = try machine()
    await #expect(throws: SharedFailure.self) { try await machine.tier.waitUntilConnected() }
    #expect(try await machine.texts.value(for: "k") { "loaded" } == "loaded")
    server.isReachable = true
    try await machine.tier.waitUntilConnected()
  }

  @Test("A value leaves the server when its time is over, and when all are removed.")
  func leaves() async throws {
    let here = try machine()
    let ends = ["expired": { clock.advance(by: .seconds(3600)) }, "gone": server.removeAll]
    for (key, end) in ends {
      try await here.texts.save("text", for: key)
      #expect(try await machine().texts.value(for: key) == "text")
      end()
      #expect(try await machine().texts.value(for: key) == nil)
      #expect(try await here.texts.value(for: key) == nil)
    }
  }

  @Test("A value in memory is confirmed by the lease, and by the server once the lease is over.")
  func lease() async throws {
    // A store in memory keeps no decoded values.
    let directory = try TemporaryDirectory()
    let machine = try machine(at: directory.path("store"))
    try await machine.texts.save("text", for: "k")
    for (advance, confirmedCopies) in [(1, 0), (2, 1)] {
      clock.advance(by: .seconds(advance))
      #expect(try await machine.texts.entry(for: "k")?.isConfirmed == true)
      #expect(machine.tier.statistics.confirmedCopies == confirmedCopies)
    }
  }

  @Test("A store with a clock of another type than the server's is refused.")
  func otherClock() throws {
    let cache = try Store.inMemory().cache("texts", of: String.self)
    let tier = try SharedTier(server, namespace: "test")
    #expect(throws: StoreError.self) { try SharedCache(cache, in: tier) }
  }

  @Test("Machines that change keys while the server comes and goes agree with it in the end.")
  func races() async throws {
    let machines = try (0..<4).map { _ in try machine() }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, machine) in machines.enumerated() {
        group.addTask {
          for step in 0..<300 {
            let key = "\(step % 3)"
            switch (step + number) % 4 {
            case 0: try await machine.texts.save("\(number) \(step)", for: key)
            case 1: try await machine.texts.remove(key)
            default: _ = try await machine.texts.value(for: key) { "loaded by \(number)" }
            }
          }
        }
      }
      group.addTask {
        for step in 0..<100 {
          server.isReachable = step % 2 == 1
          _ = try SharedTier(server, namespace: "passing")
          await Task.yield()
        }
      }
      try await group.waitForAll()
    }
    server.isReachable = true
    for machine in machines { try await machine.store.waitUntilIdle() }
    for key in ["0", "1", "2"] {
      let expected = try await machine().texts.value(for: key)
      for machine in machines {
        #expect(try await machine.texts.value(for: key) == expected, "key \(key)")
      }
    }
  }
}
