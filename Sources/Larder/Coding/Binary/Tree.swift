import Foundation

/// A value in memory, to be written as a payload.
indirect enum Tree {
  case null
  case scalar(any WireScalar)
  /// A list of scalars of one kind.
  case scalars(WireKind, any ScalarList)
  case container(TreeContainer)
  /// An optional field, with the kind of its value even if it is absent.
  case optional(WireKind, Tree?)
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

// MARK: - Encoding

/// Encodes a value into a ``Tree``; the value may fill its containers in any order.
struct TreeEncoder: Encoder {
  let container: TreeContainer
  let state: TreeState

  var codingPath: [any CodingKey] { container.path }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    state.begin(container)
    switch container.content {
    case .nothing: container.content = .fields
    case .fields: break
    case .single, .list: state.reject(container, as: "an object")
    }
    return KeyedEncodingContainer(TreeFields<Key>(container: container, state: state))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    state.begin(container)
    switch container.content {
    case .nothing: container.content = .list([])
    case .list: break
    case .single, .fields: state.reject(container, as: "a list")
    }
    return TreeElements(container: container, state: state)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

/// The state shared by all encoders of one call.
final class TreeState {
  /// The first error found in a function that cannot throw.
  ///
  /// Nothing is encoded after it: every function that can throw throws it.
  private(set) var failure: EncodingError?
  fileprivate var nesting = 0

  fileprivate func reject(_ container: TreeContainer, as form: String) {
    reject(
      .invalidValue(
        "...",
        EncodingError.Context(
          codingPath: container.path,
          debugDescription: "Encoded as \(form), but something else was encoded in its place")))
  }

  private func reject(_ error: EncodingError) { failure = failure ?? error }

  /// Begins a list or an object; the length of its path is the number of containers around it.
  fileprivate func begin(_ container: TreeContainer) {
    if container.path.count >= Binary.maximumDepth { reject(tooDeep(container.path)) }
  }

  fileprivate func checkFailure() throws {
    if let failure { throw failure }
  }

  /// Makes the container of the value under `key` in another container.
  ///
  /// After a failure paths do not grow, so that a type cannot nest containers without end.
  fileprivate func child(of container: TreeContainer, _ key: any CodingKey) -> TreeContainer {
    TreeContainer(path: failure == nil ? container.path + [key] : container.path, isNested: true)
  }
}

extension TreeState {
  /// Makes the tree of a value of any type.
  func tree<T: Encodable>(
    _ value: T, path: @autoclosure () -> [any CodingKey]
  ) throws -> Tree {
    try checkFailure()
    if let scalar = value as? any WireScalar {
      guard let url = scalar as? URL, url.baseURL != nil else { return .scalar(scalar) }
    }
    if let array = value as? any ScalarList, let kind = array.scalarKind {
      return .scalars(kind, array)
    }
    let container = TreeContainer(
      path: path(), isMap: (T.self as? any MapLike.Type)?.hasDistinctNames == true)
    guard nesting < Binary.maximumNesting, container.path.count <= Binary.maximumDepth else {
      throw tooDeep(container.path)
    }
    nesting += 1
    defer { nesting -= 1 }
    try value.encode(to: TreeEncoder(container: container, state: self))
    try checkFailure()
    return .container(container)
  }
}

// MARK: - Containers

struct TreeFields<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let container: TreeContainer
  let state: TreeState

  var codingPath: [any CodingKey] { container.path }

  func put(_ value: Tree, _ key: Key) throws {
    try state.checkFailure()
    container.set(value, named: key.stringValue)
  }

  mutating func encodeNil(forKey key: Key) throws { try put(.null, key) }

  mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    try put(try state.tree(value, path: container.path + [key]), key)
  }

  mutating func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
    let tree = try value.map { try state.tree($0, path: container.path + [key]) }
    var kind = (T.self as? any WireScalar.Type)?.kind ?? .tagged
    if case .container? = tree { kind = .tagged }
    try put(.optional(kind, tree), key)
  }

  /// Returns the container in a field, which is the same one each time that it is requested.
  private func child(_ key: any CodingKey) -> TreeContainer {
    if let child = container.nested(named: key.stringValue) { return child }
    let child = state.child(of: container, key)
    if state.failure == nil { container.set(.container(child), named: key.stringValue) }
    return child
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    TreeEncoder(container: child(key), state: state).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    TreeEncoder(container: child(key), state: state).unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder {
    TreeEncoder(container: child(PathKey(stringValue: "super")), state: state)
  }

  mutating func superEncoder(forKey key: Key) -> any Encoder {
    TreeEncoder(container: child(key), state: state)
  }
}

