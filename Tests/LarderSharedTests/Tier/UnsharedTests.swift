import Foundation
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Changes that the tier has not acknowledged.
@Suite(.timeLimit(.minutes(5)))
struct UnsharedTests {
  private static func rows(of store: Store) throws -> Int {
    let cursor = try store.engine.cursor(over: EngineRange(prefix: [KeySpace.unshared.rawValue]))
    var count = 0
    while try cursor.next() { count += 1 }
    return count
  }

  /// Two machines with stores in memory; what happens to the first one's writes is up to the test.
  private struct Pair {
    let network: SimulatedNetwork
    let faults = StoreFaults()
    let stores: [Store]
    let shared: [SharedCache<String, String>]

    init() throws {
      let clock = ManualClock()
      let network = SimulatedNetwork(clients: 2, clock)
      var options = Store.Options()
      options.clock = clock
      stores = [
        Store.inMemory(options: options, faults: faults), Store.inMemory(options: options),
      ]
      shared = try stores.map { store in
        try SharedCache(store.cache("texts", of: String.self), in: network.tier())
      }
      self.network = network
    }
  }

  private static func expectLocal(_ outcome: SharedOutcome) {
    guard case .localOnly = outcome else {
      Issue.record("\(outcome)")
      return
    }
  }

  @Test(
    "After a save or removal without the server, no machine goes on with the value before it.",
    arguments: [true, false], [true, false])
  func settled(bySave: Bool, reopening: Bool) async throws {
    let machines = try Machines()
    for key in ["k", "other"] { try await machines[0].save("old", for: key) }
    #expect(try await machines[1].found()?.value == "old")
    machines.network.disconnect(0)
    Self.expectLocal(
      bySave ? try await machines[0].save("new", for: "k") : try await machines[0].remove("k"))
    #expect(try await machines[0].found()?.value == (bySave ? "new" : nil))
    #expect(try await machines[1].found()?.value == "old")
    #expect(try Self.rows(of: machines.all[0].store) == 1)
    if reopening { try machines.reopen(0) }
    machines.network.connect(0)
    try await machines.all[0].store.waitUntilIdle()
    for number in 0..<2 {
      #expect(try await machines[number].found() == nil)
      #expect(try await machines[number].found("other")?.value == "old")
    }
    #expect(try Self.rows(of: machines.all[0].store) == 0)
    // From then on all is as before.
    #expect(try await machines[1].value(for: "k") { "loaded" } == "loaded")
    #expect(try await machines[0].found()?.value == "loaded")
    try machines.close()
  }

