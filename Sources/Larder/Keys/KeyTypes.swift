public import Foundation

extension String: PrefixKey {
  /// The UTF-8 bytes of a key prefix.
  public typealias Prefix = String.UTF8View

  /// ``KeyKind/text``.
  public static var keyKind: KeyKind { .text }

  /// Appends the UTF-8 bytes, without Unicode normalisation.
  public func encodeKey(into buffer: inout KeyBuffer) { buffer.append(utf8) }

  /// Decodes UTF-8; nil if the bytes are not valid UTF-8.
  public init?(encodedKey: RawSpan) {
    let text = encodedKey.withUnsafeBytes { String(validating: $0, as: UTF8.self) }
    guard let text else { return nil }
    self = text
  }
}

extension Int: CacheKey {
  /// ``KeyKind/integer``.
  public static var keyKind: KeyKind { .integer }

  /// Appends eight bytes whose order is the order of the numbers.
  public func encodeKey(into buffer: inout KeyBuffer) {
    withUnsafeBytes(of: orderedBits(of: Int64(self)).bigEndian) { buffer.append($0) }
  }

  /// Decodes eight bytes; nil for any other count.
  public init?(encodedKey: RawSpan) {
    guard encodedKey.byteCount == 8 else { return nil }
    let raw = UInt64(bigEndian: encodedKey.unsafeLoadUnaligned(as: UInt64.self))
    self = Int(number(ofOrderedBits: raw))
  }
}

/// Maps a signed number to bits whose unsigned order is the order of the numbers.
func orderedBits(of number: Int64) -> UInt64 { UInt64(bitPattern: number) ^ (1 << 63) }

/// The inverse of ``orderedBits(of:)``.
func number(ofOrderedBits bits: UInt64) -> Int64 { Int64(bitPattern: bits ^ (1 << 63)) }

extension UUID: CacheKey {
  /// ``KeyKind/uuid``.
  public static var keyKind: KeyKind { .uuid }

  /// Appends the sixteen bytes of the UUID.
  public func encodeKey(into buffer: inout KeyBuffer) {
    withUnsafeBytes(of: uuid) { buffer.append($0) }
  }

  /// Decodes sixteen bytes; nil for any other count.
  public init?(encodedKey: RawSpan) {
    guard encodedKey.byteCount == 16 else { return nil }
    self.init(uuid: encodedKey.unsafeLoadUnaligned(as: uuid_t.self))
  }
}

extension URL: PrefixKey {
  /// The UTF-8 bytes of a key prefix.
  public typealias Prefix = String.UTF8View

  /// ``KeyKind/text``.
  public static var keyKind: KeyKind { .text }

  /// Appends the UTF-8 bytes of `absoluteString`; case, slashes and escapes are not normalised.
  public func encodeKey(into buffer: inout KeyBuffer) { buffer.append(absoluteString.utf8) }

  /// Decodes a URL; nil if the bytes are not a valid URL.
  public init?(encodedKey: RawSpan) {
    guard let text = String(encodedKey: encodedKey) else { return nil }
    self.init(string: text)
  }
}

extension Data: PrefixKey {
  /// The bytes of a key prefix.
  public typealias Prefix = Data

  /// ``KeyKind/bytes``.
  public static var keyKind: KeyKind { .bytes }

  /// Appends the bytes.
  public func encodeKey(into buffer: inout KeyBuffer) { buffer.append(self) }

  /// Creates a key from the bytes; never nil.
  public init?(encodedKey: RawSpan) { self = encodedKey.withUnsafeBytes { Data($0) } }
}

extension Array: CacheKey, PrefixKey where Element == UInt8 {
  /// The bytes of a key prefix.
  public typealias Prefix = [UInt8]

  /// ``KeyKind/bytes``.
  public static var keyKind: KeyKind { .bytes }

  /// Appends the bytes.
  public func encodeKey(into buffer: inout KeyBuffer) { buffer.append(self) }

  /// Creates a key from the bytes; never nil.
  public init?(encodedKey: RawSpan) { self = [UInt8](encodedKey) }
}

extension CacheKey where Self: RawRepresentable, RawValue: CacheKey {
  /// The kind of the raw value.
  public static var keyKind: KeyKind { RawValue.keyKind }

  /// Appends the raw value's bytes.
  public func encodeKey(into buffer: inout KeyBuffer) { rawValue.encodeKey(into: &buffer) }

  /// Decodes the raw value; nil if the bytes or the raw value are not valid for this type.
  public init?(encodedKey: RawSpan) {
    guard let raw = RawValue(encodedKey: encodedKey) else { return nil }
    self.init(rawValue: raw)
  }
}
