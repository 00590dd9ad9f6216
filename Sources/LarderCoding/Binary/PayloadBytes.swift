/// The bytes of a payload's value, each read of which is checked against their end.
package struct PayloadBytes {
  // Unsafe: whoever makes one keeps the memory until it is gone. All reads go through `load` and
  // `run`, which look for the end first.
  let start: UnsafeRawPointer
  /// Where the value ends, counted from the start of the payload.
  package let end: Int

  package init(_ payload: UnsafeRawBufferPointer, upTo end: Int) {
    precondition(end <= payload.count)
    guard let start = payload.baseAddress else { preconditionFailure("a payload has a head") }
    self.start = start
    self.end = end
  }

  @inline(__always)
  package func load<T: BitwiseCopyable>(
    _ type: T.Type = T.self, at offset: Int
  ) throws(Fault) -> T {
    guard offset >= 0, end - offset >= MemoryLayout<T>.size else {
      throw .malformed("a value goes past the end")
    }
    // Unsafe: checked just above, and `T` may have any bits.
    return unsafe start.loadUnaligned(fromByteOffset: offset, as: T.self)
  }

  /// Reads a varint, of which no longer form is allowed than it needs, and at most 2^31.
  @inline(__always)
  package func varint(at offset: inout Int) throws(Fault) -> Int {
    let first: UInt8 = try load(at: offset)
    if first < 0x80 {
      offset += 1
      return Int(first)
    }
    return try longVarint(at: &offset)
  }

  private func longVarint(at offset: inout Int) throws(Fault) -> Int {
    var number = 0
    var shift = 0
    while offset < end, shift <= 28 {
      let byte: UInt8 = try load(at: offset)
      offset += 1
      number |= Int(byte & 0x7F) << shift
      if byte < 0x80 {
        guard byte != 0 || shift == 0 else { throw .malformed("a number in too many bytes") }
        return number
      }
      shift += 7
    }
    throw .malformed("a number without an end")
  }

  /// Reads a length, and that many bytes.
  @inline(__always)
  package func run(at offset: inout Int) throws(Fault) -> UnsafeRawBufferPointer {
    let count = try varint(at: &offset)
    guard count <= end - offset else { throw .malformed("a length goes past the end") }
    defer { offset += count }
    return UnsafeRawBufferPointer(start: start + offset, count: count)
  }

  /// Reads a string.
  @inline(__always)
  package func text(at offset: inout Int) throws(Fault) -> String {
    let units = try run(at: &offset).assumingMemoryBound(to: UInt8.self)
    if #available(macOS 26, iOS 26, *) {
      do {
        return String(copying: try UTF8Span(validating: units.span))
      } catch {
        throw .malformed("a string that is not UTF-8")
      }
    }
    guard let text = String(validating: units, as: UTF8.self) else {
      throw .malformed("a string that is not UTF-8")
    }
    return text
  }
}
