#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Whether `a` comes before `b` in the order of keys: by unsigned bytes, shorter first.
package func isOrdered(_ a: UnsafeRawBufferPointer, before b: UnsafeRawBufferPointer) -> Bool {
  guard let start = a.baseAddress, let other = b.baseAddress else { return a.count < b.count }
  let order = memcmp(start, other, min(a.count, b.count))
  return order == 0 ? a.count < b.count : order < 0
}
