// What several reports have in common.

import Larder
import LarderEngine

/// The version of what the reports write as JSON.
///
/// It rises when a member changes its meaning or goes away, not when one is added.
let reportVersion = JSONValue.integer(1)

/// A text as a cell of a CSV file.
func csvCell(_ text: String) -> String {
  guard text.contains(where: { "\",\n\r".contains($0) }) else { return text }
  return "\"" + text.replacing("\"", with: "\"\"") + "\""
}

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
    case .links: "\(path) (snapshot)"
    case .copies: "\(path) (snapshot, copied: links are refused here)"
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
