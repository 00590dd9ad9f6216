/// The bytes of a payload's value, with bounds-checked reads.
package struct PayloadBytes {
  // Unsafe: the creator keeps the memory valid for the lifetime of this value. All reads go through
  // `load` and `run`, which check the bounds first.
  let start: UnsafeRawPointer
  /// The end of the value, as an offset from the start of the payload.
  package let end: Int

  package init(_ payload: UnsafeRawBufferPointer, upTo end: Int) {
    precondition(end <= payload.count)
    guard let start = payload.baseAddress else { preconditionFailure("a payload has a head") }
    self.start = start
    self.end = end
  }

  private init(start: UnsafeRawPointer, end: Int) {
    self.start = start
    self.end = end
  }

  /// No bytes: every read is out of bounds.
  static var none: PayloadBytes {
    guard let start = UnsafeRawPointer(bitPattern: 8) else { preconditionFailure("8 is not 0") }
    return PayloadBytes(start: start, end: 0)
  }

  @inline(__always)
  package func load<T: BitwiseCopyable>(
    _ type: T.Type = T.self, at offset: Int
  ) throws(Fault) -> T {
    guard offset >= 0, end - offset >= MemoryLayout<T>.size else {
      throw .malformed("a value extends past the end")
    }
    // Unsafe: the bounds are checked above, and any bit pattern is a valid `T`.
    return unsafe start.loadUnaligned(fromByteOffset: offset, as: T.self)
  }

  /// Reads the byte in front of an optional's body, which says whether there is one.
  @inline(__always)
  func presence(at offset: Int) throws(Fault) -> Bool {
    let presence: UInt8 = try load(at: offset)
    guard presence <= 1 else { throw .malformed("a presence byte other than 0 or 1") }
    return presence == 1
  }

  /// Reads a varint in its shortest form, of at most five bytes.
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
        guard byte != 0 || shift == 0 else { throw .malformed("an overlong varint") }
        return number
      }
      shift += 7
    }
    throw .malformed("an unterminated varint")
  }

  /// Reads a length and that many bytes.
  @inline(__always)
  package func run(at offset: inout Int) throws(Fault) -> UnsafeRawBufferPointer {
    let count = try varint(at: &offset)
    guard count <= end - offset else { throw .malformed("a length extends past the end") }
    defer { offset += count }
    return UnsafeRawBufferPointer(start: start + offset, count: count)
  }

  /// Reads a string.
  @inline(__always)
  package func text(at offset: inout Int) throws(Fault) -> String {
    let run = try run(at: &offset)
    let units = run.assumingMemoryBound(to: UInt8.self)
    if #available(macOS 26, iOS 26, *) {
      if Self.areASCII(run) {
        // Unsafe: bytes below 0x80 are valid UTF-8.
        return String(copying: unsafe UTF8Span(unchecked: units.span, isKnownASCII: true))
      }
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

  /// Whether all bytes are ASCII.
  ///
  /// For a short text, validating UTF-8 takes a multiple of the time.
  @inline(__always)
  private static func areASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let size = MemoryLayout<UInt64>.size
    var all: UInt64 = 0
    if bytes.count >= size {
      let last = bytes.count - size
      for offset in stride(from: 0, to: last, by: size) {
        all |= bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      }
      // It overlaps the one before it if the count is no multiple of its size.
      all |= bytes.loadUnaligned(fromByteOffset: last, as: UInt64.self)
    } else {
      for byte in bytes { all |= UInt64(byte) }
    }
    return all & 0x8080_8080_8080_8080 == 0
  }
}

// MARK: - Lists

extension PayloadBytes {
  /// Reads the number of elements or entries, each of which takes at least `minimum` bytes.
  func count(at offset: inout Int, minimum: Int) throws(Fault) -> Int {
    let count = Int(UInt32(littleEndian: try load(at: offset)))
    offset += 4
    guard count <= (end - offset) / max(1, minimum) else {
      throw .malformed("more elements than bytes")
    }
    return count
  }

  /// Reads all numbers of the list whose body begins at `offset`, and moves `offset` behind it.
  ///
  /// `T` must be a type with a ``numberKind(of:)``.
  func numbers<T>(at offset: inout Int) throws(Fault) -> [T] {
    let count = try count(at: &offset, minimum: MemoryLayout<T>.size)
    // With a capacity of 0, the initializer would write to the empty array that all threads share.
    guard count > 0 else { return [] }
    let source = UnsafeRawBufferPointer(
      start: start + offset, count: count * MemoryLayout<T>.size)
    offset += source.count
    // Unsafe: `T` is a number, valid with any bit pattern; `source` holds `count` of them.
    return unsafe [T](unsafeUninitializedCapacity: count) { target, initialized in
      UnsafeMutableRawBufferPointer(target).copyMemory(from: source)
      initialized = count
    }
  }
}
