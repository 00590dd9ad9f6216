// The entry point of the fuzzer of direct coding. `Scripts/fuzz` links it with the library's
// modules, and compiles the models of `LarderTests` into it.
//
// The first byte of an input selects the type, and whether its route has read other payloads
// before. The rest is a payload.

/// Checks one input, and ends the process if direct coding and `Codable` disagree on it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
  let input = UnsafeRawBufferPointer(start: start, count: count)
  guard let choice = input.first else { return 0 }
  do {
    _ = try agreements[Int(choice & 0x7F) % agreements.count]
      .check([Array(input.dropFirst())], choice >= 0x80)
  } catch {
    fatalError("\(error)")
  }
  return 0
}

private let agreements: [Agreement] = {
  do {
    return try Agreement.all(seed: 1)
  } catch {
    fatalError("\(error)")
  }
}()
