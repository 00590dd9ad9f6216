import Synchronization

/// Writes whole payloads, or parts of the payloads of a ``DirectWriter``, and owns the stream.
struct PayloadWriter: ~Copyable {
  private let stream: StreamWriter

  /// Makes a writer for whole payloads.
  ///
  /// With a `depth`, the writer writes parts of a payload that a ``DirectWriter`` writes: values
  /// with `depth` containers around them. The payload's first shape is the direct writer's.
  init(within depth: Int = 0, keepsContainers: Bool = PayloadWriter.keepsContainers) {
    let state = UnsafeMutablePointer<StreamState>.allocate(capacity: 1)
    state.initialize(to: StreamState(within: depth, keepsContainers: keepsContainers))
    stream = StreamWriter(state: state)
  }

  deinit {
    stream.state.pointee.endPayload()
    stream.state.deinitialize(count: 1)
    stream.state.deallocate()
  }

  /// Whether keyed containers can be kept, which depends on the standard library.
  static let keepsContainers: Bool = {
    enum Key: CodingKey {}
    return Original(KeyedEncodingContainer<Key>.refusing).isOneReference
  }()
}

// MARK: - Whole payloads

extension PayloadWriter {
  /// Appends the payload of `value`; false, with `buffer` unchanged, if the value needs a tree.
  func write(_ value: some Encodable, into buffer: inout ByteBuffer) -> Bool {
    let start = buffer.count
    let state = stream.state
    swap(&state.pointee.bytes, &buffer)
    defer { swap(&state.pointee.bytes, &buffer) }
    if write(value, at: start) { return true }
    state.pointee.bytes.truncate(to: start)
    return false
  }

  private func write(_ value: some Encodable, at start: Int) -> Bool {
    let state = stream.state
    state.pointee.bytes.append(Binary.version)
    state.pointee.bytes.append(littleEndian: UInt32(0))
    state.pointee.active = StreamState.Active()
    guard encode(value, stream.form(of: value)) else { return false }
    let end = state.pointee.bytes.count
    state.pointee.bytes.set(
      UInt32(clamping: end - start - Binary.headBytes), at: start + Binary.sizeOffset)
    state.pointee.shapes.append(to: &state.pointee.bytes)
    return state.pointee.bytes.count - end <= Binary.maximumTableBytes
  }

  private func encode<T: Encodable>(_ value: T, _ form: TypeForm) -> Bool {
    do {
      try stream.encode(value, form)
    } catch {
      // An error of the type's own is reported by the tree, with its coding path.
      stream.abandon()
    }
    return !stream.state.pointee.isAbandoned
  }
}

// MARK: - Parts of payloads

extension PayloadWriter {
  /// Appends a value, tagged, to the payload of a ``DirectWriter``; false if the stream was
  /// abandoned.
  ///
  /// The value has `depth` containers around it. Values within it are written by `parts`, and so is
  /// the value itself, unless it `isItself` a part that could not be written.
  func writePart<T: Encodable>(
    _ value: T, isItself: Bool, within depth: Int, into buffer: inout ByteBuffer,
    parts: (any StreamParts.Type)?
  ) -> Bool {
    let state = stream.state
    state.pointee.forms.use(parts)
    let outer = state.pointee.maximumFrames
    state.pointee.maximumFrames = Binary.maximumDepth - depth + state.pointee.frameCount
    swap(&state.pointee.bytes, &buffer)
    defer {
      swap(&state.pointee.bytes, &buffer)
      state.pointee.maximumFrames = outer
    }
    return encode(
      value, isItself ? TypeForm(of: T.self, parts: nil) : stream.form(of: value))
  }

  /// The number in this payload of a shape that a ``DirectWriter`` writes; nil if there are too
  /// many shapes.
  func number(of shape: UnsafePointer<WrittenShape>) -> UInt8? {
    stream.state.pointee.shapes.number(of: shape)
  }

  /// The number of shapes used by the values of this payload.
  var shapeCount: Int { stream.state.pointee.shapes.count }

