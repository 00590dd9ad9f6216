import LarderEngineSupport
import LarderTesting
import SimulatedDisk
import Testing

@testable import Larder

/// A clear or a drop whose write has failed may take effect later, when the database is reopened.
@Suite struct ClearFaultTests {
  @Test(
    "No save is acknowledged and lost when a clear or drop that failed takes effect meanwhile.",
    arguments: [false, true])
  func duringSave(drops: Bool) throws {
    let disk = SimulatedDisk()
    var options = Store.Options().engineOptions
    options.files = SimulatedFiles(disk)
    let engine = InterruptedEngine(try LevelDBEngine(at: "/store", options: options))
    let store = try Store(engine: engine, origin: .disk)
    var cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
    let other = try store.cache("other", of: Int.self, keyedBy: Int.self)
    try cache.save(1, for: 1)
    disk.fail(inCalls: 1, .failedSync)
    #expect(throws: StoreError.self) {
      if drops { try store.drop(cache: "cache") } else { try cache.removeAll() }
    }
    disk.heal()
    // Another thread reopens the database, when the save has its row already.
    engine.beforeNextWrite = {
      #expect(throws: StoreError.self) { try other.save(3, for: 3) }
    }
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
}
