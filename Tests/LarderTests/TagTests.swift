import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

extension Fixture {
  /// The tags whose rows are in the store.
  fileprivate func invalidatedTags() throws -> [String] {
    try rows(in: .metadata).map(\.key).filter { $0.starts(with: Metadata.tagPrefix) }
      .map { String(decoding: Metadata.tag(in: $0), as: UTF8.self) }
  }
}

/// Tags, and the invalidation of all entries that have one.
///
/// ``ModelTests`` mixes them with all other operations.
@Suite struct TagTests {
  @Test(
    "An invalidated tag ends the entries saved before, in all caches, for good.",
    arguments: StoreKind.allCases)
  func invalidate(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var numbers = try fixture.store.cache("n", of: Int.self)
    let words = try fixture.store.cache("w", of: String.self, lifetime: .unlimited)
    try numbers.save(1, for: "a", validator: "v", tags: ["user:42", "x"])
    try numbers.save(2, for: "b", tags: ["x"])
    try numbers.save(3, for: "c")
    try words.save("one", for: "a", tags: ["y", "user:42"])
    try fixture.store.invalidate(tag: "user:42")
    try numbers.save(4, for: "d", tags: ["user:42"])
    for _ in 0..<3 {
      numbers = try fixture.store.cache("n", of: Int.self)
      let words = try fixture.store.cache("w", of: String.self, lifetime: .unlimited)
      #expect(try numbers.values(for: ["a", "b", "c", "d"]) == [nil, 2, 3, 4])
      #expect(try words.lookup(for: "a").kind == "expired")
      #expect(try numbers.contains("a") == false && numbers.count() == 3)
      guard case .expired(let metadata) = try numbers.lookup(for: "a") else {
        Issue.record("the entry has not expired")
        return
      }
      #expect(metadata.isInvalidated && metadata.validator == nil)
      #expect(try numbers.touch("a") == false)
      #expect(try numbers.save(5, for: "a", if: .present) == false)
      #expect(try numbers.save(5, for: "a", if: .unchanged(since: metadata.version)) == false)
      #expect(try numbers.update("a") { $0 } == nil)
      #expect(try fixture.store.contents()["n"]?.expired.entries == 1)
      try fixture.reopen()
    }
    numbers = try fixture.store.cache("n", of: Int.self)
    #expect(try numbers.save(6, for: "a", if: .absent))
    #expect(try numbers.entry(for: "a")?.tags == [])
  }

  @Test("A scan finds the entries with a tag.", arguments: StoreKind.allCases)
  func scan(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let words = try fixture.store.cache(
      "w", of: String.self, lifetime: .seconds(10), coder: .json)
    let long = String(repeating: "long ", count: 2000)
    try words.save("1", for: "a", tags: ["x", "caf\u{e9}"])
    try words.save(long, for: "b", tags: ["caf\u{e9}s", "xx"])
    try words.save(long, for: "c", tags: ["cafe\u{301}", "y"])
    try words.save("4", for: "d")
    try words.save("5", for: "e", lifetime: .seconds(1), tags: ["x"])
    fixture.clock.advance(by: .seconds(1))
    func found(_ tag: String, in range: KeyRange<String> = .all) throws -> [String] {
      var found: [String] = []
      let entries = try words.entries(tagged: tag, in: range)
      while let (key, entry) = try entries.next() {
        #expect(try entry.get().tags.contains(tag.precomposedStringWithCanonicalMapping))
        found.append(key)
      }
      let keys = try words.keys(tagged: tag, in: range, order: .descending)
      var backwards: [String] = []
      while let key = try keys.next() { backwards.append(key) }
      #expect(backwards.reversed() == found)
      return found
    }
    #expect(try found("cafe\u{301}") == ["a", "c"] && found("caf\u{e9}") == ["a", "c"])
    #expect(try found("caf\u{e9}", in: .from("b")) == ["c"])
    #expect(try found("x") == ["a"] && found("caf") == [] && found("X") == [])
    try words.touch("c")
    #expect(try found("y") == ["c"])
    try fixture.store.invalidate(tag: "y")
    #expect(try found("caf\u{e9}") == ["a"] && found("y") == [])
    for tag in ["", String(repeating: "t", count: 65)] {
      #expect(throws: StoreError.self) { try words.entries(tagged: tag) }
      #expect(throws: StoreError.self) { try words.keys(tagged: tag) }
    }
  }

