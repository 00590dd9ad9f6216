import Larder
import LarderTestSupport
import Testing

/// The marker of a store with segments keeps out programs that know none, and so do its copies'.
@Suite struct SegmentMarkerTests {
  private static func options() -> LevelDBOptions {
    var options = SeparationTests.options(from: 1, segmentBytes: 8 << 10)
    options.collectsInBackground = false
    return options
  }

  /// Makes a store with segments.
  private static func make(at path: String) throws {
    let engine = try LevelDBEngine(at: path, options: options())
    for number in 0..<20 {
      try SeparationTests.put(
        bytes("key \(number)"), [UInt8](repeating: 7, count: 1000), in: engine)
    }
    try engine.close()
  }

  private static func version(of path: String) throws -> Int? {
    StoreMarker.formatVersion(in: try SystemFiles().read("\(path)/LARDER", limit: 64))
  }

  private static func setVersion(_ version: Int, of path: String) throws {
    try SystemFiles().replace("\(path)/LARDER", with: bytes("larder \(version)\n"))
  }

  private static func expectWhole(_ path: String) throws {
    let engine = try LevelDBEngine(at: path, options: options())
    #expect(try engine.entries().count { isIntact($0.value, key: $0.key) } == 20)
    try engine.close()
  }

  @Test("A backup of a store that was opened for reading only keeps the format of segments.")
  func readOnlyBackup() throws {
    let directory = try TemporaryDirectory()
    try Self.make(at: directory.path("store"))
    let reading = try LevelDBEngine.readOnly(
      at: directory.path("store"), options: Self.options())
    try reading.backup(to: directory.path("backup"), date: 0)
    try reading.close()
    try Backup(at: directory.path("backup")).restore(to: directory.path("restored"))
    #expect(try Self.version(of: directory.path("restored")) == 2)
    try Self.expectWhole(directory.path("restored"))
  }

  @Test("A store whose segments are all gone has copies of its format.")
  func withoutSegments() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try Self.make(at: path)
    let engine = try LevelDBEngine(at: path, options: Self.options())
    try engine.close()
    for name in try SystemFiles().names(in: path) where name.hasSuffix(".segment") {
      try SystemFiles().remove("\(path)/\(name)")
    }
    let reading = try LevelDBEngine.readOnly(at: path, options: Self.options())
    #expect(try reading.entries().count == 20, "rows whose segments are lost are damaged, not gone")
    try reading.backup(to: directory.path("backup"), date: 0)
    try reading.close()
    try Backup(at: directory.path("backup")).restore(to: directory.path("restored"))
    #expect(try Self.version(of: directory.path("restored")) == 2)
  }

  @Test("A backup whose manifest says format 1 is restored with the format of its segments.")
  func oldManifest() throws {
    let directory = try TemporaryDirectory()
    try Self.make(at: directory.path("store"))
    let engine = try LevelDBEngine(at: directory.path("store"), options: Self.options())
    try engine.backup(to: directory.path("backup"), date: 0)
    try engine.close()
    let manifest = directory.path("backup/LARDER.backup")
    var lines = String(decoding: try SystemFiles().read(manifest, limit: nil), as: UTF8.self)
      .split(separator: "\n").dropLast().map(String.init)
    #expect(lines[1] == "store 2")
    lines[1] = "store 1"
    let text = lines.map { $0 + "\n" }.joined()
    let sum = String(bytes(text).withUnsafeBytes { crc32c($0) }, radix: 16)
    let end = "crc32c \(String(repeating: "0", count: 8 - sum.count))\(sum)\n"
    try SystemFiles().replace(manifest, with: bytes(text + end))
    try Backup(at: directory.path("backup")).restore(to: directory.path("restored"))
    #expect(try Self.version(of: directory.path("restored")) == 2)
    try Self.expectWhole(directory.path("restored"))
  }

  @Test(
    "A marker that denies the segments is corrected by an opening for writing, and by no other.")
  func wrongMarker() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    try Self.make(at: path)
    try Self.setVersion(1, of: path)
    let reading = try LevelDBEngine.readOnly(at: path, options: Self.options())
    try reading.backup(to: directory.path("backup"), date: 0)
    try reading.close()
    #expect(try Self.version(of: path) == 1)
    // An older program restores what the manifest says.
    let manifest = try SystemFiles().read(directory.path("backup/LARDER.backup"), limit: nil)
    #expect(String(decoding: manifest, as: UTF8.self).contains("\nstore 2\n"))
    try Backup(at: directory.path("backup")).restore(to: directory.path("restored"))
    #expect(try Self.version(of: directory.path("restored")) == 2)
    try Self.expectWhole(path)
    #expect(try Self.version(of: path) == 2)
  }

  @Test("A store without segments, and its copies, keep the format that old programs open.")
  func plain() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path("store"))
    try engine.backup(to: directory.path("backup"), date: 0)
    try engine.close()
    let reading = try LevelDBEngine.readOnly(at: directory.path("store"))
    try reading.backup(to: directory.path("second"), date: 0)
    try reading.close()
    for name in ["backup", "second"] {
      try Backup(at: directory.path(name)).restore(to: directory.path("restored \(name)"))
      #expect(try Self.version(of: directory.path("restored \(name)")) == 1)
    }
  }
}
