// LevelDB's MANIFEST: a log of edits to the set of live files.
//
// Each record is an edit: a sequence of fields, each a varint tag and the data of the tag.

/// The tables and logs of a database.
package struct Manifest: Sendable {
  package struct Table: Hashable, Sendable {
    package let level: Int
    package let bytes: Int
  }

  /// The live tables by their number.
  package private(set) var tables: [UInt64: Table] = [:]
  /// The number of the next new file, above the number of every table.
  package private(set) var nextFile: UInt64 = 0
  /// The oldest log that is not in tables yet; 0 if there is none.
  package private(set) var logNumber: UInt64 = 0
  /// An older log that is still needed; 0 for none.
  package private(set) var previousLogNumber: UInt64 = 0
  /// LevelDB's sequence of the last row at the time of the last edit.
  package private(set) var lastSequence: UInt64 = 0
  /// The name of the comparator.
  package private(set) var comparator: String?
  /// Whether keys are ordered by their bytes, as LevelDB does unless a program brings an order.
  package var ordersBytes: Bool { comparator.map { $0 == "leveldb.BytewiseComparator" } ?? true }
  /// How the bytes end: ``LogScan/End/complete``, or torn.
  package private(set) var end = LogScan.End.complete
  /// The start of the last complete edit.
  package private(set) var lastEdit = 0

  private var hasLogNumber = false
  private var hasNextFile = false
  private var hasLastSequence = false

  /// The bytes of the file that names the MANIFEST of a database; nil if it is missing.
  ///
  /// A longer file does not name one.
  static func current(
    in directory: String, _ files: any StoreFiles
  ) throws(StoreError) -> [UInt8]? {
    try files.readIfPresent("\(directory)/CURRENT", limit: 64)
  }

  /// The MANIFEST of a database without tables.
  package init() {}

  /// Reads the bytes of a MANIFEST; nil if it is damaged.
  ///
  /// An edit that is cut off at the end does not count.
  package init?(_ bytes: [UInt8]) {
    var log = LogScan(bytes, of: .manifest)
    while let record = log.next() {
      lastEdit = record.start
      guard log.withBytes(of: record, { apply($0) }) else { return nil }
    }
    end = log.finish()
    if case .damaged = end { return nil }
    // LevelDB requires the numbers of the log, of the next file and of the last row.
    guard hasLogNumber, hasNextFile, hasLastSequence, tables.keys.allSatisfy({ $0 < nextFile })
    else {
      return nil
    }
  }

  /// Whether the log with this number has to be read.
  package func needsLog(_ number: UInt64) -> Bool {
    number >= logNumber || (number == previousLogNumber && number > 0)
  }

  /// The name of a needed file that is not among `names`; nil if all are there.
  package func missingFile(in names: Set<String>) -> String? {
    let log = LogSurvey.name(of: logNumber)
    if logNumber > 0, !names.contains(log) { return log }
    return missingTable(in: names)
  }

  /// The name of a live table that is not among `names`; nil if all are there.
  package func missingTable(in names: Set<String>) -> String? {
    let table = tables.keys.sorted().first { Self.name(ofTable: $0, among: names) == nil }
    return table.map { Self.names(ofTable: $0)[0] }
  }

  /// The name of a table's file among `names`; nil if it is not there.
  static func name(ofTable number: UInt64, among names: Set<String>) -> String? {
    self.names(ofTable: number).first(where: names.contains)
  }

  /// The number in the name of a table; nil if `name` is not the name of a table.
  static func number(ofTable name: String) -> UInt64? {
    guard let number = UInt64(name.prefix { $0 != "." }), names(ofTable: number).contains(name)
    else { return nil }
    return number
  }

  /// The possible names of a table: the current one, and the one of early versions of LevelDB.
  private static func names(ofTable number: UInt64) -> [String] {
    let stem = LogSurvey.name(of: number).dropLast(3)
    return [stem + "ldb", stem + "sst"]
  }

  private mutating func apply(_ bytes: RawSpan) -> Bool {
    guard let edit = ManifestEdit(bytes) else { return false }
    comparator = edit.comparator ?? comparator
    logNumber = edit.logNumber ?? logNumber
    previousLogNumber = edit.previousLogNumber ?? previousLogNumber
    nextFile = edit.nextFile ?? nextFile
    lastSequence = edit.lastSequence ?? lastSequence
    hasLogNumber = hasLogNumber || edit.logNumber != nil
    hasNextFile = hasNextFile || edit.nextFile != nil
    hasLastSequence = hasLastSequence || edit.lastSequence != nil
    for change in edit.tables {
      switch change {
      case .removed(_, let number): tables[number] = nil
      case .added(let level, let number, let bytes, _, _):
        tables[number] = Table(level: level, bytes: bytes)
      }
    }
    return true
  }
}

