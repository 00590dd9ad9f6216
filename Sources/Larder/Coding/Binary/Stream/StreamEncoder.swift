import Foundation

/// The encoder of a value in a stream, or a super encoder.
struct StreamEncoder: Encoder {
  let link: StreamLink

  /// Abandons the stream: only the tree keeps track of the path.
  var codingPath: [any CodingKey] {
    link.abandon()
    return []
  }

  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    guard let value = link.target else { return .refusing }
    return value.writer.fields(ofValue: value)
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    guard let value = link.target else { return StreamElements.refusing }
    return value.writer.elements(ofValue: value)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension StreamEncoder: SingleValueEncodingContainer {
  /// Returns the writer; throws if the value has written something already.
  @inline(__always)
  private func begin() throws -> StreamWriter {
    guard let value = link.target else { throw StreamAbandoned() }
    guard value.writer.isUntouched(value.id) || value.writer.endPlaceholder(of: value) else {
      value.writer.abandon()
      throw StreamAbandoned()
    }
    return value.writer
  }

  func encodeNil() throws { try begin().null() }

  func scalar<S: WireScalar>(_ value: S) throws { try begin().scalar(value) }

  func encode<T: Encodable>(_ value: T) throws { try begin().encode(value) }
}

// MARK: - Keyed

struct StreamFields<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let link: StreamLink

  var codingPath: [any CodingKey] {
    link.abandon()
    return []
  }

  @inline(__always)
  private func frame() throws -> StreamLink.Target {
    guard let frame = link.target else { throw StreamAbandoned() }
    return frame
  }

  @inline(__always)
  func scalar<S: WireScalar>(_ value: S, _ key: Key) throws {
    let frame = try self.frame()
    if try frame.beginField(key.stringValue, S.kind.rawValue) == .entry {
      return frame.writer.scalar(value)
    }
    value.append(to: &frame.writer.state.pointee.bytes)
  }

  @inline(__always)
  func optional<S: WireScalar>(_ value: S?, _ key: Key) throws {
    let frame = try self.frame()
    let field = try frame.beginField(
      key.stringValue, S.kind.rawValue | WireKind.optionalBit, isAbsent: value == nil)
    if field == .entry {
      if let value { frame.writer.scalar(value) }
      return
    }
    frame.writer.state.pointee.bytes.append(value == nil ? 0 : 1)
    value?.append(to: &frame.writer.state.pointee.bytes)
  }

  mutating func encodeNil(forKey key: Key) throws {
    let frame = try self.frame()
    _ = try frame.beginField(key.stringValue, WireKind.tagged.rawValue)
    frame.writer.null()
  }

  mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    let frame = try self.frame()
    let form = frame.writer.form(of: value)
    guard let scalar = form.ofField else {
      _ = try frame.beginField(key.stringValue, WireKind.tagged.rawValue)
      return try frame.writer.encode(value, form)
    }
    if try frame.beginField(key.stringValue, scalar.kind.rawValue) == .entry {
      return try frame.writer.encode(value, form)
    }
    frame.writer.body(value, as: scalar)
  }

  mutating func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
    let frame = try self.frame()
    let isAbsent = value == nil
    let form = isAbsent ? frame.writer.form(of: T.self) : frame.writer.form(ofPresent: value)
    let scalar = form.ofOptionalField
    let kind = (scalar?.kind ?? .tagged).rawValue | WireKind.optionalBit
    let field = try frame.beginField(key.stringValue, kind, isAbsent: isAbsent)
    if field == .body { frame.writer.state.pointee.bytes.append(isAbsent ? 0 : 1) }
    if isAbsent { return }
    if let scalar, field == .body { return frame.writer.body(value, as: scalar) }
    try withUnsafePointer(to: value) { optional in
      // Unsafe: a value that is present is at the start of its optional.
      try frame.writer.encode(
        at: unsafe UnsafeRawPointer(optional).assumingMemoryBound(to: T.self), form)
    }
  }

  /// Begins a container or a super encoder in a field.
  private func nested(_ name: String) -> StreamWriter? {
    guard let frame = link.target,
      frame.writer.beginField(of: frame, name, WireKind.tagged.rawValue) != .abandoned
    else { return nil }
    return frame.writer
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> { nested(key.stringValue)?.nestedFields() ?? .refusing }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    nested(key.stringValue)?.nestedElements() ?? .refusing
  }

  mutating func superEncoder() -> any Encoder { nested("super")?.superEncoder() ?? .refusing }

  mutating func superEncoder(forKey key: Key) -> any Encoder {
    nested(key.stringValue)?.superEncoder() ?? .refusing
  }
}

// MARK: - Unkeyed

struct StreamElements: UnkeyedEncodingContainer {
  let link: StreamLink

  var codingPath: [any CodingKey] {
    link.abandon()
    return []
  }

  var count: Int {
    guard let list = link.target else { return 0 }
    return list.writer.count(of: list)
  }

  /// Begins an element, and returns the writer; nil if the stream is abandoned.
  @inline(__always)
  private func element() -> StreamWriter? {
    guard let list = link.target, list.writer.beginElement(of: list) else { return nil }
    return list.writer
  }

  @inline(__always)
  private func begin() throws -> StreamWriter {
    guard let writer = element() else { throw StreamAbandoned() }
    return writer
  }

  mutating func encodeNil() throws { try begin().null() }

  func scalar<S: WireScalar>(_ value: S) throws { try begin().scalar(value) }

  mutating func encode<T: Encodable>(_ value: T) throws { try begin().encode(value) }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> { element()?.nestedFields() ?? .refusing }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    element()?.nestedElements() ?? .refusing
  }

  mutating func superEncoder() -> any Encoder { element()?.superEncoder() ?? .refusing }
}

// MARK: - Without a stream

extension KeyedEncodingContainer {
  /// A container that refuses everything.
  static var refusing: KeyedEncodingContainer {
    KeyedEncodingContainer(StreamFields<Key>(link: StreamLink()))
  }
}

extension Encoder where Self == StreamEncoder {
  /// An encoder that refuses everything.
  fileprivate static var refusing: StreamEncoder { StreamEncoder(link: StreamLink()) }
}

extension StreamElements {
  /// A container that refuses everything.
  static var refusing: StreamElements { StreamElements(link: StreamLink()) }
}

extension StreamLink.Target {
  /// Begins a field; throws if the stream is abandoned.
  @inline(__always)
  fileprivate func beginField(
    _ name: String, _ kind: UInt8, isAbsent: Bool = false
  ) throws -> StreamWriter.Field {
    let field = writer.beginField(of: self, name, kind, isAbsent: isAbsent)
    guard field != .abandoned else { throw StreamAbandoned() }
    return field
  }
}

extension StreamLink {
  fileprivate func abandon() { target?.writer.abandon() }
}
