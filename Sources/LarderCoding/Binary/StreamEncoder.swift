import Foundation
import LarderBytes

/// The encoder of one value in a ``StreamWriter``.
struct StreamEncoder: Encoder {
  let writer: StreamWriter
  let id: Int
  let level: Int

  /// Abandons the stream: only the tree keeps track of the path.
  var codingPath: [any CodingKey] {
    writer.abandon()
    return []
  }

  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    let handle = writer.fields(ofValue: id, keyType: type)
    return KeyedEncodingContainer(StreamFields<Key>(writer: writer, handle: handle))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    StreamElements(writer: writer, handle: writer.elements(ofValue: id))
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension StreamEncoder: SingleValueEncodingContainer {
  private func begin() throws {
    guard writer.isUntouched(id) else {
      writer.abandon()
      throw StreamAbandoned()
    }
  }

  func encodeNil() throws {
    try begin()
    writer.bytes.append(Kind.null.rawValue)
  }

  func scalar<S: WireScalar>(_ value: S) throws {
    try begin()
    writer.scalar(value)
  }

  func encode<T: Encodable>(_ value: T) throws {
    try begin()
    try writer.encode(value)
  }
}

// MARK: - Keyed

struct StreamFields<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let writer: StreamWriter
  let handle: StreamWriter.Handle

  var codingPath: [any CodingKey] {
    writer.abandon()
    return []
  }

  @inline(__always)
  func scalar<S: WireScalar>(_ value: S, _ key: Key) throws {
    switch writer.field(of: handle, key.stringValue, S.kind.rawValue) {
    case .body: value.append(to: &writer.bytes)
    case .entry: writer.scalar(value)
    case .abandoned: throw StreamAbandoned()
    }
  }

  @inline(__always)
  func optional<S: WireScalar>(_ value: S?, _ key: Key) throws {
    let kind = S.kind.rawValue | Kind.optionalBit
    switch writer.field(of: handle, key.stringValue, kind, isAbsent: value == nil) {
    case .body:
      writer.bytes.append(value == nil ? 0 : 1)
      value?.append(to: &writer.bytes)
    case .entry: if let value { writer.scalar(value) }
    case .abandoned: throw StreamAbandoned()
    }
  }

  mutating func encodeNil(forKey key: Key) throws {
    guard writer.field(of: handle, key.stringValue, Kind.tagged.rawValue) != .abandoned else {
      throw StreamAbandoned()
    }
    writer.bytes.append(Kind.null.rawValue)
  }

  mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    if T.self == URL.self {
      let url = same(value, URL.self)
      if url.baseURL == nil { return try scalar(url, key) }
    }
    if T.self == UUID.self { return try scalar(same(value, UUID.self), key) }
    if T.self == Date.self { return try scalar(same(value, Date.self), key) }
    if T.self == Data.self { return try scalar(same(value, Data.self), key) }
    if T.self == String.self { return try scalar(same(value, String.self), key) }
    guard writer.field(of: handle, key.stringValue, Kind.tagged.rawValue) != .abandoned else {
      throw StreamAbandoned()
    }
    try writer.encode(value)
  }

  mutating func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
    if T.self == URL.self {
      let url = same(value, URL?.self)
      if url?.baseURL == nil { return try optional(url, key) }
    }
    if T.self == UUID.self { return try optional(same(value, UUID?.self), key) }
    if T.self == Date.self { return try optional(same(value, Date?.self), key) }
    if T.self == Data.self { return try optional(same(value, Data?.self), key) }
    let kind = Kind.tagged.rawValue | Kind.optionalBit
    switch writer.field(of: handle, key.stringValue, kind, isAbsent: value == nil) {
    case .body: writer.bytes.append(value == nil ? 0 : 1)
    case .entry: break
    case .abandoned: throw StreamAbandoned()
    }
    if let value { try writer.encode(value) }
  }

  /// Begins a container in a field.
  private func nested(_ key: Key, keyType: Any.Type?) -> StreamWriter.Handle {
    switch writer.field(of: handle, key.stringValue, Kind.tagged.rawValue) {
    case .abandoned: .dead
    case .body, .entry: writer.openNested(keyType: keyType)
    }
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    KeyedEncodingContainer(
      StreamFields<NestedKey>(writer: writer, handle: nested(key, keyType: type)))
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    StreamElements(writer: writer, handle: nested(key, keyType: nil))
  }

  mutating func superEncoder() -> any Encoder { writer.deadEncoder() }

  mutating func superEncoder(forKey key: Key) -> any Encoder { writer.deadEncoder() }
}

extension StreamWriter {
  /// Abandons the stream, and returns an encoder with no value's number.
  fileprivate func deadEncoder() -> any Encoder {
    abandon()
    return StreamEncoder(writer: self, id: -1, level: 0)
  }
}

// MARK: - Unkeyed

struct StreamElements: UnkeyedEncodingContainer {
  let writer: StreamWriter
  let handle: StreamWriter.Handle

  var codingPath: [any CodingKey] {
    writer.abandon()
    return []
  }

  var count: Int { writer.count(of: handle) }

  private func begin() throws {
    guard writer.element(of: handle) else { throw StreamAbandoned() }
  }

  mutating func encodeNil() throws {
    try begin()
    writer.bytes.append(Kind.null.rawValue)
  }

  func scalar<S: WireScalar>(_ value: S) throws {
    try begin()
    writer.scalar(value)
  }

  mutating func encode<T: Encodable>(_ value: T) throws {
    try begin()
    try writer.encode(value)
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    let inner = writer.element(of: handle) ? writer.openNested(keyType: type) : .dead
    return KeyedEncodingContainer(StreamFields<NestedKey>(writer: writer, handle: inner))
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    let inner = writer.element(of: handle) ? writer.openNested(keyType: nil) : .dead
    return StreamElements(writer: writer, handle: inner)
  }

  mutating func superEncoder() -> any Encoder { writer.deadEncoder() }
}
