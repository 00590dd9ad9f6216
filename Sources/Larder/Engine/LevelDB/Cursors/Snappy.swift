import CLarder

/// Compression with Snappy, which LevelDB's blocks have, too.
package enum Snappy {
  /// Snappy makes at most this many bytes of one.
  private static let largestRatio = 64

  /// Compresses the bytes of `buffer` from `start` on, if that saves at least an eighth of them.
  ///
  /// - Returns: Whether they are compressed now; otherwise they are unchanged.
  package static func compress(_ buffer: inout ByteBuffer, from start: Int) -> Bool {
    let end = buffer.count
    buffer.append(upTo: clarder_snappy_most_bytes(end - start)) { contents, room in
      guard let compressed = room.baseAddress else { return 0 }
      let bytes = UnsafeRawBufferPointer(rebasing: contents[start...])
      return clarder_snappy_compress(clarder_slice(bytes), compressed)
    }
    guard buffer.count - end <= (end - start) / 8 * 7 else {
      buffer.truncate(to: end)
      return false
    }
    buffer.remove(start..<end)
    return true
  }

  /// The size that `compressed` has once decompressed.
  ///
  /// Nil if it does not begin with a size. What follows is not checked.
  package static func decompressedCount(_ compressed: RawSpan) -> Int? {
    var count = 0
    let isFound = compressed.withUnsafeBytes { clarder_snappy_count(clarder_slice($0), &count) }
    return isFound ? count : nil
  }

  /// Whether `compressed` can be decompressed.
  package static func isValid(_ compressed: RawSpan) -> Bool {
    compressed.withUnsafeBytes { clarder_snappy_is_valid(clarder_slice($0)) }
  }

  /// Appends the bytes that were compressed to `buffer`.
  ///
  /// - Returns: False if `compressed` is not valid, or stands for more than `limit` bytes; then
  ///   nothing is appended. No memory is allocated for a size that it cannot stand for.
  package static func decompress(
    _ compressed: RawSpan, limit: Int = .max, to buffer: inout ByteBuffer
  ) -> Bool {
    guard let count = decompressedCount(compressed), count <= limit,
      count <= compressed.byteCount * largestRatio
    else { return false }
    var isValid = false
    buffer.append(upTo: count) { _, room in
      guard let bytes = room.baseAddress else { return 0 }
      isValid = compressed.withUnsafeBytes {
        clarder_snappy_decompress(clarder_slice($0), bytes, count)
      }
      return isValid ? count : 0
    }
    return isValid
  }
}
