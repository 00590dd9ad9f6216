import AcceptanceRows
import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// Backups, snapshots and salvage take the payloads in segments along.
@Suite(.acceptance) struct SegmentCopyTests {
  private static func options(collects: Bool = false) -> LevelDBOptions {
    var options = SeparationTests.options(from: 1, segmentBytes: 8 << 10)
    options.collectsInBackground = collects
    options.writeBufferBytes = 64 << 10
    return options
  }

  private static func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

  private static func fill(_ engine: LevelDBEngine, _ numbers: Range<Int>, mark: UInt8) throws {
    for number in numbers {
      try SeparationTests.put(key(number), [UInt8](repeating: mark, count: 1000), in: engine)
    }
  }

  /// Expects keys 0 to `count` with this mark in a store.
  private static func expect(_ count: Int, mark: UInt8, in engine: LevelDBEngine) throws {
    let entries = try engine.entries()
    #expect(entries.count == count)
    for entry in entries {
      #expect(isIntact(entry.value, key: entry.key))
      #expect(entry.value.last == mark)
    }
  }

  @Test(
    "A backup shares sealed segments if links are possible, and is restored.",
    arguments: [true, false])
  func backup(linking: Bool) throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    options.files = DirectFiles(refusesLinks: !linking)
    let engine = try LevelDBEngine(at: directory.path("store"), options: options)
    try Self.fill(engine, 0..<20, mark: 1)
    try engine.backup(to: directory.path("backup"), date: 0)
    let segments = try SystemFiles().names(in: directory.path("backup"))
      .filter { $0.hasSuffix(".segment") }
    #expect(segments.count == 3)
    for name in segments {
      let copy = try FileFacts(of: directory.path("backup/\(name)")).node
      let original = "\(directory.path("store"))/\(name)"
      let isShared =
        try SystemFiles().kind(of: original) != nil
        && FileFacts(of: original).node == copy
      #expect(isShared == linking, "\(name)")
    }
    try Self.fill(engine, 0..<20, mark: 2)
    try engine.collectSegments()
    try Self.expect(20, mark: 2, in: engine)
    #expect(try Backup(at: directory.path("backup")).faults() == [])
    try Backup(at: directory.path("backup")).restore(to: directory.path("restored"))
    let marker = try SystemFiles().read(directory.path("restored/LARDER"), limit: 64)
    #expect(StoreMarker.formatVersion(in: marker) == 2)
    let restored = try LevelDBEngine(at: directory.path("restored"), options: Self.options())
    try Self.expect(20, mark: 1, in: restored)
    try restored.close()
    try engine.close()
  }

  @Test("A segment of a backup that was changed or removed is a fault of the backup.")
  func damagedBackup() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path("store"), options: Self.options())
    try Self.fill(engine, 0..<20, mark: 1)
    try engine.backup(to: directory.path("backup"), date: 0)
    try engine.close()
    let path = directory.path("backup/00000002.segment")
    var contents = try SystemFiles().read(path, limit: nil)
    contents[500] ^= 1
    try SystemFiles().remove(path)
    try SystemFiles().create(path, with: contents)
    #expect(try Backup(at: directory.path("backup")).faults().count == 1)
    try SystemFiles().remove(path)
    #expect(try Backup(at: directory.path("backup")).faults().count == 1)
  }

  @Test("A backup has the segments that were begun while it was made.")
  func begunMeanwhile() throws {
    let directory = try TemporaryDirectory()
    let writer = Mutex<(@Sendable () -> Void)?>(nil)
    let links = Atomic<Int>(0)
    var options = Self.options()
    let watch: DirectFiles.Watch = { call in
      // Once: three segments were linked, and it is the turn of the log.
      guard case .link = call, links.add(1, ordering: .relaxed).newValue == 4 else { return }
      let write = writer.withLock { writer in
        defer { writer = nil }
        return writer
      }
      write?()
    }
    options.files = DirectFiles(watch: watch)
    let engine = try LevelDBEngine(at: directory.path("store"), options: options)
    try Self.fill(engine, 0..<20, mark: 1)
    let errors = Mutex<[String]>([])
    writer.withLock { writer in
      writer = {
        do {
          try Self.fill(engine, 0..<20, mark: 2)
        } catch {
          errors.withLock { $0.append("\(error)") }
        }
      }
    }
    try engine.backup(to: directory.path("backup"), date: 0)
    // The newest one is appended to.
    let newest = try #require(
      try SystemFiles().names(in: directory.path("backup")).filter { $0.hasSuffix(".segment") }
        .max())
    #expect(
      try FileFacts(of: directory.path("backup/\(newest)")).node
        != FileFacts(of: directory.path("store/\(newest)")).node)
    try engine.close()
    #expect(errors.withLock { $0 } == [] && writer.withLock { $0 } == nil)
    try Backup(at: directory.path("backup")).restore(to: directory.path("restored"))
    let restored = try LevelDBEngine(at: directory.path("restored"), options: Self.options())
    #expect(restored.recovery == nil)
    try Self.expect(20, mark: 2, in: restored)
    try restored.close()
  }

  @Test(
    "A snapshot is whole although segments are deleted between their listing and their links.",
    arguments: [true, false])
  func deletedMeanwhile(linking: Bool) throws {
    let directory = try TemporaryDirectory()
    let (store, copy) = (directory.path("store"), directory.path("copy"))
    let engine = try LevelDBEngine(at: store, options: Self.options())
    try Self.fill(engine, 0..<20, mark: 1)
    let old = try SystemFiles().names(in: store).filter { $0.hasSuffix(".segment") }
    let errors = Mutex<[String]>([])
    let isDone = Atomic<Bool>(false)
    let watch: DirectFiles.Watch = { call in
      guard case .link = call, !isDone.exchange(true, ordering: .relaxed) else { return }
      do {
        try Self.fill(engine, 0..<20, mark: 2)
        try engine.collectSegments()
      } catch {
        errors.withLock { $0.append("\(error)") }
      }
    }
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: false)
    let files = DirectFiles(refusesLinks: !linking, watch: watch)
    let capture = try StoreCapture(of: store, into: copy, files: files)
    #expect(errors.withLock { $0 } == [] && isDone.load(ordering: .relaxed))
    #expect(try SystemFiles().names(in: store).isDisjoint(with: old))
    #expect(capture.method == (linking ? .links : .copies))
    _ = try capture.cutLogs()
    try SystemFiles().create("\(copy)/LARDER", with: Array(StoreMarker.contents.utf8))
    // A process that has links to files must not write to them.
    var options = Self.options()
    options.readOnlyCause = "a test"
    let opened = try LevelDBEngine(at: copy, options: options)
    try Self.expect(20, mark: 2, in: opened)
    try opened.close()
    try engine.close()
  }

  @Test("Backups and snapshots of a store that is written to and collected are whole.")
  func live() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(
      at: directory.path("store"), options: Self.options(collects: true))
    try Self.fill(engine, 0..<30, mark: 0)
    let isDone = Atomic<Bool>(false)
    let faults = Mutex<[String]>([])
    onThreads(3) { thread in
      do {
        switch thread {
        case 0:
          var round: UInt8 = 0
          while !isDone.load(ordering: .relaxed) {
            round &+= 1
            try Self.fill(engine, 0..<30, mark: round)
          }
        case 1:
          for number in 0..<8 {
            let backup = directory.path("backup \(number)")
            try engine.backup(to: backup, date: 0)
            let restored = directory.path("restored \(number)")
            try Backup(at: backup).restore(to: restored)
            let copy = try LevelDBEngine(at: restored, options: Self.options())
            faults.withLock { $0 += Self.faults(of: copy, count: 30) }
            try copy.close()
          }
          isDone.store(true, ordering: .relaxed)
        default:
          while !isDone.load(ordering: .relaxed) {
            let copy = try LevelDBEngine.readOnly(
              at: directory.path("store"), options: Self.options())
            faults.withLock { $0 += Self.faults(of: copy, count: 30) }
            try copy.close()
          }
        }
      } catch {
        faults.withLock { $0.append("\(error)") }
        isDone.store(true, ordering: .relaxed)
      }
    }
    #expect(faults.withLock { $0 } == [])
    try engine.close()
  }

  private static func faults(of engine: LevelDBEngine, count: Int) -> [String] {
    do {
      let entries = try engine.entries()
      let damaged = entries.filter { !isIntact($0.value, key: $0.key) }
      let faults = damaged.map { "\(String(decoding: $0.key, as: UTF8.self)) is damaged" }
      return entries.count == count ? faults : faults + ["\(entries.count) entries"]
    } catch {
      return ["\(error)"]
    }
  }

  @Test("A snapshot in memory reads segments.")
  func inMemory() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path("store"), options: Self.options())
    try Self.fill(engine, 0..<20, mark: 1)
    let snapshot = try StoreSnapshot(inMemoryOf: directory.path("store"))
    let copy = try snapshot.open(options: Self.options(), cause: "a test")
    try Self.fill(engine, 0..<20, mark: 2)
    try engine.collectSegments()
    try Self.expect(20, mark: 1, in: copy)
    try copy.close()
    try engine.close()
  }

  @Test("Salvage keeps the payloads of a store whose MANIFEST is lost but for an older one.")
  func salvage() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path("store"), options: Self.options())
    try Self.fill(engine, 0..<20, mark: 1)
    try engine.compact(EngineRange())
    try Self.fill(engine, 20..<30, mark: 1)
    try engine.close()
    let names = try SystemFiles().names(in: directory.path("store"))
    let log = try #require(names.filter { $0.hasSuffix(".log") }.max())
    // A damaged log: its first record.
    let path = directory.path("store/\(log)")
    var contents = try SystemFiles().read(path, limit: nil)
    contents[20] ^= 1
    try SystemFiles().replace(path, with: contents)
    try LevelDBEngine.salvage(
      from: directory.path("store"), to: directory.path("new"), options: Self.options()
    ) { old, new throws(StoreError) in
      let cursor = try old.cursor(over: EngineRange(prefix: bytes("key")))
      while try cursor.next() {
        let entry = cursor.entry
        var batch = WriteBatch()
        batch.put(entry.key.span.bytes, entry.value.span.bytes)
        try new.write(&batch, synced: false)
      }
    }
    let new = try LevelDBEngine(at: directory.path("new"), options: Self.options())
    try Self.expect(29, mark: 1, in: new)
    try new.close()
  }
}
