#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Appends `number` as a varint, the encoding that LevelDB and Protocol Buffers use.
///
/// Each byte holds seven bits, lowest first; the top bit is set in all bytes but the last.
package func appendVarint(_ number: UInt64, to bytes: inout [UInt8]) {
  var rest = number
  while rest >= 0x80 {
    bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
    rest >>= 7
  }
  bytes.append(UInt8(rest))
}

/// Reads a varint at `offset` and moves `offset` behind it.
///
/// Returns nil, and leaves `offset` unchanged, if the varint is truncated, does not fit into 64
/// bits, or is longer than necessary.
@inline(__always)
package func readVarint(_ bytes: RawSpan, at offset: inout Int) -> UInt64? {
  if offset < bytes.byteCount {
    let first = bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    if first < 0x80 {
      offset += 1
      return UInt64(first)
    }
  }
  return readLongVarint(bytes, at: &offset)
}

private func readLongVarint(_ bytes: RawSpan, at offset: inout Int) -> UInt64? {
  var number: UInt64 = 0
  var shift = 0
  var next = offset
  while next < bytes.byteCount, shift < 64 {
    let byte = bytes.unsafeLoad(fromByteOffset: next, as: UInt8.self)
    next += 1
    guard shift < 63 || byte <= 1 else { return nil }
    number |= UInt64(byte & 0x7F) << UInt64(shift)
    if byte < 0x80 {
      guard byte != 0 || shift == 0 else { return nil }
      offset = next
      return number
    }
    shift += 7
  }
  return nil
}

/// Whether `a` comes before `b` in the order of keys: by unsigned bytes, shorter first.
package func isOrdered(_ a: UnsafeRawBufferPointer, before b: UnsafeRawBufferPointer) -> Bool {
  guard let start = a.baseAddress, let other = b.baseAddress else { return a.count < b.count }
  let order = memcmp(start, other, min(a.count, b.count))
  return order == 0 ? a.count < b.count : order < 0
}

/// Whether two buffers have the same bytes.
package func isEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
  guard left.count == right.count else { return false }
  guard let start = left.baseAddress, let other = right.baseAddress else { return true }
  return memcmp(start, other, left.count) == 0
}
