// What several reports have in common.

import Larder
import LarderEngine

/// The version of what the reports write as JSON.
///
/// It rises when a member changes its meaning or goes away, not when one is added.
let reportVersion = JSONValue.integer(1)

/// A text as a cell of a CSV file, which is never a formula to a spreadsheet.
///
/// A text that begins like a formula gets a single quote in front, unless it is a whole number.
/// Characters that could control a terminal are escaped.
func csvCell(_ text: String) -> String {
  var cell = text.escapedForTerminal
  if let first = cell.unicodeScalars.first, formulaStarts.contains(first), Int(cell) == nil {
    cell = "'" + cell
  }
  // By scalars: a quote or comma under a combining mark is another `Character`, and the same byte.
  guard cell.unicodeScalars.contains(where: { $0 == "\"" || $0 == "," }) else { return cell }
  let pieces = cell.unicodeScalars.split(separator: "\"", omittingEmptySubsequences: false)
  return "\"" + pieces.map(String.init).joined(separator: "\"\"") + "\""
}

/// What a formula begins with; the last four are the same characters in full width.
private let formulaStarts: Set<Unicode.Scalar> = [
  "=", "+", "-", "@", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}",
]

extension Style {
  /// A key as this style writes it.
  ///
  /// A redacted one has its length and a checksum: two equal texts are most likely one key.
  func text(of key: [UInt8], in cache: KnownCache) -> String {
    guard isRedacted else { return keys.text(of: key, kind: cache.keyKind) }
    let sum = String(key.withUnsafeBytes { crc32c($0) }, radix: 16)
    return "(\(key.count) bytes, \(String(repeating: "0", count: 8 - sum.count))\(sum))"
  }
}

extension Inspection {
  /// Where the store is and how it is read: the first line of what people get.
  var heading: String {
    switch method {
    case .links: "\(path.escapedForTerminal) (snapshot)"
    case .copies: "\(path.escapedForTerminal) (snapshot, copied: links are refused here)"
    }
  }

  /// The same for programs.
  var jsonHeading: [(name: String, value: JSONValue)] {
    [
      ("schemaVersion", reportVersion), ("store", .string(path)), ("access", .string("snapshot")),
      ("snapshotBy", .string(method.rawValue)), ("now", .optional(Moment.text(now))),
    ]
  }
}
