import Foundation

/// Counts how deep the lists and objects of a value are nested, as its type encodes itself.
///
/// Foundation's encoders have no limit: they recurse until the stack is used up, and the process
/// ends. So a value passes through this encoder first, which writes nothing.
final class DepthCounter {
  @exclusivity(unchecked) fileprivate private(set) var isTooDeep = false
  @exclusivity(unchecked) private var nesting = 0
  /// The last type that was no scalar: many values of one type follow each other.
  @exclusivity(unchecked) private var lastType = ObjectIdentifier(Never.self)
  /// Containers for objects that were made before.
  @exclusivity(unchecked) private var kept: [Kept] = []
  /// How many containers for objects were made.
  @exclusivity(unchecked) private var made = 0

  private typealias Kept = (keys: ObjectIdentifier, depth: Int, fields: AnyObject)

  /// Throws an `EncodingError` when the lists and objects of `value` are more than 128 deep within
  /// each other.
  ///
  /// It ends there: nothing that is deeper is asked to encode itself.
  ///
  /// - Complexity: O(n) in the values. The commonest lists of scalars count as one.
  static func check(_ value: some Encodable) throws {
    let counter = DepthCounter()
    // They hold the counter.
    defer { counter.kept = [] }
    do {
      try value.encode(to: DepthEncoder(counter: counter, depth: 0))
    } catch {
      // An error of the type's own: the encoder that follows meets it, too.
    }
    try counter.checkNotEnded()
  }

  /// Throws when the value has been found too deep.
  @inline(__always)
  fileprivate func checkNotEnded() throws {
    if isTooDeep { throw tooDeep([]) }
  }

  /// Counts a value that `depth` lists and objects are around.
  @inline(__always)
  fileprivate func count<T: Encodable>(_ value: T, within depth: Int) throws {
    try checkNotEnded()
    if T.self == String.self || T.self == Int.self || T.self == Double.self || T.self == Bool.self {
      return
    }
    if lastType != ObjectIdentifier(T.self) {
      if isScalar(T.self) { return }
      if T.self == [Int].self || T.self == [Double].self || T.self == [String].self {
        begin(depth + 1)
        return try checkNotEnded()
      }
      lastType = ObjectIdentifier(T.self)
    }
    guard nesting < Binary.maximumNesting else {
      isTooDeep = true
      return try checkNotEnded()
    }
    nesting += 1
    try value.encode(to: DepthEncoder(counter: self, depth: depth))
    nesting -= 1
    try checkNotEnded()
  }

  /// Begins a list or object; `depth` counts it and those around it.
  fileprivate func begin(_ depth: Int) {
    if depth > Binary.maximumDepth { isTooDeep = true }
  }

  /// The container of an object with keys of one type, `depth` levels deep.
  ///
  /// It has no state, so that all such objects have the same one. To make one takes longer than to
  /// count the fields of most objects: its type has to be looked up.
  @inline(__always)
  fileprivate func fields<Key: CodingKey>(at depth: Int) -> KeyedEncodingContainer<Key> {
    for index in kept.indices
    where kept[index].depth == depth && kept[index].keys == ObjectIdentifier(Key.self) {
      // Unsafe: it was made for keys of this type.
      return unsafe unsafeDowncast(kept[index].fields, to: KeptFields<Key>.self).container()
    }
    return makeFields(at: depth)
  }

  @inline(never)
  private func makeFields<Key: CodingKey>(at depth: Int) -> KeyedEncodingContainer<Key> {
    begin(depth)
    made += 1
    let fields = KeyedEncodingContainer(DepthFields<Key>(counter: self, depth: depth))
    // To keep one takes as long as to make another: a value with few objects has none kept.
    if made > 8, kept.count < 16, !isTooDeep {
      kept.append((ObjectIdentifier(Key.self), depth, KeptFields(fields)))
    }
    return fields
  }

  /// Whether values of a type are one scalar.
  ///
  /// All types are here that the protocols of containers name: those encode themselves by handing
  /// themselves over again. To compare types takes a fraction of asking for a conformance.
  private func isScalar<T>(_ type: T.Type) -> Bool {
    T.self == URL.self || T.self == UUID.self || T.self == Date.self || T.self == Data.self
      || T.self == Float.self || T.self == Decimal.self || T.self == UInt8.self
      || T.self == Int64.self || T.self == UInt64.self || T.self == Int32.self
      || T.self == UInt32.self || T.self == UInt.self || T.self == Int16.self
      || T.self == UInt16.self || T.self == Int8.self || T.self == Int128.self
      || T.self == UInt128.self
  }
}

/// A container for objects that is returned without a look-up of its type.
private final class KeptFields<Key: CodingKey> {
  // Unsafe: made once, in `init`. As a field of the class its type would be looked up.
  private let place: UnsafeMutablePointer<KeyedEncodingContainer<Key>>

  init(_ fields: KeyedEncodingContainer<Key>) {
    place = .allocate(capacity: 1)
    place.initialize(to: fields)
  }

  deinit {
    place.deinitialize(count: 1)
    place.deallocate()
  }

  @inline(never)
  func container() -> KeyedEncodingContainer<Key> { place.pointee }
}

/// The encoder of one value, with `depth` lists and objects around it.
private struct DepthEncoder: Encoder {
  let counter: DepthCounter
  let depth: Int

  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    counter.fields(at: depth + 1)
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer { DepthElements(counter, depth + 1) }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

// In the types below, one generic function stands for all that the protocols ask for by type.

extension DepthEncoder: SingleValueEncodingContainer {
  func encodeNil() throws { try counter.checkNotEnded() }
  func encode(_ value: Int128) throws { try counter.checkNotEnded() }
  func encode(_ value: UInt128) throws { try counter.checkNotEnded() }
  func encode<T: Encodable>(_ value: T) throws { try counter.count(value, within: depth) }
}

private struct DepthFields<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let counter: DepthCounter
  let depth: Int

  var codingPath: [any CodingKey] { [] }

  func encodeNil(forKey key: Key) throws { try counter.checkNotEnded() }
  func encode(_ value: Int128, forKey key: Key) throws { try counter.checkNotEnded() }
  func encode(_ value: UInt128, forKey key: Key) throws { try counter.checkNotEnded() }
  func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    try counter.count(value, within: depth)
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    counter.fields(at: depth + 1)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    DepthElements(counter, depth + 1)
  }

  func superEncoder() -> any Encoder { DepthEncoder(counter: counter, depth: depth) }
  func superEncoder(forKey key: Key) -> any Encoder { superEncoder() }
}

private struct DepthElements: UnkeyedEncodingContainer {
  let counter: DepthCounter
  let depth: Int
  private(set) var count = 0

  init(_ counter: DepthCounter, _ depth: Int) {
    (self.counter, self.depth) = (counter, depth)
    counter.begin(depth)
  }

  var codingPath: [any CodingKey] { [] }

  private mutating func add() throws {
    count += 1
    try counter.checkNotEnded()
  }

  mutating func encodeNil() throws { try add() }
  mutating func encode(_ value: Int128) throws { try add() }
  mutating func encode(_ value: UInt128) throws { try add() }
  mutating func encode<T: Encodable>(_ value: T) throws {
    count += 1
    try counter.count(value, within: depth)
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    count += 1
    return counter.fields(at: depth + 1)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    count += 1
    return DepthElements(counter, depth + 1)
  }

  mutating func superEncoder() -> any Encoder {
    count += 1
    return DepthEncoder(counter: counter, depth: depth)
  }
}
