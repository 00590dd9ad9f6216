import Foundation
import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

/// A shared cache and what else a store does with it.
@Suite(.timeLimit(.minutes(5)))
struct SharedSeamTests {
  /// A cache of one machine, with another name for its values' version.
  private func cache(
    _ store: Store, version: Int
  ) throws -> Cache<String, String> {
    try store.cache(
      "texts", of: String.self, lifetime: .fresh(for: .hours(1)),
      schema: version == 1
        ? Schema(version: 1) : Schema(version: 2).reading(1, as: String.self) { $0 + "!" })
  }

  private func options(_ clock: ManualClock) -> Store.Options {
    var options = Store.Options()
    options.clock = clock
    return options
  }

  @Test("A record of an older schema is read by all, and of a newer one only by who knows it.")
  func schemas() async throws {
    let clock = ManualClock()
    let network = SimulatedNetwork(clients: 2, clock)
    let (old, new) = (
      Store.inMemory(options: options(clock)), Store.inMemory(options: options(clock))
    )
    let first = try SharedCache(cache(old, version: 1), in: network.tier())
    let second = try SharedCache(cache(new, version: 2), in: network.tier())
    try await first.save("a", for: "k")
    #expect(try await second.found()?.value == "a!")
    try await second.save("b", for: "k")
    // The old program loads for itself, and does not replace what it cannot read.
    let loaded = try await first.entry(for: "k") { _ in .value("c") }
    #expect(loaded?.value == "c" && loaded?.isSaved == false && loaded?.saveFailure != nil)
    #expect(try await second.found()?.value == "b")
  }

  /// What a call meets that looks for an entry on disk while the server is away.
  enum Obstacle: CaseIterable {
    case suspension, damage, failingDisk, fullDisk, returningServer
  }

  @Test(
    "Without the server, a call that finds its value on disk meets what a load would meet.",
    arguments: Obstacle.allCases)
  func obstacles(obstacle: Obstacle) async throws {
    let (clock, faults) = (ManualClock(), StoreFaults())
    let network = SimulatedNetwork(clients: 2, clock)
    let afterRead = Mutex<(@Sendable () -> Void)?>(nil)
    var options = options(clock)
    options.eventHandler = { event in
      guard case .read = event.kind else { return }
      afterRead.withLock { $0.take() }?()
    }
    let store = Store.inMemory(options: options, faults: faults)
    let texts = try cache(store, version: 1)
    let shared = try SharedCache(texts, in: network.tier())
    let otherStore = Store.inMemory(options: self.options(clock))
    let other = try SharedCache(cache(otherStore, version: 1), in: network.tier())
    try await shared.save("old", for: "k")
    network.disconnect(0)
    func load(_ key: String = "k") async throws -> LoadedEntry<String>? {
      try await shared.entry(for: key) { _ in .value("loaded") }
    }
    switch obstacle {
    case .suspension:
      try store.suspend()
      await #expect(throws: StoreError.self) { try await load() }
      try store.resume()
    case .damage:
      try texts.damageEntry(for: "k")
      let loaded = try await load()
      #expect(loaded?.value == "loaded" && loaded?.isSaved == true && loaded?.isConfirmed == false)
      #expect(try texts.value(for: "k") == "loaded")
      return
    case .failingDisk:
      faults.failsReads = true
      await #expect(throws: StoreError.self) { try await load() }
      faults.failsReads = false
    case .fullDisk:
      faults.isDiskFull = true
      let loaded = try await load("new")
      #expect(loaded?.value == "loaded" && loaded?.isSaved == false && loaded?.saveFailure != nil)
    case .returningServer:
      try await other.save("new", for: "k")
      // After the disk was read, and before the tier is asked.
      afterRead.withLock { $0 = { network.connect(0) } }
      let entry = try await load()
      #expect(entry?.value == "new" && entry?.origin == .shared && entry?.isConfirmed == true)
      return
    }
    let entry = try await load()
    #expect(entry?.value == "old" && entry?.isConfirmed == false)
  }

