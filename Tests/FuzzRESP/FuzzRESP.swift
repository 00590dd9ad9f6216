// The fuzzer's entry point for what a server of the shared tier sends. `Scripts/fuzz` links it with
// the library's modules, and compiles the tests' writer of RESP into it.
//
// The first byte of an input says how large the pieces are in which the rest arrives.

import LarderShared
import LarderTestSupport

/// Reads one input; the process ends if it matters where the bytes are divided, if more is held
/// than has arrived, or if values are read otherwise once they are written again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  guard let size = input.first.map({ Int($0 % 16) + 1 }) else { return 0 }
  let bytes = Array(input.dropFirst())
  var limits = RESPDecoder.Limits()
  (limits.elements, limits.bytes) = (100, 1000)

  let whole = Decoded(bytes, limits: limits)
  let ends = Array(stride(from: size, to: bytes.count, by: size))
  let pieces = Decoded(bytes, dividedAt: ends, limits: limits)
  // A number that is none is not equal to itself.
  guard "\(whole)" == "\(pieces)" else { fatalError("\(whole), in pieces of \(size): \(pieces)") }

  var decoder = RESPDecoder()
  do throws(RESPFault) {
    try decoder.decode(bytes.span.bytes) { _ in }
  } catch {}
  guard decoder.heldBytes <= 64 * bytes.count + 64 else {
    fatalError("\(decoder.heldBytes) held of \(bytes.count)")
  }

  var random = SplitMix64(seed: UInt64(size))
  var writer = RESPWriter()
  for value in whole.values { writer.append(value, spelling: &random) }
  let again = Decoded(writer.bytes)
  guard "\(again.values)" == "\(whole.values)" else { fatalError("\(whole), written: \(again)") }
  return 0
}
