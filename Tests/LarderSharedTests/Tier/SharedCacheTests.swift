import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// What a machine finds of what others load, save and remove, by the words of the promise.
@Suite(.timeLimit(.minutes(5)))
struct SharedCacheTests {
  // MARK: - A value that is confirmed

  @Test("What a machine loads, the others find, with its date and its fields, and do not load.")
  func found() async throws {
    let machines = try Machines()
    let savedAt = machines.clock.now()
    let loaded = try await machines[0].entry(for: "k") { previous in
      #expect(previous == nil)
      return .value("a", lifetime: .fresh(for: .hours(2)), validator: Validator("v"))
    }
    #expect(loaded?.isSaved == true && loaded?.isConfirmed == true && loaded?.origin == .loaded)
    machines.clock.advance(by: .seconds(3000))
    machines.network.renewLeases()
    let found = try #require(try await machines[1].found())
    #expect(found.value == "a" && found.origin == .shared && found.isConfirmed)
    #expect(found.savedAt == savedAt && found.age == .seconds(3000))
    #expect(found.validator == Validator("v"))
    // It is on the other machine's disk as it was saved, and no longer fresh after two hours.
    let local = try #require(try machines.all[1].cache.entry(for: "k"))
    #expect(local.value == "a" && local.savedAt == savedAt && local.validator == Validator("v"))
    #expect(local.lifetime == .fresh(for: .hours(2)))
    machines.clock.advance(by: .seconds(4300))
    machines.network.renewLeases()
    #expect(try await machines[1].found() == nil)
    try machines.close()
  }

  @Test("A value in memory is used without asking, until another machine changes it.")
  func memory() async throws {
    let machines = try Machines()
    try await machines[0].save("a", for: "k")
    #expect(try await machines[1].found()?.value == "a")
    _ = machines.network.takeLog()
    for _ in 0..<3 {
      let entry = try #require(try await machines[1].found())
      #expect(entry.value == "a" && entry.origin == .memory && entry.isConfirmed)
    }
    // Its writer has it in memory, too.
    #expect(try await machines[0].found()?.origin == .memory)
    #expect(machines.network.takeLog() == [])
    try await machines[0].save("b", for: "k")
    #expect(try await machines[1].found()?.value == "b")
    try await machines[1].remove("k")
    #expect(try await machines[0].found() == nil)
    #expect(try machines.all[0].cache.value(for: "k") == "b")
    try machines.close()
  }

  @Test("What a load has brought is in memory, although the server tells of its own write.")
  func memoryAfterLoad() async throws {
    let machines = try Machines()
    #expect(try await machines[0].value(for: "k") { "a" } == "a")
    _ = machines.network.takeLog()
    #expect(try await machines[0].found()?.origin == .memory)
    #expect(machines.network.takeLog() == [])
    try machines.close()
  }

  @Test("A copy on disk is used once the server has sent the 8 bytes of its version.")
  func disk() async throws {
    let machines = try Machines()
    try await machines[0].save("a", for: "k")
    try machines.reopen(0)
    _ = machines.network.takeLog()
    let entry = try #require(try await machines[0].found())
    #expect(entry.value == "a" && entry.origin == .disk && entry.isConfirmed)
    #expect(machines.network.takeLog() == ["GETRANGE"])
    #expect(try await machines[0].found()?.origin == .memory)
    // Changed while the store was closed.
    try machines.all[0].store.close()
    try await machines[1].save("b", for: "k")
    try machines.reopen(0)
    #expect(try await machines[0].found()?.value == "b")
    try machines.close()
  }

  @Test("No value is confirmed once the lease is over, or the connection is lost.")
  func lease() async throws {
    let machines = try Machines()
    try await machines[0].save("a", for: "k")
    #expect(try await machines[0].found()?.origin == .memory)
    // The other's write is not heard of: the network is silent, and nothing is renewed.
    machines.clock.advance(by: SimulatedNetwork.lease - .milliseconds(1))
    #expect(try await machines[0].found()?.isConfirmed == true)
    machines.clock.advance(by: .milliseconds(1))
    #expect(try await machines[0].found()?.isConfirmed == false)
    machines.network.renewLeases()
    #expect(try await machines[0].found()?.isConfirmed == true)
    machines.network.disconnect(0)
    #expect(try await machines[0].found()?.isConfirmed == false)
    try await machines[1].save("b", for: "k")
    machines.network.connect(0)
    #expect(try await machines[0].found()?.value == "b")
    try machines.close()
  }