  @Test("Without the server, an entry of a newer schema is not replaced by a load.")
  func newerSchemaWithoutServer() async throws {
    let clock = ManualClock()
    let directory = try TemporaryDirectory()
    let network = SimulatedNetwork(clients: 1, clock)
    let (place, tier) = (URL(filePath: directory.path("store")), try network.tier())
    func open(_ version: Int) throws -> (Store, SharedCache<String, String>) {
      let store = try Store(at: place, options: options(clock))
      return (store, try SharedCache(cache(store, version: version), in: tier))
    }
    let (newer, shared) = try open(2)
    try await shared.save("new", for: "k")
    network.disconnect(0)
    try newer.close()
    for version in [1, 2] {
      let (store, shared) = try open(version)
      let entry = try #require(try await shared.entry(for: "k") { _ in .value("loaded") })
      #expect(entry.value == (version == 2 ? "new" : "loaded"))
      #expect((entry.saveFailure == nil) == (version == 2))
      try store.close()
    }
  }

  @Test("Machines whose clocks differ by an hour see other ages, and the same values.")
  func skew() async throws {
    for seconds in [-3600, 3600] {
      let (clock, skewed) = (ManualClock(), ManualClock())
      skewed.set(clock.now().addingTimeInterval(Double(seconds)))
      let network = SimulatedNetwork(clients: 2, clock)
      func shared(_ clock: ManualClock) throws -> SharedCache<String, String> {
        let store = Store.inMemory(options: options(clock))
        let cache = try store.cache("texts", of: String.self, lifetime: .fresh(for: .hours(2)))
        return try SharedCache(cache, in: network.tier())
      }
      let (first, second) = (try shared(clock), try shared(skewed))
      try await first.save("a", for: "k")
      let found = try #require(try await second.found())
      #expect(found.value == "a" && found.isConfirmed && found.age == .seconds(seconds))
      // The last change wins, whatever date it has.
      try await second.save("b", for: "k")
      #expect(try await first.found()?.value == "b")
      try await first.save("c", for: "k")
      #expect(try await second.found()?.value == "c")
      try await second.remove("k")
      #expect(try await first.found() == nil)
      #expect(try await first.value(for: "k") { "d" } == "d")
      #expect(try await second.value(for: "k") { "e" } == "d")
      // One that is too old here is loaded here, and then is the value of both.
      clock.advance(by: .seconds(5400))
      skewed.advance(by: .seconds(5400))
      network.renewLeases()
      let isOld = seconds > 0
      #expect(try await second.value(for: "k") { "f" } == (isOld ? "f" : "d"))
      #expect(try await first.found()?.value == (isOld ? "f" : "d"))
    }
  }

