import Foundation
import Larder
import LarderTestSupport
import Testing

/// A store whose directory was moved or deleted refuses writes, and leaves a replacement alone.
@Suite struct PlaceTests {
  private let text = String(repeating: "x", count: 1000)

  private func open(_ path: String) throws(StoreError) -> LevelDBEngine {
    var options = LevelDBOptions()
    options.writeBufferBytes = 64 << 10
    return try LevelDBEngine(at: path, options: options)
  }

  /// Opens a store with a table and a log.
  private func filled(_ path: String, _ value: String) throws -> LevelDBEngine {
    let engine = try open(path)
    for index in 0..<100 { try engine.put("key\(index)", value) }
    try engine.compact(EngineRange())
    try engine.put("last", value)
    return engine
  }

  private func isGone(_ error: StoreError) -> Bool {
    switch error {
    case .io(let message), .writesDisabled(let message): message.contains("is gone")
    default: false
    }
  }

  private func expectGone(_ call: Comment, _ body: () throws(StoreError) -> Void) {
    do throws(StoreError) {
      try body()
      Issue.record(call)
    } catch {
      #expect(isGone(error), "\(error), \(call)")
    }
  }

  /// Writes until the engine refuses, which must be before LevelDB starts a new log.
  private func expectWritingEnds(_ engine: LevelDBEngine, durably: Bool) {
    var written = 0
    do throws(StoreError) {
      while written < 60 {
        var batch = WriteBatch()
        batch.put("stray\(written)", text)
        try engine.write(&batch, synced: durably)
        written += 1
      }
      Issue.record("writes still succeed")
    } catch {
      #expect(isGone(error), "\(error)")
    }
    #expect(durably ? written == 0 : written < 20)
    for _ in 0..<3 {
      expectGone("a flush") { () throws(StoreError) in try engine.flush() }
      expectGone("a compaction") { () throws(StoreError) in
        try engine.compact(EngineRange())
      }
    }
  }

  @Test("Writes to a store in a deleted directory fail.", arguments: [true, false])
  func deletedDirectory(durably: Bool) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let old = try filled(path, "old")
    try FileManager.default.removeItem(atPath: path)

    expectWritingEnds(old, durably: durably)
    #expect(try old.value("last") == "old")
    #expect(!FileManager.default.fileExists(atPath: path))

    let new = try open(path)
    #expect(try new.entries() == [])
    try new.put("k", "new")
    try old.close()
    try new.flush()
    try new.close()
    let again = try open(path)
    #expect(try again.entries() == [Entry("k", "new")])
    try again.close()
  }

  @Test("A directory that replaced the store's is not changed.", arguments: [true, false])
  func replacedDirectory(durably: Bool) throws {
    let directory = try TemporaryDirectory()
    let (path, aside) = (directory.path("store"), directory.path("aside"))
    let old = try filled(path, "old")
    try FileManager.default.moveItem(atPath: path, toPath: aside)
    let other = try filled(path, "other")
    try other.close()
    let before = try FileFacts.all(in: path)

    expectWritingEnds(old, durably: durably)
    #expect(try old.value("last") == "old")
    #expect(try FileFacts.all(in: path) == before)
    try old.close()
    #expect(try FileFacts.all(in: path) == before)

    for (path, value) in [(path, "other"), (aside, "old")] {
      let engine = try open(path)
      #expect(engine.recovery == nil)
      for index in 0..<100 { #expect(try engine.value("key\(index)") == value) }
      #expect(try engine.value("last") == value)
      try engine.close()
    }
  }

  @Test("Writes succeed again once the directory is back.")
  func restoredDirectory() throws {
    let directory = try TemporaryDirectory()
    let (path, aside) = (directory.path("store"), directory.path("aside"))
    let engine = try filled(path, "old")
    try FileManager.default.moveItem(atPath: path, toPath: aside)
    expectWritingEnds(engine, durably: true)
    try FileManager.default.moveItem(atPath: aside, toPath: path)

    try engine.put("back", "again")
    try engine.flush()
    try engine.close()
    let again = try open(path)
    #expect(try again.value("back") == "again")
    #expect(try again.value("last") == "old")
    try again.close()
  }

  @Test("The dates of files do not matter.", arguments: [-2_000_000_000, 0, 100_000_000_000])
  func fileDates(seconds: Int) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let date = Date(timeIntervalSince1970: TimeInterval(seconds))
    func setDates() throws {
      let names = try FileManager.default.contentsOfDirectory(atPath: path)
      for name in names.map({ "\(path)/\($0)" }) + [path] {
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: name)
      }
    }
    let engine = try filled(path, "old")
    try setDates()
    try engine.put("later", "value")
    try engine.flush()
    try engine.compact(EngineRange())
    try engine.close()
    try setDates()

    let again = try open(path)
    #expect(again.recovery == nil)
    #expect(try again.entries().count == 102)
    #expect(try again.value("later") == "value")
    try again.close()
  }
}
