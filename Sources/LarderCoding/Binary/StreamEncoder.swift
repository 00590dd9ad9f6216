import Foundation
import LarderBytes

/// The encoder of one value in a ``Stream``.
struct StreamEncoder: Encoder {
  let stream: Stream
  let id: Int
  let level: Int

  /// Nobody knows the path but the tree.
  var codingPath: [any CodingKey] {
    stream.abandon()
    return []
  }

  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    let handle = stream.fields(ofValue: id, keyType: type)
    return KeyedEncodingContainer(StreamFields<Key>(stream: stream, handle: handle))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    StreamElements(stream: stream, handle: stream.elements(ofValue: id))
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension StreamEncoder: SingleValueEncodingContainer {
  private func begin() throws {
    guard stream.isUntouched(id) else {
      stream.abandon()
      throw StreamAbandoned()
    }
  }

  func encodeNil() throws {
    try begin()
    stream.bytes.append(Kind.null.rawValue)
  }

  func scalar<S: WireScalar>(_ value: S) throws {
    try begin()
    stream.scalar(value)
  }

  func encode<T: Encodable>(_ value: T) throws {
    try begin()
    try stream.encode(value)
  }
}

// MARK: - Keyed

struct StreamFields<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let stream: Stream
  let handle: Stream.Handle

  var codingPath: [any CodingKey] {
    stream.abandon()
    return []
  }

  @inline(__always)
  func scalar<S: WireScalar>(_ value: S, _ key: Key) throws {
    switch stream.field(of: handle, key.stringValue, S.kind.rawValue) {
    case .body: value.append(to: &stream.bytes)
    case .entry: stream.scalar(value)
    case .abandoned: throw StreamAbandoned()
    }
  }

  @inline(__always)
  func optional<S: WireScalar>(_ value: S?, _ key: Key) throws {
    let kind = S.kind.rawValue | Kind.optionalBit
    switch stream.field(of: handle, key.stringValue, kind, isAbsent: value == nil) {
    case .body:
      stream.bytes.append(value == nil ? 0 : 1)
      value?.append(to: &stream.bytes)
    case .entry: if let value { stream.scalar(value) }
    case .abandoned: throw StreamAbandoned()
    }
  }

  mutating func encodeNil(forKey key: Key) throws {
    guard stream.field(of: handle, key.stringValue, Kind.tagged.rawValue) != .abandoned else {
      throw StreamAbandoned()
    }
    stream.bytes.append(Kind.null.rawValue)
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
    guard stream.field(of: handle, key.stringValue, Kind.tagged.rawValue) != .abandoned else {
      throw StreamAbandoned()
    }
    try stream.encode(value)
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
    switch stream.field(of: handle, key.stringValue, kind, isAbsent: value == nil) {
    case .body: stream.bytes.append(value == nil ? 0 : 1)
    case .entry: break
    case .abandoned: throw StreamAbandoned()
    }
    if let value { try stream.encode(value) }
  }

  /// Begins a container in a field.
  private func nested(_ key: Key, keyType: Any.Type?) -> Stream.Handle {
    switch stream.field(of: handle, key.stringValue, Kind.tagged.rawValue) {
    case .abandoned: .dead
    case .body, .entry: stream.openNested(keyType: keyType)
    }
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    KeyedEncodingContainer(
      StreamFields<NestedKey>(stream: stream, handle: nested(key, keyType: type)))
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    StreamElements(stream: stream, handle: nested(key, keyType: nil))
  }

  mutating func superEncoder() -> any Encoder { stream.deadEncoder() }

  mutating func superEncoder(forKey key: Key) -> any Encoder { stream.deadEncoder() }
}

extension Stream {
  /// An encoder for what goes nowhere, as the stream is given up.
  fileprivate func deadEncoder() -> any Encoder {
    abandon()
    return StreamEncoder(stream: self, id: -2, level: 0)
  }
}

// MARK: - Unkeyed

struct StreamElements: UnkeyedEncodingContainer {
  let stream: Stream
  let handle: Stream.Handle

  var codingPath: [any CodingKey] {
    stream.abandon()
    return []
  }

  var count: Int { stream.count(of: handle) }

  private func begin() throws {
    guard stream.element(of: handle) else { throw StreamAbandoned() }
  }

  mutating func encodeNil() throws {
    try begin()
    stream.bytes.append(Kind.null.rawValue)
  }

  func scalar<S: WireScalar>(_ value: S) throws {
    try begin()
    stream.scalar(value)
  }

  mutating func encode<T: Encodable>(_ value: T) throws {
    try begin()
    try stream.encode(value)
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    let inner = stream.element(of: handle) ? stream.openNested(keyType: type) : .dead
    return KeyedEncodingContainer(StreamFields<NestedKey>(stream: stream, handle: inner))
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    let inner = stream.element(of: handle) ? stream.openNested(keyType: nil) : .dead
    return StreamElements(stream: stream, handle: inner)
  }

  mutating func superEncoder() -> any Encoder { stream.deadEncoder() }
}
