// The fuzzer's entry. `Scripts/fuzz` builds it as one module with the coder and the tests'
// specimens, so that it sees what is internal to them.
//
// An input is a byte that says what is done with the rest. Below 128 the rest is a payload; from
// 128 on it is the length of the shapes (2 bytes), the tagged value and the shapes, so that the
// fuzzer can make a value longer without setting the payload's size, too.

/// Does what one input says, and ends the process if anything is not as it must be.
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

/// A payload of the value and the shapes that stand in `parts`.
private func assembled(_ parts: [UInt8]) -> [UInt8] {
  guard parts.count >= 2 else { return parts }
  let rest = parts.dropFirst(2)
  let shapes = min(Int(parts[0]) | Int(parts[1]) << 8, rest.count)
  let size = UInt32(rest.count - shapes)
  return [Binary.version] + withUnsafeBytes(of: size.littleEndian) { Array($0) } + rest
}
