/// A type whose values name the entries of a cache.
///
/// `String`, `Int`, `UUID`, `URL`, `Data` and `[UInt8]` are keys. A `RawRepresentable` of one of
/// them becomes a key by saying so:
///
/// ```swift
/// struct GenreID: RawRepresentable, CacheKey { var rawValue: Int }
/// ```
///
/// An encoding keeps the order that the type is scanned in: entries are ordered by the bytes of
/// their keys. Any bytes are legal, none at all included, up to 64 KiB.
///
/// A key is not `Hashable` on purpose: two equal `String`s can have different bytes (a precomposed
/// and a decomposed accent), and a store tells them apart.
public protocol CacheKey: Sendable {
  /// What the bytes of such a key mean.
  ///
  /// It is written into the store when the cache is made; opening the cache later with keys of
  /// another kind is ``StoreError/invalidArgument(_:)``.
  static var keyKind: KeyKind { get }

  /// Appends the key's bytes to `buffer`.
  ///
  /// Equal bytes are the same key.
  func encodeKey(into buffer: inout KeyBuffer)

  /// Makes the key again from what ``encodeKey(into:)`` appended, or nil if it cannot have.
  init?(encodedKey: RawSpan)
}

/// A key whose encoding has meaningful prefixes, so that a scan can be asked for one.
public protocol PrefixKey: CacheKey {
  /// The bytes that such keys may begin with.
  associatedtype Prefix: Sequence<UInt8>
}

/// What the bytes of a key mean: enough for a tool to print it without the program's types.
public struct KeyKind: Sendable, Hashable {
  package let code: UInt8

  package init(code: UInt8) { self.code = code }

  /// UTF-8 text.
  public static let text = KeyKind(code: 1)
  /// A 64-bit signed integer in eight bytes, big-endian with its sign bit turned, so that the
  /// order of the bytes is the order of the numbers.
  public static let integer = KeyKind(code: 2)
  /// The sixteen bytes of a UUID.
  public static let uuid = KeyKind(code: 3)
  /// Bytes without further meaning.
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

/// The largest key, in bytes: 64 KiB.
package let maximumKeyBytes = 64 << 10

/// Where a key writes its bytes.
public struct KeyBuffer: ~Copyable {
  var bytes: [UInt8]

  init(_ prefix: consuming [UInt8] = []) { bytes = prefix }

  /// Appends `more` to the key.
  public mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }
}

extension CacheKey {
  /// The key's bytes behind `prefix`.
  package func encoded(after prefix: consuming [UInt8] = []) -> [UInt8] {
    // Consumed, so that the key is appended in place.
    var buffer = KeyBuffer(prefix)
    encodeKey(into: &buffer)
    return buffer.bytes
  }
}
