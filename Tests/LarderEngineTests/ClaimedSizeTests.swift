import Foundation
@testable import Larder
import LarderTestSupport
import Synchronization
import Testing

/// No size that a file claims is allocated before it was compared with the file and the limits.
@Suite(.timeLimit(.minutes(5))) struct ClaimedSizeTests {
  /// Runs `body`, and expects that it takes less than a claim of 4 GiB, whatever other tests need.
  static func expectSmall(
    _ name: String, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) rethrows {
    let before = peakMemory()
    try body()
    #expect(peakMemory() - before < 3 << 30, "\(name)", sourceLocation: sourceLocation)
  }

  // MARK: - Pointers to segments

  private static let key = bytes("key 1")

  /// Makes a store with three values in a segment, and changes the pointer of the second one.
  private static func make(
    at path: String, payloadCount: UInt32? = nil, offset: UInt32? = nil
  ) throws {
    let engine = try LevelDBEngine(at: path, options: SeparationTests.options(from: 1))
    for number in 0..<3 {
      try SeparationTests.put(
        bytes("key \(number)"), [UInt8](repeating: 7, count: 1000), in: engine, synced: true)
    }
    try engine.close()
    // Without segments, the engine reads and writes rows as they are.
    let raw = try LevelDBEngine(at: path)
    var row = try #require(try raw.value(key))
    let pointer = row.count - 20
    row.replaceSubrange(
      pointer + 4..<pointer + 8,
      with: withUnsafeBytes(of: (offset ?? 16).littleEndian, Array.init))
    row.replaceSubrange(
      pointer + 8..<pointer + 12,
      with: withUnsafeBytes(of: (payloadCount ?? 1000).littleEndian, Array.init))
    var batch = WriteBatch()
    batch.put(key.span.bytes, row.span.bytes)
    try raw.write(&batch, synced: true)
    try raw.close()
  }

  /// Expects that the changed value is damaged, and the others are not.
  private static func expectDamaged(_ engine: LevelDBEngine, _ name: String) throws {
    let entries = try engine.entries()
    #expect(entries.map { isIntact($0.value, key: $0.key) } == [true, false, true], "\(name)")
    let value = try #require(try engine.value(key))
    #expect(!isIntact(value, key: key) && value.count < 1000, "\(name)")
  }

  static let pointers: [(payloadCount: UInt32?, offset: UInt32?)] = [
    (.max, nil), (.max, .max), (nil, .max), (1 << 31, nil), (33 << 20, nil), (32 << 20, nil),
    (100_000, nil),
  ]

  @Test(
    "A pointer that claims more than its segment has costs its own value, and no memory.",
    arguments: pointers)
  func pointer(payloadCount: UInt32?, offset: UInt32?) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try Self.make(at: path, payloadCount: payloadCount, offset: offset)
    let options = SeparationTests.options(from: 1)
    try Self.expectSmall("readers of \(payloadCount ?? 0)") {
      let engine = try LevelDBEngine(at: path, options: options)
      try Self.expectDamaged(engine, "get and scan")
      try engine.collectSegments()
      try Self.expectDamaged(engine, "after a collection")
      try engine.backup(to: directory.path("backup"), date: 0)
      try engine.close()
      try Backup(at: directory.path("backup")).restore(to: directory.path("restored"))
      for place in [path, directory.path("restored")] {
        let reading = try LevelDBEngine.readOnly(at: place, options: options)
        try Self.expectDamaged(reading, place)
        try reading.close()
      }
      try LevelDBEngine.salvage(from: path, to: directory.path("salvaged"), options: options) {
        old, _ throws(StoreError) in
        var buffer = ValueBuffer()
        _ = try old.get(Self.key.span.bytes, into: &buffer)
      }
    }
  }

  @Test("A payload that ends behind its segment is not asked for, however small its claim is.")
  func beyondSegment() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try Self.make(at: path, payloadCount: 20 << 20)
    let largest = Mutex(0)
    var options = SeparationTests.options(from: 1)
    options.files = DirectFiles(watch: { call in
      if case .read(let count) = call { largest.withLock { $0 = max($0, count) } }
    })
    let engine = try LevelDBEngine(at: path, options: options)
    try Self.expectDamaged(engine, "get and scan")
    #expect((1000..<10_000).contains(largest.withLock { $0 }))
    try engine.close()
  }

  @Test("A payload over the limit is not read, even if its segment is that large.")
  func largeSegment() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try Self.make(at: path, payloadCount: 0xF000_0000)
    let engine = try LevelDBEngine(at: path, options: SeparationTests.options(from: 1))
    // The file is sparse: it takes no room.
    try #require(truncate("\(path)/00000001.segment", 4 << 30) == 0)
    try Self.expectSmall("a large segment") { try Self.expectDamaged(engine, "get and scan") }
    try engine.close()
  }

  @Test("A value that was appended after its segment was opened is read.")
  func grown() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(
      at: directory.path("store"), options: SeparationTests.options(from: 1))
    for number in 0..<50 {
      let tail = [UInt8](repeating: UInt8(number), count: 100 * number + 1)
      try SeparationTests.put(bytes("key \(number)"), tail, in: engine)
      try SeparationTests.expect(tail, under: bytes("key \(number)"), in: engine)
    }
    try engine.close()
  }

  // MARK: - LevelDB's files

  private static func varint(_ number: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    appendVarint(number, to: &bytes)
    return bytes
  }

  /// A MANIFEST with one table of this level and size.
  private static func manifest(level: UInt64, bytes count: UInt64) -> [UInt8] {
    let comparator = bytes("leveldb.BytewiseComparator")
    var edit: [UInt8] = [1] + varint(UInt64(comparator.count)) + comparator
    for (tag, number) in [(2, 3), (9, 0), (3, 10), (4, 7)] as [(UInt8, UInt64)] {
      edit += [tag] + varint(number)
    }
    edit += [7] + varint(level) + varint(5) + varint(count)
    edit +=
      varint(9) + [UInt8](repeating: 1, count: 9) + varint(9) + [UInt8](repeating: 2, count: 9)
    var log = LogWriter()
    log.add(edit)
    return log.bytes
  }

  @Test(
    "A MANIFEST that claims an impossible level or size of a table is damaged.",
    arguments: [
      (7, 1000), (1 << 40, 1000), (.max, 1000), (0, 1 << 40), (0, 1 << 62),
      (0, UInt64(Int.max)), (0, UInt64(Int.max) + 1), (0, .max),
    ] as [(UInt64, UInt64)])
  func manifestClaims(level: UInt64, count: UInt64) throws {
    #expect(Manifest(Self.manifest(level: 6, bytes: 1000)) != nil)
    #expect(Manifest(Self.manifest(level: level, bytes: count)) == nil)
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try LevelDBEngine(at: path).close()
    let name = try #require(try SystemFiles().names(in: path).first { $0.hasPrefix("MANIFEST") })
    try SystemFiles().replace("\(path)/\(name)", with: Self.manifest(level: level, bytes: count))
    Self.expectSmall("a MANIFEST") {
      #expect(throws: StoreError.self) { try LevelDBEngine(at: path) }
      #expect(throws: StoreError.self) { try LevelDBEngine.readOnly(at: path) }
    }
  }

  @Test("Lengths in a batch, an edit and a table that lead out of them are not followed.")
  func lengths() throws {
    let header = [UInt8](repeating: 0, count: 8) + [0xFF, 0xFF, 0xFF, 0xFF]
    for claim in [200, 1 << 32, 1 << 62, UInt64(Int.max), .max] as [UInt64] {
      for row in [[1] + Self.varint(claim) + [7], [1, 1, 7] + Self.varint(claim) + [7]] {
        let batch = header + row
        #expect(LogBatch.rows(of: batch.span.bytes) == nil)
      }
      let edits = [[1] + Self.varint(claim) + [7], [5, 1] + Self.varint(claim) + [7]]
      for edit in edits { #expect(ManifestEdit(edit.span.bytes) == nil) }
      let handle = Self.varint(claim) + Self.varint(claim)
      let end = handle + handle + [UInt8](repeating: 0, count: 40)
      let magic: [UInt8] = [0x57, 0xFB, 0x80, 0x8B, 0x24, 0x75, 0x47, 0xDB]
      #expect(throws: TableFile.Fault.self) {
        try TableFile([UInt8](repeating: 0, count: 100) + end.prefix(40) + magic)
      }
    }
    // A header that counts more rows than there are.
    let empty = header
    #expect(LogBatch.rows(of: empty.span.bytes) == nil)
  }

  @Test("Compressed bytes that claim more than they can stand for are refused at once.")
  func compressed() {
    for claim in [1 << 20, 32 << 20, 4_294_967_295] as [UInt64] {
      let bytes = Self.varint(claim) + [UInt8](repeating: 0xFE, count: 12)
      var buffer = ByteBuffer()
      let before = buffer.capacity
      #expect(!Snappy.decompress(bytes.span.bytes, limit: .max, to: &buffer))
      #expect(buffer.capacity == before, "\(claim)")
    }
  }

  // MARK: - Whole files

  @Test(
    "A file of the store that is larger than any such file is not read as a whole.",
    arguments: ["CURRENT", "MANIFEST", "log", "LARDER", "LARDER.damaged"])
  func largeFile(kind: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let engine = try LevelDBEngine(at: path)
    try SeparationTests.put(Self.key, [1], in: engine)
    try engine.close()
    let names = try SystemFiles().names(in: path)
    let name =
      switch kind {
      case "MANIFEST": try #require(names.first { $0.hasPrefix(kind) })
      case "log": try #require(names.first { $0.hasSuffix(".log") })
      default: kind
      }
    if !names.contains(name) { try SystemFiles().create("\(path)/\(name)", with: [1]) }
    // The file is sparse: it takes no room.
    try #require(truncate("\(path)/\(name)", 4 << 30) == 0)
    try Self.expectSmall(kind) {
      // Both fail, or ignore what is behind the limit.
      for isReadOnly in [true, false] {
        do {
          let engine = try isReadOnly ? LevelDBEngine.readOnly(at: path) : LevelDBEngine(at: path)
          try engine.close()
        } catch is StoreError {
          continue
        }
      }
      _ = try LevelDBEngine.notedDamage(at: path)
    }
  }

  @Test(
    "A file that names something is read up to a limit.",
    arguments: ["CURRENT", "LARDER", "LARDER.damaged", "LARDER.backup"])
  func namingFile(name: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try LevelDBEngine(at: path).close()
    if try SystemFiles().kind(of: "\(path)/\(name)") == nil {
      try SystemFiles().create("\(path)/\(name)", with: [1])
    }
    try #require(truncate("\(path)/\(name)", 100 << 20) == 0)
    let largest = Mutex(0)
    var options = LevelDBOptions()
    options.files = DirectFiles(watch: { call in
      if case .read(let count) = call { largest.withLock { $0 = max($0, count) } }
    })
    for open in [
      { try LevelDBEngine(at: path, options: options).close() },
      { _ = try LevelDBEngine.notedDamage(at: path, files: options.files) },
      { _ = try Backup(at: path, files: options.files) },
    ] as [() throws -> Void] {
      do { try open() } catch is StoreError { continue }
    }
    #expect((1...64 << 20).contains(largest.withLock { $0 }))
  }

  @Test("The manifest of a backup may claim any size, and may have any.")
  func backupManifest() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("backup")
    let engine = try LevelDBEngine(at: directory.path("store"))
    try engine.backup(to: path, date: 0)
    try engine.close()
    let file = "\(path)/LARDER.backup"
    let text = String(decoding: try SystemFiles().read(file, limit: nil), as: UTF8.self)
    let lines = text.split(separator: "\n").dropLast().map { line in
      line.hasPrefix("file CURRENT") ? "file CURRENT \(Int.max) 00000000" : String(line)
    }
    let body = lines.map { $0 + "\n" }.joined()
    let sum = String(bytes(body).withUnsafeBytes { crc32c($0) }, radix: 16)
    let end = "crc32c \(String(repeating: "0", count: 8 - sum.count))\(sum)\n"
    try SystemFiles().replace(file, with: bytes(body + end))
    try Self.expectSmall("a backup") {
      #expect(try Backup(at: path).faults().count == 1)
      try #require(truncate(file, 4 << 30) == 0)
      #expect(throws: StoreError.self) { try Backup(at: path) }
    }
  }
}
