/// Which records a command is about, and how it writes them.
package struct Selection: Sendable {
  /// Only this cache, by name or as `#` and its number.
  package var cache: String?
  /// Only keys that begin so.
  package var prefix: String?
  /// Only this key and those after it.
  package var from: String?
  /// Only keys before this one.
  package var to: String?
  /// Only keys that are written so; see ``Glob``.
  package var match: String?
  /// At most so many records.
  package var limit: Int?
  /// From the last key to the first.
  package var isReversed = false

  /// Selects every record.
  package init() {}
}

/// How a report is written.
package struct Style: Sendable {
  /// What the report is made of.
  package var format = ReportFormat.table
  /// How keys are written, and read from a command's arguments.
  package var keys = KeyForm.auto
  /// How payloads are written.
  package var values = ValueForm.auto
  /// No value is written, and of a key only its length and a checksum that tells it from others.
  package var isRedacted = false
  /// Only data: no headings and no summary.
  package var isQuiet = false

  /// A table for people, with everything in it.
  package init() {}
}

/// The forms of reports.
package enum ReportFormat: String, Sendable, CaseIterable {
  /// For people.
  case table
  /// One JSON document.
  case json
  /// A JSON document on each line.
  case jsonl
  /// Comma-separated values under a line of names.
  case csv
}

/// The forms of payloads.
package enum ValueForm: String, Sendable, CaseIterable {
  /// What can be understood as JSON or text, the rest in hex.
  case auto
  /// As JSON where it can be, whatever coder wrote it; the rest in hex.
  case json
  /// As a dump, or in JSON as `0x` and hex.
  case hex
  /// Only how long it is.
  case size
  /// Nothing at all.
  case none
}
