// How the newest rows of a store are found when no MANIFEST says which tables are live.
//
// Each row in a table or log has LevelDB's sequence. The newest row of a key is the one with the
// highest sequence, in whichever file it is. It is doubtful in two cases, in which a newer row may
// have been lost:
//
// - A file that cannot be read may hold a newer row of any key in its range. The range of a damaged
//   block is known from the index of its table; that of a table without an index is every key.
// - A compaction drops a removal together with the rows that it removed. If LevelDB was ended
//   before it deleted the old files, a removed row is still in one of them. Such a file gives
//   itself away: the compaction has copied other rows of it to a later file. So a row is doubtful
//   if it is only in such a file. If a compaction dropped every row of a file, nothing gives the
//   file away.
//
// A table without an end may be one that was being written. Then the rows of its first block are
// copies of rows in other files, and nothing of it is needed. Otherwise it counts as a table that
// cannot be read.
//
// Changes in a damaged part of a log are lost, as in a salvage with a MANIFEST.

/// What a rebuild does with doubtful rows.
package enum Rebuilding: Sendable {
  case leavingOutDoubtful
  case keepingDoubtful
}

/// The newest rows of a store, found without a MANIFEST.
package struct Rebuild {
  package struct Report: Sendable {
    /// The keys of the database with a doubtful row, in order.
    package fileprivate(set) var doubtful: [[UInt8]] = []
    /// The parts of tables that cannot be read, in English.
    package fileprivate(set) var faults: [String] = []
  }

  /// A row of a file.
  private struct Row {
    let key: [UInt8]
    let sequence: UInt64
    let isRemoval: Bool
    /// The bytes in which the value is, and its place.
    let bytes: [UInt8]
    let value: Range<Int>
  }

  private struct Newest {
    var sequence: UInt64
    /// The latest file with the row.
    var file: UInt64
    var isRemoval: Bool
  }

  /// A range of keys that may have lost newer rows; without a bound where that is nil.
  private struct LostRange {
    let first: [UInt8]?
    let last: [UInt8]?

    func contains(_ key: [UInt8]) -> Bool {
      !(first.map { key.lexicographicallyPrecedes($0) } ?? false)
        && !(last.map { $0.lexicographicallyPrecedes(key) } ?? false)
    }
  }

  private static let logBytes = 16 << 20
  private static let batchBytes = 1 << 20

  package private(set) var report = Report()

  private let source: String
  private let files: any StoreFiles
  /// The tables and logs, in the order in which they were begun.
  private var names: [(number: UInt64, name: String)] = []
  private var newest: [[UInt8]: Newest] = [:]
  /// Files from which a later one has copies of rows.
  private var copied: Set<UInt64> = []
  private var lost: [LostRange] = []
  /// Tables without an end, by name, with the rows of their first block.
  private var endless: [(name: String, rows: [Row])] = []

  /// Reads all tables and logs in the directory `source`.
  ///
  /// - Throws: ``StoreError/io(_:)``.
  /// - Complexity: Each file is read once, and one of them is in memory, with all keys.
  init(of source: String, files: any StoreFiles) throws(StoreError) {
    (self.source, self.files) = (source, files)
    for name in try files.names(in: source) {
      switch DataFile(name) {
      case .table(let number), .log(let number): names.append((number, name))
      default: break
      }
    }
    names.sort { $0.number < $1.number }
    for (number, name) in names {
      let bytes = try files.read("\(source)/\(name)", limit: nil)
      for row in rows(of: name, bytes, notingFaults: true) { note(row, in: number) }
    }
    for (name, rows) in endless where !isUnfinished(rows) {
      report.faults.append("\(name): the end of the table is missing")
      lost.append(LostRange(first: nil, last: nil))
    }
    report.doubtful = newest.filter { !$1.isRemoval && isDoubtful($0, $1) }.keys
      .sorted { $0.lexicographicallyPrecedes($1) }
  }

  private mutating func note(_ row: Row, in file: UInt64) {
    guard var known = newest[row.key], known.sequence >= row.sequence else {
      newest[row.key] = Newest(sequence: row.sequence, file: file, isRemoval: row.isRemoval)
      return
    }
    guard known.sequence == row.sequence, known.file != file else { return }
    copied.insert(min(known.file, file))
    known.file = max(known.file, file)
    newest[row.key] = known
  }

  /// Whether a table that begins with these rows was being written.
  private func isUnfinished(_ rows: [Row]) -> Bool {
    rows.allSatisfy { row in newest[row.key].map { $0.sequence >= row.sequence } ?? false }
      && rows.contains { newest[$0.key]?.sequence == $0.sequence }
  }

  private func isDoubtful(_ key: [UInt8], _ row: Newest) -> Bool {
    copied.contains(row.file) || lost.contains { $0.contains(key) }
  }
}

// MARK: - Reading

extension Rebuild {
  /// The rows of a file that can be read; with `notingFaults`, the rest is noted as lost.
  private mutating func rows(
    of name: String, _ bytes: [UInt8], notingFaults: Bool
  ) -> [Row] {
    name.hasSuffix(".log")
      ? Self.rows(ofLog: bytes) : rows(ofTable: name, bytes, notingFaults: notingFaults)
  }

  private static func rows(ofLog bytes: [UInt8]) -> [Row] {
    var rows: [Row] = []
    var scan = LogScan(bytes, of: .batches(minimumSequence: 0))
    while let part = scan.nextPart() {
      guard case .record(let record) = part else { continue }
      scan.withBytes(of: record) { span in
        let batch = [UInt8](span)
        guard let first = LogBatch.sequence(of: span), let found = LogBatch.rows(of: span) else {
          return
        }
        for (index, row) in found.enumerated() {
          rows.append(
            Row(
              key: row.key, sequence: first &+ UInt64(index), isRemoval: row.value == nil,
              bytes: batch, value: row.value ?? 0..<0))
        }
      }
    }
    return rows
  }

