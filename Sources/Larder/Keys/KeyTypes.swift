public import Foundation

extension String: PrefixKey {
  /// The UTF-8 bytes that a key may begin with.
  public typealias Prefix = String.UTF8View

  /// Text.
  public static var keyKind: KeyKind { .text }

  /// Appends the UTF-8 bytes, as they are: nothing is normalised.
  public func encodeKey(into buffer: inout KeyBuffer) { buffer.append(utf8) }

  /// Reads UTF-8; nil for bytes that are not.
  public init?(encodedKey: RawSpan) {
    let text = encodedKey.withUnsafeBytes { String(validating: $0, as: UTF8.self) }
    guard let text else { return nil }
    self = text
  }
}

extension Int: CacheKey {
  /// An integer.
  public static var keyKind: KeyKind { .integer }

  /// Appends eight bytes that order as the numbers do.
  public func encodeKey(into buffer: inout KeyBuffer) {
    withUnsafeBytes(of: orderedBits(of: Int64(self)).bigEndian) { buffer.append($0) }
  }

  /// Reads eight bytes; nil for any other count.
  public init?(encodedKey: RawSpan) {
    guard encodedKey.byteCount == 8 else { return nil }
    let raw = UInt64(bigEndian: encodedKey.unsafeLoadUnaligned(as: UInt64.self))
    self = Int(number(ofOrderedBits: raw))
  }
}

/// A signed number as bits whose unsigned order is the number's own.
func orderedBits(of number: Int64) -> UInt64 { UInt64(bitPattern: number) ^ (1 << 63) }

/// The number that ``orderedBits(of:)`` was given.
func number(ofOrderedBits bits: UInt64) -> Int64 { Int64(bitPattern: bits ^ (1 << 63)) }

extension UUID: CacheKey {
  /// A UUID.
  public static var keyKind: KeyKind { .uuid }

  /// Appends the sixteen bytes.
  public func encodeKey(into buffer: inout KeyBuffer) {
    withUnsafeBytes(of: uuid) { buffer.append($0) }
  }

  /// Reads sixteen bytes; nil for any other count.
  public init?(encodedKey: RawSpan) {
    guard encodedKey.byteCount == 16 else { return nil }
    self.init(uuid: encodedKey.unsafeLoadUnaligned(as: uuid_t.self))
  }
}

extension URL: PrefixKey {
  /// The UTF-8 bytes that a key may begin with.
  public typealias Prefix = String.UTF8View

  /// Text.
  public static var keyKind: KeyKind { .text }

  /// Appends the bytes of `absoluteString`: case, slashes and escapes are kept as they are.
  public func encodeKey(into buffer: inout KeyBuffer) { buffer.append(absoluteString.utf8) }

  /// Reads a URL; nil for text that is none.
  public init?(encodedKey: RawSpan) {
    guard let text = String(encodedKey: encodedKey) else { return nil }
    self.init(string: text)
  }
}

extension Data: PrefixKey {
  /// The bytes that a key may begin with.
  public typealias Prefix = Data

  /// Bytes.
  public static var keyKind: KeyKind { .bytes }

  /// Appends the bytes.
  public func encodeKey(into buffer: inout KeyBuffer) { buffer.append(self) }

  /// Takes the bytes, whatever they are.
  public init?(encodedKey: RawSpan) { self = encodedKey.withUnsafeBytes { Data($0) } }
}

extension Array: CacheKey, PrefixKey where Element == UInt8 {
  /// The bytes that a key may begin with.
  public typealias Prefix = [UInt8]

  /// Bytes.
  public static var keyKind: KeyKind { .bytes }

  /// Appends the bytes.
  public func encodeKey(into buffer: inout KeyBuffer) { buffer.append(self) }

  /// Takes the bytes, whatever they are.
  public init?(encodedKey: RawSpan) { self = encodedKey.withUnsafeBytes { Array($0) } }
}

extension CacheKey where Self: RawRepresentable, RawValue: CacheKey {
  /// The kind of the raw value.
  public static var keyKind: KeyKind { RawValue.keyKind }

  /// Appends the raw value's bytes.
  public func encodeKey(into buffer: inout KeyBuffer) { rawValue.encodeKey(into: &buffer) }

  /// Reads the raw value; nil if it cannot be read or is not one of this type's.
  public init?(encodedKey: RawSpan) {
    guard let raw = RawValue(encodedKey: encodedKey) else { return nil }
    self.init(rawValue: raw)
  }
}
