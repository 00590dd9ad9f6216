// Counts allocations of memory: of encoding a value into a buffer that has room, of decoding it,
// and of making the same value by hand. One line for each type of payload. A process of its own,
// as it counts all that its process allocates.

import Foundation
import Larder
import LarderAllocationCount
import LarderBytes
import LarderCoding

@main
struct AllocationWorker {
  static func main() throws {
    guard larder_allocation_count() >= 0 else {
      return print("cannot count: there is no glibc here, or a sanitizer has its place")
    }
    for specimen in Specimen.all {
      let counts = try specimen.count()
      print("\(specimen.name): \(counts.encode) \(counts.decode) \(counts.byHand)")
    }
  }
}

/// A value to encode, and how else it can be made.
struct Specimen: Sendable {
  typealias Counts = (encode: Int, decode: Int, byHand: Int)

  let name: String
  let count: @Sendable () throws -> Counts

  init<T: Codable & SendableMetatype>(_ name: String, _ make: @escaping @Sendable () -> T) {
    self.name = name
    count = {
      let value = make()
      var buffer = ByteBuffer()
      // What the coder learns of a type it learns with the first values.
      let encode = try allocations {
        buffer.truncate(to: 0)
        try PayloadFormat.binary.encode(value, into: &buffer)
      }
      let bytes = Array(buffer)
      let decode = try allocations {
        try PayloadFormat.binary.decode(T.self, from: bytes.span.bytes)
      }
      return (encode, decode, allocations(of: make))
    }
  }

  /// By a cache's coder, which knows types that hand over their fields by themselves.
  init<T: Codable & Sendable>(
    _ name: String, with coder: Coder<T>, _ make: @escaping @Sendable () -> T
  ) {
    self.name = name
    count = {
      let value = make()
      var buffer = ByteBuffer()
      let encode = try allocations {
        buffer.truncate(to: 0)
        try coder.encode(value, &buffer)
      }
      let bytes = Array(buffer)
      let decode = try allocations { try coder.decode(bytes.span.bytes) }
      return (encode, decode, allocations(of: make))
    }
  }
}

/// How many allocations a call makes at the most, once some have been made.
private func allocations<R, E>(of call: () throws(E) -> R) throws(E) -> Int {
  for _ in 0..<20 { keep(try call()) }
  var most = 0
  for _ in 0..<20 {
    let before = larder_allocation_count()
    keep(try call())
    most = max(most, Int(larder_allocation_count() - before))
  }
  return most
}

/// Where the optimizer cannot see that nobody wants a value.
@inline(never)
private func keep<T>(_ value: T) {
  withExtendedLifetime(value) {}
}
