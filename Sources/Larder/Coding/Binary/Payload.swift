import Foundation

/// The position and kind of a value's body.
package struct WirePlace {
  var kind: WireKind
  /// The number of an object's shape, or the position of a list's element type: its offset, or
  /// -1 minus its distance from the start of the shapes.
  var argument: Int
  /// The offset of the body.
  var offset: Int
}

/// A type as encoded in a payload.
package struct WireType {
  var kind: WireKind
  var isOptional: Bool
  var argument: Int
}

extension WireType {
  /// The smallest size of a value of the type in bytes, unless it is an object.
  var minimumBytes: Int {
    if isOptional { return 1 }
    switch kind {
    case .list, .map: return 4
    default: return kind.width ?? 1
    }
  }
}

/// The bytes of a payload, its parsed table of shapes, and the decoders of its values.
///
/// Every read is bounds-checked, so arbitrary bytes are either read or rejected.
package final class Payload {
  // Unsafe: allocated in `init`, and freed in `deinit`.
  /// The contents, which are used without retaining the payload.
  let state: UnsafeMutablePointer<PayloadState>

  /// Makes a payload without bytes.
  init(keepsContainers: Bool = ValueDecoder.keepsContainers) {
    state = .allocate(capacity: 1)
    state.initialize(to: PayloadState(keepsContainers: keepsContainers))
    state.pointee.owner = .passUnretained(self)
  }

  convenience init(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
    self.init()
    try state.pointee.begin(bytes)
  }

  deinit {
    state.pointee.releaseValues()
    if state.pointee.ownsBytes { state.pointee.bytes.deallocate() }
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// Copies the bytes, so that they stay valid after the caller's call.
  func keepBytes() {
    let bytes = state.pointee.bytes
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
    copy.copyMemory(from: bytes)
    state.pointee.bytes = UnsafeRawBufferPointer(copy)
    state.pointee.valueBytes = PayloadBytes(state.pointee.bytes, upTo: end)
    state.pointee.ownsBytes = true
  }
}

/// The contents of a ``Payload``.
struct PayloadState: ~Copyable {
  /// No value has ended.
  static let nothing = (offset: -1, depth: 0, end: 0)

  // Unsafe: the bytes belong to the caller. `Binary.decode` lends them for one call, and copies
  // them with `keepBytes` if a value kept its decoder. Nothing reads them before `begin`.
  var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
  /// The bytes of the value, without the shapes.
  var valueBytes = PayloadBytes.none
  var ownsBytes = false

  /// The last table of shapes, which may belong to an earlier payload.
  var table: ShapeTable?
  /// The number of this payload's shapes.
  ///
  /// If it is not 0, the shapes are in ``table``.
  var shapeCount = 0
  // Unsafe: `table` owns them.
  /// The fields of each shape; nil before the first table.
  var shapeFields: UnsafePointer<Shape.Fields>?

  /// The value that was last read to its end, so that the container around it need not scan it.
  var finished = PayloadState.nothing

  // Unsafe: the payload, which owns this state.
  var owner: Unmanaged<Payload>?
  let keepsContainers: Bool
  // Unsafe: each is owned by its decoder, which `PayloadState` has retained; nil where the decoder
  // was handed over to those who use it.
  /// The values that are handed out again, by the number of values around them.
  var values: [UnsafeMutablePointer<ValueState>?] = []
  /// The number of ``values`` from the start that may be in use.
  var usedValues = 0
  var forms = FormCache<DecodableForm>()
  /// Whether all values of this payload are read through `Codable` from now on.
  var refusesParts = false

  init(keepsContainers: Bool) { self.keepsContainers = keepsContainers }

  /// Begins to read other bytes.
  ///
  /// They must stay valid until no decoder uses the payload, or until ``keepBytes()``.
  mutating func begin(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
    guard bytes.count > Binary.headBytes else { throw .malformed("too few bytes") }
    guard bytes[0] == Binary.version else { throw .malformed("an unsupported format version") }
    let size = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt32.self))
    guard size < bytes.count - Binary.headBytes else {
      throw .malformed("a missing table of shapes")
    }
    self.bytes = bytes
    valueBytes = PayloadBytes(bytes, upTo: Binary.headBytes + Int(size))
    finished = Self.nothing
    refusesParts = false
    try readShapes()
  }
}

