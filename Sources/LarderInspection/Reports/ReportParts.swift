// Helpers shared by several reports.

import Larder

/// The version of the reports' JSON format.
///
/// It increases when a member changes its meaning or is removed, not when one is added.
var reportVersion: JSONValue { .integer(1) }

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

extension Report.Section {
  /// What a command has done to records, or would do; only their number if the style is quiet.
  static func total(
    _ total: (entries: Int, bytes: Int?), _ verb: String, isDryRun: Bool, _ style: Style
  ) -> Report.Section {
    let size = total.bytes.map { ", \(Amount.bytes($0)) with their keys" } ?? ""
    let words = " records\(isDryRun ? " would be" : "") \(verb)\(size)"
    return .text("\(total.entries)\(style.isQuiet ? "" : words)\n")
  }
}

/// Numbers and sizes as people read them, for tables; JSON and CSV have plain digits.
package enum Amount {
  /// A number with commas between thousands.
  static func text(_ number: Int) -> String {
    let digits = "\(number.magnitude)"
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return (number < 0 ? "-" : "") + text
  }

  /// A size in decimal units, such as `512 B` or `199.7 MB`, rounded to the nearest tenth.
  static func bytes(_ count: Int) -> String {
    guard count >= 1000 else { return "\(count) B" }
    // Tenths of the unit below. A damaged file may state any size.
    var tenths = 10 * Int128(count)
    for unit in ["KB", "MB", "GB", "TB"] {
      tenths = (tenths + 500) / 1000
      if tenths < 10_000 { return "\(tenths / 10).\(tenths % 10) \(unit)" }
    }
    return "\(text(Int((tenths + 500) / 10_000))) PB"
  }

  /// The size of a text such as `500`, `20KB` or `1.5 MB`, in decimal units; nil for any other.
  package static func bytes(of text: String) -> Int? {
    let digits = text.prefix { $0.isNumber || $0 == "." }
    let unit = text.dropFirst(digits.count).drop { $0 == " " }.uppercased()
    let factors = ["": 1.0, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12]
    guard let factor = factors[unit], let number = Double(digits), number >= 0 else { return nil }
    return Int(exactly: (number * factor).rounded())
  }

  /// A short time, such as `87 ms` or `1.5 s`.
  static func duration(_ seconds: Double) -> String {
    // Any program may have written the statistics.
    guard seconds.isFinite, seconds >= 0, seconds < 1e9 else { return "-" }
    if seconds < 0.9995 { return "\(Int((seconds * 1000).rounded())) ms" }
    let tenths = Int((seconds * 10).rounded())
    return "\(text(tenths / 10)).\(tenths % 10) s"
  }

  /// A share in per cent, rounded to the nearest tenth.
  static func share(_ part: Int, of whole: Int) -> String {
    guard whole > 0 else { return "-" }
    let tenths = (Int128(part) * 1000 + Int128(whole / 2)) / Int128(whole)
    return "\(tenths / 10).\(tenths % 10) %"
  }
}
