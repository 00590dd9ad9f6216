import Foundation

/// A type that encodes itself as a map if its keys have distinct names.
protocol MapLike {
  /// Whether the names of the keys are distinct, which depends on the key type.
  static var hasDistinctNames: Bool { get }
}

extension Dictionary: MapLike {
  static var hasDistinctNames: Bool { Key.self == String.self || Key.self == Int.self }
}

/// An array whose elements may all be scalars of one kind.
protocol ScalarList {
  var count: Int { get }
  /// The kind of all elements; nil if they are not scalars of one kind.
  var scalarKind: WireKind? { get }
  /// Appends the bodies of all elements.
  ///
  /// The array must have a ``scalarKind``.
  func appendScalars(to bytes: inout ByteBuffer)
}

extension Array: ScalarList {
  var scalarKind: WireKind? {
    if let kind = numberKind(of: Element.self) { return kind }
    guard let type = Element.self as? any WireScalar.Type else { return nil }
    guard Element.self == URL.self else { return type.kind }
    // A URL with a base is stored as an object.
    return allSatisfy { ($0 as? URL)?.baseURL == nil } ? .url : nil
  }

  func appendScalars(to bytes: inout ByteBuffer) {
    if numberKind(of: Element.self) != nil {
      withUnsafeBytes { bytes.append($0) }
    } else if Element.self == String.self {
      for string in same(self, [String].self) { bytes.append(text: string) }
    } else {
      for case let element as any WireScalar in self { element.append(to: &bytes) }
    }
  }
}

extension ByteBuffer {
  /// Appends `value`, tagged, if it is a list of a common type; false for any other value.
  ///
  /// Comparing types is fast, while a dynamic cast takes longer than copying a thousand numbers.
  @inline(__always)
  mutating func appendCommonList<T>(_ value: T) -> Bool {
    if T.self == [Int].self {
      append(same(value, [Int].self), of: .int64)
    } else if T.self == [Double].self {
      append(same(value, [Double].self), of: .double)
    } else if T.self == [String].self {
      append(same(value, [String].self), of: .string)
    } else {
      return false
    }
    return true
  }

  /// Appends a list of scalars of one kind, tagged.
  mutating func append(_ list: some ScalarList, of kind: WireKind) {
    append(WireKind.list.rawValue)
    append(kind.rawValue)
    append(littleEndian: UInt32(clamping: list.count))
    list.appendScalars(to: &self)
  }
}

/// Returns `value` as an `S`; the caller has checked that `S` is `T`.
func same<T, S>(_ value: T, _ type: S.Type = S.self) -> S {
  // Unsafe: the caller has checked that the types are equal.
  unsafe unsafeBitCast(value, to: type)
}

/// Returns `value`, of at most 16 bytes, as a `T`; the caller has checked that `S` is `T`.
///
/// Generic code moves the value, while it would copy and destroy it with ``same(_:_:)``.
@inline(__always)
func moved<S, T>(_ value: consuming S) -> T {
  precondition(MemoryLayout<S>.size <= MemoryLayout<UInt128>.size)
  var memory: UInt128 = 0
  store(value, at: &memory)
  return load(from: &memory)
}

@inline(__always)
private func store<S>(_ value: consuming S, at place: UnsafeMutableRawPointer) {
  // Unsafe: the caller has enough memory.
  unsafe place.initializeMemory(as: S.self, to: value)
}

@inline(__always)
private func load<T>(from place: UnsafeMutableRawPointer) -> T {
  // Unsafe: the caller has stored a value of the same type.
  unsafe place.assumingMemoryBound(to: T.self).move()
}
