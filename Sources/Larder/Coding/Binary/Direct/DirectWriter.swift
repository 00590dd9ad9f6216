/// The fields that a type writes, in order, as learned from its first value.
///
/// ``fields`` ends with a terminator, which has no name. Types with the same fields share one
/// shape, as they do through `Codable`.
package struct WrittenShape {
  // Unsafe: allocated in `init`, and never changed or freed.
  let fields: UnsafeMutablePointer<WrittenField>
  let count: Int
  /// A table with this shape alone: the number of shapes, and the shape's entry.
  let table: UnsafeMutableRawBufferPointer

  /// The shape's entry in the table of shapes.
  var entry: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: table.dropFirst()) }

  private init(_ fields: [WrittenField], table: [UInt8]) {
    count = fields.count
    self.fields = .allocate(capacity: count + 1)
    self.fields.initialize(from: fields, count: count)
    (self.fields + count).initialize(to: WrittenField(name: nil, nameCount: 0, kind: 0))
    self.table = .allocate(byteCount: table.count, alignment: 1)
    self.table.copyBytes(from: table)
  }

  // @unchecked: the memory behind the pointer never changes, and is never freed.
  private struct Known: @unchecked Sendable { let shape: UnsafePointer<WrittenShape> }

  /// The shapes that the program has used, by their tables.
  private static let all = Lock<[[UInt8]: Known]>([:])

  /// The shape with these fields, which lives as long as the program.
  ///
  /// Nil if there are no fields, duplicate names, or too many bytes for a table.
  package static func shape(of fields: [WrittenField]) -> UnsafePointer<WrittenShape>? {
    let names = fields.map(\.text)
    guard !fields.isEmpty, Set(names).count == names.count else { return nil }
    var bytes = ByteBuffer()
    bytes.append(UInt8(1))
    bytes.append(shapeOf: zip(names, fields).map { ($0, $1.kind) })
    guard bytes.count <= Binary.maximumTableBytes else { return nil }
    let table = Array(bytes)
    return all.withLock { all in
      if let known = all[table] { return known }
      let new = UnsafeMutablePointer<WrittenShape>.allocate(capacity: 1)
      new.initialize(to: WrittenShape(fields, table: table))
      let known = Known(shape: UnsafePointer(new))
      all[table] = known
      return known
    }.shape
  }

  /// Whether the shape has all fields that `value` encodes through `Codable`.
  ///
  /// - Throws: An error of the type's own `encode(to:)`.
  package func hasAllFields(of value: some Encodable) throws -> Bool {
    try Self.withPayload(of: value) { hasAllFields(of: $1, $0) }
  }

  /// Whether the shape has all fields of the object at `place`; false if there is no object.
  func hasAllFields(of place: WirePlace, _ payload: Payload) -> Bool {
    let names = Set((0..<count).map { fields[$0].text })
    return place.kind == .object
      && payload.shapes[place.argument].names.allSatisfy(names.contains)
  }

  /// Calls `body` with the payload of a value that is encoded through `Codable`.
  static func withPayload(
    of value: some Encodable, _ body: (Payload, WirePlace) throws -> Bool
  ) throws -> Bool {
    var buffer = ByteBuffer()
    try Binary.encode(value, into: &buffer)
    return try buffer.withBytes { bytes in
      let payload = try Payload(bytes)
      return try body(payload, payload.tagged(at: Binary.headBytes))
    }
  }
}

/// A field's name and type in a ``WrittenShape``.
package struct WrittenField {
  // Unsafe: the name is a literal, which lives as long as the program.
  var name: UnsafePointer<UInt8>?
  var nameCount: Int
  var kind: UInt8

  init(_ name: StaticString, _ kind: UInt8) {
    self.init(name: name.utf8Start, nameCount: name.utf8CodeUnitCount, kind: kind)
  }

  init(name: UnsafePointer<UInt8>?, nameCount: Int, kind: UInt8) {
    (self.name, self.nameCount, self.kind) = (name, nameCount, kind)
  }

  var text: String {
    String(decoding: UnsafeBufferPointer(start: name, count: nameCount), as: UTF8.self)
  }
}

