import LarderBytes

/// A value in memory, to be written as a payload.
indirect enum Tree {
  case null
  case scalar(any WireScalar)
  /// A list of scalars of one kind.
  case scalars(Kind, any ScalarList)
  case container(TreeContainer)
  /// An optional field, with the kind of its value even if it is absent.
  case optional(Kind, Tree?)
}

/// The contents of one value, filled while its type encodes itself.
final class TreeContainer {
  enum Content {
    /// No container was requested and no value was encoded yet.
    case nothing
    case single(Tree)
    case list([Tree])
    case fields
  }

  var content = Content.nothing
  /// The coding path of the value.
  let path: [any CodingKey]
  /// Whether the names are data, as in a dictionary, rather than the fields of a type.
  let isMap: Bool
  /// Whether another container handed this one out, so that it may be requested again.
  let isNested: Bool
  /// The number of the object's shape, if it has one.
  var shape: UInt8?
  private(set) var names: [String] = []
  private(set) var values: [Tree] = []
  private var indexes: [String: Int] = [:]

  init(path: [any CodingKey], isMap: Bool = false, isNested: Bool = false) {
    self.path = path
    self.isMap = isMap
    self.isNested = isNested
  }

  /// The nested container of a field; nil if the field has none.
  func nested(named name: String) -> TreeContainer? {
    guard let index = indexes[name], case .container(let container) = values[index] else {
      return nil
    }
    return container.isNested ? container : nil
  }

  /// Sets a field, replacing one of the same name.
  func set(_ value: Tree, named name: String) {
    if let index = indexes[name] {
      values[index] = value
    } else {
      indexes[name] = names.count
      names.append(name)
      values.append(value)
    }
  }
}

// MARK: - Writing

/// Writes a tree as a payload.
struct TreeWriter: ~Copyable {
  private struct ShapeKey: Hashable {
    let names: [String]
    let kinds: [UInt8]
  }

  private var bytes = ByteBuffer()
  private var shapes: [ShapeKey: UInt8] = [:]
  private var table = ByteBuffer()

  /// Appends the payload of `tree` to `buffer`, which is unchanged if that fails.
  static func write(_ tree: Tree, to buffer: inout ByteBuffer) throws {
    var writer = TreeWriter()
    let start = buffer.count
    swap(&writer.bytes, &buffer)
    defer { swap(&writer.bytes, &buffer) }
    do {
      try writer.write(tree, at: start)
    } catch {
      writer.bytes.truncate(to: start)
      throw error
    }
  }

  private mutating func write(_ tree: Tree, at start: Int) throws {
    bytes.append(Binary.version)
    bytes.append(littleEndian: UInt32(0))
    findShapes(of: tree)
    try writeTagged(tree, depth: 1)
    let size = bytes.count - start - Binary.headBytes
    bytes.set(UInt32(clamping: size), at: start + Binary.sizeOffset)
    bytes.append(UInt8(shapes.count))
    table.withBytes { bytes.append($0) }
  }

  private mutating func writeTagged(_ tree: Tree, depth: Int) throws {
    switch tree {
    case .null, .optional(_, nil): bytes.append(Kind.null.rawValue)
    case .optional(_, let value?): try writeTagged(value, depth: depth)
    case .scalar(let scalar):
      bytes.append(type(of: scalar).kind.rawValue)
      scalar.append(to: &bytes)
    case .scalars(let kind, let list):
      guard depth <= Binary.maximumDepth else { throw tooDeep([]) }
      bytes.append(list, of: kind)
    case .container(let container): try write(container, depth: depth)
    }
  }

  private mutating func write(_ container: TreeContainer, depth: Int) throws {
    if case .single(let tree) = container.content { return try writeTagged(tree, depth: depth) }
    guard depth <= Binary.maximumDepth else { throw tooDeep(container.path) }
    switch container.content {
    case .list(let elements): try writeList(elements, depth: depth)
    case .fields where !container.names.isEmpty:
      if let shape = container.shape {
        try writeObject(container, shape: shape, depth: depth)
      } else {
        try writeMap(container, depth: depth)
      }
    case .fields, .nothing, .single:
      // All of them are written as an empty map.
      bytes.append(Kind.map.rawValue)
      bytes.append(littleEndian: UInt32(0))
    }
  }

  private mutating func writeList(_ elements: [Tree], depth: Int) throws {
    bytes.append(Kind.list.rawValue)
    bytes.append(Kind.tagged.rawValue)
    bytes.append(littleEndian: UInt32(clamping: elements.count))
    for element in elements { try writeTagged(element, depth: depth + 1) }
  }

  private mutating func writeMap(_ container: TreeContainer, depth: Int) throws {
    bytes.append(Kind.map.rawValue)
    let countOffset = bytes.count
    bytes.append(littleEndian: UInt32(0))
    var count = 0
    for (name, value) in zip(container.names, container.values) {
      if case .optional(_, nil) = value { continue }
      count += 1
      bytes.append(text: name)
      try writeTagged(value, depth: depth + 1)
    }
    bytes.set(UInt32(clamping: count), at: countOffset)
  }

  private mutating func writeObject(
    _ container: TreeContainer, shape: UInt8, depth: Int
  ) throws {
    bytes.append(Kind.object.rawValue)
    bytes.append(shape)
    for value in container.values {
      switch value {
      case .scalar(let scalar): scalar.append(to: &bytes)
      case .optional(_, nil): bytes.append(0)
      case .optional(let kind, let value?):
        bytes.append(1)
        if kind != .tagged, case .scalar(let scalar) = value {
          scalar.append(to: &bytes)
        } else {
          try writeTagged(value, depth: depth + 1)
        }
      case .null, .scalars, .container: try writeTagged(value, depth: depth + 1)
      }
    }
  }

  /// Assigns the numbers of their shapes to objects, inner objects first.
  private mutating func findShapes(of tree: Tree) {
    switch tree {
    case .null, .scalar, .scalars, .optional(_, nil): break
    case .optional(_, let value?): findShapes(of: value)
    case .container(let container):
      switch container.content {
      case .nothing: break
      case .single(let value): findShapes(of: value)
      case .list(let elements): for element in elements { findShapes(of: element) }
      case .fields:
        for value in container.values { findShapes(of: value) }
        if !container.isMap, !container.names.isEmpty { container.shape = shape(of: container) }
      }
    }
  }

  /// Finds or makes the container's shape; nil if the table is full.
  private mutating func shape(of container: TreeContainer) -> UInt8? {
    let kinds = container.values.map { value in
      switch value {
      case .scalar(let scalar): type(of: scalar).kind.rawValue
      case .optional(let kind, _): kind.rawValue | Kind.optionalBit
      case .null, .scalars, .container: Kind.tagged.rawValue
      }
    }
    let key = ShapeKey(names: container.names, kinds: kinds)
    if let known = shapes[key] { return known }
    let start = table.count
    table.append(shapeOf: zip(container.names, kinds).map { ($0, $1) })
    // The number of shapes takes one byte more.
    guard shapes.count < Binary.maximumShapes, table.count < Binary.maximumTableBytes else {
      table.truncate(to: start)
      return nil
    }
    let number = UInt8(shapes.count)
    shapes[key] = number
    return number
  }
}

/// Makes the error for a value that is nested too deeply.
func tooDeep(_ path: [any CodingKey]) -> EncodingError {
  let text = "Nested deeper than \(Binary.maximumDepth) lists and objects"
  return .invalidValue(
    "...", EncodingError.Context(codingPath: path, debugDescription: text))
}
