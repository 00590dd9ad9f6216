import Foundation

/// A type whose values identify the entries of a cache.
///
/// `String`, `Int`, `UUID`, `URL`, `Data` and `[UInt8]` are keys. A `RawRepresentable` type with
/// one of them as its raw value only has to declare the conformance:
///
/// ```swift
/// struct GenreID: RawRepresentable, CacheKey { var rawValue: Int }
/// ```
///
/// Entries are ordered by the encoded bytes of their keys, and scans visit them in that order. An
/// encoded key may be any 0 to 65,536 bytes.
///
/// The protocol does not require `Hashable`, on purpose: two equal `String`s can have different
/// bytes (a precomposed and a decomposed accent), and a store treats them as different keys.
public protocol CacheKey: Sendable {
  /// How the bytes of an encoded key are interpreted.
  ///
  /// The kind is stored when the cache is created. Opening the cache with keys of another kind
  /// throws ``StoreError/invalidArgument(_:)``.
  static var keyKind: KeyKind { get }

  /// Appends the encoded key to `buffer`.
  ///
  /// Keys with the same bytes identify the same entry.
  func encodeKey(into buffer: inout KeyBuffer)

  /// Decodes a key that ``encodeKey(into:)`` encoded; nil if the bytes are not a valid key.
  init?(encodedKey: RawSpan)
}

/// A key type whose entries can be scanned by prefix, with ``KeyRange``.
public protocol PrefixKey: CacheKey {
  /// The bytes of a key prefix.
  associatedtype Prefix: Sequence<UInt8>
}

/// How the bytes of a key are interpreted.
///
/// It lets a tool print keys without the program's types.
public struct KeyKind: Sendable, Hashable {
  package let code: UInt8

  package init(code: UInt8) { self.code = code }

  /// UTF-8 text.
  public static let text = KeyKind(code: 1)
  /// A 64-bit signed integer: eight bytes, big-endian, with the sign bit inverted.
  ///
  /// The order of the bytes is the order of the numbers.
  public static let integer = KeyKind(code: 2)
  /// The sixteen bytes of a UUID.
  public static let uuid = KeyKind(code: 3)
  /// Bytes that are not interpreted.
  public static let bytes = KeyKind(code: 4)
}

extension KeyKind: CustomStringConvertible {
  /// The kind's name: `text`, `integer`, `uuid`, `bytes`.
  public var description: String {
    switch self {
    case .text: "text"
    case .integer: "integer"
    case .uuid: "uuid"
    case .bytes: "bytes"
    default: "kind \(code)"
    }
  }
}

/// The largest encoded key, in bytes: 64 KiB.
package let maximumKeyBytes = 64 << 10

extension KeyKind {
  /// The key as text, for messages and tools.
  ///
  /// Text is shown as it is, an integer in decimal, a UUID in its usual form. Other bytes, and
  /// bytes that are not a valid key of this kind, are shown in hexadecimal with the prefix `0x`.
  package func describe(_ key: RawSpan) -> String {
    let text: String? =
      switch self {
      case .text: String(encodedKey: key)
      case .integer: Int(encodedKey: key).map(String.init)
      case .uuid: UUID(encodedKey: key)?.uuidString
      default: nil
      }
    return text ?? "0x" + key.withUnsafeBytes { hex($0) }
  }
}

private func hex(_ bytes: UnsafeRawBufferPointer) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  text.reserveCapacity(bytes.count * 2)
  for byte in bytes {
    text.append(digits[Int(byte >> 4)])
    text.append(digits[Int(byte & 15)])
  }
  return String(decoding: text, as: UTF8.self)
}
