import Foundation
import Synchronization

/// The fields of objects: their names and types, in the order of their bodies.
final class Shape: Sendable {
  let names: [String]
  let types: [WireType]
  /// The smallest number of bytes that an object of this shape can have.
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

  /// The field of that name.
  func index(of name: String) -> Int? {
    if names.count <= 8 { return names.firstIndex(of: name) }
    return indexes[name]
  }
}

/// Tables of shapes that were read before.
///
/// Payloads of one type have the same table, and reading it takes longer than a small value.
private struct ShapeCache {
  private struct Entry {
    let table: [UInt8]
    let shapes: [Shape]
  }

  static let shared = Mutex(ShapeCache())

  private var entries: [Entry?] = Array(repeating: nil, count: 64)

  /// The slot for a table: by its length and its last bytes, which are the name of a field.
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
  /// Reads the table of shapes, which are ``shapes`` then.
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
    guard whole.end - end <= Binary.maximumTableBytes else { throw .malformed("too many shapes") }
    let count = Int(bytes[end])
    var offset = end + 1
    shapes.reserveCapacity(count)
    for _ in 0..<count { shapes.append(try readShape(in: whole, at: &offset, of: count)) }
    guard offset == whole.end else { throw .malformed("bytes behind the shapes") }
  }

  private func readShape(
    in whole: PayloadBytes, at offset: inout Int, of count: Int
  ) throws(Fault) -> Shape {
    let fields = try whole.varint(at: &offset)
    // Each field has a type and a length. Objects without fields would take no bytes.
    guard fields > 0, fields <= (whole.end - offset) / 2 else { throw .malformed("a shape's size") }
    var names: [String] = []
    var types: [WireType] = []
    names.reserveCapacity(fields)
    types.reserveCapacity(fields)
    var minimumBytes = 0
    for _ in 0..<fields {
      var type = try readType(at: &offset, end: whole.end, shapeCount: count)
      // From the table's start, and so the same in any payload.
      if type.kind == .list { type.argument = end - type.argument - 1 }
      guard type.kind != .null else { throw .malformed("a field of nothing") }
      // So objects cannot be within each other for ever, or without taking bytes.
      guard type.kind != .object || type.isOptional || type.argument < shapes.count else {
        throw .malformed("a shape within itself")
      }
      minimumBytes = min(minimumBytes + self.minimumBytes(of: type), Int(Int32.max))
      types.append(type)
      names.append(try whole.text(at: &offset))
    }
    guard Self.areDistinct(names) else { throw .malformed("two fields of one name") }
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