  /// Appends the shapes to a table.
  func appendShapes(to bytes: inout ByteBuffer) {
    stream.state.pointee.shapes.appendEntries(to: &bytes)
  }
}

// MARK: - Reuse

extension PayloadWriter {
  private typealias Spare = Atomic<UnsafeMutablePointer<StreamState>?>

  /// A writer that is not in use, with the shapes and the containers of the values it has written.
  // Unsafe: the address is exchanged atomically, so one call at a time has it.
  nonisolated(unsafe) private static let spare = Spare(nil)
  /// More of them, for values that are encoded at the same time.
  // Unsafe: allocated once and never freed; the addresses are exchanged as above.
  nonisolated(unsafe) private static let otherSpares: UnsafeMutablePointer<Spare> = {
    let spares = UnsafeMutablePointer<Spare>.allocate(capacity: otherSpareCount)
    for index in 0..<otherSpareCount { (spares + index).initialize(to: Spare(nil)) }
    return spares
  }()
  private static let otherSpareCount = 7

  private init(state: UnsafeMutablePointer<StreamState>) { stream = StreamWriter(state: state) }

  /// Returns a writer for whole payloads, in which the types that `parts` knows are written without
  /// `Codable`.
  static func take(parts: (any StreamParts.Type)?) -> PayloadWriter {
    let state = spare.exchange(nil, ordering: .acquiring) ?? takeOther()
    let writer = state.map { PayloadWriter(state: $0) } ?? PayloadWriter()
    writer.stream.state.pointee.forms.use(parts)
    return writer
  }

  /// Prepares the writer for another payload.
  func endPayload() { stream.state.pointee.endPayload() }

  /// Keeps the writer for later payloads.
  consuming func giveBack() {
    endPayload()
    let state = stream.state
    discard self
    if let other = Self.spare.exchange(state, ordering: .acquiringAndReleasing) {
      Self.keepOther(other)
    }
  }

  @inline(never)
  private static func takeOther() -> UnsafeMutablePointer<StreamState>? {
    for index in 0..<otherSpareCount {
      let spare = (otherSpares + index).pointee.exchange(nil, ordering: .acquiring)
      if let spare { return spare }
    }
    return nil
  }

  @inline(never)
  private static func keepOther(_ state: UnsafeMutablePointer<StreamState>) {
    var state = state
    for index in 0..<otherSpareCount {
      let spare = otherSpares + index
      guard let other = spare.pointee.exchange(state, ordering: .acquiringAndReleasing) else {
        return
      }
      state = other
    }
    _ = PayloadWriter(state: state)
  }

  /// Makes a writer of a stream that another writer owns, for a value within that stream.
  ///
  /// It must end with ``leave()``.
  init(within stream: StreamWriter) { self.stream = stream }

  /// Ends a writer that does not own its stream.
  consuming func leave() { discard self }
}

extension Binary {
  /// Appends the payload of a value to `buffer`, which is unchanged if that fails.
  ///
  /// A type whose `encode(to:)` throws, or fills its containers out of order, is encoded a second
  /// time, by way of a tree.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - buffer: The buffer.
  ///   - parts: Knows the types that are written without `Codable`.
  /// - Throws: An `EncodingError`, or an error from the type's own `encode(to:)`.
  /// - Complexity: O(n) in the bytes.
  package static func encode<V: Encodable>(
    _ value: V, into buffer: inout ByteBuffer, parts: (any StreamParts.Type)? = nil
  ) throws {
    let writer = PayloadWriter.take(parts: parts)
    let isWritten = writer.write(value, into: &buffer)
    writer.giveBack()
    if !isWritten { try encodeByTree(value, into: &buffer) }
  }

  /// Appends the payload of a value to `buffer` by way of a ``Tree``.
  static func encodeByTree<V: Encodable>(_ value: V, into buffer: inout ByteBuffer) throws {
    let state = TreeState()
    let tree = try state.tree(value, path: [])
    if let failure = state.failure { throw failure }
    try TreeWriter.write(tree, to: &buffer)
  }
}
