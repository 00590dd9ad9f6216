// The entry point of the fuzzer of the coder. `Scripts/fuzz` links it with the library's modules,
// and compiles the tests' specimens into it.
//
// The first byte of an input selects the check and the form of the rest. Below 128 the rest is a
// payload. From 128 on it is the length of the shapes (2 bytes), the tagged value and the shapes,
// so that the fuzzer can make a value longer without changing the payload's size field.

@testable import Larder

/// Checks one input, and ends the process if a property does not hold.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  guard let choice = input.first else { return 0 }
  let payload = choice < 0x80 ? Array(input.dropFirst()) : assembled(Array(input.dropFirst()))
  checkTree(of: payload)
  checkShapes(of: payload)
  let targets = Target.all
  targets[Int(choice & 0x7F) % targets.count].check(payload)
  return 0
}

/// The payload with the value and the shapes in `parts`.
private func assembled(_ parts: [UInt8]) -> [UInt8] {
  guard parts.count >= 2 else { return parts }
  let rest = parts.dropFirst(2)
  let shapes = min(Int(parts[0]) | Int(parts[1]) << 8, rest.count)
  let size = UInt32(rest.count - shapes)
  return [Binary.version] + withUnsafeBytes(of: size.littleEndian) { Array($0) } + rest
}
