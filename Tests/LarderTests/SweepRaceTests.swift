import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Sweeps delete nothing that other threads write meanwhile.
@Suite struct SweepRaceTests {
  /// A change to the entry `a`, which has expired, just before it is deleted.
  enum Change: CaseIterable {
    case save, saveIntoTheSameBucket, touch, remove, removeAndSave, migrate, clear
  }

  @Test(
    "An entry written just before its deletion is not deleted.", arguments: StoreKind.allCases,
    Change.allCases)
  func writtenMeanwhile(kind: StoreKind, change: Change) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let clock = fixture.clock
    let engine = InterruptedEngine(fixture.engine)
    var options = Store.Options()
    options.clock = clock
    let store = try Store(engine: engine, options: options, origin: .disk)
    let cache = try store.cache("cache", of: Int.self, lifetime: .seconds(100))
    let start = clock.now()
    try cache.save(1, for: "a")
    try cache.save(1, for: "b")
    clock.advance(by: .seconds(150))
    engine.beforeNextWrite = {
      switch change {
      case .save: try cache.save(2, for: "a")
      case .saveIntoTheSameBucket:
        clock.set(start)
        try cache.save(2, for: "a")
      case .touch: try cache.touch("a")
      case .remove: try cache.remove("a")
      case .removeAndSave:
        try cache.remove("a")
        try cache.save(2, for: "a")
      case .migrate: try store.migrate(cache)
      case .clear: try cache.removeAll()
      }
    }
    let deleted = try store.sweep()

    switch change {
    case .save, .removeAndSave:
      #expect(deleted == 1)
      #expect(try cache.value(for: "a") == 2)
    case .touch:
      #expect(deleted == 1)
      #expect(try cache.value(for: "a") == 1)
    case .saveIntoTheSameBucket:
      // By the date at which the sweep began, the new entry had expired, too.
      #expect(deleted == 2)
      #expect(try cache.lookup(for: "a").kind == "missing")
    case .migrate: #expect(deleted == 2)
    case .remove, .clear: #expect(try cache.lookup(for: "a").kind == "missing")
    }
    #expect(try cache.lookup(for: "b").kind == "missing")
    #expect(try fixture.disagreement(at: start + 150, in: store, hasSaved: true) == nil)
    clock.set(start + 500)
    try store.sweep()
    #expect(try fixture.rows(in: .notes).isEmpty)
    #expect(try fixture.rows(in: .records).isEmpty)
  }

  @Test(
    "A note without a record is dropped, and the record is noted again if it is saved.",
    arguments: StoreKind.allCases)
  func rowBeforeRecord(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let clock = fixture.clock
    let engine = InterruptedEngine(fixture.engine)
    var options = Store.Options()
    options.clock = clock
    let store = try Store(engine: engine, options: options, origin: .disk)
    let cache = try store.cache("cache", of: Int.self, lifetime: .seconds(100))
    try cache.save(1, for: "a")
    try cache.remove("a")
    let start = clock.now()
    clock.advance(by: .seconds(150))
    engine.beforeNextWrite = {
      // An earlier date gives the same index row again, and an entry that is live by that date.
      clock.set(start)
      try cache.save(2, for: "a")
      engine.beforeNextWrite = {
        // The sweep must check this entry again.
        try cache.save(3, for: "a")
        clock.set(start + 150)
        try cache.save(4, for: "a")
      }
    }
    #expect(try store.sweep() == 0)
    #expect(try cache.value(for: "a") == 4)
    #expect(try fixture.disagreement(at: clock.now(), in: store, hasSaved: true) == nil)
  }

  @Test("A note that is made again stays if the sweep fails there.", arguments: StoreKind.allCases)
  func rewrittenRow(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let clock = fixture.clock
    let engine = InterruptedEngine(fixture.engine)
    var options = Store.Options()
    options.clock = clock
    let store = try Store(engine: engine, options: options, origin: .disk)
    let cache = try store.cache("cache", of: Int.self, lifetime: .seconds(100))
    let start = clock.now()
    for key in ["a", "b"] { try cache.save(1, for: key) }
    try cache.remove("b")
    clock.advance(by: .seconds(150))
    engine.beforeNextWrite = {
      clock.set(start)
      for key in ["a", "b"] { try cache.save(2, for: key) }
      engine.beforeNextWrite = { throw StoreError.io("cut off") }
    }
    #expect(throws: StoreError.self) { try store.sweep() }
    #expect(try fixture.buckets(of: cache, in: store).keys.sorted() == ["a", "b"])
    clock.set(start + 150)
    #expect(try store.sweep() == 2)
    #expect(try fixture.rows(in: .notes).isEmpty)
  }
}