/// An edit of a MANIFEST: what it changes.
package struct ManifestEdit: Sendable {
  /// A change of the set of live tables.
  package enum TableChange: Sendable {
    case removed(level: Int, number: UInt64)
    /// The keys are LevelDB's, with their sequences.
    case added(level: Int, number: UInt64, bytes: Int, smallest: [UInt8], largest: [UInt8])
  }

  package private(set) var comparator: String?
  package private(set) var logNumber: UInt64?
  package private(set) var previousLogNumber: UInt64?
  package private(set) var nextFile: UInt64?
  package private(set) var lastSequence: UInt64?
  /// The tables that are added or removed, in order.
  package private(set) var tables: [TableChange] = []
  /// The keys at which the next compactions of levels begin.
  package private(set) var compactions: [(level: Int, key: [UInt8])] = []

  /// Reads an edit; nil if it is damaged.
  package init?(_ edit: RawSpan) {
    var at = 0
    while at < edit.byteCount {
      guard let tag = readVarint(edit, at: &at), read(tag, edit, at: &at) else { return nil }
    }
  }

  private mutating func read(_ tag: UInt64, _ edit: RawSpan, at: inout Int) -> Bool {
    switch tag {
    case 1:
      guard let name = Self.text(in: edit, at: &at) else { return false }
      comparator = String(decoding: name, as: UTF8.self)
    case 2, 3, 4, 9:
      guard let number = readVarint(edit, at: &at) else { return false }
      switch tag {
      case 2: logNumber = number
      case 3: nextFile = number
      case 4: lastSequence = number
      default: previousLogNumber = number
      }
    case 5:
      guard let level = Self.level(in: edit, at: &at), let key = Self.text(in: edit, at: &at)
      else { return false }
      compactions.append((level, key))
    case 6:
      guard let level = Self.level(in: edit, at: &at), let number = readVarint(edit, at: &at)
      else { return false }
      tables.append(.removed(level: level, number: number))
    case 7:
      guard let level = Self.level(in: edit, at: &at), let number = readVarint(edit, at: &at),
        let bytes = Self.tableBytes(in: edit, at: &at), let smallest = Self.text(in: edit, at: &at),
        let largest = Self.text(in: edit, at: &at)
      else { return false }
      tables.append(
        .added(level: level, number: number, bytes: bytes, smallest: smallest, largest: largest))
    default: return false
    }
    return true
  }

  /// One of LevelDB's levels, 0 to 6.
  private static func level(in edit: RawSpan, at offset: inout Int) -> Int? {
    guard let level = readVarint(edit, at: &offset), level < 7 else { return nil }
    return Int(level)
  }

  /// The size of a table, less than 1 TiB.
  private static func tableBytes(in edit: RawSpan, at offset: inout Int) -> Int? {
    guard let bytes = readVarint(edit, at: &offset), bytes < 1 << 40 else { return nil }
    return Int(bytes)
  }

  private static func text(in edit: RawSpan, at offset: inout Int) -> [UInt8]? {
    guard let count = readVarint(edit, at: &offset), count <= edit.byteCount - offset else {
      return nil
    }
    defer { offset += Int(count) }
    return [UInt8](edit.extracting(offset..<(offset + Int(count))))
  }
}
