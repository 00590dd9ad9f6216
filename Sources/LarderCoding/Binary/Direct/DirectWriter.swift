package import LarderBytes

/// The fields that a type writes of itself, in their order, as its first value has shown.
///
/// The last of ``fields`` has no name: it is none.
package struct WrittenShape {
  // Unsafe: made once, in `init`, and freed by whoever owns the shape.
  let fields: UnsafeMutablePointer<WrittenField>
  let count: Int
  /// Its part of the table of shapes.
  let entry: UnsafeMutableRawBufferPointer

  /// Nil if fields are missing, have one name, or do not fit into a table.
  init?(_ fields: [WrittenField]) {
    let names = fields.map(\.text)
    guard !fields.isEmpty, Set(names).count == names.count else { return nil }
    var entry = ByteBuffer()
    entry.append(varint: UInt64(fields.count))
    for (field, name) in zip(fields, names) {
      entry.append(field.kind)
      entry.append(text: name)
    }
    guard entry.count < Binary.maximumTableBytes else { return nil }
    count = fields.count
    self.fields = .allocate(capacity: count + 1)
    self.fields.initialize(from: fields, count: count)
    (self.fields + count).initialize(to: WrittenField(name: nil, nameCount: 0, kind: 0))
    self.entry = .allocate(byteCount: entry.count, alignment: 1)
    entry.withBytes { self.entry.copyMemory(from: $0) }
  }

  package func deallocate() {
    fields.deallocate()
    entry.deallocate()
  }
}

package struct WrittenField {
  // Unsafe: the name is a literal, which stays as long as the program.
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

/// Writes values whose type hands over its fields by itself.
///
/// The result is a payload like any other: an object, or a list of objects of one shape. What does
/// not go so leaves ``isUnfit``, and the value has to be encoded by the type's `encode(to:)`.
package struct DirectWriter: ~Copyable {
  private var bytes = ByteBuffer()
  private let start: Int
  // Unsafe: in the shape, whose owner lends it for as long as the writer is there.
  private let shape: UnsafePointer<WrittenShape>?
  private var next: UnsafePointer<WrittenField>
  /// The fields of the first value of a type, by which its shape becomes known.
  private var learned: [WrittenField] = []
  /// How many containers there are around a field.
  private let depth: Int
  private var stream: Stream?
  var isUnfit = false

  /// Where a type that has no shape yet looks for its next field.
  // Unsafe: made once, and never changed or freed.
  nonisolated(unsafe) private static let nothing: UnsafePointer<WrittenField> = {
    let field = UnsafeMutablePointer<WrittenField>.allocate(capacity: 1)
    field.initialize(to: WrittenField(name: nil, nameCount: 0, kind: 0))
    return UnsafePointer(field)
  }()

  /// Begins a payload behind the bytes of `buffer`, which is empty until ``finish(into:)``.
  ///
  /// It is that of an object, or of a list of `count` of them.
  package init(
    _ buffer: inout ByteBuffer, shape: UnsafePointer<WrittenShape>?, listOf count: Int?
  ) {
    start = buffer.count
    self.shape = shape
    next = shape.map { UnsafePointer($0.pointee.fields) } ?? Self.nothing
    depth = count == nil ? 1 : 2
    swap(&bytes, &buffer)
    bytes.append(Binary.version)
    bytes.append(littleEndian: UInt32(0))
    if let count {
      bytes.append(Kind.list.rawValue)
      bytes.append(littleEndian: UInt16(Kind.object.rawValue))
      bytes.append(littleEndian: UInt32(clamping: count))
    } else {
      bytes.append(littleEndian: UInt16(Kind.object.rawValue))
    }
  }

  /// Ends an object, and begins the next one if there is one.
  package mutating func endObject() {
    guard let shape else { return isUnfit = true }
    if next - UnsafePointer(shape.pointee.fields) != shape.pointee.count { isUnfit = true }
    next = UnsafePointer(shape.pointee.fields)
  }

  /// Gives the bytes back, with the payload behind those that were there; false if it is unfit.
  package consuming func finish(into buffer: inout ByteBuffer) -> Bool {
    if !isUnfit, let shape {
      let size = bytes.count - start - Binary.headBytes
      bytes.set(UInt32(clamping: size), at: start + Binary.sizeOffset)
      appendTable(shape)
    }
    let isWritten = !isUnfit && shape != nil
    if !isWritten { bytes.truncate(to: start) }
    swap(&bytes, &buffer)
    return isWritten
  }

  private mutating func appendTable(_ shape: UnsafePointer<WrittenShape>) {
    let table = bytes.count
    bytes.append(UInt8(1 + (stream?.shapeCount ?? 0)))
    bytes.append(UnsafeRawBufferPointer(shape.pointee.entry))
    guard let stream else { return }
    stream.appendShapes(to: &bytes)
    if bytes.count - table > Binary.maximumTableBytes { isUnfit = true }
  }

  /// The shape of the object that was written, for a type that had none; nil if it can have none.
  package consuming func learn(into buffer: inout ByteBuffer) -> WrittenShape? {
    bytes.truncate(to: start)
    swap(&bytes, &buffer)
    return WrittenShape(learned)
  }
}

// MARK: - Fields

extension DirectWriter {
  /// Begins a field; false if its value is not to be written.
  @inline(__always)
  private mutating func begin(_ name: StaticString, _ kind: UInt8) -> Bool {
    if next.pointee.name == name.utf8Start, next.pointee.kind == kind {
      next += 1
      return true
    }
    return beginOther(name, kind)
  }

  /// The same for a name that is not where it was, or a type that has no shape.
  @inline(never)
  private mutating func beginOther(_ name: StaticString, _ kind: UInt8) -> Bool {
    let field = WrittenField(name, kind)
    if shape == nil {
      learned.append(field)
    } else if next.pointee.kind == kind, next.pointee.text == field.text {
      // The same name from another place in the program.
      next += 1
      return true
    } else {
      isUnfit = true
    }
    return false
  }

  @inline(__always)
  mutating func put<S: WireScalar>(_ value: S, _ name: StaticString) {
    guard begin(name, S.kind.rawValue) else { return }
    value.append(to: &bytes)
  }

  @inline(__always)
  mutating func putIfPresent<S: WireScalar>(_ value: S?, _ name: StaticString) {
    guard begin(name, S.kind.rawValue | Kind.optionalBit) else { return }
    guard let value else { return bytes.append(0) }
    bytes.append(1)
    value.append(to: &bytes)
  }

  /// Writes a value by its `encode(to:)`.
  package mutating func encode<T: Encodable>(_ value: T, as name: StaticString) {
    guard begin(name, Kind.tagged.rawValue) else { return }
    encode(value)
  }

  package mutating func encodeIfPresent<T: Encodable>(_ value: T?, as name: StaticString) {
    guard begin(name, Kind.tagged.rawValue | Kind.optionalBit) else { return }
    guard let value else { return bytes.append(0) }
    bytes.append(1)
    encode(value)
  }

  private mutating func encode<T: Encodable>(_ value: T) {
    if bytes.appendCommonList(value) { return }
    let stream = stream ?? Stream(within: depth)
    self.stream = stream
    if isUnfit || !stream.writePart(value, into: &bytes) { isUnfit = true }
  }
}
