import LarderEngineSupport
import LarderTesting
import SimulatedDisk
import Testing

@testable import Larder

/// A clear or a drop whose write has failed may take effect later, when the database is reopened.
@Suite struct ClearFaultTests {
  private let disk = SimulatedDisk()

  private func open() throws -> (engine: InterruptedEngine, store: Store) {
    var options = Store.Options().engineOptions
    options.files = SimulatedFiles(disk)
    let engine = InterruptedEngine(try LevelDBEngine(at: "/store", options: options))
    return (engine, try Store(engine: engine, origin: .disk))
  }

  /// Lets `body` fail so that it takes effect when the database is reopened.
  ///
  /// Another thread reopens it just before the next write, and then runs `meanwhile`.
  private func failLate(
    _ body: () throws -> Void, in store: Store, on engine: InterruptedEngine,
    meanwhile: @escaping () throws -> Void = {}
  ) throws {
    let other = try store.cache("other", of: Int.self, keyedBy: Int.self)
    disk.fail(inCalls: 1, .failedSync)
    #expect(throws: StoreError.self) { try body() }
    disk.heal()
    engine.beforeNextWrite = {
      #expect(throws: StoreError.self) { try other.save(1, for: 1) }
      try meanwhile()
    }
  }

  @Test(
    "No save is acknowledged and lost when a clear or drop that failed takes effect meanwhile.",
    arguments: [false, true])
  func duringSave(drops: Bool) throws {
    let (engine, store) = try open()
    var cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
    try cache.save(1, for: 1)
    let clear = { if drops { try store.drop(cache: "cache") } else { try cache.removeAll() } }
    try failLate(clear, in: store, on: engine)
    #expect {
      try cache.save(2, for: 2)
    } throws: {
      ($0 as? StoreError)?.isWriteFailure == true
    }
    if drops { cache = try store.cache("cache", of: Int.self, keyedBy: Int.self) }
    #expect(try cache.count() == 0)
    try cache.save(4, for: 4)
    #expect(try cache.value(for: 4) == 4)
    try store.close()
  }

  @Test("A cache that is registered anew when a clear takes effect keeps what is saved in it.")
  func duringRegistration() throws {
    var (engine, store) = try open()
    var cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
    try cache.save(1, for: 1)
    try failLate({ try cache.removeAll() }, in: store, on: engine)
    // The first entry with a tag.
    try cache.save(2, for: 2, tags: ["tag"])
    #expect(try cache.value(for: 2) == 2)
    try store.close()
    (engine, store) = try open()
    cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
    #expect(try cache.value(for: 2) == 2)
    try store.invalidate(tag: "tag")
    #expect(try cache.value(for: 2) == nil)
    try store.close()
  }

  @Test("A clear leaves no rows of a clear that failed and took effect before it.")
  func duringClear() throws {
    let (engine, store) = try open()
    let cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
    try cache.save(1, for: 1)
    try failLate({ try cache.removeAll() }, in: store, on: engine) { try cache.save(2, for: 2) }
    try cache.removeAll()
    #expect(try cache.count() == 0)
    let records = EngineRange(prefix: [KeySpace.records.rawValue])
    #expect(try !engine.headCursor(over: records).next())
    try store.close()
  }
}
