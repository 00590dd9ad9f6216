// Counts the allocations of encoding a value into a buffer with room, of decoding it, and of making
// the same value by hand, and prints a line for each type of payload. With arguments, it counts the
// allocations of reads, measures the memory that a store takes, or repeats a call for a trace.
//
// It is a process of its own because it counts all allocations of its process.

import Foundation
import Larder
import LarderAllocationCount

@main
struct AllocationWorker {
  static func main() throws {
    guard larder_allocation_count() >= 0 else {
      return print("cannot count: glibc is missing, or a sanitizer replaces its functions")
    }
    let arguments = CommandLine.arguments
    switch (arguments.dropFirst().first, arguments.count) {
    case (nil, _): try countCoding()
    case ("hits", 3): try Hits.run(in: arguments[2])
    case ("memory", 5):
      guard let limit = Int(arguments[3]) else { fallthrough }
      try MemoryUse.run(in: arguments[2], limit: limit, kind: arguments[4])
    case ("trace", 5):
      guard let operation = Traces(rawValue: arguments[2]), let count = Int(arguments[4]) else {
        fallthrough
      }
      try operation.run(count, in: arguments[3])
    default:
      print("usage: AllocationWorker [hits DIR | memory DIR BYTES KIND | trace CALL DIR COUNT]")
    }
  }

  private static func countCoding() throws {
    for specimen in Specimen.all {
      let counts = try specimen.count()
      print("\(specimen.name): \(counts.encode) \(counts.decode) \(counts.byHand)")
    }
  }
}

/// A value to encode, with a closure that counts its allocations.
struct Specimen: Sendable {
  typealias Counts = (encode: Int, decode: Int, byHand: Int)

  let name: String
  let count: @Sendable () throws -> Counts

  init<T: Codable & SendableMetatype>(_ name: String, _ make: @escaping @Sendable () -> T) {
    self.name = name
    count = {
      let value = make()
      var buffer = ByteBuffer()
      // The coder caches a type's shape with the first values.
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

  /// Uses a cache's coder, which encodes a type with `DirectCoding` without `Codable`.
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

/// The maximum number of allocations of a call, after some calls to warm up.
func allocations<R, E>(of call: () throws(E) -> R) throws(E) -> Int {
  for _ in 0..<20 { keep(try call()) }
  var most = 0
  for _ in 0..<20 {
    let before = larder_allocation_count()
    keep(try call())
    most = max(most, Int(larder_allocation_count() - before))
  }
  return most
}

/// Uses a value, so that the optimizer does not remove the call that made it.
@inline(never)
private func keep<T>(_ value: T) {
  withExtendedLifetime(value) {}
}
