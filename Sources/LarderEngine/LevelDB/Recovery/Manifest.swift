import LarderBytes

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
  /// How the bytes end: ``LogScan/End/complete``, or torn.
  package private(set) var end = LogScan.End.complete
  /// The start of the last complete edit.
  package private(set) var lastEdit = 0

  private var tags: Set<UInt64> = []

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
    guard tags.isSuperset(of: [2, 3, 4]), tables.keys.allSatisfy({ $0 < nextFile }) else {
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

  private mutating func apply(_ edit: RawSpan) -> Bool {
    var at = 0
    while at < edit.byteCount {
      guard let tag = readVarint(edit, at: &at) else { return false }
      tags.insert(tag)
      switch tag {
      case 1:  // name of the comparator
        let start = at
        guard skipText(edit, at: &at) else { return false }
        comparator = edit.extracting(start..<at).withUnsafeBytes { bytes in
          String(decoding: bytes.dropFirst(), as: UTF8.self)
        }
      case 2, 3, 4, 9:
        guard let number = readVarint(edit, at: &at) else { return false }
        note(number, tag: tag)
      case 5:  // where a level's next compaction begins
        guard readVarint(edit, at: &at) != nil, skipText(edit, at: &at) else { return false }
      case 6:  // a table that is no longer
        guard readVarint(edit, at: &at) != nil, let number = readVarint(edit, at: &at) else {
          return false
        }
        tables[number] = nil
      case 7:  // a new table
        guard let level = readVarint(edit, at: &at), let number = readVarint(edit, at: &at),
          let bytes = readVarint(edit, at: &at), skipText(edit, at: &at), skipText(edit, at: &at)
        else { return false }
        tables[number] = Table(
          level: Int(truncatingIfNeeded: level), bytes: Int(truncatingIfNeeded: bytes))
      default: return false
      }
    }
    return true
  }

  private mutating func note(_ number: UInt64, tag: UInt64) {
    switch tag {
    case 2: logNumber = number
    case 3: nextFile = number
    case 4: lastSequence = number
    default: previousLogNumber = number
    }
  }

  private func skipText(_ edit: RawSpan, at offset: inout Int) -> Bool {
    guard let count = readVarint(edit, at: &offset), count <= edit.byteCount - offset else {
      return false
    }
    offset += Int(count)
    return true
  }
}