extension Payload {
  var bytes: UnsafeRawBufferPointer { state.pointee.bytes }
  /// The bytes of the value, without the shapes.
  package var valueBytes: PayloadBytes { state.pointee.valueBytes }
  /// The offset at which the value ends and the shapes begin.
  var end: Int { state.pointee.end }
  var shapes: [Shape] { state.pointee.shapes }

  func bytesLeft(from offset: Int) -> Int { state.pointee.bytesLeft(from: offset) }

  func count(at offset: inout Int, minimum: Int) throws(Fault) -> Int {
    try valueBytes.count(at: &offset, minimum: minimum)
  }

  func resolve(_ type: WireType, at offset: Int) throws(Fault) -> WirePlace? {
    try state.pointee.resolve(type, at: offset)
  }

  func tagged(at offset: Int) throws(Fault) -> WirePlace { try state.pointee.tagged(at: offset) }

  func elementType(of list: WirePlace) throws(Fault) -> WireType {
    try state.pointee.elementType(of: list)
  }

  func minimumBytes(of type: WireType) -> Int { state.pointee.minimumBytes(of: type) }

  func end(of type: WireType, at offset: Int, depth: Int) throws(Fault) -> Int {
    try state.pointee.end(of: type, at: offset, depth: depth)
  }

  func end(of place: WirePlace, depth: Int) throws(Fault) -> Int {
    try state.pointee.end(of: place, depth: depth)
  }

  func enter(_ place: WirePlace, depth: Int) throws(Fault) -> Shape {
    _ = try state.pointee.enter(place, depth: depth)
    return shapes[place.argument]
  }

  func checkDepth(_ depth: Int) throws(Fault) { try state.pointee.checkDepth(depth) }
}

// MARK: - Reading

extension PayloadState {
  /// The offset at which the value ends and the shapes begin.
  var end: Int { valueBytes.end }

  /// The number of the value's bytes from `offset` on.
  func bytesLeft(from offset: Int) -> Int { end - offset }

  /// Reads the number of elements or entries, each of which takes at least `minimum` bytes.
  func count(at offset: inout Int, minimum: Int) throws(Fault) -> Int {
    try valueBytes.count(at: &offset, minimum: minimum)
  }

  /// Records the end of the body at `offset`, which has at least one byte.
  @inline(__always)
  mutating func finish(_ offset: Int, depth: Int, end: Int) {
    finished = (offset, depth, end)
  }

  /// The end of the body at `place`, if it was the last one to be read; otherwise nil.
  @inline(__always)
  func knownEnd(of place: WirePlace, depth: Int) -> Int? {
    // A null has no bytes, so the value behind it has the same offset, and may be the last read.
    if place.kind == .null { return place.offset }
    guard finished.offset == place.offset, finished.depth == depth else { return nil }
    return finished.end
  }
}

// MARK: - Types

extension PayloadState {
  /// Finds the body of a value of `type` at `offset`; nil if it is absent, which takes one byte.
  @inline(__always)
  func resolve(_ type: WireType, at offset: Int) throws(Fault) -> WirePlace? {
    var offset = offset
    if type.isOptional {
      guard try valueBytes.presence(at: offset) else { return nil }
      offset += 1
    }
    if type.kind == .tagged { return try tagged(at: offset) }
    return WirePlace(kind: type.kind, argument: type.argument, offset: offset)
  }

  /// Reads the type of a tagged value.
  func tagged(at offset: Int) throws(Fault) -> WirePlace {
    let byte: UInt8 = try valueBytes.load(at: offset)
    // A scalar's type is its kind alone.
    if byte < WireKind.list.rawValue, let kind = WireKind(rawValue: byte) {
      return WirePlace(kind: kind, argument: 0, offset: offset + 1)
    }
    if byte == WireKind.object.rawValue, offset + 1 < end, bytes[offset + 1] < shapeCount {
      return WirePlace(kind: .object, argument: Int(bytes[offset + 1]), offset: offset + 2)
    }
    var bodyOffset = offset
    let type = try readType(at: &bodyOffset, end: end, shapeCount: shapeCount)
    guard !type.isOptional, type.kind != .tagged else {
      throw .malformed("a tagged or optional type in a tagged value")
    }
    return WirePlace(kind: type.kind, argument: type.argument, offset: bodyOffset)
  }

  /// Reads the type of a list's elements.
  func elementType(of list: WirePlace) throws(Fault) -> WireType {
    var offset = list.argument >= 0 ? list.argument : end - list.argument - 1
    return try readType(at: &offset, end: bytes.count, shapeCount: shapeCount)
  }

