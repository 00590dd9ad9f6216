import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Changes that depend on the entry that is there, and the validators and versions of entries.
///
/// ``ModelTests`` mixes them with all other operations.
@Suite struct ConditionTests {
  private static let lifetime = Lifetime.fresh(for: .seconds(100), thenStaleFor: .seconds(50))

  private func open(_ fixture: Fixture) throws -> Cache<String, Int> {
    try fixture.store.cache("numbers", of: Int.self, lifetime: Self.lifetime)
  }

  @Test(
    "Missing and expired entries are absent; fresh and stale ones are present.",
    arguments: StoreKind.allCases)
  func states(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try open(fixture)
    #expect(try numbers.save(1, for: "a", if: .present) == false)
    #expect(try numbers.lookup(for: "a").kind == "missing")
    #expect(try numbers.save(1, for: "a", if: .absent))
    let savedAt = fixture.clock.now()
    for (age, isPresent) in [(99.0, true), (100, true), (149, true), (150, false)] {
      fixture.clock.set(savedAt + age)
      #expect(try numbers.remove("a", if: isPresent ? .absent : .present) == false, "age \(age)")
      #expect(try numbers.save(2, for: "b\(age)", if: .present) == false)
    }
    #expect(try numbers.save(3, for: "a", if: .absent))
    #expect(try numbers.value(for: "a") == 3)
    #expect(try numbers.save(4, for: "a", if: .present))
    #expect(try numbers.remove("a", if: .present))
    #expect(try numbers.remove("a", if: .absent) == false)
  }

