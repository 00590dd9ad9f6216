/// A value as a Redis or Valkey server sends it, in RESP2 or RESP3.
///
/// The protocol writes some values in several ways. Simple strings, bulk strings, verbatim strings
/// and big numbers are all strings here, and sets are arrays. Attributes, which describe the value
/// after them, are left out.
package enum RESPValue: Sendable, Hashable {
  case string([UInt8])
  case error(RESPError)
  case integer(Int64)
  case double(Double)
  case boolean(Bool)
  case null
  case array([RESPValue])
  /// Keys and values in turns, as a RESP2 server sends a map, too.
  case map([RESPValue])
  /// A message that is no reply to a command, such as an invalidation.
  case push([RESPValue])
}

/// An error that a server answers with.
package struct RESPError: Error, Sendable, Hashable {
  /// The text, which begins with a code: `WRONGTYPE Operation against a key`.
  package let bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The first word of the text, such as `MOVED` or `NOAUTH`.
  package var code: String {
    String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
  }
}
