/// Memory that values are read into, again and again.
///
/// It keeps its memory from one read to the next, so a loop of reads allocates once.
package struct ValueBuffer: ~Copyable {
  let memory: ValueMemory
  private let spare: SpareBuffer?

  package init() {
    memory = ValueMemory()
    spare = nil
  }

  /// Takes the memory that an earlier buffer left in `spare`, and leaves it there at its own end.
  package init(from spare: SpareBuffer) {
    memory = spare.take() ?? ValueMemory()
    self.spare = spare
  }

  deinit {
    // Without `if let`, which would retain it.
    spare?.leave(memory) ?? memory.free()
  }

  /// The number of bytes in the buffer.
  package var count: Int { memory.bytes.count }

  /// Lends the bytes for as long as the call.
  package func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try body(memory.bytes.bytes)
  }

  /// Makes it `count` bytes long, and lends them to be changed before its next use.
  mutating func resize(to count: Int) -> UnsafeMutableRawBufferPointer {
    memory.resize(to: count)
  }

  /// Replaces the contents of the buffer.
  mutating func assign(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { memory.assign($0) }
  }

  /// Empties the buffer.
  mutating func clear() {
    memory.assign(UnsafeRawBufferPointer(start: nil, count: 0))
  }
}

// @unchecked: the memory has one owner, and changes only through a `mutating` call or an `inout`.
extension ValueBuffer: @unchecked Sendable {}