  @Test("A scan for a tag returns a damaged entry, whose tags are unknown, as its error.")
  func scanDamaged() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let words = try fixture.store.cache("w", of: String.self)
    try words.save("1", for: "a", tags: ["x"])
    try words.save("2", for: "b", tags: ["x"])
    let (key, intact) = try #require(try fixture.rows(in: .records).first)
    var value = intact
    value[value.count - 1] ^= 1
    try fixture.put(value, under: key)
    let entries = try words.entries(tagged: "y")
    let item = try #require(try entries.next())
    #expect(item.key == "a")
    #expect(throws: StoreError.self) { try item.entry.get() }
    #expect(try entries.next() == nil)
  }

  @Test(
    "A sweep deletes what an invalidation ended, and then forgets the tag.",
    arguments: StoreKind.allCases, [true, false])
  func sweep(kind: StoreKind, isOpen: Bool) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var numbers = try fixture.store.cache("n", of: Int.self, lifetime: .unlimited)
    for number in 0..<600 {
      try numbers.save(number, for: "\(number)", tags: ["t\(number % 2)", "all"])
    }
    try fixture.store.invalidate(tag: "t0")
    try fixture.reopen()
    if isOpen { _ = try fixture.store.cache("n", of: Int.self, lifetime: .unlimited) }
    #expect(try fixture.invalidatedTags() == ["t0"])
    #expect(fixture.store.statistics.mayHaveBacklog)
    #expect(try fixture.store.sweep() == 300)
    #expect(try fixture.invalidatedTags() == [])
    #expect(try fixture.store.sweep() == 0)
    try fixture.reopen()
    numbers = try fixture.store.cache("n", of: Int.self, lifetime: .unlimited)
    #expect(try numbers.count() == 300)
    #expect(try fixture.rows(in: .records).count == 300)
  }

  @Test("Texts that are equal are one tag, whatever their bytes.")
  func normalization() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("n", of: Int.self)
    try numbers.save(1, for: "a", tags: ["caf\u{E9}"])
    try numbers.save(2, for: "b", tags: ["cafe\u{301}"])
    #expect(try numbers.entry(for: "b")?.tags == ["caf\u{E9}"])
    try fixture.store.invalidate(tag: "cafe\u{301}")
    #expect(try numbers.count() == 0)
  }

  @Test("Tags and spans over their limits are refused, and nothing is written.")
  func limits() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("n", of: Int.self)
    try numbers.save(1, for: "a")
    let before = try KeySpace.allCases.flatMap { try fixture.rows(in: $0).map(\.value) }
    let long = String(repeating: "x", count: 65)
    for tags in [[""], [long], ["ok", ""], Array(repeating: "t", count: 17)] {
      #expect(throwsInvalidArgument { try numbers.save(2, for: "a", tags: tags) })
      #expect(throwsInvalidArgument { try numbers.save(2, for: "a", if: .present, tags: tags) })
      #expect(
        throwsInvalidArgument {
          try fixture.store.write { $0.save(2, for: "a", in: numbers, tags: tags) }
        })
    }
    #expect(throwsInvalidArgument { try fixture.store.invalidate(tag: "") })
    #expect(throwsInvalidArgument { try fixture.store.invalidate(tag: long) })
    #expect(try KeySpace.allCases.flatMap { try fixture.rows(in: $0).map(\.value) } == before)
    let most = (0..<16).map { "\($0)" + String(repeating: "\u{1F600}", count: 15) }
    try numbers.save(2, for: "a", tags: most)
    #expect(try numbers.entry(for: "a")?.tags == most)
    try fixture.store.invalidate(tag: most[15])
    #expect(try numbers.value(for: "a") == nil)
  }

  @Test(
    "A change of an entry that was read before an invalidation does not bring it back.",
    arguments: StoreKind.allCases)
  func lateChanges(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("n", of: Int.self)
    for key in ["update", "save", "touch", "stay"] { try numbers.save(1, for: key, tags: ["t"]) }
    var values: [Int?] = []
    try numbers.update("update") { value in
      values.append(value)
      if values.count == 1 { try fixture.store.invalidate(tag: "t") }
      value = value.map { $0 + 1 }
    }
    #expect(values == [1, nil])
    #expect(try numbers.count() == 0)
    let hooked = InterruptedEngine(fixture.engine)
    var options = Store.Options()
    options.clock = fixture.clock
    let store = try Store(engine: hooked, options: options, origin: .disk)
    let others = try store.cache("n", of: Int.self)
    for key in ["save", "touch"] { try others.save(1, for: key, tags: ["t"]) }
    let entry = try #require(try others.entry(for: "save"))
    hooked.beforeNextWrite = { try store.invalidate(tag: "t") }
    #expect(try others.save(2, for: "save", if: .unchanged(since: entry)) == false)
    try others.save(1, for: "touch", tags: ["t"])
    hooked.beforeNextWrite = { try store.invalidate(tag: "t") }
    _ = try others.touch("touch")
    hooked.beforeNextWrite = nil
    #expect(try others.values(for: ["save", "touch"]) == [nil, nil])
  }

  @Test(
    "Observers of caches with tagged entries see the invalidation in the order of commits.",
    arguments: StoreKind.allCases)
  func observation(kind: StoreKind) async throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("n", of: Int.self)
    let plain = try fixture.store.cache("p", of: Int.self)
    let (changes, others) = (numbers.changes(), plain.changes())
    try numbers.save(1, for: "a", tags: ["t"])
    try fixture.store.invalidate(tag: "t")
    try numbers.save(2, for: "b", tags: ["t"])
    try fixture.store.sweep()
    try fixture.store.close()
    var found: [String] = []
    for await change in changes { found.append("\(change.key ?? "*") \(change.kind)") }
    #expect(
      found == ["a set(1)", "* invalidated(tag: \"t\")", "b set(2)", "a expired"])
    for await change in others { Issue.record("\(change)") }
  }

  @Test("A damaged row of a tag is reported, and salvage ends all entries with the tag.")
  func damagedRow() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("n", of: Int.self)
    try numbers.save(1, for: "a", tags: ["t"])
    try fixture.store.invalidate(tag: "t")
    try numbers.save(2, for: "b", tags: ["t"])
    try numbers.save(3, for: "c", tags: ["u"])
    let key = Metadata.tag(Array("t".utf8))
    var value = try #require(try fixture.engine.get(key.span.bytes))
    value[0] ^= 1
    try fixture.put(value, under: key)
    #expect(throwsCorrupt("", "") { try fixture.reopen() })
    try fixture.engine.close()
    let place = try TemporaryDirectory()
    let copy = URL(filePath: place.path("copy"))
    let report = try Store.salvage(from: fixture.directory, to: copy)
    #expect(report.endedTags == ["t"] && !report.isComplete)
    #expect("\(report)".contains("All entries with the invalidated tag \"t\" have ended."))
    let store = try Store(at: copy)
    let salvaged = try store.cache("n", of: Int.self, lifetime: .unlimited)
    #expect(try salvaged.values(for: ["a", "b", "c"]) == [nil, nil, 3])
    try salvaged.save(4, for: "b", tags: ["t"])
    #expect(try salvaged.value(for: "b") == 4)
    try store.close()
  }

  @Test("Nothing saved after an invalidation ends, and nothing saved before is seen after it.")
  func threads() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let store = fixture.store
    let numbers = try store.cache("n", of: Int.self)
    let failures = Mutex<[String]>([])
    let rounds = 200 * proofFactor
    // Each writer has keys of its own; the invalidations and sweeps are everybody's.
    onThreads(4) { thread in
      do {
        for round in 0..<rounds {
          let key = "\(thread)-\(round % 5)"
          try numbers.save(round, for: key, tags: ["t\(thread)", "all"])
          if round % 7 == 0 { try numbers.touch(key) }
          try store.invalidate(tag: "t\(thread)", durability: .processCrash)
          let seen = try numbers.value(for: key)
          if let seen { failures.withLock { $0.append("\(key) shows \(seen) of \(round)") } }
          try numbers.save(round, for: key, tags: ["t\(thread)"])
          if round % 11 == thread { try store.sweep() }
          let kept = try numbers.value(for: key)
          if kept != round { failures.withLock { $0.append("\(key) lost \(round)") } }
        }
      } catch {
        failures.withLock { $0.append("\(error)") }
      }
    }
    #expect(failures.withLock { $0 } == [])
    try store.sweep()
    #expect(try fixture.invalidatedTags() == [])
  }

  /// The next call finds out when the database is reopened.
  @Test("An invalidation whose write failed and took effect is found when the store is reopened.")
  func lateInvalidation() throws {
    let base = InMemoryEngine()
    let engine = InterruptedEngine(base)
    let store = try Store(engine: engine, origin: .memory)
    let numbers = try store.cache("n", of: Int.self)
    try numbers.save(1, for: "a", tags: ["t"])
    try numbers.save(2, for: "b", tags: ["u"])
    for tag in ["t", "u"] {
      engine.beforeNextWrite = { throw StoreError.io("a failure") }
      #expect(throws: StoreError.self) { try store.invalidate(tag: tag) }
    }
    #expect(try numbers.values(for: ["a", "b"]) == [1, 2])
    var rows = WriteBatch()
    let key = Metadata.tag(Array("t".utf8))
    rows.put(key.span.bytes, stamp: InvalidatedTags.stamp) {
      $0.append(zeros: InvalidatedTags.stamp.end)
    }
    try base.write(&rows, synced: true)
    // As the engine does when it has reopened the database.
    let participant = try #require(engine.participant)
    let areSame = participant.reopened { key throws(StoreError) in
      try base.get(key.span.bytes)
    }
    #expect(areSame)
    #expect(try numbers.values(for: ["a", "b"]) == [nil, 2])
    #expect(try store.sweep() == 1)
    try numbers.save(3, for: "a", tags: ["t"])
    #expect(try numbers.value(for: "a") == 3)
  }

  @Test("A sweep in the background deletes what an invalidation ended, in parts.")
  func background() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("n", of: Int.self, lifetime: .unlimited)
    for key in 0..<10 { try numbers.save(key, for: "\(key)", tags: ["t"]) }
    try fixture.store.invalidate(tag: "t")
    var scan = try TagScan(of: fixture.store)
    var deleted: [Int] = []
    try numbers.save(10, for: "10", tags: ["t"])
    while !scan.isFinished {
      var steps = 4
      deleted.append(try scan.run(in: fixture.store.context, steps: &steps))
      try numbers.save(1, for: "0", tags: ["t"])
    }
    #expect(deleted == [3, 4, 3])
    #expect(try fixture.invalidatedTags() == [])
    #expect(try numbers.values(for: ["0", "1", "10"]) == [1, nil, 10])
  }
}