  @Test("A save whose reply did not come may have been made, and ends as removed.")
  func unknown() async throws {
    let machines = try Machines()
    try await machines[0].save("old", for: "k")
    machines.network.setAutomatic(false)
    let shared = machines[0]
    async let outcome = shared.save("new", for: "k")
    var random = SplitMix64(seed: 1)
    // Both commands are executed, and the answer is lost.
    for _ in 0..<2 { while !machines.network.step(&random) { await Task.yield() } }
    machines.network.disconnect(0)
    guard case .localOnly(SharedFailure.outcomeUnknown) = try await outcome else {
      Issue.record("\(try await outcome)")
      return
    }
    machines.network.setAutomatic(true)
    #expect(try await machines[1].found()?.value == "new")
    machines.network.connect(0)
    try await machines.all[0].store.waitUntilIdle()
    for number in 0..<2 { #expect(try await machines[number].found() == nil) }
    try machines.close()
  }

  @Test("A later change that is acknowledged stays, although an earlier one was not.")
  func later() async throws {
    let machines = try Machines()
    machines.network.disconnect(0)
    for key in ["a", "b"] { try await machines[0].save("lost", for: key) }
    #expect(try Self.rows(of: machines.all[0].store) == 2)
    machines.network.connect(0)
    try await machines.all[0].store.waitUntilIdle()
    try await machines[0].save("last", for: "a")
    for number in 0..<2 { #expect(try await machines[number].found("a")?.value == "last") }
    #expect(try Self.rows(of: machines.all[0].store) == 0)
    try machines.close()
  }

  @Test("If the server can be reached again before the change is written, it hears of it, too.")
  func reconnected() async throws {
    let pair = try Pair()
    let (network, faults, first) = (pair.network, pair.faults, pair.stores[0])
    let (shared, other) = (pair.shared[0], pair.shared[1])
    try await shared.save("old", for: "k")
    network.disconnect(0)
    faults.holdWrites()
    async let outcome = shared.save("new", for: "k")
    try await faults.waitForHeldWrites(1)
    network.connect(0)
    faults.releaseWrites()
    Self.expectLocal(try await outcome)
    try await first.waitUntilIdle()
    #expect(try await other.found() == nil)
    #expect(try Self.rows(of: first) == 0)
  }

  @Test("A save that the server acknowledges while its key is to be settled stays.")
  func savedWhileSettled() async throws {
    let machines = try Machines()
    let network = machines.network
    network.disconnect(0)
    try await machines[0].save("lost", for: "k")
    // The row was read, and the tombstone is on its way to the link.
    network.holdNextRequest(of: 0)
    network.connect(0)
    await network.waitForHeldRequest(of: 0)
    let (shared, isSaved) = (machines[0], Flag())
    async let outcome = {
      defer { isSaved.raise() }
      return try await shared.save("kept", for: "k")
    }()
    let unshared = machines.all[0].cache.core.unshared
    while !isSaved.isRaised, unshared.waitingCount == 0 { await Task.yield() }
    network.releaseRequest(of: 0)
    #expect(try await outcome == .shared)
    try await Self.expectKept(in: machines)
  }

  @Test("While the disk refuses writes, a key is settled once; its row goes when it takes them.")
  func failingWrites() async throws {
    let pair = try Pair()
    let (network, faults, first) = (pair.network, pair.faults, pair.stores[0])
    let (shared, other) = (pair.shared[0], pair.shared[1])
    try await other.save("old", for: "k")
    network.disconnect(0)
    for key in ["k", "later"] { try await shared.save("lost", for: key) }
    faults.failsWrites = true
    network.connect(0)
    try await first.waitUntilIdle()
    #expect(try await other.found() == nil)
    // What others save from then on stays, whatever this machine reads.
    try await other.save("new", for: "k")
    for _ in 0..<3 { #expect(try await shared.found()?.value == "new") }
    #expect(try await other.found()?.value == "new")
    // So does what this machine saves there and not on its disk.
    await #expect(throws: StoreError.self) { try await shared.save("there", for: "k") }
    for _ in 0..<2 { #expect(try await shared.found()?.value == "there") }
    #expect(try await other.found()?.value == "there")
    try await other.save("new", for: "k")
    #expect(try Self.rows(of: first) == 2)
    faults.failsWrites = false
    first.releaseMemory()
    #expect(try await shared.found()?.value == "new")
    try await shared.save("last", for: "later")
    #expect(try Self.rows(of: first) == 0)
    _ = network.takeLog()
    network.disconnect(0)
    network.connect(0)
    try await first.waitUntilIdle()
    #expect(network.takeLog() == [])
    #expect(try await other.found()?.value == "new")
    // A change after that has a row of its own, and is settled again.
    network.disconnect(0)
    try await shared.remove("k")
    network.connect(0)
    try await first.waitUntilIdle()
    #expect(try await other.found() == nil)
  }

  @Test("Keys of a store that was suspended when the server came back are settled after that.")
  func suspended() async throws {
    let machines = try Machines()
    try await machines[1].save("old", for: "k")
    machines.network.disconnect(0)
    try await machines[0].remove("k")
    let store = machines.all[0].store
    try store.suspend()
    machines.network.connect(0)
    try await store.waitUntilIdle()
    #expect(try await machines[1].found()?.value == "old")
    try store.resume()
    try await store.waitUntilIdle()
    #expect(try await machines[1].found() == nil)
    #expect(try Self.rows(of: store) == 0)
    try machines.close()
  }

  @Test("A read does not settle a key while it is saved.")
  func readWhileSaved() async throws {
    let machines = try Machines()
    let (network, shared) = (machines.network, machines[0])
    let unshared = machines.all[0].cache.core.unshared
    network.disconnect(0)
    try await shared.save("lost", for: "k")
    // Only the read settles it: no task of the save does, which could not reach the server.
    try await machines.all[0].store.waitUntilIdle()
    unshared.store = nil
    network.connect(0)
    network.setAutomatic(false)
    async let outcome = shared.save("kept", for: "k")
    while network.requestCount(of: 0) == 0 { await Task.yield() }
    async let entry = shared.found()
    while unshared.waitingCount == 0, network.requestCount(of: 0) == 1 { await Task.yield() }
    network.setAutomatic(true)
    #expect(try await outcome == .shared)
    #expect(try await entry?.value == "kept")
    try await Self.expectKept(in: machines)
  }

  private static func expectKept(in machines: Machines) async throws {
    try await machines.all[0].store.waitUntilIdle()
    for number in 0..<2 { #expect(try await machines[number].found()?.value == "kept") }
    #expect(try rows(of: machines.all[0].store) == 0)
    #expect(machines.all[0].cache.core.unshared.waitingCount == 0)
    try machines.close()
  }

  @Test("Ten thousand such keys are settled, and nothing is asked twice.")
  func many() async throws {
    let machines = try Machines()
    machines.network.disconnect(0)
    let count = 10_000
    for key in 0..<count { try await machines[0].save("lost", for: "\(key)") }
    _ = machines.network.takeLog()
    machines.network.connect(0)
    try await machines.all[0].store.waitUntilIdle()
    #expect(machines.network.takeLog().count { $0 == "SET" } == count)
    #expect(try Self.rows(of: machines.all[0].store) == 0)
    machines.network.disconnect(0)
    machines.network.connect(0)
    try await machines.all[0].store.waitUntilIdle()
    #expect(machines.network.takeLog() == [])
    try machines.close()
  }

  @Test("A salvage keeps them, and clearing the cache without the tier deletes them.")
  func salvage() async throws {
    let machines = try Machines()
    machines.network.disconnect(0)
    for key in ["a", "b"] { try await machines[0].remove(key) }
    // A row of a cache that does not exist is not copied: nothing would ever delete it.
    var write = WriteBatch()
    let lost = KeySpace.unshared.prefix(ofCache: 99) + [1]
    write.put(lost.span.bytes, [1].span.bytes)
    try machines.all[0].store.engine.write(&write, synced: false)
    try machines.all[0].store.close()
    let place = machines.place(of: 0)
    let salvaged = place.appending(path: "../salvaged").standardized
    _ = try Store.salvage(from: place, to: salvaged)
    var store = try Store(at: salvaged)
    #expect(try Self.rows(of: store) == 2)
    try store.cache("texts", of: String.self, lifetime: .fresh(for: .hours(1))).removeAll()
    try store.close()
    store = try Store(at: salvaged)
    #expect(try Self.rows(of: store) == 0)
    try store.close()
    try machines.all[1].store.close()
  }
}
