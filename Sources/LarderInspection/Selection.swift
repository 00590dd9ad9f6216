import Larder

/// The records that a command selects.
package struct Selection: Sendable {
  /// Only this cache, by name or as `#` and its number.
  package var cache: String?
  /// Only keys with this prefix.
  package var prefix: String?
  /// Only this key and those after it.
  package var from: String?
  /// Only keys before this one.
  package var to: String?
  /// Only keys whose written form matches this pattern; see ``Glob``.
  package var match: String?
  /// Only records that were saved with this tag.
  package var tag: String?
  /// Only records that take at least so many bytes, with their keys.
  package var leastBytes: Int?
  /// Only records that were saved at least so many seconds ago.
  package var leastAge: Double?
  /// The maximum number of records.
  package var limit: Int?
  /// The maximum number of keys to look at, selected or not.
  package var scanLimit: Int?
  /// Only this record and those that come after it in the order of the scan.
  package var start: RecordPlace?
  /// From the last key to the first, or the other way round for another ``order``.
  package var isReversed = false
  /// Only records in one of these states.
  package var states = Set(RecordState.allCases)
  /// The order of a list.
  package var order = RecordOrder.key

  /// Selects every record.
  package init() {}
}

/// Where a record is: the number of its cache, and its key.
package struct RecordPlace: Sendable, Equatable {
  package let cache: UInt64
  package let key: [UInt8]

  package init(cache: UInt64, key: [UInt8]) { (self.cache, self.key) = (cache, key) }

  /// The key in the database.
  var physicalKey: [UInt8] { KeySpace.records.prefix(ofCache: cache) + key }
}

/// The orders of a list.
///
/// Records with equal values are in the order of their keys.
package enum RecordOrder: String, Sendable, CaseIterable {
  /// By cache and key.
  case key
  /// The largest first, by the size of key and record.
  case size
  /// The oldest first, by the date of the save.
  case age
  /// The next to expire first, those that never do last.
  case ttl
}

/// How a report is written.
package struct Style: Sendable {
  /// The format of the report.
  package var format = ReportFormat.table
  /// How keys are written, and parsed from a command's arguments.
  package var keys = KeyForm.auto
  /// How payloads are written.
  package var values = ValueForm.auto
  /// Writes no values, and of each key only its length and a checksum.
  package var isRedacted = false
  /// Writes data only: no headings and no summary.
  package var isQuiet = false
  /// The width of the terminal, to which tables shorten keys; nil for whole keys.
  package var width: Int?
  /// Whether tables have colours.
  package var isColored = false
  /// Numbers the rows of lists of records; nil for none.
  package var numbers: RowNumbers?

  /// A table with headings, keys and values.
  package init() {}
}

/// The formats of reports.
package enum ReportFormat: String, Sendable, CaseIterable {
  /// Aligned columns, for reading.
  case table
  /// One JSON document.
  case json
  /// A JSON document on each line.
  case jsonl
  /// Comma-separated values below a line of column names.
  case csv
}

/// The formats of payloads.
package enum ValueForm: String, Sendable, CaseIterable {
  /// As JSON or text if possible, otherwise in hex.
  case auto
  /// As JSON if possible, whichever coder wrote the payload, otherwise in hex.
  case json
  /// As a hex dump; in JSON as `0x` and hex.
  case hex
  /// Only the size.
  case size
  /// Not at all.
  case none
}
