import Foundation
import Synchronization

/// The names and types of an object's fields, in the order of their bodies.
final class Shape: Sendable {
  let names: [String]
  let types: [WireType]
  /// The smallest size of an object of this shape, in bytes.
  let minimumBytes: Int
  private let indexes: [String: Int]

  fileprivate init(names: [String], types: [WireType], minimumBytes: Int) {
    self.names = names
    self.types = types
    self.minimumBytes = minimumBytes
    var indexes: [String: Int] = [:]
    if names.count > 8 {
      for (index, name) in names.enumerated() { indexes[name] = index }
    }
    self.indexes = indexes
  }

  /// The index of the field with that name.
  func index(of name: String) -> Int? {
    if names.count <= 8 { return names.firstIndex(of: name) }
    return indexes[name]
  }
}

/// A cache of parsed tables of shapes.
///
/// Payloads of one type have the same table, and parsing it takes longer than decoding a small
/// value.
private struct ShapeCache {
  private struct Entry {
    let table: [UInt8]
    let shapes: [Shape]
  }

  static let shared = Mutex(ShapeCache())

  private var entries: [Entry?] = Array(repeating: nil, count: 64)

  /// The slot of a table, from a hash of its length and its last bytes, which hold field names.
  private func slot(_ table: UnsafeRawBufferPointer) -> Int {
    var hash = UInt64(table.count)
    for byte in table.suffix(24) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return Int(truncatingIfNeeded: hash >> 32) & 63
  }

  func shapes(of table: UnsafeRawBufferPointer) -> [Shape]? {
    guard let entry = entries[slot(table)] else { return nil }
    return entry.table.withUnsafeBytes { areEqual($0, table) } ? entry.shapes : nil
  }

  mutating func keep(_ shapes: [Shape], of table: UnsafeRawBufferPointer) {
    entries[slot(table)] = Entry(table: Array(table), shapes: shapes)
  }
}

func areEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
  guard one.count == other.count else { return false }
  guard let start = one.baseAddress, let other = other.baseAddress else { return true }
  return unsafe memcmp(start, other, one.count) == 0
}

extension Payload {
  /// Reads the table of shapes into ``shapes``.
  func readShapes() throws(Fault) {
    let table = UnsafeRawBufferPointer(rebasing: bytes[end...])
    if table.count == 1, table[0] == 0 { return }
    if let known = ShapeCache.shared.withLock({ $0.shapes(of: table) }) {
      shapes = known
      return
    }
    try readNewShapes()
    let shapes = shapes
    ShapeCache.shared.withLock { $0.keep(shapes, of: table) }
  }

  private func readNewShapes() throws(Fault) {
    let whole = PayloadBytes(bytes, upTo: bytes.count)
    guard whole.end - end <= Binary.maximumTableBytes else {
      throw .malformed("an oversized table of shapes")
    }
    let count = Int(bytes[end])
    var offset = end + 1
    shapes.reserveCapacity(count)
    for _ in 0..<count { shapes.append(try readShape(in: whole, at: &offset, of: count)) }
    guard offset == whole.end else { throw .malformed("bytes after the table of shapes") }
  }

  private func readShape(
    in whole: PayloadBytes, at offset: inout Int, of count: Int
  ) throws(Fault) -> Shape {
    let fields = try whole.varint(at: &offset)
    // A field takes at least two bytes, its type and its name's length. An object without fields
    // would take no bytes, so that a short payload could hold any number of them.
    guard fields > 0, fields <= (whole.end - offset) / 2 else {
      throw .malformed("an invalid number of fields")
    }
    var names: [String] = []
    var types: [WireType] = []
    names.reserveCapacity(fields)
    types.reserveCapacity(fields)
    var minimumBytes = 0
    for _ in 0..<fields {
      var type = try readType(at: &offset, end: whole.end, shapeCount: count)
      // Relative to the table's start, so that the cached shape is valid in any payload.
      if type.kind == .list { type.argument = end - type.argument - 1 }
      guard type.kind != .null else { throw .malformed("a field of kind null") }
      // A required object must have an earlier shape, so that objects cannot nest without end.
      guard type.kind != .object || type.isOptional || type.argument < shapes.count else {
        throw .malformed("a recursive shape")
      }
      minimumBytes = min(minimumBytes + self.minimumBytes(of: type), Int(Int32.max))
      types.append(type)
      names.append(try whole.text(at: &offset))
    }
    guard Self.areDistinct(names) else { throw .malformed("a duplicate field name") }
    return Shape(names: names, types: types, minimumBytes: minimumBytes)
  }

  private static func areDistinct(_ names: [String]) -> Bool {
    if names.count > 8 { return Set(names).count == names.count }
    for index in names.indices.dropFirst() where names[..<index].contains(names[index]) {
      return false
    }
    return true
  }
}
