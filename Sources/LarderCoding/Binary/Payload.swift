import Foundation

/// The position and kind of a value's body.
package struct Place {
  var kind: Kind
  /// The number of an object's shape, or the position of a list's element type: its offset, or
  /// -1 minus its distance from the start of the shapes.
  var argument: Int
  /// The offset of the body.
  var offset: Int
}

/// A type as encoded in a payload.
package struct WireType {
  var kind: Kind
  var isOptional: Bool
  var argument: Int
}

/// The bytes of a payload, and its parsed table of shapes.
///
/// Every read is bounds-checked, so arbitrary bytes are either read or rejected.
package final class Payload {
  // Unsafe: the bytes belong to the caller. `Binary.decode` lends them for one call, and copies
  // them with `keepBytes` if a value kept its decoder.
  @exclusivity(unchecked)
  private(set) var bytes: UnsafeRawBufferPointer
  /// The bytes of the value, without the shapes.
  @exclusivity(unchecked)
  package private(set) var valueBytes: PayloadBytes
  @exclusivity(unchecked) private var isOwner = false
  @exclusivity(unchecked)
  var shapes: [Shape] = []

  /// The value that was last read to its end, so that the container around it need not scan it.
  @exclusivity(unchecked) private var finished: (offset: Int, depth: Int, end: Int)?

  /// The type that was last checked for being a list, with the result.
  @exclusivity(unchecked) var lastListType: (type: ObjectIdentifier, list: (any WireList.Type)?) = (
    ObjectIdentifier(Never.self), nil
  )
  /// Finds the types that are read without `Codable`; nil if none are.
  @exclusivity(unchecked) private(set) var parts: (any StreamParts.Type)?
  @exclusivity(unchecked) private var refusesParts = false

  init(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
    self.bytes = bytes
    guard bytes.count > Binary.headBytes else { throw .malformed("too few bytes") }
    guard bytes[0] == Binary.version else { throw .malformed("an unsupported format version") }
    let size = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt32.self))
    guard size < bytes.count - Binary.headBytes else {
      throw .malformed("a missing table of shapes")
    }
    valueBytes = PayloadBytes(bytes, upTo: Binary.headBytes + Int(size))
    try readShapes()
  }

  /// The offset at which the value ends and the shapes begin.
  var end: Int { valueBytes.end }

  deinit { if isOwner { bytes.deallocate() } }

  /// Copies the bytes, so that they stay valid after the caller's call.
  func keepBytes() {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
    copy.copyMemory(from: bytes)
    bytes = UnsafeRawBufferPointer(copy)
    valueBytes = PayloadBytes(bytes, upTo: end)
    isOwner = true
  }
}

// MARK: - Reading

extension Payload {
  /// The number of the value's bytes from `offset` on.
  func bytesLeft(from offset: Int) -> Int { end - offset }

  /// Reads the number of elements or entries, each of which takes at least `minimum` bytes.
  func count(at offset: inout Int, minimum: Int) throws(Fault) -> Int {
    try valueBytes.count(at: &offset, minimum: minimum)
  }

  /// Records the end of the body at `offset`, which has at least one byte.
  func finish(_ offset: Int, depth: Int, end: Int) {
    finished = (offset, depth, end)
  }

  /// Reads values of the types that `parts` knows without `Codable` from now on.
  func use(_ parts: (any StreamParts.Type)?) {
    if !refusesParts { self.parts = parts }
  }

  /// Reads all values through `Codable` from now on.
  ///
  /// Otherwise parts within each other would read malformed bytes again and again.
  func refuseParts() {
    parts = nil
    refusesParts = true
  }

  /// The end of the body at `place`, if it was the last one to be read; otherwise nil.
  func knownEnd(of place: Place, depth: Int) -> Int? {
    // A null has no bytes, so the value behind it has the same offset, and may be the last read.
    if place.kind == .null { return place.offset }
    guard let finished, finished.offset == place.offset, finished.depth == depth else {
      return nil
    }
    return finished.end
  }
}

