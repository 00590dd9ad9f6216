import Foundation

/// Where a value's body is, and what it is.
package struct Place {
  var kind: Kind
  /// The number of an object's shape, or the place of the type of a list's elements: its offset, or
  /// -1 less its distance from the start of the shapes.
  var argument: Int
  /// Where the body begins.
  var offset: Int
}

/// A type as it stands in a payload.
package struct WireType {
  var kind: Kind
  var isOptional: Bool
  var argument: Int
}

/// The bytes of a payload, and what their table of shapes says.
///
/// Every read is checked against the end: bytes of any kind are read, or refused.
package final class Payload {
  // Unsafe: the bytes are the caller's. `Binary.decode` lends them for the time of a call, and has
  // `keepBytes` copy them if a value kept its decoder.
  @exclusivity(unchecked)
  private(set) var bytes: UnsafeRawBufferPointer
  /// Those of the value.
  @exclusivity(unchecked)
  package private(set) var valueBytes: PayloadBytes
  @exclusivity(unchecked) private var isOwner = false
  @exclusivity(unchecked)
  var shapes: [Shape] = []

  // The value that was last read to its end, so that those around it need not look for that.
  @exclusivity(unchecked) private var finished = -1
  @exclusivity(unchecked) private var finishedDepth = -1
  @exclusivity(unchecked) private var finishedEnd = -1

  /// The type that was last asked whether it is a list.
  @exclusivity(unchecked) var lastListType: (type: ObjectIdentifier, list: (any WireList.Type)?) = (
    ObjectIdentifier(Never.self), nil
  )

  init(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
    self.bytes = bytes
    guard bytes.count > Binary.headBytes else { throw .malformed("too few bytes") }
    guard bytes[0] == Binary.version else { throw .malformed("another version of the format") }
    let size = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt32.self))
    guard size < bytes.count - Binary.headBytes else { throw .malformed("no table of shapes") }
    valueBytes = PayloadBytes(bytes, upTo: Binary.headBytes + Int(size))
    try readShapes()
  }

  /// Where the value ends and the shapes begin.
  var end: Int { valueBytes.end }

  deinit { if isOwner { bytes.deallocate() } }

  /// Copies the bytes, so that they stay when the caller's are gone.
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
  /// How many bytes of the value begin at `offset`.
  func bytesLeft(from offset: Int) -> Int { end - offset }

  /// Reads the number of elements or entries of `minimum` bytes each.
  func count(at offset: inout Int, minimum: Int) throws(Fault) -> Int {
    let count = Int(UInt32(littleEndian: try valueBytes.load(at: offset)))
    offset += 4
    guard count <= bytesLeft(from: offset) / max(1, minimum) else {
      throw .malformed("more elements than bytes")
    }
    return count
  }

  /// The numbers of a list, all at once; `offset` is where the list's body begins.
  ///
  /// Only for types that have a ``numberKind(of:)``.
  func numbers<T>(at offset: inout Int) throws(Fault) -> [T] {
    let count = try count(at: &offset, minimum: MemoryLayout<T>.size)
    // An array that is made without room writes into the empty array that all threads share.
    guard count > 0 else { return [] }
    let size = count * MemoryLayout<T>.size
    let source = UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + size)])
    offset += size
    // Unsafe: `T` is a number and may have any bits; `source` has `count` of them.
    return unsafe [T](unsafeUninitializedCapacity: count) { target, initialized in
      UnsafeMutableRawBufferPointer(target).copyMemory(from: source)
      initialized = count
    }
  }

  /// Remembers where a value ends that begins at `offset` and has at least one byte.
  func finish(_ offset: Int, depth: Int, end: Int) {
    finished = offset
    finishedDepth = depth
    finishedEnd = end
  }

  /// Where the value at `place` ends, if it was the last to be read.
  func knownEnd(of place: Place, depth: Int) -> Int? {
    // A null has no bytes: what is behind it begins where it does, and may have been the last.
    if place.kind == .null { return place.offset }
    return finished == place.offset && finishedDepth == depth ? finishedEnd : nil
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
      guard presence <= 1 else { throw .malformed("a presence that is neither 0 nor 1") }
      if presence == 0 { return nil }
      offset += 1
    }
    if type.kind == .tagged { return try tagged(at: offset) }
    return Place(kind: type.kind, argument: type.argument, offset: offset)
  }

  /// Reads the type of a tagged value.
  func tagged(at offset: Int) throws(Fault) -> Place {
    let byte: UInt8 = try valueBytes.load(at: offset)
    var place = offset
    // A scalar's type is only its kind.
    if byte < Kind.list.rawValue, let kind = Kind(rawValue: byte) {
      return Place(kind: kind, argument: 0, offset: offset + 1)
    }
    let type = try readType(at: &place, end: end, shapeCount: shapes.count)
    guard !type.isOptional, type.kind != .tagged else {
      throw .malformed("a tagged value in a tagged value")
    }
    return Place(kind: type.kind, argument: type.argument, offset: place)
  }

  /// The type of the elements of a list.
  func elementType(of list: Place) throws(Fault) -> WireType {
    var offset = list.argument >= 0 ? list.argument : end - list.argument - 1
    return try readType(at: &offset, end: bytes.count, shapeCount: shapes.count)
  }

  /// The smallest number of bytes that a value of `type` can have.
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
      // Else there would be lists that are long and take no bytes.
      guard element.kind != .null else { throw .malformed("a list of nothing") }
      guard element.kind == .list else { return type }
      levels += 1
      guard levels <= Binary.maximumDepth else { throw .malformed("nested too deeply") }
    }
  }

  private func readTypeHead(
    at offset: inout Int, end: Int, shapeCount: Int
  ) throws(Fault) -> WireType {
    guard offset < end else { throw .malformed("a type goes past the end") }
    let byte = bytes[offset]
    guard let kind = Kind(rawValue: byte & ~Kind.optionalBit) else {
      throw .malformed("a kind that is not known")
    }
    offset += 1
    var type = WireType(kind: kind, isOptional: byte & Kind.optionalBit != 0, argument: 0)
    if kind == .list { type.argument = offset }
    if kind == .object {
      guard offset < end, bytes[offset] < shapeCount else {
        throw .malformed("a shape that is not there")
      }
      type.argument = Int(bytes[offset])
      offset += 1
    }
    return type
  }
}

// MARK: - Skipping

extension Payload {
  /// Where the value of `type` at `offset` ends; `depth` is the value's own.
  func end(of type: WireType, at offset: Int, depth: Int) throws(Fault) -> Int {
    guard let place = try resolve(type, at: offset) else { return offset + 1 }
    return try end(of: place, depth: depth)
  }

  /// Where the body at `place` ends.
  func end(of place: Place, depth: Int) throws(Fault) -> Int {
    if let end = knownEnd(of: place, depth: depth) { return end }
    if let width = place.kind.width {
      guard width <= bytesLeft(from: place.offset) else {
        throw .malformed("a value goes past the end")
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

  /// The shape of the object at `place`, for which there are bytes enough.
  func enter(_ place: Place, depth: Int) throws(Fault) -> Shape {
    try checkDepth(depth)
    let shape = shapes[place.argument]
    guard shape.minimumBytes <= bytesLeft(from: place.offset) else {
      throw .malformed("an object goes past the end")
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