struct TreeElements: UnkeyedEncodingContainer {
  let container: TreeContainer
  let state: TreeState

  var codingPath: [any CodingKey] { container.path }

  var count: Int {
    if case .list(let elements) = container.content { return elements.count }
    return 0
  }

  func add(_ value: Tree) throws {
    try state.checkFailure()
    append(value)
  }

  private func append(_ value: Tree) {
    guard case .list(var elements) = container.content else { return }
    // Release the container's reference, so that appending does not copy the array.
    container.content = .nothing
    elements.append(value)
    container.content = .list(elements)
  }

  mutating func encodeNil() throws { try add(.null) }

  mutating func encode<T: Encodable>(_ value: T) throws {
    append(try state.tree(value, path: container.path + [PathKey(intValue: count)]))
  }

  private func child() -> TreeContainer {
    let child = state.child(of: container, PathKey(intValue: count))
    if state.failure == nil { append(.container(child)) }
    return child
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    TreeEncoder(container: child(), state: state).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    TreeEncoder(container: child(), state: state).unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder {
    TreeEncoder(container: child(), state: state)
  }
}

extension TreeEncoder: SingleValueEncodingContainer {
  func put(_ value: Tree) throws {
    try state.checkFailure()
    guard case .nothing = container.content else {
      throw EncodingError.invalidValue(
        value,
        EncodingError.Context(
          codingPath: codingPath, debugDescription: "Something else was encoded in its place"))
    }
    container.content = .single(value)
  }

  func encodeNil() throws { try put(.null) }

  func encode<T: Encodable>(_ value: T) throws {
    try put(try state.tree(value, path: container.path))
  }
}

// The standard library has versions of these for single types, which it would call instead: they
// throw for 128 bits, and encode a missing value as no field at all.

extension TreeFields {
  private func put<S: WireScalar>(_ value: S?, _ key: Key) throws {
    try put(.optional(S.kind, value.map { .scalar($0) }), key)
  }

  mutating func encode(_ value: Int128, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encode(_ value: UInt128, forKey key: Key) throws { try put(.scalar(value), key) }
  mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: Int128?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { try put(value, key) }
  mutating func encodeIfPresent(_ value: UInt128?, forKey key: Key) throws { try put(value, key) }
}

extension TreeElements {
  mutating func encode(_ value: Int128) throws { try add(.scalar(value)) }
  mutating func encode(_ value: UInt128) throws { try add(.scalar(value)) }
}

extension TreeEncoder {
  func encode(_ value: Int128) throws { try put(.scalar(value)) }
  func encode(_ value: UInt128) throws { try put(.scalar(value)) }
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
    case .null, .optional(_, nil): bytes.append(WireKind.null.rawValue)
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
      bytes.append(WireKind.map.rawValue)
      bytes.append(littleEndian: UInt32(0))
    }
  }

  private mutating func writeList(_ elements: [Tree], depth: Int) throws {
    bytes.append(WireKind.list.rawValue)
    bytes.append(WireKind.tagged.rawValue)
    bytes.append(littleEndian: UInt32(clamping: elements.count))
    for element in elements { try writeTagged(element, depth: depth + 1) }
  }

  private mutating func writeMap(_ container: TreeContainer, depth: Int) throws {
    bytes.append(WireKind.map.rawValue)
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
    bytes.append(WireKind.object.rawValue)
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
      case .optional(let kind, _): kind.rawValue | WireKind.optionalBit
      case .null, .scalars, .container: WireKind.tagged.rawValue
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
