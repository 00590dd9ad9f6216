import Foundation
import Larder

/// A LevelDB database that is written byte by byte, as another program's library may write it.
struct ForeignDatabase {
  typealias Row = (key: [UInt8], value: [UInt8]?)

  let path: String
  private var edit: [UInt8] = []

  /// Begins a database with a MANIFEST that names `log` as the oldest log.
  init(
    at path: String, comparator: String = "leveldb.BytewiseComparator", log: UInt64 = 3,
    lastSequence: UInt64 = 0
  ) throws {
    self.path = path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    edit.append(1)
    Self.append(Array(comparator.utf8), to: &edit)
    for (tag, number) in [(2, log), (9, 0), (3, 100_000), (4, lastSequence)] {
      appendVarint(UInt64(tag), to: &edit)
      appendVarint(number, to: &edit)
    }
    try writeManifest()
  }

  private func writeManifest() throws {
    var manifest = LogWriter()
    manifest.add(edit)
    try write(manifest.bytes, to: "MANIFEST-000002")
    try write(Array("MANIFEST-000002\n".utf8), to: "CURRENT")
  }

  func write(_ bytes: [UInt8], to name: String) throws {
    try Data(bytes).write(to: URL(filePath: "\(path)/\(name)"))
  }

  func remove(_ name: String) throws {
    try FileManager.default.removeItem(atPath: "\(path)/\(name)")
  }

  private static func append(_ text: [UInt8], to bytes: inout [UInt8]) {
    appendVarint(UInt64(text.count), to: &bytes)
    bytes += text
  }

  // MARK: - Logs

  /// A batch whose first row has this sequence; a row without a value is a removal.
  static func batch(_ sequence: UInt64, _ rows: [Row]) -> [UInt8] {
    var batch = withUnsafeBytes(of: sequence.littleEndian, Array.init)
    batch += withUnsafeBytes(of: UInt32(rows.count).littleEndian, Array.init)
    for row in rows {
      batch.append(row.value == nil ? 0 : 1)
      append(row.key, to: &batch)
      if let value = row.value { append(value, to: &batch) }
    }
    return batch
  }

  /// A batch with one put.
  static func put(_ sequence: UInt64, _ key: String, _ value: String) -> [UInt8] {
    batch(sequence, [(Array(key.utf8), Array(value.utf8))])
  }

  /// Writes a log of these batches, with `tail` behind them.
  func addLog(_ number: UInt64, _ batches: [[UInt8]], tail: [UInt8] = []) throws {
    var log = LogWriter()
    for batch in batches { log.add(batch) }
    try write(log.bytes + tail, to: LogSurvey.name(of: number))
  }

  // MARK: - Tables

  /// Adds a table with one block of puts, whose trailer says `compression`.
  ///
  /// The block itself is stored as it is, behind `head`.
  mutating func addTable(
    _ number: UInt64, _ entries: [(key: String, value: String)], compression: UInt8 = 0,
    head: [UInt8] = []
  ) throws {
    let keys = entries.enumerated().map { index, entry in
      let tag = UInt64(index + 1) << 8 | 1
      return Array(entry.key.utf8) + withUnsafeBytes(of: tag.littleEndian, Array.init)
    }
    var table: [UInt8] = []
    func addBlock(_ rows: [(key: [UInt8], value: [UInt8])], _ type: UInt8 = 0) -> [UInt8] {
      var block: [UInt8] = type == 0 ? [] : head
      for row in rows {
        block.append(0)
        appendVarint(UInt64(row.key.count), to: &block)
        appendVarint(UInt64(row.value.count), to: &block)
        block += row.key + row.value
      }
      block += [0, 0, 0, 0, 1, 0, 0, 0]
      var handle: [UInt8] = []
      appendVarint(UInt64(table.count), to: &handle)
      appendVarint(UInt64(block.count), to: &handle)
      block.append(type)
      let sum = maskedForLevelDB(block.withUnsafeBytes { crc32c($0) })
      table += block + withUnsafeBytes(of: sum.littleEndian, Array.init)
      return handle
    }
    let data = addBlock(zip(keys, entries).map { ($0, Array($1.value.utf8)) }, compression)
    let names = addBlock([])
    let last = keys[keys.count - 1]
    let footer = names + addBlock([(last, data)])
    table += footer + Array(repeating: 0, count: 40 - footer.count)
    table += [0x57, 0xFB, 0x80, 0x8B, 0x24, 0x75, 0x47, 0xDB]
    try write(table, to: String(LogSurvey.name(of: number).dropLast(3)) + "ldb")
    edit.append(7)
    for value in [1, number, UInt64(table.count)] { appendVarint(value, to: &edit) }
    Self.append(keys[0], to: &edit)
    Self.append(last, to: &edit)
    try writeManifest()
  }
}
