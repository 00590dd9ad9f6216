import CSimulatedDisk
import Foundation
import Larder
import LarderTestSupport
import Testing

/// The readers of LevelDB's files find what LevelDB's own `DumpFile` prints.
@Suite struct DumpTests {
  @Test("Logs, MANIFESTs and tables of random operations are read as LevelDB reads them.")
  func randomOperations() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    for _ in 0..<(isProof ? 80 : 4) {
      let directory = try TemporaryDirectory()
      let path = directory.path("store")
      var kinds: Set<String> = []
      for _ in 0..<3 {
        try Self.write(300, to: path, &random)
        for name in try SystemFiles().names(in: path).sorted() {
          let file = "\(path)/\(name)"
          let bytes = try SystemFiles().read(file, limit: nil)
          let output = directory.path("dump")
          let dump: Dump?
          do throws(TableFile.Fault) {
            dump = try Dump(name, bytes, seeksBlocks: random.next() % 2 == 0)
          } catch {
            // A compaction that the end of the engine interrupted leaves an incomplete table.
            #expect(!csimdisk_dump_file(file, output), "seed \(seed), \(name): \(error)")
            continue
          }
          guard let dump else { continue }
          kinds.insert(dump.kind)
          try #require(csimdisk_dump_file(file, output))
          let text = try SystemFiles().read(output, limit: nil)
          let expected = text.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
          let line = zip(dump.lines, expected).first { $0 != $1 }
          #expect(
            dump.lines == expected,
            "seed \(seed), \(name): \(line.map { "\($0)" } ?? "one has more lines")")
        }
      }
      #expect(kinds == ["log", "MANIFEST", "table"], "seed \(seed)")
    }
  }

  /// Writes random batches, in which values are large and small and compress or not.
  private static func write(_ count: Int, to path: String, _ random: inout SplitMix64) throws {
    var options = LevelDBOptions()
    options.writeBufferBytes = 64 << 10
    options.blockBytes = 1 << 10
    options.filterBitsPerKey = random.next() % 2 == 0 ? 10 : 0
    options.reusesLogs = random.next() % 2 == 0
    let engine = try LevelDBEngine(at: path, options: options)
    for _ in 0..<count {
      var batch = WriteBatch()
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let prefix = Array("key/\(Int.random(in: 0..<200, using: &random))".utf8)
        let key = prefix + Self.bytes(Int.random(in: 0...3, using: &random), &random)
        if Int.random(in: 0..<4, using: &random) == 0 {
          batch.remove(key.span.bytes)
        } else {
          let size = Int.random(in: 0..<100, using: &random) == 0 ? 70_000 : 300
          let value = Self.bytes(Int.random(in: 0..<size, using: &random), &random)
          batch.put(key.span.bytes, value.span.bytes)
        }
      }
      try engine.write(&batch, synced: false)
    }
    if random.next() % 2 == 0 { try engine.compact(EngineRange()) }
    try engine.close()
  }

  private static func bytes(_ count: Int, _ random: inout SplitMix64) -> [UInt8] {
    let isEven = random.next() % 2 == 0
    return (0..<count).map { _ in isEven ? 7 : UInt8(truncatingIfNeeded: random.next()) }
  }
}

/// A file of LevelDB as its `DumpFile` prints it, made by this project's readers.
private struct Dump {
  let kind: String
  private(set) var lines: [String] = []

  /// Nil if the file is not a log, a MANIFEST or a table.
  init?(_ name: String, _ bytes: [UInt8], seeksBlocks: Bool) throws(TableFile.Fault) {
    switch DataFile(name) {
    case .log:
      kind = "log"
      addLog(bytes)
    case .manifest:
      kind = "MANIFEST"
      addManifest(bytes)
    case .table:
      kind = "table"
      try addTable(bytes, seeksBlocks: seeksBlocks)
    default: return nil
    }
  }

  private mutating func addLog(_ bytes: [UInt8]) {
    var scan = LogScan(bytes, of: .batches(minimumSequence: 0))
    while let part = scan.nextPart() {
      guard case .record(let record) = part else { return lines.append("\(part)") }
      scan.withBytes(of: record) { batch in
        let sequence = LogBatch.sequence(of: batch) ?? .max
        lines.append("--- offset \(record.start); sequence \(sequence)")
        for row in LogBatch.rows(of: batch) ?? [] {
          guard let value = row.value else {
            lines.append("  del '\(Self.escaped(row.key))'")
            continue
          }
          let text = Self.escaped([UInt8](batch.extracting(value)))
          lines.append("  put '\(Self.escaped(row.key))' '\(text)'")
        }
      }
    }
  }

  private mutating func addManifest(_ bytes: [UInt8]) {
    var scan = LogScan(bytes, of: .manifest)
    while let part = scan.nextPart() {
      guard case .record(let record) = part,
        let edit = scan.withBytes(of: record, { ManifestEdit($0) })
      else { return lines.append("\(part)") }
      lines.append("--- offset \(record.start); VersionEdit {")
      if let name = edit.comparator { lines.append("  Comparator: \(name)") }
      let numbers = [
        ("LogNumber", edit.logNumber), ("PrevLogNumber", edit.previousLogNumber),
        ("NextFile", edit.nextFile), ("LastSeq", edit.lastSequence),
      ]
      for case (let name, let number?) in numbers { lines.append("  \(name): \(number)") }
      for (level, key) in edit.compactions {
        lines.append("  CompactPointer: \(level) \(Self.internalKey(key))")
      }
      for change in edit.tables {
        switch change {
        case .removed(let level, let number): lines.append("  RemoveFile: \(level) \(number)")
        case .added(let level, let number, let bytes, let smallest, let largest):
          let keys = "\(Self.internalKey(smallest)) .. \(Self.internalKey(largest))"
          lines.append("  AddFile: \(level) \(number) \(bytes) \(keys)")
        }
      }
      lines.append("}")
    }
  }

  /// With `seeksBlocks`, each entry is looked up in the blocks that may have its key.
  private mutating func addTable(_ bytes: [UInt8], seeksBlocks: Bool) throws(TableFile.Fault) {
    let table = try TableFile(bytes)
    for place in table.blocks {
      let block = try table.block(at: place)
      var entries = TableFile.Entries(of: block)
      while let entry = try entries.next() {
        if seeksBlocks { #expect(table.blocks(with: entry.key).contains(place)) }
        let value = Self.escaped(Array(block.bytes[entry.value]))
        let change = entry.isRemoval ? "del" : "val"
        lines.append("'\(Self.escaped(entry.key))' @ \(entry.sequence) : \(change) => '\(value)'")
      }
    }
  }

  private static func internalKey(_ key: [UInt8]) -> String {
    let tag = key.suffix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return "'\(escaped(Array(key.dropLast(8))))' @ \(tag >> 8) : \(tag & 0xFF)"
  }

  private static func escaped(_ bytes: [UInt8]) -> String {
    var text = ""
    for byte in bytes {
      if (0x20...0x7E).contains(byte) {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let digits = String(byte, radix: 16)
        text += digits.utf8.count == 1 ? "\\x0\(digits)" : "\\x\(digits)"
      }
    }
    return text
  }
}