  @Test("After all keys of the server were removed, nothing is confirmed.")
  func flush() async throws {
    let machines = try Machines()
    try await machines[0].save("a", for: "k")
    #expect(try await machines[1].found()?.value == "a")
    machines.network.execute("FLUSHALL")
    for number in 0..<2 { #expect(try await machines[number].found() == nil) }
    try await machines[0].save("b", for: "k")
    #expect(try await machines[0].found()?.origin == .memory)
    try machines.close()
  }

  // MARK: - Without a load

  @Test("A value that no machine has is not loaded, and one that a machine has is not counted.")
  func withoutLoad() async throws {
    let machines = try Machines()
    #expect(try await machines[0].value(for: "k") == nil)
    try await machines[0].save("a", for: "k")
    let found = try #require(try await machines[1].entry(for: "k"))
    #expect(found.value == "a" && found.origin == .shared && found.isConfirmed && found.isSaved)
    #expect(try machines.all[1].cache.value(for: "k") == "a")
    #expect(try await machines[1].entry(for: "k")?.origin == .memory)
    machines.all[1].store.releaseMemory()
    let copy = try #require(try await machines[1].entry(for: "k"))
    #expect(copy.origin == .disk && copy.isConfirmed)
    // A read whose value in memory is not confirmed any more is one read.
    let reads = try #require(machines.all[1].store.statistics.caches["texts"]?.reads)
    machines.clock.advance(by: .seconds(3))
    #expect(try await machines[1].value(for: "k") == "a")
    machines.network.renewLeases()
    #expect(try await machines[1].value(for: "k") { "b" } == "a")
    #expect(try await machines[1].value(for: "k") { "b" } == "a")
    let later = try #require(machines.all[1].store.statistics.caches["texts"]?.reads)
    #expect(later.memory == reads.memory + 2 && later.fresh == reads.fresh + 3)
    for machine in machines.all {
      #expect(machine.store.statistics.caches["texts"]?.loads.loads == 0)
    }
    // One that is stale is no value; nobody loads it.
    machines.clock.advance(by: .seconds(3600))
    machines.network.renewLeases()
    #expect(try await machines[1].value(for: "k") == nil)
    await #expect(throws: StoreError.self) {
      try await machines[0].value(for: String(repeating: "k", count: 1024))
    }
    let cancelled = Task { [shared = machines[0]] in
      withUnsafeCurrentTask { $0?.cancel() }
      return try await shared.value(for: "k")
    }
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    try machines.close()
    await #expect {
      try await machines[0].value(for: "k")
    } throws: { error in
      if case StoreError.closed = error { true } else { false }
    }
  }

  @Test("A save that comes while the server is asked is not replaced by what the server had.")
  func saveDuringRead() async throws {
    let machines = try Machines()
    try await machines[0].save("a", for: "k")
    machines.network.setAutomatic(false)
    let (network, shared) = (machines.network, machines[1])
    async let read = shared.value(for: "k")
    // The server has answered, and the answer is on its way.
    var random = SplitMix64(seed: testSeed())
    while !network.step(&random) { await Task.yield() }
    network.disconnect(1)
    guard case .localOnly = try await shared.save("b", for: "k") else {
      Issue.record("a save without a server")
      return
    }
    _ = try await read
    #expect(try machines.all[1].cache.value(for: "k") == "b")
    network.setAutomatic(true)
    try machines.close()
  }

  @Test("The values of several keys are asked for at once, and those that are nowhere loaded.")
  func several() async throws {
    let machines = try Machines()
    for key in ["a", "b", "c"] { try await machines[0].save(key, for: key) }
    _ = try await machines[1].value(for: "b")
    let keys = ["b", "none", "a", "c", "a", "new"]
    let values = try await machines[1].values(for: keys) { needed in
      #expect(needed == ["none", "new"])
      return needed.map { $0 == "new" ? .value("loaded") : .absent }
    }
    #expect(values == ["b", nil, "a", "c", "a", "loaded"])
    #expect(try await machines[0].value(for: "new") == "loaded")
    try machines.close()
  }

  // MARK: - While the tier is degraded

  @Test("Without the server, local values are returned as unconfirmed, or loaded, as asked for.")
  func degraded() async throws {
    for degraded in [SharedTier.Degraded.serveLocal, .askSource] {
      var options = SharedTier.Options()
      options.whenDegraded = degraded
      let machines = try Machines(2, options)
      try await machines[0].save("a", for: "k")
      machines.network.disconnect(0)
      let entry = try await machines[0].found()
      if degraded == .serveLocal {
        #expect(entry?.value == "a" && entry?.isConfirmed == false)
      } else {
        #expect(entry == nil)
      }
      let loaded = try await machines[0].entry(for: "new") { _ in .value("b") }
      #expect(loaded?.isSaved == true && loaded?.isConfirmed == false)
      #expect(try machines.all[0].cache.value(for: "new") == "b")
      for outcome in [
        try await machines[0].save("c", for: "k"), try await machines[0].remove("new"),
      ] {
        guard case .localOnly(SharedFailure.unreachable) = outcome else {
          Issue.record("\(outcome)")
          continue
        }
      }
      #expect(try machines.all[0].cache.value(for: "k") == "c")
      #expect(try machines.all[0].cache.value(for: "new") == nil)
      // After its lifetime nothing is returned, and a failing source is heard of.
      machines.clock.advance(by: .seconds(3601))
      await #expect(throws: CancellationError.self) {
        try await machines[0].value(for: "k") { throw CancellationError() }
      }
      try machines.close()
    }
  }

  @Test(
    "Without the server, a call that may load counts one read, of this machine and of the tier.")
  func degradedLooks() async throws {
    let machines = try Machines()
    let (machine, shared) = (machines.all[0], machines[0])
    func counts() throws -> [Int] {
      let reads = try #require(machine.store.statistics.caches["texts"]?.reads)
      return [reads.fresh, reads.missing, machine.tier.statistics.failedReads]
    }
    try await shared.save("a", for: "k")
    machines.network.disconnect(0)
    var before = try counts()
    let entry = try #require(try await shared.foundByLoad())
    #expect(entry.value == "a" && entry.origin == .disk && !entry.isConfirmed)
    #expect(zip(try counts(), before).map { $0 - $1 } == [1, 0, 1])
    before = try counts()
    #expect(try await shared.foundByLoad("new") == nil)
    #expect(zip(try counts(), before).map { $0 - $1 } == [0, 1, 1])
    // A change by this machine alone.
    try await shared.save("b", for: "k")
    #expect(try await shared.foundByLoad()?.value == "b")
    // What the tier has is asked for again as soon as it can be.
    machines.network.connect(0)
    #expect(try await shared.foundByLoad() == nil)
    try await machines[1].save("c", for: "k")
    let last = try await shared.foundByLoad()
    #expect(last?.value == "c" && last?.isConfirmed == true)
    try machines.close()
  }

  // MARK: - Loads

  @Test(
    "A load that began before another machine's save or removal does not replace it.",
    arguments: [true, false])
  func overtaken(bySave: Bool) async throws {
    let machines = try Machines()
    try await machines[1].save("old", for: "k", lifetime: .fresh(for: .seconds(60)))
    machines.clock.advance(by: .seconds(61))
    machines.network.renewLeases()
    let other = machines[1]
    let loaded = try await machines[0].entry(for: "k") { _ in
      if bySave {
        try await other.save("new", for: "k")
      } else {
        try await other.remove("k")
      }
      return .value("loaded")
    }
    #expect(loaded?.value == "loaded" && loaded?.isSaved == false && loaded?.isConfirmed == false)
    for number in 0..<2 {
      #expect(try await machines[number].found()?.value == (bySave ? "new" : nil))
    }
    // A load that begins after a removal is saved.
    if !bySave { #expect(try await machines[0].value(for: "k") { "again" } == "again") }
    #expect(try await machines[1].found()?.value == (bySave ? "new" : "again"))
    try machines.close()
  }

  @Test(
    "A load does not write an older value after the server has lost what another machine saved.",
    arguments: ["DEL", "FLUSHALL"])
  func lost(command: String) async throws {
    let machines = try Machines()
    let (network, other) = (machines.network, machines[1])
    let loaded = try await machines[0].entry(for: "k") { _ in
      try await other.save("new", for: "k")
      if command == "DEL" {
        network.execute("DEL", "ld1:test:texts:k")
      } else {
        network.execute("FLUSHALL")
      }
      return .value("old")
    }
    #expect(loaded?.value == "old" && loaded?.isSaved == false)
    for number in 0..<2 { #expect(try await machines[number].found() == nil) }
    // The next load is saved.
    #expect(try await machines[0].value(for: "k") { "newer" } == "newer")
    #expect(try await machines[1].found()?.value == "newer")
    try machines.close()
  }

  @Test("A load is saved that begins after the end of what another machine saved.")
  func ended() async throws {
    let machines = try Machines()
    let (network, shared) = (machines.network, machines[0])
    #expect(try await shared.found() == nil)
    network.setAutomatic(false)
    async let loaded = shared.entry(for: "k") { _ in .value("loaded") }
    while network.requestCount(of: 0) == 0 { await Task.yield() }
    // The server pushes this before it replies.
    network.execute("SET", "ld1:test:texts:k", "x")
    network.execute("DEL", "ld1:test:texts:k")
    network.setAutomatic(true)
    #expect(try await loaded?.isConfirmed == true)
    #expect(try await machines[1].found()?.value == "loaded")
    try machines.close()
  }

  @Test("A caller that comes during a refresh does not get what the tier had before it.")
  func joining() async throws {
    let machines = try Machines()
    try await machines[0].save("old", for: "k")
    machines.clock.advance(by: .seconds(3590))
    machines.network.renewLeases()
    var loading = machines.all[0].cache.loading
    loading.refreshAhead = 0.5
    let (options, shared, gate) = (loading, machines[0], Watched(false))
    let before = try #require(machines.all[0].store.statistics.caches["texts"]?.reads)
    let first = try await shared.entry(for: "k", loading: options) { _ in
      await gate.wait { $0 }
      return .value("loaded")
    }
    #expect(first?.value == "old" && first?.isConfirmed == true && first?.isRefreshing == true)
    // The value in memory was not used, so this was one read, from disk.
    let reads = try #require(machines.all[0].store.statistics.caches["texts"]?.reads)
    #expect(reads.memory == before.memory && reads.fresh == before.fresh + 1)
    try await machines[1].save("new", for: "k")
    async let second = shared.entry(for: "k", loading: options) { _ in .value("again") }
    // It joins the load, whose value the tier refuses.
    while machines.all[0].store.statistics.caches["texts"]?.loads.joins == 0 { await Task.yield() }
    gate.change { $0 = true }
    #expect(try await second?.value == "loaded")
    #expect(try await second?.isConfirmed == false)
    #expect(try await shared.found()?.value == "new")
    try machines.close()
  }

  @Test("A key that is remembered as absent is asked for after another machine has saved it.")
  func absent() async throws {
    let machines = try Machines()
    var loading = machines.all[0].cache.loading
    loading.absentFor = .seconds(100)
    let options = loading
    func value() async throws -> String? {
      try await machines[0].entry(for: "k", loading: options) { _ in .absent }?.value
    }
    #expect(try await value() == nil)
    _ = machines.network.takeLog()
    #expect(try await value() == nil)
    #expect(machines.network.takeLog() == [])
    // Who has a value for it loads it all the same.
    #expect(try await machines[0].value(for: "k", loading: options) { "own" } == "own")
    try await machines[1].remove("k")
    #expect(try await value() == nil)
    try await machines[1].save("a", for: "k")
    #expect(try await value() == "a")
    // A reply that there is none removes the value of the others.
    let refreshed = try await machines[0].entry(for: "k", loading: options) { _ in .absent }
    #expect(refreshed?.value == "a")
    machines.clock.advance(by: .seconds(3601))
    machines.network.renewLeases()
    #expect(try await value() == nil)
    #expect(try await machines[1].found() == nil)
    // During a load that finds nothing, another machine saves.
    let other = machines[1]
    let none = try await machines[0].entry(for: "other", loading: options) { _ in
      try await other.save("b", for: "other")
      return .absent
    }
    #expect(none == nil)
    #expect(try await machines[0].found("other")?.value == "b")
    try machines.close()
  }

  @Test("A value that its source confirms is fresh again on all machines.")
  func unchanged() async throws {
    let machines = try Machines()
    try await machines[0].save("a", for: "k", validator: Validator("v"))
    machines.clock.advance(by: .seconds(3601))
    machines.network.renewLeases()
    let entry = try await machines[1].entry(for: "k") { previous in
      #expect(previous?.validator == Validator("v"))
      return .unchanged
    }
    #expect(entry?.value == "a" && entry?.isConfirmed == true)
    let other = try #require(try await machines[0].found())
    #expect(other.value == "a" && other.age == .zero && other.validator == Validator("v"))
    try machines.close()
  }

  // MARK: - What is refused, and what is there besides

  @Test("Changes that would pass the tier by are refused, and change nothing.")
  func refused() async throws {
    let machines = try Machines()
    try await machines[0].save("a", for: "k")
    let (store, cache) = (machines.all[0].store, machines.all[0].cache)
    let changes: [(String, () throws -> Void)] = [
      ("save", { try cache.save("x", for: "k") }),
      ("remove", { try cache.remove("k") }),
      ("touch", { try cache.touch("k") }),
      ("conditional save", { try cache.save("x", for: "k", if: .present) }),
      ("update", { try cache.update("k") { $0 = "x" } }),
      ("batch", { try store.write { $0.save("x", for: "k", in: cache) } }),
      ("range", { try cache.remove(in: .from("a")) }),
      ("clear", { try cache.removeAll() }),
      ("second tier", { _ = try SharedCache(cache, in: machines.all[0].tier) }),
    ]
    for (name, change) in changes {
      do {
        try change()
        Issue.record("\(name) was not refused")
      } catch StoreError.invalidArgument(let text) {
        #expect(text.contains("shared"), "\(name): \(text)")
      }
    }
    #expect(try cache.value(for: "k") == "a")
    // Caches that are not shared are as before.
    let own = try store.cache("own", of: String.self)
    try own.save("x", for: "k")
    try own.removeAll()
    let tagged = try await machines[0].entry(for: "t") { _ in .value("x", tags: ["t"]) }
    #expect(tagged?.isSaved == false && tagged?.saveFailure != nil)
    try own.save("x", for: "k", tags: ["t"])
    #expect(throws: StoreError.self) { try SharedCache(own, in: machines.all[0].tier) }
    let sliding = try store.cache("sliding", of: String.self, expiry: .sliding)
    #expect(throws: StoreError.self) { try SharedCache(sliding, in: machines.all[0].tier) }
    try machines.close()
  }

  @Test("What is no record is loaded, and replaced by a save only.")
  func foreign() async throws {
    let machines = try Machines()
    machines.network.execute("SET", "ld1:test:texts:k", "another program's")
    let loaded = try await machines[0].entry(for: "k") { _ in .value("a") }
    #expect(loaded?.value == "a" && loaded?.isSaved == false)
    #expect(
      machines.network.execute("GET", "ld1:test:texts:k")
        == .string(Array("another program's".utf8)))
    try await machines[0].save("b", for: "k")
    #expect(try await machines[1].found()?.value == "b")
    try machines.close()
  }

  @Test("A value over the tier's limit stays on its machine, and ends the value before it.")
  func large() async throws {
    var options = SharedTier.Options()
    options.largestRecord = 1000
    let machines = try Machines(2, options)
    try await machines[0].save("a", for: "k")
    #expect(try await machines[1].found()?.value == "a")
    let outcome = try await machines[0].save(String(repeating: "x", count: 1001), for: "k")
    guard case .localOnly(SharedFailure.tooLarge(_, limit: 1000)) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(try await machines[1].found() == nil)
    #expect(try machines.all[0].cache.value(for: "k")?.count == 1001)
    try machines.close()
  }
}
