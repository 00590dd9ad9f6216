import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// `Store.importing`.
@Suite struct ImporterTests {
  private struct Stop: Error {}

  private static let lifetime = Lifetime.fresh(for: .seconds(100), thenStaleFor: .seconds(50))

  private func open(_ fixture: Fixture) throws -> Cache<String, [Int]> {
    try fixture.store.cache("c", of: [Int].self, lifetime: Self.lifetime)
  }

  @Test(
    "Values are imported with their dates and fields, and expired ones are not.",
    arguments: StoreKind.allCases)
  func saved(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try open(fixture)
    let now = fixture.clock.now()
    let report = try fixture.store.importing { entries in
      try entries.save([1], for: "fresh", in: cache, savedAt: now - 99)
      try entries.save([2], for: "stale", in: cache, savedAt: now - 149)
      try entries.save([3], for: "expired", in: cache, savedAt: now - 150)
      try entries.save([4], for: "future", in: cache, savedAt: now + 1e6)
      try entries.save(
        [5], for: "own", in: cache, savedAt: now - 1000, lifetime: .seconds(1001),
        validator: "etag", tags: ["t"])
      try entries.save([6], for: "own, expired", in: cache, savedAt: now - 5, lifetime: .seconds(5))
    }
    #expect(report.saved == 4 && report.expired == 2 && report.kept == 0)
    if kind.isOnDisk { try fixture.reopen() }
    let again = try open(fixture)
    #expect(try again.entry(for: "fresh")?.savedAt == now - 99)
    #expect(try again.lookup(for: "stale").kind == "stale")
    #expect(try again.lookup(for: "expired").kind == "missing")
    #expect(try again.entry(for: "future")?.savedAt == now)
    let own = try #require(try again.entry(for: "own"))
    #expect(own.value == [5] && own.savedAt == now - 1000 && own.lifetime == .seconds(1001))
    #expect(own.validator == "etag" && own.tags == ["t"])
    // They are in the expiry index, like values that were saved.
    fixture.clock.set(now + 1e7)
    #expect(try fixture.store.sweep() == 4)
  }

  @Test("An entry that is there is kept, in any state, and so is the first of two values.")
  func kept() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try open(fixture)
    let now = fixture.clock.now()
    fixture.clock.set(now - 1000)
    try cache.save([1], for: "expired")
    fixture.clock.set(now)
    try cache.save([1], for: "fresh")
    let report = try fixture.store.importing { entries in
      for key in ["expired", "fresh", "new", "new"] {
        try entries.save([2], for: key, in: cache, savedAt: now)
      }
      try entries.save([3], for: "new", in: cache, savedAt: now)
      // Written by the rest of the program meanwhile.
      try entries.save([2], for: "meanwhile", in: cache, savedAt: now)
      try cache.save([1], for: "meanwhile")
    }
    #expect(report.saved == 1 && report.kept == 5)
    #expect(try cache.value(for: "fresh") == [1])
    #expect(try cache.value(for: "meanwhile") == [1])
    #expect(try cache.value(for: "new") == [2])
    #expect(try cache.lookup(for: "expired").kind == "expired")
    #expect(fixture.store.statistics.caches["c"]?.saves == 4)
  }

  @Test("An import that ends with an error keeps what it has saved, and can be repeated.")
  func repeated() throws {
    let fixture = try Fixture(.segments)
    defer { fixture.end() }
    let cache = try open(fixture)
    let now = fixture.clock.now()
    func run(failingAt failure: Int?) throws -> ImportReport {
      try fixture.store.importing { entries in
        for index in 0..<1000 {
          if index == failure { throw Stop() }
          try entries.save([index], for: "\(index)", in: cache, savedAt: now - 10)
        }
      }
    }
    #expect(throws: Stop.self) { try run(failingAt: 700) }
    #expect(try cache.count() == 700)
    try fixture.reopen()
    let same = try open(fixture)
    let report = try fixture.store.importing { entries in
      for index in 0..<1000 {
        try entries.save([index], for: "\(index)", in: same, savedAt: now - 10)
      }
    }
    #expect(report.saved == 300 && report.kept == 700)
    for index in stride(from: 0, to: 1000, by: 50) {
      #expect(try same.value(for: "\(index)") == [index])
    }
  }

  @Test("A value that is not allowed is refused, and the import goes on.")
  func refused() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try open(fixture)
    let other = try Fixture(.memory)
    defer { other.end() }
    let foreign = try open(other)
    let doubles = try fixture.store.cache("json", of: Double.self, coder: .json)
    let now = fixture.clock.now()
    let report = try fixture.store.importing { entries in
      try entries.save([1], for: "before", in: cache, savedAt: now)
      #expect(throws: StoreError.self) {
        try entries.save(.nan, for: "not encodable", in: doubles, savedAt: now)
      }
      for seconds in [Double.nan, .infinity, -.infinity] {
        #expect(throws: StoreError.self) {
          let date = Date(timeIntervalSinceReferenceDate: seconds)
          try entries.save([1], for: "date", in: cache, savedAt: date)
        }
      }
      #expect(throws: StoreError.self) {
        try entries.save([1], for: "tags", in: cache, savedAt: now, tags: [""])
      }
      #expect(throws: StoreError.self) {
        try entries.save([1], for: "validator", in: cache, savedAt: now, validator: "")
      }
      #expect(throws: StoreError.self) {
        try entries.save(
          [1], for: String(repeating: "k", count: 65_537), in: cache, savedAt: now)
      }
      #expect(throws: StoreError.self) {
        try entries.save([1], for: "foreign", in: foreign, savedAt: now)
      }
      try entries.save([2], for: "after", in: cache, savedAt: now)
    }
    #expect(report.saved == 2 && report.kept == 0 && report.expired == 0)
    #expect(try cache.count() == 2)
    #expect(try doubles.count() == 0)
  }

  @Test("A budget is kept: an import evicts as saves do.")
  func budget() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("small", of: String.self, byteBudget: 20_000)
    let now = fixture.clock.now()
    let value = String(repeating: "v", count: 100)
    let report = try fixture.store.importing { entries in
      for index in 0..<1000 {
        try entries.save(value, for: "\(index)", in: cache, savedAt: now - 1000 + Double(index))
      }
    }
    #expect(report.saved == 1000)
    let used = try #require(fixture.store.statistics.caches["small"]?.heldBytes)
    #expect(used <= 20_000)
    #expect(throws: StoreError.self, "a value that is larger than the budget") {
      try fixture.store.importing { entries in
        try entries.save(
          String(repeating: "v", count: 20_001), for: "large", in: cache, savedAt: now)
      }
    }
    #expect(try cache.value(for: "999") == value, "the latest entry is evicted last")
  }

  @Test("Nothing is imported into a store that was opened for reading, or is closed.")
  func readOnly() throws {
    let fixture = try Fixture(.disk)
    let cache = try open(fixture)
    fixture.end()
    #expect {
      try fixture.store.importing { entries in
        try entries.save([1], for: "k", in: cache, savedAt: Date())
      }
    } throws: { error in
      if case StoreError.closed = error { true } else { false }
    }
  }
}