// MARK: - Types

extension Payload {
  /// Finds the body of a value of `type` at `offset`; nil if it is absent, which takes one byte.
  @inline(__always)
  func resolve(_ type: WireType, at offset: Int) throws(Fault) -> Place? {
    var offset = offset
    if type.isOptional {
      let presence: UInt8 = try valueBytes.load(at: offset)
      guard presence <= 1 else { throw .malformed("a presence byte other than 0 or 1") }
      if presence == 0 { return nil }
      offset += 1
    }
    if type.kind == .tagged { return try tagged(at: offset) }
    return Place(kind: type.kind, argument: type.argument, offset: offset)
  }

  /// Reads the type of a tagged value.
  func tagged(at offset: Int) throws(Fault) -> Place {
    let byte: UInt8 = try valueBytes.load(at: offset)
    // A scalar's type is its kind alone.
    if byte < Kind.list.rawValue, let kind = Kind(rawValue: byte) {
      return Place(kind: kind, argument: 0, offset: offset + 1)
    }
    var bodyOffset = offset
    let type = try readType(at: &bodyOffset, end: end, shapeCount: shapes.count)
    guard !type.isOptional, type.kind != .tagged else {
      throw .malformed("a tagged or optional type in a tagged value")
    }
    return Place(kind: type.kind, argument: type.argument, offset: bodyOffset)
  }

  /// Reads the type of a list's elements.
  func elementType(of list: Place) throws(Fault) -> WireType {
    var offset = list.argument >= 0 ? list.argument : end - list.argument - 1
    return try readType(at: &offset, end: bytes.count, shapeCount: shapes.count)
  }

  /// Whether a value is a list of numbers whose encoding equals their layout in memory.
  func isNumberList<Number: WireScalar>(_ type: Number.Type, _ list: Place) -> Bool {
    guard list.kind == .list, numberKind(of: Number.self) != nil else { return false }
    let offset = list.argument >= 0 ? list.argument : end - list.argument - 1
    return offset < bytes.count && bytes[offset] == Number.kind.rawValue
  }

  /// The smallest size of a value of `type`, in bytes.
  func minimumBytes(of type: WireType) -> Int {
    if type.isOptional { return 1 }
    switch type.kind {
    case .object: return type.argument < shapes.count ? shapes[type.argument].minimumBytes : 1
    case .list, .map: return 4
    default: return type.kind.width ?? 1
    }
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
    guard let kind = Kind(rawValue: byte & ~Kind.optionalBit) else {
      throw .malformed("an unknown kind")
    }
    offset += 1
    var type = WireType(kind: kind, isOptional: byte & Kind.optionalBit != 0, argument: 0)
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

extension Payload {
  /// Finds the end of the value of `type` at `offset`, whose nesting level is `depth`.
  func end(of type: WireType, at offset: Int, depth: Int) throws(Fault) -> Int {
    guard let place = try resolve(type, at: offset) else { return offset + 1 }
    return try end(of: place, depth: depth)
  }

  /// Finds the end of the body at `place`.
  func end(of place: Place, depth: Int) throws(Fault) -> Int {
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
      let shape = try enter(place, depth: depth)
      for type in shape.types { offset = try end(of: type, at: offset, depth: depth + 1) }
    default: _ = try valueBytes.run(at: &offset)
    }
    return offset
  }

  /// Returns the shape of the object at `place`; throws if fewer bytes are left than it needs.
  func enter(_ place: Place, depth: Int) throws(Fault) -> Shape {
    try checkDepth(depth)
    let shape = shapes[place.argument]
    guard shape.minimumBytes <= bytesLeft(from: place.offset) else {
      throw .malformed("an object extends past the end")
    }
    return shape
  }

  func checkDepth(_ depth: Int) throws(Fault) {
    guard depth <= Binary.maximumDepth else { throw .malformed("nested too deeply") }
  }

  private func skipList(_ list: Place, depth: Int, at offset: inout Int) throws(Fault) {
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
