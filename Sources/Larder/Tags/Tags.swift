import Foundation

/// The tags of an entry, as its record keeps them: their number in one byte, and of each tag the
/// length in one byte and the bytes.
package struct Tags: Sendable, Hashable {
  /// The largest number of tags of an entry.
  static let maximumCount = 16
  /// The largest number of UTF-8 bytes of a tag.
  static let maximumBytes = 64

  let bytes: [UInt8]

  /// Nil if there are no tags.
  init?(_ tags: [String]) throws(StoreError) {
    guard !tags.isEmpty else { return nil }
    guard tags.count <= Self.maximumCount else {
      throw .invalidArgument(
        "\(tags.count) tags of an entry; at most \(Self.maximumCount) are allowed")
    }
    var bytes = [UInt8(tags.count)]
    for tag in tags {
      let tag = try Self.bytes(of: tag)
      bytes.append(UInt8(tag.count))
      bytes += tag
    }
    self.bytes = bytes
  }

  /// The tags of a record that was read from `bytes`; nil if it has none.
  package init?(of record: Record, in bytes: RawSpan) {
    guard let place = record.tags else { return nil }
    self.bytes = [UInt8](bytes.extracting(place))
  }

  /// The bytes of a tag: UTF-8 in normalization form C, so that equal texts are one tag.
  static func bytes(of tag: String) throws(StoreError) -> [UInt8] {
    let isASCII = tag.utf8.allSatisfy { $0 < 0x80 }
    let bytes = Array((isASCII ? tag : tag.precomposedStringWithCanonicalMapping).utf8)
    guard (1...maximumBytes).contains(bytes.count) else {
      throw .invalidArgument("a tag of \(bytes.count) bytes; it must have 1 to \(maximumBytes)")
    }
    return bytes
  }

  /// The place of the tags that begin at `start`; nil if they reach beyond the bytes.
  static func place(in bytes: RawSpan, at start: Int) -> Range<Int>? {
    var end = start + 1
    guard end <= bytes.byteCount else { return nil }
    for _ in 0..<bytes.unsafeLoad(fromByteOffset: start, as: UInt8.self) {
      guard end < bytes.byteCount else { return nil }
      end += 1 + Int(bytes.unsafeLoad(fromByteOffset: end, as: UInt8.self))
    }
    return end <= bytes.byteCount ? start..<end : nil
  }

  /// The bytes of each tag.
  package var all: [ArraySlice<UInt8>] {
    var tags: [ArraySlice<UInt8>] = []
    var start = 1
    while start < bytes.count {
      let end = start + 1 + Int(bytes[start])
      tags.append(bytes[(start + 1)..<end])
      start = end
    }
    return tags
  }

  /// The tags as they were given, in normalization form C.
  package var texts: [String] { all.map { String(decoding: $0, as: UTF8.self) } }
}
