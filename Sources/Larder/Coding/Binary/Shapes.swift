import Foundation

/// The names and types of an object's fields, in the order of their bodies.
final class Shape: Sendable {
  struct Field {
    let name: String
    let type: WireType
  }

  /// The fields of a shape, used without retaining it.
  struct Fields {
    // Unsafe: the shape owns them, and a `ShapeTable` the shape.
    let start: UnsafePointer<Field>
    let count: Int
    /// The smallest size of an object of the shape, in bytes.
    let minimumBytes: Int
  }

  let names: [String]
  let types: [WireType]
  // Unsafe: allocated in `init`, never changed, and freed in `deinit`.
  nonisolated(unsafe) let fields: Fields
  private let indexes: [String: Int]

  fileprivate init(names: [String], types: [WireType], minimumBytes: Int) {
    self.names = names
    self.types = types
    let start = UnsafeMutablePointer<Field>.allocate(capacity: names.count)
    for index in names.indices {
      (start + index).initialize(to: Field(name: names[index], type: types[index]))
    }
    fields = Fields(
      start: UnsafePointer(start), count: names.count, minimumBytes: minimumBytes)
    var indexes: [String: Int] = [:]
    if names.count > 8 {
      for (index, name) in names.enumerated() { indexes[name] = index }
    }
    self.indexes = indexes
  }

  deinit {
    let start = UnsafeMutablePointer(mutating: fields.start)
    start.deinitialize(count: fields.count)
    start.deallocate()
  }

  /// The index of the field with that name.
  func index(of name: String) -> Int? {
    if names.count <= 8 { return names.firstIndex(of: name) }
    return indexes[name]
  }
}

/// A parsed table of shapes.
final class ShapeTable: Sendable {
  let shapes: [Shape]
  // Unsafe: allocated in `init`, never changed, and freed in `deinit`.
  /// The fields of each shape.
  nonisolated(unsafe) let fields: UnsafePointer<Shape.Fields>
  private let bytes: [UInt8]

  fileprivate init(_ shapes: [Shape], bytes: UnsafeRawBufferPointer) {
    self.shapes = shapes
    self.bytes = Array(bytes)
    let fields = UnsafeMutablePointer<Shape.Fields>.allocate(capacity: shapes.count)
    for index in shapes.indices { (fields + index).initialize(to: shapes[index].fields) }
    self.fields = UnsafePointer(fields)
  }

  deinit { fields.deallocate() }

  /// Whether this is the table with those bytes.
  func has(_ table: UnsafeRawBufferPointer) -> Bool {
    bytes.withUnsafeBytes { areEqual($0, table) }
  }
}

/// A cache of parsed tables of shapes.
///
/// Payloads of one type have the same table, and parsing it takes longer than decoding a small
/// value.
private struct ShapeCache {
  static let shared = Lock(ShapeCache())

  private var tables: [ShapeTable?] = Array(repeating: nil, count: 64)

  /// The slot of a table, from a hash of its length and its last bytes, which hold field names.
  private func slot(_ table: UnsafeRawBufferPointer) -> Int {
    var hash = UInt64(table.count)
    for byte in table.suffix(24) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return Int(truncatingIfNeeded: hash >> 32) & 63
  }

  func table(_ bytes: UnsafeRawBufferPointer) -> ShapeTable? {
    guard let table = tables[slot(bytes)], table.has(bytes) else { return nil }
    return table
  }

  mutating func keep(_ table: ShapeTable, _ bytes: UnsafeRawBufferPointer) {
    tables[slot(bytes)] = table
  }
}

func areEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
  guard one.count == other.count else { return false }
  guard let start = one.baseAddress, let other = other.baseAddress else { return true }
  return unsafe memcmp(start, other, one.count) == 0
}

extension PayloadState {
  /// The shapes of the payload's objects.
  var shapes: [Shape] {
    guard shapeCount > 0, let table else { return [] }
    return table.shapes
  }

  /// The fields of the objects with the shape of that number.
  @inline(__always)
  func fields(of shape: Int) -> Shape.Fields {
    guard shape < shapeCount, let shapeFields else { preconditionFailure("an unknown shape") }
    // Unsafe: there are as many as there are shapes.
    return unsafe shapeFields[shape]
  }

  /// Reads the table of shapes.
  mutating func readShapes() throws(Fault) {
    let bytes = UnsafeRawBufferPointer(rebasing: bytes[end...])
    shapeCount = 0
    if bytes.count == 1, bytes[0] == 0 { return }
    if let table, table.has(bytes) {
      shapeCount = Int(bytes[0])
      return
    }
    let table: ShapeTable
    if let known = ShapeCache.shared.withLock({ $0.table(bytes) }) {
      table = known
    } else {
      table = ShapeTable(try readNewShapes(), bytes: bytes)
      ShapeCache.shared.withLock { $0.keep(table, bytes) }
    }
    self.table = table
    shapeFields = table.fields
    shapeCount = table.shapes.count
  }

  private func readNewShapes() throws(Fault) -> [Shape] {
    let whole = PayloadBytes(bytes, upTo: bytes.count)
    guard whole.end - end <= Binary.maximumTableBytes else {
      throw .malformed("an oversized table of shapes")
    }
    let count = Int(bytes[end])
    var offset = end + 1
    var shapes: [Shape] = []
    shapes.reserveCapacity(count)
    for _ in 0..<count {
      shapes.append(try readShape(in: whole, at: &offset, of: count, after: shapes))
    }
    guard offset == whole.end else { throw .malformed("bytes after the table of shapes") }
    return shapes
  }

  private func readShape(
    in whole: PayloadBytes, at offset: inout Int, of count: Int, after shapes: [Shape]
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
      let isObject = type.kind == .object && !type.isOptional
      let least = isObject ? shapes[type.argument].fields.minimumBytes : type.minimumBytes
      minimumBytes = min(minimumBytes + least, Int(Int32.max))
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

// MARK: - Writing

extension ByteBuffer {
  /// Appends the entry of a shape in a table of shapes.
  ///
  /// It is the number of fields, and the kind and the name of each.
  mutating func append(shapeOf fields: [(name: String, kind: UInt8)]) {
    append(varint: UInt64(fields.count))
    for field in fields {
      append(field.kind)
      append(text: field.name)
    }
  }
}