  /// Whether a value is a list of numbers whose encoding equals their layout in memory.
  func isNumberList<Number: WireScalar>(_ type: Number.Type, _ list: WirePlace) -> Bool {
    guard list.kind == .list, numberKind(of: Number.self) != nil else { return false }
    let offset = list.argument >= 0 ? list.argument : end - list.argument - 1
    return offset < bytes.count && bytes[offset] == Number.kind.rawValue
  }

  /// The smallest size of a value of `type`, in bytes.
  func minimumBytes(of type: WireType) -> Int {
    if type.kind == .object, !type.isOptional { return fields(of: type.argument).minimumBytes }
    return type.minimumBytes
  }

  func readType(
    at offset: inout Int, end: Int, shapeCount: Int
  ) throws(Fault) -> WireType {
    let type = try readTypeHead(at: &offset, end: end, shapeCount: shapeCount)
    guard type.kind == .list else { return type }
    var levels = 1
    while true {
      let element = try readTypeHead(at: &offset, end: end, shapeCount: shapeCount)
      // Nulls take no bytes, so that a short payload could hold any number of them.
      guard element.kind != .null else { throw .malformed("a list of kind null") }
      guard element.kind == .list else { return type }
      levels += 1
      guard levels <= Binary.maximumDepth else { throw .malformed("nested too deeply") }
    }
  }

  private func readTypeHead(
    at offset: inout Int, end: Int, shapeCount: Int
  ) throws(Fault) -> WireType {
    guard offset < end else { throw .malformed("a type extends past the end") }
    let byte = bytes[offset]
    guard let kind = WireKind(rawValue: byte & ~WireKind.optionalBit) else {
      throw .malformed("an unknown kind")
    }
    offset += 1
    var type = WireType(kind: kind, isOptional: byte & WireKind.optionalBit != 0, argument: 0)
    if kind == .list { type.argument = offset }
    if kind == .object {
      guard offset < end, bytes[offset] < shapeCount else {
        throw .malformed("an unknown shape")
      }
      type.argument = Int(bytes[offset])
      offset += 1
    }
    return type
  }
}

// MARK: - Skipping

extension PayloadState {
  /// Finds the end of the value of `type` at `offset`, whose nesting level is `depth`.
  func end(of type: WireType, at offset: Int, depth: Int) throws(Fault) -> Int {
    guard let place = try resolve(type, at: offset) else { return offset + 1 }
    return try end(of: place, depth: depth)
  }

  /// Finds the end of the body at `place`.
  func end(of place: WirePlace, depth: Int) throws(Fault) -> Int {
    if let end = knownEnd(of: place, depth: depth) { return end }
    if let width = place.kind.width {
      guard width <= bytesLeft(from: place.offset) else {
        throw .malformed("a value extends past the end")
      }
      return place.offset + width
    }
    var offset = place.offset
    switch place.kind {
    case .list: try skipList(place, depth: depth, at: &offset)
    case .map:
      try checkDepth(depth)
      for _ in 0..<(try count(at: &offset, minimum: 2)) {
        _ = try valueBytes.run(at: &offset)
        offset = try end(of: try tagged(at: offset), depth: depth + 1)
      }
    case .object:
      let fields = try enter(place, depth: depth)
      for index in 0..<fields.count {
        offset = try end(of: fields.start[index].type, at: offset, depth: depth + 1)
      }
    default: _ = try valueBytes.run(at: &offset)
    }
    return offset
  }

  /// Returns the fields of the object at `place`; throws if fewer bytes are left than it needs.
  @inline(__always)
  func enter(_ place: WirePlace, depth: Int) throws(Fault) -> Shape.Fields {
    try checkDepth(depth)
    let fields = fields(of: place.argument)
    guard fields.minimumBytes <= bytesLeft(from: place.offset) else {
      throw .malformed("an object extends past the end")
    }
    return fields
  }

  func checkDepth(_ depth: Int) throws(Fault) {
    guard depth <= Binary.maximumDepth else { throw .malformed("nested too deeply") }
  }

  private func skipList(_ list: WirePlace, depth: Int, at offset: inout Int) throws(Fault) {
    try checkDepth(depth)
    let type = try elementType(of: list)
    let count = try count(at: &offset, minimum: minimumBytes(of: type))
    if !type.isOptional, let width = type.kind.width {
      offset += count * width
      return
    }
    for _ in 0..<count { offset = try end(of: type, at: offset, depth: depth + 1) }
  }
}
