/// What a server calls a version of a value, such as an HTTP `ETag` or `Last-Modified`.
///
/// ```swift
/// try pages.save(body, for: url, validator: Validator(etag))
/// // Later, for an expired entry: its metadata has the validator for `If-None-Match`.
/// if response.status == 304 { try pages.touch(url) }
/// ```
///
/// A store keeps the bytes with the value and does not interpret them. Touching and migrating an
/// entry keep its validator; a save replaces it.
public struct Validator: Sendable, Hashable, ExpressibleByStringLiteral {
  /// The largest number of bytes that an entry can have as its validator: 4,096.
  static let maximumBytes = 4096

  /// The bytes; an entry accepts 1 to 4,096.
  public let bytes: [UInt8]

  /// A validator of opaque bytes.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// A validator of the UTF-8 bytes of a text, such as the value of an `ETag` header.
  public init(_ text: String) { self.init(Array(text.utf8)) }

  /// A validator of the UTF-8 bytes of a literal.
  public init(stringLiteral text: String) { self.init(text) }

  /// The bytes as text; nil if they are not UTF-8.
  public var text: String? { String(validating: bytes, as: UTF8.self) }
}

extension Validator {
  /// The validator of `record`, which was read from `bytes`; nil if it has none.
  init?(of record: Record, in bytes: RawSpan) {
    guard let range = record.validator else { return nil }
    self.init(Array(bytes.extracting(range)))
  }

  func checkLimits() throws(StoreError) {
    guard (1...Self.maximumBytes).contains(bytes.count) else {
      throw .invalidArgument(
        "a validator of \(bytes.count) bytes; it must have 1 to \(Self.maximumBytes)")
    }
  }
}