  private mutating func rows(
    ofTable name: String, _ bytes: [UInt8], notingFaults: Bool
  ) -> [Row] {
    let table: TableFile
    do throws(TableFile.Fault) {
      table = try TableFile(bytes)
    } catch {
      guard notingFaults else { return [] }
      if TableFile.hasEnd(bytes) {
        report.faults.append("\(name), \(error)")
        lost.append(LostRange(first: nil, last: nil))
      } else {
        endless.append((name, Self.firstRows(of: bytes)))
      }
      return []
    }
    var rows: [Row] = []
    for (index, place) in table.blocks.enumerated() {
      do throws(TableFile.Fault) {
        rows += try Self.rows(of: try table.block(at: place))
      } catch {
        guard notingFaults else { continue }
        report.faults.append("\(name), \(error)")
        let bounds = table.bounds(ofBlock: index)
        lost.append(LostRange(first: bounds.first, last: bounds.last))
      }
    }
    return rows
  }

  private static func rows(of block: TableFile.Block) throws(TableFile.Fault) -> [Row] {
    var rows: [Row] = []
    var entries = TableFile.Entries(of: block)
    while let entry = try entries.next() {
      rows.append(
        Row(
          key: entry.key, sequence: entry.sequence, isRemoval: entry.isRemoval,
          bytes: block.bytes, value: entry.value))
    }
    return rows
  }

  private static func firstRows(of bytes: [UInt8]) -> [Row] {
    guard let block = TableFile.firstBlock(of: bytes) else { return [] }
    do throws(TableFile.Fault) {
      return try rows(of: block)
    } catch {
      return []
    }
  }
}

// MARK: - Writing

extension Rebuild {
  /// Writes a database with the newest rows to a directory: CURRENT, a MANIFEST, and logs.
  ///
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/diskFull``.
  /// - Complexity: Each file is read once more. A log and one of the files are in memory.
  mutating func write(
    to directory: String, _ rule: Rebuilding
  ) throws(StoreError) -> Manifest {
    var log = RebuiltLog(in: directory, files: files)
    let doubtful = rule == .keepingDoubtful ? [] : Set(report.doubtful)
    for (number, name) in names {
      let bytes = try files.read("\(source)/\(name)", limit: nil)
      for row in rows(of: name, bytes, notingFaults: false) {
        guard let known = newest[row.key], known.sequence == row.sequence, known.file == number,
          !row.isRemoval, !doubtful.contains(row.key)
        else { continue }
        try log.put(row.key, row.bytes[row.value])
      }
    }
    return try log.finish()
  }

  /// Writes logs with one row after another, and a MANIFEST that names them.
  private struct RebuiltLog {
    private static let name = "MANIFEST-000001"
    private static let firstNumber: UInt64 = 2

    private let directory: String
    private let files: any StoreFiles
    private var number = firstNumber
    private var writer = LogWriter()
    private var batch: [UInt8] = []
    private var batchRows: UInt32 = 0
    /// LevelDB's sequence of the first row of the batch.
    private var sequence: UInt64 = 1

    init(in directory: String, files: any StoreFiles) {
      (self.directory, self.files) = (directory, files)
    }

    mutating func put(_ key: [UInt8], _ value: ArraySlice<UInt8>) throws(StoreError) {
      batch.append(1)
      appendVarint(UInt64(key.count), to: &batch)
      batch += key
      appendVarint(UInt64(value.count), to: &batch)
      batch += value
      batchRows += 1
      if batch.count >= Rebuild.batchBytes { try endBatch() }
    }

    private mutating func endBatch() throws(StoreError) {
      guard batchRows > 0 else { return }
      let header =
        withUnsafeBytes(of: sequence.littleEndian, Array.init)
        + withUnsafeBytes(of: batchRows.littleEndian, Array.init)
      writer.add(header + batch)
      sequence += UInt64(batchRows)
      (batch, batchRows) = ([], 0)
      if writer.bytes.count >= Rebuild.logBytes { try endLog() }
    }

    private mutating func endLog() throws(StoreError) {
      try files.create("\(directory)/\(LogSurvey.name(of: number))", with: writer.bytes)
      writer = LogWriter()
      number += 1
    }

    mutating func finish() throws(StoreError) -> Manifest {
      try endBatch()
      try endLog()
      // One more, which is empty: the rows are not in the order of their commits, so a payload that
      // is lost must not end the logs; see `FrameCheck.swift`.
      try endLog()
      var edit: [UInt8] = [1]
      let comparator = Array("leveldb.BytewiseComparator".utf8)
      appendVarint(UInt64(comparator.count), to: &edit)
      edit += comparator
      // The numbers of the first log, of the next file, and LevelDB's sequence before the logs.
      for (tag, value) in [(2, Self.firstNumber), (9, 0), (3, number), (4, 0)] as [(UInt8, UInt64)]
      {
        edit.append(tag)
        appendVarint(value, to: &edit)
      }
      var log = LogWriter()
      log.add(edit)
      try files.create("\(directory)/\(Self.name)", with: log.bytes)
      try files.create("\(directory)/CURRENT", with: Array("\(Self.name)\n".utf8))
      guard let manifest = Manifest(log.bytes) else {
        throw .io("\(directory)/\(Self.name) does not read as it was written")
      }
      return manifest
    }
  }
}