  @Test("Touching and migrating keep the version of an entry; a save changes it.")
  func versions() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: NoteV1.self)
    try notes.save(NoteV1(name: "a"), for: "k")
    let saved = try #require(try notes.entry(for: "k"))
    #expect(try notes.touch("k"))
    #expect(try notes.touch("k"))
    try fixture.reopen()
    let readers = try fixture.store.cache("notes", of: Note.self, schema: .reading1And2)
    #expect(try fixture.store.migrate(readers).migrated == 1)
    #expect(try readers.entry(for: "k")?.version == saved.version)
    #expect(try readers.save(Note(title: "b"), for: "k", if: .unchanged(since: saved)))
    #expect(try readers.entry(for: "k")?.version != saved.version)
    #expect(try readers.save(Note(title: "c"), for: "k", if: .unchanged(since: saved)) == false)
    #expect(try readers.value(for: "k")?.title == "b")
  }

  @Test("A version of a removed and saved entry no longer holds.", arguments: StoreKind.allCases)
  func removed(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try open(fixture)
    try numbers.save(1, for: "a")
    let entry = try #require(try numbers.entry(for: "a"))
    try numbers.removeAll()
    #expect(try numbers.remove("a", if: .unchanged(since: entry)) == false)
    try numbers.save(1, for: "a")
    #expect(try numbers.remove("a", if: .unchanged(since: entry)) == false)
    #expect(try numbers.value(for: "a") == 1)
  }

  @Test(
    "An expired entry offers its validator, and a touch makes it fresh.",
    arguments: StoreKind.allCases)
  func validator(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try open(fixture)
    try numbers.save(7, for: "a", validator: "\"one\"")
    #expect(try numbers.entry(for: "a")?.validator == "\"one\"")
    fixture.clock.advance(by: .seconds(150))
    guard case .expired(let metadata) = try numbers.lookup(for: "a") else {
      Issue.record("the entry has not expired")
      return
    }
    #expect(metadata.validator?.text == "\"one\"")
    #expect(try numbers.touch("a", validator: Validator([0xFF])))
    try fixture.reopen()
    let entry = try #require(try open(fixture).entry(for: "a"))
    #expect(entry.value == 7 && entry.validator?.bytes == [0xFF] && entry.validator?.text == nil)
    #expect(entry.version == metadata.version)
    try open(fixture).save(8, for: "a")
    #expect(try open(fixture).entry(for: "a")?.validator == nil)
  }

  @Test("A validator has 1 to 4,096 bytes; others are refused, and nothing is written.")
  func validatorLimits() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try open(fixture)
    try numbers.save(1, for: "a")
    let before = try fixture.rows(in: .records).map(\.value)
    for count in [0, 4097] {
      let validator = Validator(Array(repeating: 1, count: count))
      #expect(throwsInvalidArgument { try numbers.save(2, for: "a", validator: validator) })
      #expect(throwsInvalidArgument { try numbers.touch("a", validator: validator) })
      #expect(
        throwsInvalidArgument { try numbers.save(2, for: "a", if: .present, validator: validator) })
      #expect(
        throwsInvalidArgument {
          try fixture.store.write { $0.save(2, for: "a", in: numbers, validator: validator) }
        })
    }
    #expect(try fixture.rows(in: .records).map(\.value) == before)
    let longest = Validator(Array(repeating: 1, count: 4096))
    try fixture.store.write { $0.save(2, for: "a", in: numbers, validator: longest) }
    #expect(try numbers.entry(for: "a")?.validator == longest)
  }

  @Test("A touched record with a validator has the bytes that are documented.")
  func bytes() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let data = try fixture.store.cache("data", of: Data.self, coder: .bytes)
    try data.save(Data([1, 2]), for: "k", validator: "v")
    let saved = try fixture.onlyRecord()
    #expect(saved.value[1] == 0b11 && saved.value[3] == 0)
    #expect(Array(saved.value[36...]) == [1, UInt8(ascii: "v"), 1, 2])
    try data.touch("k", validator: "wx")
    let touched = try fixture.onlyRecord()
    #expect(touched.value[1] == 0b11 && touched.value[3] == 0b10)
    let expected = saved.value[24..<32] + [2] + Array("wx".utf8) + [1, 2]
    #expect(Array(touched.value[36...]) == Array(expected))
    #expect(touched.value[24..<32] != saved.value[24..<32])
  }

  @Test("No update by eight threads is lost.", arguments: StoreKind.allCases)
  func updates(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try open(fixture)
    let failures = Mutex<[String]>([])
    onThreads(8) { thread in
      do {
        for _ in 0..<200 {
          _ = try numbers.update("n") { $0 = ($0 ?? 0) + 1 }
          if thread < 4 { try numbers.touch("n") }
        }
      } catch {
        failures.withLock { $0.append("\(error)") }
      }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(try numbers.value(for: "n") == 1600)
  }

  @Test("One of eight threads wins an absent key.", arguments: StoreKind.allCases)
  func winners(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try open(fixture)
    let wins = Mutex<[String: Int]>([:])
    onThreads(8) { thread in
      do {
        for number in 0..<200 {
          let key = "\(number)"
          if try numbers.save(thread, for: key, if: .absent) {
            wins.withLock { $0[key, default: 0] += 1 }
          }
        }
      } catch {
        wins.withLock { $0["\(error)"] = 0 }
      }
    }
    #expect(wins.withLock { $0.count } == 200)
    #expect(wins.withLock { $0.values.allSatisfy { $0 == 1 } })
  }

  @Test(
    "A batch whose condition does not hold writes and clears nothing.",
    arguments: StoreKind.allCases)
  func batches(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try open(fixture)
    let words = try fixture.store.cache("words", of: String.self)
    try numbers.save(1, for: "a")
    try words.save("one", for: "w")
    let entry = try #require(try numbers.entry(for: "a"))
    func write(_ condition: Condition, _ key: String) throws {
      try fixture.store.write { batch in
        batch.save("two", for: "x", in: words)
        batch.require(.present, "w", in: words)
        batch.require(condition, key, in: numbers)
        batch.removeAll(from: words)
        batch.save(2, for: "b", in: numbers)
      }
    }
    try numbers.save(3, for: "a")
    let refused: [(Condition, String)] = [
      (.absent, "a"), (.unchanged(since: entry), "a"), (.present, "b"),
      (.unchanged(since: entry), "b"),
    ]
    for (condition, key) in refused {
      let isConflict = throwsStoreError(
        where: { if case .conflict("numbers", key, tries: 1) = $0 { true } else { false } }
      ) { try write(condition, key) }
      #expect(isConflict, "\(condition) \(key)")
      #expect(try numbers.value(for: "b") == nil)
      #expect(try words.values(for: ["w", "x"]) == ["one", nil])
    }
    try write(.present, "a")
    #expect(try numbers.value(for: "b") == 2)
    #expect(try words.count() == 0)
    try fixture.reopen()
    #expect(try open(fixture).values(for: ["a", "b"]) == [3, 2])
  }

  @Test("A batch is tried again if its condition still holds after another change.")
  func retriedBatch() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let hooked = InterruptedEngine(fixture.engine)
    let store = try Store(engine: hooked, origin: .disk)
    let numbers = try store.cache("numbers", of: Int.self)
    try numbers.save(1, for: "a")
    hooked.beforeNextWrite = { try numbers.save(2, for: "a") }
    try store.write { batch in
      batch.require(.present, "a", in: numbers)
      batch.save(3, for: "b", in: numbers)
    }
    #expect(try numbers.values(for: ["a", "b"]) == [2, 3])
    hooked.beforeNextWrite = { try numbers.remove("a") }
    #expect(
      throwsStoreError(
        where: { if case .conflict("numbers", "a", tries: 2) = $0 { true } else { false } }) {
          try store.write { batch in
            batch.require(.present, "a", in: numbers)
            batch.save(4, for: "b", in: numbers)
          }
        })
    hooked.beforeNextWrite = nil
    #expect(try numbers.value(for: "b") == 3)
  }

  @Test("Transfers by eight threads keep the sum.", arguments: StoreKind.allCases)
  func transfers(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let store = fixture.store
    let accounts = try store.cache("accounts", of: Int.self, byteBudget: 1 << 20)
    for number in 0..<4 { try accounts.save(100, for: "\(number)") }
    let failures = Mutex<[String]>([])
    onThreads(8) { thread in
      var random = SplitMix64(seed: UInt64(thread))
      do {
        for _ in 0..<100 {
          let keys = (0..<4).shuffled(using: &random).prefix(2).map(String.init)
          guard let from = try accounts.entry(for: keys[0]),
            let to = try accounts.entry(for: keys[1])
          else { return failures.withLock { $0.append("an account is missing") } }
          do {
            try store.write { batch in
              batch.require(.unchanged(since: from), keys[0], in: accounts)
              batch.require(.unchanged(since: to), keys[1], in: accounts)
              batch.save(from.value - 1, for: keys[0], in: accounts)
              batch.save(to.value + 1, for: keys[1], in: accounts)
            }
          } catch StoreError.conflict {
            continue
          }
        }
      } catch {
        failures.withLock { $0.append("\(error)") }
      }
    }
    #expect(failures.withLock { $0 } == [])
    let sum = try accounts.values(for: (0..<4).map(String.init)).reduce(0) { $0 + ($1 ?? 0) }
    #expect(sum == 400)
  }

  @Test("An update that loses every try throws `conflict`, and writes nothing.")
  func conflict() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try open(fixture)
    var runs = 0
    #expect(
      throwsStoreError(
        where: { if case .conflict("numbers", "n", tries: 5) = $0 { true } else { false } }) {
          try numbers.update("n", tries: 5) { value in
            runs += 1
            // Another writer, between the read and the commit.
            try numbers.save(-runs, for: "n")
            value = 100
          }
        })
    #expect(runs == 5)
    #expect(try numbers.value(for: "n") == -5)
    #expect(throwsInvalidArgument { try numbers.update("n", tries: 0) { _ in } })
  }

  @Test("An update whose closure throws writes nothing.")
  func failedUpdate() throws {
    struct Refusal: Error {}
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try open(fixture)
    try numbers.save(1, for: "n", validator: "v")
    #expect(throws: Refusal.self) {
      try numbers.update("n") { value in
        value = 2
        throw Refusal()
      }
    }
    #expect(try numbers.entry(for: "n")?.validator == "v")
    try numbers.update("n") { $0 = 3 }
    #expect(try numbers.entry(for: "n")?.validator == nil)
    try numbers.update("n") { $0 = nil }
    #expect(try numbers.lookup(for: "n").kind == "missing")
  }

  @Test("A stale entry stays if an update leaves nil.", arguments: StoreKind.allCases)
  func staleUpdate(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try open(fixture)
    try numbers.save(1, for: "n")
    fixture.clock.advance(by: .seconds(120))
    #expect(try numbers.update("n") { $0 } == nil)
    #expect(try numbers.lookup(for: "n").kind == "stale")
  }

  @Test("A conditional change of a damaged entry throws, and writes nothing.")
  func damaged() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try open(fixture)
    try numbers.save(1, for: "k")
    let record = try fixture.onlyRecord()
    var bytes = record.value
    bytes[40] ^= 1
    try fixture.put(bytes, under: record.key)
    for condition in [Condition.absent, .present] {
      #expect(throwsCorrupt("numbers", "k") { try numbers.save(2, for: "k", if: condition) })
      #expect(throwsCorrupt("numbers", "k") { try numbers.remove("k", if: condition) })
    }
    #expect(throwsCorrupt("numbers", "k") { try numbers.update("k") { $0 = 2 } })
    #expect(try fixture.onlyRecord().value == bytes)
  }
}
