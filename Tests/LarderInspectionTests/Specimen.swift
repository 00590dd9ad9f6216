import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import LarderTesting
import Testing

/// A closed store with every kind of record, and the time of its inspection.
final class Specimen {
  /// A text that every value contains, and nothing else does.
  static let secret = "xyzzy"
  static let now = Date(timeIntervalSinceReferenceDate: 788_918_400.1)
  static let uuid = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))

  struct Title: Codable {
    var name: String
    var tags = [secret, "a/b"]
    var year = 1999
    var ratio = 0.5
  }

  let directory: TemporaryDirectory
  var path: String { directory.path("store") }

  /// Payloads of at least `separatedValueBytes` are in segments; none if it is nil.
  init(separatedValueBytes: Int? = nil) throws {
    directory = try TemporaryDirectory()
    let clock = ManualClock(Self.now)
    let store = try Self.open(path, clock, separatedValueBytes: separatedValueBytes)
    let genres = try store.cache(
      "genres", of: Title.self, lifetime: .fresh(for: .days(7), thenStaleFor: .days(23)),
      coder: .json)
    let lists = try store.cache(
      "lists", of: [String: [Int]].self, keyedBy: Int.self, coder: .propertyList)
    let users = try store.cache(
      "users", of: Title.self, keyedBy: UUID.self, lifetime: .unlimited,
      schema: Schema(version: 3), coder: .json)
    let blobs = try store.cache(
      "blobs", of: [UInt8].self, keyedBy: [UInt8].self, lifetime: .seconds(90), coder: .bytes)

    for (key, days) in [("fresh", 1), ("stale", 8), ("expired", 31)] {
      clock.set(Self.now - Double(days) * 86_400)
      try genres.save(Title(name: key), for: key)
    }
    clock.set(Self.now)
    try genres.save(Title(name: "damaged"), for: "damaged")
    try genres.save(Title(name: "odd"), for: "two\nlines")
    try lists.save([Self.secret: [-1, 2]], for: -7)
    try lists.save([:], for: 42)
    try users.save(Title(name: "user"), for: Self.uuid)
    clock.set(Self.now + 60)
    try blobs.save(Array("\(Self.secret) as text".utf8), for: [0x00, 0xFF])
    try blobs.save([0xDE, 0xAD] + Array("xyzzy".utf8) + Array(0...31), for: [])
    try store.close()
  }

  /// A specimen with a damaged record, and with one of a later format.
  static func withFaults() throws -> Specimen {
    let specimen = try Specimen()
    try specimen.withEngine { engine in
      try engine.flipByte(from: [0x10], ending: "damaged")
      try engine.makeUnsupported(from: [0x10], ending: "two\nlines")
    }
    return specimen
  }

  /// Opens the store as a program does.
  static func open(
    _ path: String, _ clock: ManualClock = ManualClock(now), separatedValueBytes: Int? = nil
  ) throws -> Store {
    var options = Store.Options()
    options.clock = clock
    options.advanced.separatedValueBytes = separatedValueBytes
    // So that sizes are the same with segments and without.
    options.compression = false
    // So that sizes do not depend on how often it was closed.
    options.sweepInterval = nil
    return try Store(at: URL(filePath: path), options: options)
  }

  func inspect(linking: Bool = true) throws -> Inspection {
    try Inspection(at: path, now: Self.now, linking: linking)
  }

  /// Puts a metadata row with the checksum that the store expects.
  func put(_ body: [UInt8], under key: [UInt8]) throws {
    var sum = key.withUnsafeBytes { crc32c($0) }
    sum = body.withUnsafeBytes { crc32c($0, extending: sum) }
    let value = withUnsafeBytes(of: sum.littleEndian, Array.init) + body
    try withEngine { try $0.put(key, value) }
  }

  /// Changes physical rows without the library.
  func withEngine(_ body: (LevelDBEngine) throws -> Void) throws {
    let engine = try LevelDBEngine(at: path)
    try body(engine)
    try engine.close()
  }
}

extension LevelDBEngine {
  /// Writes one row.
  func put(_ key: [UInt8], _ value: [UInt8]) throws {
    var batch = WriteBatch()
    batch.put(key.span.bytes, value.span.bytes)
    try write(&batch, synced: false)
  }

  /// The physical keys that begin with `prefix`, in order.
  func keys(from prefix: [UInt8]) throws -> [[UInt8]] {
    var keys: [[UInt8]] = []
    let cursor = try cursor(over: EngineRange(prefix: prefix))
    while try cursor.next() {
      keys.append(cursor.withEntry { key, _ in key.withUnsafeBytes { Array($0) } })
    }
    return keys
  }

  /// Inverts the last byte of the value under the first key from `prefix` that ends in `end`.
  func flipByte(from prefix: [UInt8], ending end: String) throws {
    let key = try #require(
      try keys(from: prefix).first { $0.suffix(end.utf8.count) == Array(end.utf8)[...] })
    var value = try #require(try get(key.span.bytes))
    value[value.count - 1] ^= 0xFF
    try put(key, value)
  }

  /// Replaces the record whose key ends in `end` with an intact one of a later format.
  func makeUnsupported(from prefix: [UInt8], ending end: String) throws {
    let key = try #require(
      try keys(from: prefix).first { $0.suffix(end.utf8.count) == Array(end.utf8)[...] })
    var value = try #require(try get(key.span.bytes))
    value[0] = 2
    var batch = WriteBatch()
    batch.put(key.span.bytes, stamp: Record.stamp) { $0.append(value) }
    try write(&batch, synced: false)
  }
}

extension Inspection {
  /// The text and the outcome of `ls`.
  func listReport(
    _ selection: Selection = Selection(), _ style: Style = Style()
  ) throws -> (text: String, status: Outcome) {
    var text = ""
    let status = try list(selection, style: style).write(to: &text)
    return (text, status)
  }

  /// The text and the outcome of `get`.
  func getReport(
    _ key: String, cache: String? = nil, _ style: Style = Style()
  ) throws -> (text: String, status: Outcome) {
    var text = ""
    let status = try get(key, cache: cache, style: style).write(to: &text)
    return (text, status)
  }

  /// The text and the outcome of `info`.
  func infoReport(_ style: Style = Style()) throws -> (text: String, status: Outcome) {
    var text = ""
    let status = try info(style: style).write(to: &text)
    return (text, status)
  }

  /// The keys that `ls` writes, in its order.
  func keys(
    _ selection: Selection = Selection(), form: KeyForm = .auto
  ) throws -> [(cache: String, key: String)] {
    var style = Style()
    style.format = .jsonl
    style.keys = form
    return try listReport(selection, style).text.split(separator: "\n").map { line in
      let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return (row?["cache"] as? String ?? "", row?["key"] as? String ?? "(none)")
    }
  }
}

extension Style {
  init(_ format: ReportFormat) {
    self.init()
    self.format = format
  }
}