/// Writes values of types that hand over their fields directly, without `Codable`.
///
/// The result is an ordinary payload: an object, or a list of objects of one shape. A value that
/// the writer does not support sets ``needsFallback``, and the caller then encodes it with the
/// type's `encode(to:)`.
package struct DirectWriter: ~Copyable {
  var bytes: ByteBuffer
  private let start: Int
  // Unsafe: shapes live as long as the program.
  var shape: UnsafePointer<WrittenShape>?
  var next: UnsafePointer<WrittenField>
  // Unsafe: it outlives the writer.
  /// The fields so far of a writer that learns a shape; nil if there is a shape.
  private let learned: UnsafeMutablePointer<[WrittenField]>?
  /// The number of containers around a field.
  var depth: Int
  /// Writes the fields whose types have only `encode(to:)`, and numbers the shapes.
  private var payloadWriter: PayloadWriter?
  // Unsafe: cases live as long as the program.
  /// The known cases of the enum whose value is written, or the case of it that was begun.
  var cases: UnsafePointer<WrittenCase>?
  var caseState = CaseState.none
  /// Whether the value must be encoded with `encode(to:)` instead.
  var needsFallback = false

  /// The next field of a writer without a shape, which matches no name.
  // Unsafe: allocated once, and never changed or freed.
  nonisolated(unsafe) static let noField: UnsafePointer<WrittenField> = {
    let field = UnsafeMutablePointer<WrittenField>.allocate(capacity: 1)
    field.initialize(to: WrittenField(name: nil, nameCount: 0, kind: 0))
    return UnsafePointer(field)
  }()

  /// Begins the payload of an object, or of a list of `count` objects, at the end of `buffer`.
  ///
  /// The writer takes over the bytes: `buffer` is empty until ``finish(into:)``.
  package init(
    _ buffer: inout ByteBuffer, shape: UnsafePointer<WrittenShape>, listOf count: Int?
  ) {
    start = buffer.count
    // One append, because each of them checks for room: the version, the size, which
    // ``finish(into:)`` sets, the value's type, and the shape's number.
    let type =
      count == nil
      ? UInt64(WireKind.object.rawValue)
      : UInt64(WireKind.list.rawValue) | UInt64(WireKind.object.rawValue) << 8
    buffer.append(littleEndian: UInt64(Binary.version) | type << (8 * Binary.headBytes))
    if let count {
      buffer.append(littleEndian: UInt32(clamping: count))
    } else {
      buffer.truncate(to: start + Binary.headBytes + 2)
    }
    self.shape = shape
    learned = nil
    next = UnsafePointer(shape.pointee.fields)
    depth = count == nil ? 1 : 2
    bytes = ByteBuffer()
    swap(&bytes, &buffer)
  }

  /// Makes a writer that writes nothing, and appends the fields of an object to `learned`.
  ///
  /// The array must outlive the writer.
  package init(learning learned: UnsafeMutablePointer<[WrittenField]>) {
    self.learned = learned
    bytes = ByteBuffer()
    start = 0
    shape = nil
    next = Self.noField
    depth = 1
  }

  /// Begins a value within a stream.
  ///
  /// The writer takes over the stream's bytes until ``finish(within:)``.
  package init(within stream: StreamWriter) {
    start = stream.state.pointee.bytes.count
    shape = nil
    learned = nil
    next = Self.noField
    depth = stream.depth
    bytes = ByteBuffer()
    payloadWriter = .some(PayloadWriter(within: stream))
    swap(&bytes, &stream.state.pointee.bytes)
  }

  /// Returns the bytes to the stream; false, without the value, if it needs the fallback.
  package consuming func finish(within stream: StreamWriter) -> Bool {
    if needsFallback { bytes.truncate(to: start) }
    swap(&bytes, &stream.state.pointee.bytes)
    payloadWriter.take()?.leave()
    return !needsFallback
  }

  /// Ends an object; the next field belongs to the next object.
  package mutating func endObject() {
    guard let shape else { return needsFallback = true }
    if next - UnsafePointer(shape.pointee.fields) != shape.pointee.count { needsFallback = true }
    next = UnsafePointer(shape.pointee.fields)
  }

  /// Returns the bytes to `buffer` with the payload appended; false, without a payload, if the
  /// value needs the fallback.
  ///
  /// The last call but ``end()``.
  package mutating func finish(into buffer: inout ByteBuffer) -> Bool {
    var isWritten = false
    if !needsFallback, let shape {
      let end = bytes.count
      bytes.set(
        UInt32(clamping: end - start - Binary.headBytes), at: start + Binary.sizeOffset)
      bytes.append(UnsafeRawBufferPointer(shape.pointee.table))
      isWritten = true
      if let parts = payloadWriter.take() { isWritten = append(parts, toTableAt: end) }
    }
    if !isWritten { bytes.truncate(to: start) }
    swap(&bytes, &buffer)
    return isWritten
  }

  /// Ends the life of the writer.
  // Here, because in another module the compiler destroys its parts by their metadata.
  package consuming func end() {}

  /// Adds the shapes of the parts to the table; false if it gets too long.
  @inline(never)
  private mutating func append(
    _ parts: consuming PayloadWriter, toTableAt table: Int
  ) -> Bool {
    bytes.set(UInt8(1 + parts.shapeCount), at: table)
    parts.appendShapes(to: &bytes)
    return bytes.count - table <= Binary.maximumTableBytes
  }
}

