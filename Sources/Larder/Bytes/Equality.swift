#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Whether two buffers have the same bytes.
package func isEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
  guard left.count == right.count else { return false }
  guard let start = left.baseAddress, let other = right.baseAddress else { return true }
  return memcmp(start, other, left.count) == 0
}