  @Test("Migration, sweeps and collection go on, and do not end trust.")
  func migration() async throws {
    let clock = ManualClock()
    let network = SimulatedNetwork(clients: 2, clock)
    let directory = try TemporaryDirectory()
    let options = options(clock)
    let place = URL(filePath: directory.path("store"))
    var store = try Store(at: place, options: options)
    let tier = try network.tier()
    var shared = try SharedCache(cache(store, version: 1), in: tier)
    let long = String(repeating: "x", count: 100_000)
    for (key, value) in [("k", "a"), ("long", long)] { try await shared.save(value, for: key) }
    try store.close()
    store = try Store(at: place, options: options)
    let migrated = try cache(store, version: 2)
    shared = try SharedCache(migrated, in: tier)
    #expect(try store.migrate(migrated).migrated == 2)
    _ = network.takeLog()
    #expect(try await shared.found()?.value == "a!")
    #expect(try await shared.found("long")?.value == long + "!")
    #expect(network.takeLog() == ["GETRANGE", "GETRANGE"])
    try await store.compact()
    for key in ["k", "long"] { #expect(try await shared.found(key)?.isConfirmed == true) }
    clock.advance(by: .seconds(3601))
    network.renewLeases()
    _ = try store.sweep()
    #expect(try migrated.count() == 0)
    try store.close()
  }

  @Test("Entries that a budget has evicted are found in the tier again.")
  func budget() async throws {
    let clock = ManualClock()
    let network = SimulatedNetwork(clients: 1, clock)
    let store = Store.inMemory(options: options(clock))
    let budget = 10_000
    let small = try store.cache("texts", of: String.self, byteBudget: budget)
    let shared = try SharedCache(small, in: network.tier())
    func value(_ number: Int) -> String { "\(number) " + String(repeating: "x", count: 400) }
    for number in 0..<100 { try await shared.save(value(number), for: "\(number)") }
    let left = try small.count()
    #expect(left > 0 && left * 400 < budget)
    for number in 0..<100 {
      let entry = try await shared.found("\(number)")
      #expect(entry?.value == value(number) && entry?.isConfirmed == true)
    }
    #expect(try small.count() * 400 < budget)
  }

  @Test("A store that was restored from a backup does not use its older copies.")
  func backup() async throws {
    let clock = ManualClock()
    let network = SimulatedNetwork(clients: 1, clock)
    let directory = try TemporaryDirectory()
    func place(_ name: String) -> URL { URL(filePath: directory.path(name)) }
    let tier = try network.tier()
    let store = try Store(at: place("store"), options: options(clock))
    var shared = try SharedCache(cache(store, version: 1), in: tier)
    for key in ["same", "changed", "removed"] { try await shared.save("old", for: key) }
    try store.backup(to: place("backup"))
    try await shared.save("new", for: "changed")
    try await shared.remove("removed")
    try store.close()
    try Store.restore(from: place("backup"), to: place("restored"))
    let restored = try Store(at: place("restored"), options: options(clock))
    let copy = try cache(restored, version: 1)
    shared = try SharedCache(copy, in: tier)
    #expect(try copy.value(for: "removed") == "old")
    #expect(try await shared.found("same")?.origin == .disk)
    #expect(try await shared.found("changed")?.value == "new")
    #expect(try await shared.found("removed") == nil)
    try restored.close()
  }

  @Test("A read-only store cannot share a cache.")
  func readOnly() async throws {
    let machines = try Machines(1)
    try machines.all[0].store.close()
    var options = Store.Options()
    options.access = .readOnly
    let store = try Store(at: machines.place(of: 0), options: options)
    let texts = try store.cache("texts", of: String.self, lifetime: .fresh(for: .hours(1)))
    #expect(throws: StoreError.self) { try SharedCache(texts, in: machines.all[0].tier) }
    try store.close()
  }

  @Test("What a program without the tier has put on disk is not used, as after an import.")
  func withoutTier() async throws {
    let machines = try Machines(1)
    try await machines[0].save("a", for: "k")
    try machines.all[0].store.close()
    let store = try Store(at: machines.place(of: 0))
    let texts = try store.cache("texts", of: String.self, lifetime: .fresh(for: .hours(1)))
    try texts.save("imported", for: "k")
    try store.close()
    try machines.reopen(0)
    let entry = try await machines[0].found()
    #expect(entry?.value == "a" && entry?.origin == .shared)
    try machines.close()
  }

  @Test("Observers hear of what a machine finds, and of what it saves and removes.")
  func observers() async throws {
    let machines = try Machines()
    let changes = machines.all[1].cache.changes()
    try await machines[0].save("a", for: "k")
    #expect(try await machines[1].found()?.value == "a")
    try await machines[1].save("b", for: "k")
    try await machines[1].remove("k")
    try machines.close()
    var kinds: [String] = []
    for await change in changes {
      switch change.kind {
      case .set: kinds.append("set")
      case .removed: kinds.append("removed")
      default: kinds.append("\(change.kind)")
      }
    }
    #expect(kinds == ["set", "set", "removed"])
  }

  /// Two machines with stores in memory, the first with these faults, and its own cache.
  private func pair(
    _ faults: StoreFaults
  ) throws -> (
    first: SharedCache<String, String>, second: SharedCache<String, String>,
    local: Cache<String, String>
  ) {
    let clock = ManualClock()
    let network = SimulatedNetwork(clients: 2, clock)
    let local = try cache(Store.inMemory(options: options(clock), faults: faults), version: 1)
    let other = try cache(Store.inMemory(options: options(clock)), version: 1)
    return (
      try SharedCache(local, in: network.tier()), try SharedCache(other, in: network.tier()), local
    )
  }

  @Test("On a full disk, values are found in the tier, and saved there.")
  func diskFull() async throws {
    let faults = StoreFaults()
    let (first, second, _) = try pair(faults)
    try await second.save("a", for: "k")
    faults.isDiskFull = true
    #expect(try await first.found()?.value == "a")
    let loaded = try await first.entry(for: "new") { _ in .value("b") }
    #expect(loaded?.value == "b" && loaded?.saveFailure != nil)
    #expect(try await second.found("new")?.value == "b")
    await #expect(throws: StoreError.self) { try await first.save("c", for: "k") }
    faults.isDiskFull = false
    #expect(try await first.found()?.value == "c")
  }

  /// What happens to a machine's store while it loads.
  enum Trouble: CaseIterable {
    case none, suspension, suspensionThatLasts, closing
  }

  @Test(
    "A load that another machine has overtaken leaves nothing, whatever befalls the store.",
    arguments: Trouble.allCases)
  func overtaken(trouble: Trouble) async throws {
    let machines = try Machines()
    let (mine, other) = (machines.all[0], machines[1])
    let changes = mine.cache.changes(for: "k")
    let load = Task {
      try await mine.shared.entry(for: "k") { _ in
        try await other.save("new", for: "k")
        switch trouble {
        case .none: break
        case .suspension:
          try mine.store.suspend()
          try mine.store.resume()
        case .suspensionThatLasts: try mine.store.suspend()
        case .closing: try mine.store.close()
        }
        return .value("loaded")
      }
    }
    if trouble == .closing {
      await #expect(throws: StoreError.self) { try await load.value }
    } else {
      let loaded = try #require(try await load.value)
      #expect(loaded.value == "loaded" && !loaded.isSaved && !loaded.isConfirmed)
    }
    if trouble == .suspensionThatLasts { try mine.store.resume() }
    if trouble == .closing { try machines.reopen(0) }
    #expect(try machines.all[0].cache.value(for: "k") == nil)
    for number in 0..<2 { #expect(try await machines[number].found()?.value == "new") }
    #expect(try machines.all[0].cache.value(for: "k") == "new")
    try machines.close()
    var seen: [String] = []
    for await change in changes {
      if case .set(let entry) = change.kind { seen.append(entry.value) }
    }
    #expect(seen == (trouble == .closing ? [] : ["new"]))
  }

  @Test("On a full disk, a load that another machine has overtaken leaves nothing.")
  func overtakenOnFullDisk() async throws {
    let faults = StoreFaults()
    let (first, second, local) = try pair(faults)
    let loaded = try await first.entry(for: "k") { _ in
      try await second.save("new", for: "k")
      faults.isDiskFull = true
      return .value("loaded")
    }
    #expect(loaded?.value == "loaded" && loaded?.isSaved == false)
    #expect(try await first.found()?.value == "new")
    faults.isDiskFull = false
    #expect(try await first.found()?.value == "new")
    #expect(try local.value(for: "k") == "new")
  }

  @Test("A store that is closed, and a key that is too long, are said as such.")
  func errors() async throws {
    let machines = try Machines()
    let long = String(repeating: "x", count: SharedKeys.limit)
    await #expect(throws: StoreError.self) { try await machines[0].save("a", for: long) }
    await #expect(throws: StoreError.self) { try await machines[0].value(for: long) { "a" } }
    try machines.close()
    await #expect(throws: StoreError.self) { try await machines[0].value(for: "k") { "a" } }
    await #expect(throws: StoreError.self) { try await machines[0].save("a", for: "k") }
    await #expect(throws: StoreError.self) { try await machines[0].remove("k") }
  }

  @Test("Many callers of one key ask the tier once, and load once.")
  func stampede() async throws {
    let machines = try Machines()
    _ = machines.network.takeLog()
    let shared = machines[0]
    let gate = Watched(false)
    let values = await withTaskGroup(of: String?.self) { group in
      for number in 0..<16 {
        group.addTask {
          do {
            return try await shared.value(for: "k") {
              await gate.wait { $0 }
              return "\(number)"
            }
          } catch {
            return "\(error)"
          }
        }
      }
      // One that came after the load would ask the tier, too.
      let store = machines.all[0].store
      while store.statistics.caches["texts"]?.loads.joins != 15 { await Task.yield() }
      gate.change { $0 = true }
      return await group.reduce(into: Set<String?>()) { $0.insert($1) }
    }
    #expect(values.count == 1)
    #expect(machines.network.takeLog() == ["GET", "SET", "GETRANGE"])
    try machines.close()
  }

  @Test("Many callers of a key that another machine has saved ask the tier once.")
  func manyReaders() async throws {
    let machines = try Machines()
    #expect(try await machines[1].save("v", for: "k") == .shared)
    _ = machines.network.takeLog()
    let (shared, store) = (machines[0], machines.all[0].store)
    machines.network.holdNextRequest(of: 0)
    let callers = (0..<16).map { _ in Task { try await shared.value(for: "k") { "loaded" } } }
    await machines.network.waitForHeldRequest(of: 0)
    // One waits for the first one's look, and the others for its flight.
    while store.statistics.caches["texts"]?.loads.joins != 14 { await Task.yield() }
    machines.network.releaseRequest(of: 0)
    for caller in callers { #expect(try await caller.value == "v") }
    #expect(machines.network.takeLog() == ["GET"])
    #expect(store.statistics.caches["texts"]?.loads.loads == 0)
    try machines.close()
  }
}
