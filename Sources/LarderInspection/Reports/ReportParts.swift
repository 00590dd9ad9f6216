// Helpers shared by several reports.

import Larder
import LarderEngine

/// The version of the reports' JSON format.
///
/// It increases when a member changes its meaning or is removed, not when one is added.
let reportVersion = JSONValue.integer(1)

/// A text as a cell of a CSV file, which no spreadsheet reads as a formula.
///
/// A text that begins like a formula gets a leading single quote, unless it is a whole number.
/// Characters that could control a terminal are escaped.
func csvCell(_ text: String) -> String {
  var cell = text.escapedForTerminal
  if let first = cell.unicodeScalars.first, formulaStarts.contains(first), Int(cell) == nil {
    cell = "'" + cell
  }
  // Compares scalars: a quote or comma with a combining mark is another `Character`.
  guard cell.unicodeScalars.contains(where: { $0 == "\"" || $0 == "," }) else { return cell }
  let pieces = cell.unicodeScalars.split(separator: "\"", omittingEmptySubsequences: false)
  return "\"" + pieces.map(String.init).joined(separator: "\"\"") + "\""
}

/// The characters that begin a formula; the last four are their full-width forms.
private let formulaStarts: Set<Unicode.Scalar> = [
  "=", "+", "-", "@", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}",
]

extension Style {
  /// A key in this style.
  func text(of key: [UInt8], in cache: KnownCache) -> String {
    isRedacted ? Self.redactedText(of: key) : keys.text(of: key, kind: cache.keyKind)
  }

  /// The length and the checksum of a key; equal texts are very likely one key.
  static func redactedText(of key: [UInt8]) -> String {
    let sum = String(key.withUnsafeBytes { crc32c($0) }, radix: 16)
    return "(\(key.count) bytes, \(String(repeating: "0", count: 8 - sum.count))\(sum))"
  }
}

extension Inspection {
  /// The first line of a table report: the store's path, and how it was captured.
  var heading: String {
    switch method {
    case .links: "\(path.escapedForTerminal) (snapshot)"
    case .copies: "\(path.escapedForTerminal) (snapshot, copied: hard links are not possible here)"
    }
  }

  /// The first members of a JSON report.
  var jsonHeading: [(name: String, value: JSONValue)] {
    [
      ("schemaVersion", reportVersion), ("store", .string(path)), ("access", .string("snapshot")),
      ("snapshotBy", .string(method.rawValue)), ("now", .optional(Moment.text(now))),
    ]
  }
}
