import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// A change of a key during its load wins.
@Suite(.timeLimit(.minutes(10))) struct LoadChangeTests {
  typealias Numbers = Cache<String, Int>

  /// A change during a load, and what is under the key afterwards.
  struct Change: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// The value after the change, if the entry was there before; nil for none.
    var after: Int?
    let make: @Sendable (Store, Numbers) throws -> Void
  }

  static let changes = [
    Change(testDescription: "save", after: 9) { try $1.save(9, for: "a") },
    Change(testDescription: "remove") { try $1.remove("a") },
    Change(testDescription: "save and remove") {
      try $1.save(9, for: "a")
      try $1.remove("a")
    },
    Change(testDescription: "conditional save", after: 9) {
      _ = try $1.update("a") { $0 = 9 }
    },
    Change(testDescription: "batch", after: 9) { store, numbers in
      try store.write { $0.save(9, for: "a", in: numbers) }
    },
    Change(testDescription: "range removal") { try $1.remove(in: .all) },
    Change(testDescription: "clear") { try $1.removeAll() },
    Change(testDescription: "tag of the reply") { store, _ in try store.invalidate(tag: "new") },
    Change(testDescription: "tag of the previous entry") { store, _ in
      try store.invalidate(tag: "old")
    },
  ]

  @Test(
    "The callers get the loaded value, and the change stays.", arguments: changes, [false, true])
  func changeWins(change: Change, hasEntry: Bool) async throws {
    // Without an entry there is no previous tag.
    if !hasEntry, change.testDescription == "tag of the previous entry" { return }
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    if hasEntry { try numbers.save(1, for: "a", tags: ["old"]) }
    let source = Source()
    let task = Task { try await numbers.refresh("a", load: source.load) }
    await source.begun(1)
    try change.make(fixture.store, numbers)
    source.reply([.success(.value(2, tags: ["new"]))])
    let entry = try #require(try await task.value)
    #expect(entry.value == 2 && !entry.isSaved && entry.saveFailure == nil)
    #expect(entry.origin == .loaded && entry.age == .zero)
    // The tag of the reply does not end the entry that was there.
    let after = change.testDescription == "tag of the reply" && hasEntry ? 1 : change.after
    #expect(try numbers.value(for: "a") == after)
    // Later callers start another load.
    source.reply(3)
    #expect(try await numbers.refresh("a", load: source.load)?.isSaved == true)
    #expect(try numbers.value(for: "a") == 3)
    #expect(source.begun == 2)
    #expect(fixture.store.context.loads.isEmpty)
  }

  @Test("A caller that comes after the change does not join the load.", arguments: changes)
  func laterCaller(change: Change) async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a", tags: ["old"])
    let (early, late) = (Source(), Source([.success(.value(3))]))
    let task = Task { try await numbers.refresh("a", load: early.load) }
    await early.begun(1)
    try change.make(fixture.store, numbers)
    let later = Task { try await numbers.refresh("a", load: late.load)?.value }
    await eventually("the later caller loads or has joined") {
      late.begun == 1 || fixture.loads().joins == 1
    }
    #expect(late.begun == 1)
    early.reply([.success(.value(2, tags: ["new"]))])
    #expect(try await later.value == 3)
    #expect(try await task.value?.isSaved == false)
    #expect(try numbers.value(for: "a") == 3)
  }

  /// Begins a load of "a".
  private func refresh(
    _ numbers: Cache<String, Int>, by source: Source
  ) async -> Task<LoadedEntry<Int>?, any Error> {
    let task = Task { try await numbers.refresh("a", load: source.load) }
    await source.begun(1)
    return task
  }

  @Test("Loads of a key that began before and after an invalidation are saved in their order.")
  func loadsInOrder() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.absentFor = .seconds(60) }
    for (isEarlyFirst, isAbsent) in [(true, false), (false, false), (true, true), (false, true)] {
      let (early, late) = (Source(), Source())
      let first = await refresh(numbers, by: early)
      try fixture.store.invalidate(tag: "other")
      let second = await refresh(numbers, by: late)
      let reply: LoadReply<Int> = isAbsent ? .absent : .value(2)
      if isEarlyFirst {
        early.reply(1)
        #expect(try await first.value?.isSaved == true)
        #expect(try numbers.value(for: "a") == 1)
      }
      late.reply([.success(reply)])
      #expect(try await second.value?.value == (isAbsent ? nil : 2))
      if !isEarlyFirst {
        early.reply(1)
        #expect(try await first.value?.isSaved == false)
      }
      let left = isAbsent ? nil : 2
      #expect(try numbers.value(for: "a") == left)
      #expect(try await numbers.value(for: "a") { _ in .value(3) } == left)
      try numbers.remove("a")
    }
    #expect(try await numbers.value(for: "a") { _ in .value(3) } == 3)
    #expect(fixture.store.context.loads.isEmpty)
  }

  @Test("A drop of the cache during a load wins.")
  func drop() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let task = Task { try await numbers.entry(for: "a", load: source.load) }
    await source.begun(1)
    try fixture.store.drop(cache: "numbers")
    source.reply(2)
    let entry = try #require(try await task.value)
    #expect(entry.value == 2 && !entry.isSaved)
    #expect(try fixture.numbers().value(for: "a") == nil)
  }

  @Test("An invalidation of another tag, and a change of another key, do not matter.")
  func otherChanges() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a", tags: ["old"])
    let source = Source()
    let task = Task { try await numbers.refresh("a", load: source.load) }
    await source.begun(1)
    try fixture.store.invalidate(tag: "other")
    try numbers.save(5, for: "b")
    try numbers.remove("c")
    try fixture.numbers("others").removeAll()
    source.reply([.success(.value(2, tags: ["new"]))])
    #expect(try await task.value?.isSaved == true)
    #expect(try numbers.value(for: "a") == 2)
  }

  @Test("Sweeps, and reads that restart lifetimes, do not keep a load from being saved.")
  func housekeeping() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(2000))
    let source = Source()
    let task = Task { try await numbers.entry(for: "a", load: source.load) }
    await source.begun(1)
    #expect(try fixture.store.sweep() == 1)
    source.reply(2)
    #expect(try await task.value?.isSaved == true)
  }

  @Test("An invalidation wins in each order with the save, in one group of commits.")
  func invalidationInGroup() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let register = fixture.store.context.loads
    let numbers = try fixture.numbers()
    let key = try numbers.core.recordKey(of: "a", id: numbers.core.id)
    for isTagKnownBefore in [true, false] {
      let ticket = WriteTicket()
      #expect(register.add(key, ticket, of: numbers.core.loads))
      if isTagKnownBefore { register.add(tags: [Array("t".utf8)], to: key, ticket) }
      try fixture.store.invalidate(tag: "t")
      #expect(ticket.isRevoked == isTagKnownBefore)
      register.add(tags: [Array("t".utf8)], to: key, ticket)
      #expect(ticket.isRevoked)
      register.remove(key, ticket)
    }
    #expect(register.isEmpty)
  }

  @Test("No removed value comes back: loads against removals, on real threads.")
  func loadAgainstRemove() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let (store, numbers) = (fixture.store, try fixture.numbers())
    // The source's version; a removal follows each change of it.
    let version = Watched(0)
    for round in 1...500 * proofFactor {
      let load = Task { try await numbers.value(for: "a") { _ in .value(version.read { $0 }) } }
      let removal = Task {
        try await store.run {
          version.change { $0 = round }
          try numbers.remove("a")
        }
      }
      _ = try await (load.value, removal.value)
      let value = try numbers.value(for: "a")
      #expect(value == nil || value == round, "round \(round): an old value is back")
    }
  }

  /// A migration runs before the first write of the save.
  ///
  /// With a lifetime, that write notes that the cache has own lifetimes, and the record is read
  /// after it. Without, the record was read before.
  @Test(
    "A reply that nothing has changed keeps a record that was migrated during its save.",
    arguments: [nil, .hours(1)] as [Lifetime?])
  func unchangedDuringMigration(lifetime: Lifetime?) async throws {
    let engine = InterruptedEngine(InMemoryEngine())
    let old = try Store(engine: engine, origin: .memory)
    try old.cache("numbers", of: Int.self).save(1, for: "a", validator: "v")
    let store = try Store(engine: engine, origin: .memory)
    let schema = Schema<Int>(version: 2).reading(1, as: Int.self) { $0 + 100 }
    let numbers = try store.cache("numbers", of: Int.self, schema: schema)
    let reports = Mutex<MigrationReport?>(nil)
    let entry = try await numbers.refresh("a") { _ in
      engine.beforeNextWrite = {
        let report = try store.migrate(numbers)
        reports.withLock { $0 = report }
      }
      return .unchanged(lifetime: lifetime)
    }
    #expect(reports.withLock { $0?.migrated } == 1)
    #expect(entry?.value == 101 && entry?.isSaved == true)
    // Without readers of the old version.
    let newest = try Store(engine: engine, origin: .memory)
    let migrated = try newest.cache("numbers", of: Int.self, schema: Schema(version: 2))
    let saved = try #require(try migrated.entry(for: "a"))
    #expect(saved.value == 101 && saved.lifetime == lifetime && saved.validator == "v")
  }

  @Test("A reply that nothing has changed does not restamp what an earlier load has saved since.")
  func unchangedAfterEarlierLoad() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a", validator: "old")
    let (early, late) = (Source(), Source())
    let first = await refresh(numbers, by: early)
    try fixture.store.invalidate(tag: "other")
    let second = await refresh(numbers, by: late)
    early.reply(2)
    #expect(try await first.value?.isSaved == true)
    late.reply([.success(.unchanged(lifetime: nil, validator: "late"))])
    let entry = try await second.value
    #expect(entry?.value == 1 && entry?.isSaved == false)
    let saved = try #require(try numbers.entry(for: "a"))
    #expect(saved.value == 2 && saved.validator == nil)
  }

  @Test("A reply that nothing has changed does not write a payload in a segment again.")
  func unchangedInSegment() async throws {
    let fixture = try LoadFixture(.segments)
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a")
    let before = fixture.base.engine.segmentTotals.appendedBytes
    #expect(try await numbers.refresh("a") { _ in .unchanged }?.isSaved == true)
    #expect(fixture.base.engine.segmentTotals.appendedBytes == before && before > 0)
    #expect(try numbers.value(for: "a") == 1)
  }

  @Test("A load that is registered while a change is written is closed to later callers.")
  func registeredDuringWrite() throws {
    let engine = InterruptedEngine(InMemoryEngine())
    let store = try Store(engine: engine, origin: .memory)
    let numbers = try store.cache("numbers", of: Int.self)
    let participant = try #require(engine.participant)
    let key = try numbers.core.recordKey(of: "a", id: numbers.core.id)
    for isApplied in [true, false] {
      let failed: Set = isApplied ? [] : [0]
      var batch = WriteBatch()
      let requirement = batch.require(key.bytes, .absent)
      batch.put(key.bytes.span.bytes, if: requirement) { $0.append(1) }
      participant.willWrite(batch, without: failed)
      let ticket = WriteTicket()
      #expect(store.context.loads.add(key, ticket, of: numbers.core.loads))
      participant.didWrite(batch, without: failed)
      #expect(ticket.isRevoked == isApplied)
      store.context.loads.remove(key, ticket)
    }
  }

  @Test("The key of a load is no longer registered when its callers go on.")
  func endOfRegistration() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let (register, numbers) = (fixture.store.context.loads, try fixture.numbers())
    // The caller goes on within the call that resumes it, before anything else happens.
    let isRegistered = Task(executorPreference: ImmediateExecutor()) {
      _ = try await numbers.value(for: "a") { _ in .value(1) }
      return !register.isEmpty
    }
    #expect(try await isRegistered.value == false)
  }
}
