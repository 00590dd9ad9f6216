import Foundation

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

  func put<S: WireScalar>(optional value: S?, _ key: Key) throws {
    try put(.optional(S.kind, value.map { .scalar($0) }), key)
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
