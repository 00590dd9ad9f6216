// Helpers shared by several reports.

import Larder

/// The version of the reports' JSON format.
///
/// It increases when a member changes its meaning or is removed, not when one is added.
let reportVersion = JSONValue.integer(1)

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
  var jsonHeading: Report.Members {
    [
      ("schemaVersion", reportVersion), ("store", .string(path)), ("access", .string("snapshot")),
      ("snapshotBy", .string(method.rawValue)), ("now", .optional(Moment.text(now))),
    ]
  }
}