// MARK: - Fields

extension DirectWriter {
  /// Begins a field; false if its value must not be written.
  @inline(__always)
  mutating func begin(_ name: StaticString, _ kind: UInt8) -> Bool {
    if next.pointee.name == name.utf8Start, next.pointee.kind == kind {
      next += 1
      return true
    }
    return beginOther(name, kind)
  }

  /// Begins a field whose name's address is not the expected one, or of a type without a shape.
  @inline(never)
  private mutating func beginOther(_ name: StaticString, _ kind: UInt8) -> Bool {
    let field = WrittenField(name, kind)
    if learn(field) { return false }
    if next.pointee.kind == kind, next.pointee.text == field.text {
      // The same name from another literal in the program.
      next += 1
      return true
    }
    needsFallback = true
    return false
  }

  /// Appends a field to the shape that is learned; false if none is.
  func learn(_ field: WrittenField) -> Bool {
    learned?.pointee.append(field)
    return learned != nil
  }

  @inline(__always)
  mutating func put<S: WireScalar>(_ value: S, _ name: StaticString) {
    guard begin(name, S.kind.rawValue) else { return }
    value.append(to: &bytes)
  }

  @inline(__always)
  mutating func putIfPresent<S: WireScalar>(_ value: S?, _ name: StaticString) {
    guard begin(name, S.kind.rawValue | WireKind.optionalBit) else { return }
    guard let value else { return bytes.append(0) }
    bytes.append(1)
    value.append(to: &bytes)
  }

  /// Writes a field's value with its type's `encode(to:)`.
  ///
  /// Values within it are written by `parts`.
  package mutating func encode<T: Encodable>(
    _ value: T, as name: StaticString, parts: any StreamParts.Type
  ) {
    guard begin(name, WireKind.tagged.rawValue) else { return }
    encode(value, parts)
  }

  package mutating func encodeIfPresent<T: Encodable>(
    _ value: T?, as name: StaticString, parts: any StreamParts.Type
  ) {
    guard begin(name, WireKind.tagged.rawValue | WireKind.optionalBit) else { return }
    guard let value else { return bytes.append(0) }
    bytes.append(1)
    encode(value, parts)
  }

  /// Writes a value, tagged, with its type's `encode(to:)`, even if `isItself` a part.
  mutating func encode<T: Encodable>(
    _ value: T, _ parts: any StreamParts.Type, isItself: Bool = false
  ) {
    if depth < Binary.maximumDepth, bytes.appendCommonList(value) { return }
    guard !needsFallback else { return }
    let writer = payloadWriter.take() ?? PayloadWriter(within: depth)
    needsFallback = !writer.writePart(
      value, isItself: isItself, within: depth, into: &bytes, parts: parts)
    payloadWriter = .some(writer)
  }

  /// The number in this payload of a shape that this writer writes; nil if there are too many.
  mutating func number(of shape: UnsafePointer<WrittenShape>) -> UInt8? {
    let parts = payloadWriter.take() ?? PayloadWriter(within: depth)
    let number = parts.number(of: shape)
    payloadWriter = .some(parts)
    return number
  }
}
