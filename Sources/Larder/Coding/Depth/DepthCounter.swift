import Foundation

/// Finds what a Foundation encoder does not refuse, while the type of a value encodes itself.
///
/// Foundation's encoders recurse without a limit, and crash when the stack is used up. And the JSON
/// encoder writes `Decimal.nan` as `NaN`, which is not JSON. A value therefore passes through this
/// encoder first, which measures how deep lists and objects are nested, and writes nothing.
final class DepthCounter {
  private enum Fault {
    case tooDeep, notANumber
  }

  /// Why the value is refused; nil if it is not, so far.
  @exclusivity(unchecked) private var fault: Fault?
  private let allowsNaN: Bool
  @exclusivity(unchecked) private var nesting = 0
  /// The last type that was not a scalar; values of one type often follow each other.
  @exclusivity(unchecked) private var lastType = ObjectIdentifier(Never.self)
  /// Containers for objects, kept for reuse.
  @exclusivity(unchecked) private var kept: [Kept] = []
  /// The number of containers made for objects.
  @exclusivity(unchecked) private var made = 0

  private typealias Kept = (keys: ObjectIdentifier, depth: Int, fields: AnyObject)

  private init(allowsNaN: Bool) { self.allowsNaN = allowsNaN }

  /// Checks the nesting of a value, and its decimal numbers.
  ///
  /// The check stops at the first fault: no deeper value is asked to encode itself.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - allowsNaN: Whether its format has a `Decimal` that is not a number.
  /// - Throws: An `EncodingError` if lists and objects are nested more than 128 deep, or for such a
  ///   `Decimal`.
  /// - Complexity: O(n) in the values; the commonest lists of scalars count as one value.
  static func check<T: Encodable>(_ value: T, allowsNaN: Bool) throws {
    let counter = DepthCounter(allowsNaN: allowsNaN)
    // The containers hold the counter: break the reference cycle.
    defer { counter.kept = [] }
    do {
      try counter.checkNumber(value)
      try value.encode(to: DepthEncoder(counter: counter, depth: 0))
    } catch {
      // An error of the type's own is thrown again by the encoder that follows.
    }
    try counter.checkFault()
  }

  /// Throws if the value is refused.
  @inline(__always)
  fileprivate func checkFault() throws {
    if let fault { throw error(for: fault) }
  }

  private func error(for fault: Fault) -> EncodingError {
    switch fault {
    case .tooDeep: tooDeep([])
    case .notANumber:
      .invalidValue(
        Decimal.nan,
        EncodingError.Context(
          codingPath: [], debugDescription: "JSON has no Decimal that is not a number"))
    }
  }

  private func checkNumber<T>(_ value: T) throws {
    guard T.self == Decimal.self, !allowsNaN, (value as? Decimal)?.isNaN == true else { return }
    fault = .notANumber
    try checkFault()
  }

  /// Measures a value with `depth` lists and objects around it.
  @inline(__always)
  fileprivate func count<T: Encodable>(_ value: T, within depth: Int) throws {
    try checkFault()
    if T.self == String.self || T.self == Int.self || T.self == Double.self || T.self == Bool.self {
      return
    }
    if lastType != ObjectIdentifier(T.self) {
      if isScalar(T.self) { return try checkNumber(value) }
      if T.self == [Int].self || T.self == [Double].self || T.self == [String].self {
        begin(depth + 1)
        return try checkFault()
      }
      lastType = ObjectIdentifier(T.self)
    }
    guard nesting < Binary.maximumNesting else {
      fault = .tooDeep
      return try checkFault()
    }
    nesting += 1
    try value.encode(to: DepthEncoder(counter: self, depth: depth))
    nesting -= 1
    try checkFault()
  }

  /// Begins a list or object at nesting level `depth`, counted from 1.
  fileprivate func begin(_ depth: Int) {
    if depth > Binary.maximumDepth { fault = .tooDeep }
  }

  /// Returns the container of an object with keys of one type at nesting level `depth`.
  ///
  /// Containers have no state, so such objects can share one. Making one looks up its generic type,
  /// which takes longer than counting the fields of most objects.
  @inline(__always)
  fileprivate func fields<Key: CodingKey>(at depth: Int) -> KeyedEncodingContainer<Key> {
    for index in kept.indices
    where kept[index].depth == depth && kept[index].keys == ObjectIdentifier(Key.self) {
      // Unsafe: the container was made for keys of this type.
      return unsafe unsafeDowncast(kept[index].fields, to: KeptFields<Key>.self).container()
    }
    return makeFields(at: depth)
  }

  @inline(never)
  private func makeFields<Key: CodingKey>(at depth: Int) -> KeyedEncodingContainer<Key> {
    begin(depth)
    made += 1
    let fields = KeyedEncodingContainer(DepthFields<Key>(counter: self, depth: depth))
    // Keeping a container takes as long as making one, so it pays only for many objects.
    if made > 8, kept.count < 16, fault == nil {
      kept.append((ObjectIdentifier(Key.self), depth, KeptFields(fields)))
    }
    return fields
  }

  /// Whether a type is a scalar.
  ///
  /// The list includes all types named in the container protocols, which encode themselves by
  /// handing themselves over again. Comparing types takes a fraction of the time of a dynamic cast.
  private func isScalar<T>(_ type: T.Type) -> Bool {
    T.self == URL.self || T.self == UUID.self || T.self == Date.self || T.self == Data.self
      || T.self == Float.self || T.self == Decimal.self || T.self == UInt8.self
      || T.self == Int64.self || T.self == UInt64.self || T.self == Int32.self
      || T.self == UInt32.self || T.self == UInt.self || T.self == Int16.self
      || T.self == UInt16.self || T.self == Int8.self || T.self == Int128.self
      || T.self == UInt128.self
  }
}

/// A kept container for objects, which is returned without a lookup of its generic type.
private final class KeptFields<Key: CodingKey> {
  // Unsafe: allocated in `init`. Reading a stored property would look up the container's type.
  private let storage: UnsafeMutablePointer<KeyedEncodingContainer<Key>>

  init(_ fields: KeyedEncodingContainer<Key>) {
    storage = .allocate(capacity: 1)
    storage.initialize(to: fields)
  }

  deinit {
    storage.deinitialize(count: 1)
    storage.deallocate()
  }

  @inline(never)
  func container() -> KeyedEncodingContainer<Key> { storage.pointee }
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

// In the types below, one generic function satisfies the protocols' requirements for single types.

extension DepthEncoder: SingleValueEncodingContainer {
  func encodeNil() throws { try counter.checkFault() }
  func encode(_ value: Int128) throws { try counter.checkFault() }
  func encode(_ value: UInt128) throws { try counter.checkFault() }
  func encode<T: Encodable>(_ value: T) throws { try counter.count(value, within: depth) }
}

private struct DepthFields<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let counter: DepthCounter
  let depth: Int

  var codingPath: [any CodingKey] { [] }

  func encodeNil(forKey key: Key) throws { try counter.checkFault() }
  func encode(_ value: Int128, forKey key: Key) throws { try counter.checkFault() }
  func encode(_ value: UInt128, forKey key: Key) throws { try counter.checkFault() }
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
    try counter.checkFault()
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
