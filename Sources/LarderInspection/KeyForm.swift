// How keys are written and read. Every written key can be passed back as an argument:
//
//   text      unchanged; but as 0x and hex if it is not UTF-8, is empty, has control or invisible
//             characters, begins with "-", begins or ends with a space, or could be read as hex or
//             as the number of a row
//   integer   decimal
//   UUID      the standard form
//   bytes     0x and hex
//
// Bytes that are not a key of the cache's kind are written as hex too, so every cache reads 0x as
// bytes.

import Foundation
import Larder

/// How keys are written and read.
package enum KeyForm: String, Sendable, CaseIterable {
  /// According to the kind of the cache's keys.
  case auto
  /// As text, whatever their kind.
  case utf8
  /// As `0x` and hex.
  case hex
  /// In Base64 (RFC 4648).
  case base64
}

extension KeyForm {
  /// The key in this form.
  func text(of key: [UInt8], kind: KeyKind) -> String {
    switch self {
    case .auto where kind == .text: return Self.text(ofText: key)
    case .auto where kind == .integer || kind == .uuid: return kind.describe(key.span.bytes)
    case .auto, .hex: return Self.hex(key)
    case .utf8: return Self.text(ofText: key)
    case .base64: return Data(key).base64EncodedString()
    }
  }

  /// The bytes of a key written in this form; nil if `text` is not a key of this kind.
  func bytes(of text: String, kind: KeyKind) -> [UInt8]? {
    if self == .base64 { return JSONValue.bytes(ofBase64: text) }
    if let bytes = Self.bytes(ofHex: text) { return bytes }
    switch self {
    case .hex: return Self.bytes(ofHex: "0x" + text)
    case .auto where kind == .integer: return Int(text)?.encoded()
    case .auto where kind == .uuid: return UUID(uuidString: text)?.encoded()
    default: return Array(text.utf8)
    }
  }

  /// The bytes of a key prefix written in this form; nil if `text` cannot be one.
  func prefix(of text: String, kind: KeyKind) -> [UInt8]? {
    if self == .auto, kind == .integer || kind == .uuid { return Self.bytes(ofHex: text) }
    return bytes(of: text, kind: kind)
  }

  /// The name of a cache, written like a text key.
  static func text(ofName name: String) -> String { text(ofText: Array(name.utf8)) }

  static func hex(_ bytes: some Sequence<UInt8>) -> String {
    KeyKind.bytes.describe(Array(bytes).span.bytes)
  }

  private static func text(ofText key: [UInt8]) -> String {
    guard let text = String(validating: key, as: UTF8.self), isPlain(text) else { return hex(key) }
    return text
  }

  private static func isPlain(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first, text.unicodeScalars.last != " " else {
      return false
    }
    return first != "-" && first != " " && text.unicodeScalars.allSatisfy(isVisible)
      && bytes(ofHex: text) == nil && ShownRows.number(text) == nil
  }

  /// Whether a character is visible, safe on a terminal, and distinct from every other one.
  private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.isSafeOnTerminal }
    switch scalar.properties.generalCategory {
    case .format, .spaceSeparator: return false
    default: return scalar.isSafeOnTerminal
    }
  }

  /// The bytes that are written as `0x` and hex; nil for any other text.
  static func bytes(ofHex text: String) -> [UInt8]? {
    guard text.utf8.starts(with: "0x".utf8) else { return nil }
    let digits = Array(text.utf8.dropFirst(2))
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let byte = byte(ofHex: digits[index..<(index + 2)]) else { return nil }
      bytes.append(byte)
    }
    return bytes
  }

  /// The byte that two digits stand for; nil for any other text.
  static func byte(ofHex digits: ArraySlice<UInt8>) -> UInt8? {
    guard digits.count == 2, let high = hexValue(digits[digits.startIndex]),
      let low = hexValue(digits[digits.startIndex + 1])
    else { return nil }
    return high << 4 | low
  }

  private static func hexValue(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
