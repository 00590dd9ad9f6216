import Foundation
import LarderBytes

/// A type whose names of fields are data, and differ from each other.
protocol MapLike {
  /// Whether that is so: it depends on the type of the names.
  static var hasDistinctNames: Bool { get }
}

extension Dictionary: MapLike {
  static var hasDistinctNames: Bool { Key.self == String.self || Key.self == Int.self }
}

/// An array, which may be one of scalars of one kind.
protocol ScalarList {
  var count: Int { get }
  /// The kind of all elements; nil if they have none, or not all the same.
  var scalarKind: Kind? { get }
  /// Appends the bodies of all elements.
  ///
  /// Only for an array with a ``scalarKind``.
  func appendScalars(to bytes: inout ByteBuffer)
}

extension Array: ScalarList {
  var scalarKind: Kind? {
    if let kind = numberKind(of: Element.self) { return kind }
    guard let type = Element.self as? any WireScalar.Type else { return nil }
    guard Element.self == URL.self else { return type.kind }
    // URLs with a base are objects.
    return allSatisfy { ($0 as? URL)?.baseURL == nil } ? .url : nil
  }

  func appendScalars(to bytes: inout ByteBuffer) {
    if numberKind(of: Element.self) != nil {
      withUnsafeBytes { bytes.append($0) }
    } else if let strings = self as? [String] {
      for string in strings { bytes.append(text: string) }
    } else {
      for case let element as any WireScalar in self { element.append(to: &bytes) }
    }
  }
}

extension ByteBuffer {
  /// Appends the commonest lists, tagged; false for any other value.
  ///
  /// Each of them is known by its type alone: to ask for a conformance takes longer than to copy a
  /// thousand numbers.
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
  mutating func append(_ list: some ScalarList, of kind: Kind) {
    append(Kind.list.rawValue)
    append(kind.rawValue)
    append(littleEndian: UInt32(clamping: list.count))
    list.appendScalars(to: &self)
  }
}

/// `value` as the type that it is of, as the caller has compared.
func same<T, S>(_ value: T, _ type: S.Type = S.self) -> S {
  // Unsafe: the types are the same.
  unsafe unsafeBitCast(value, to: type)
}
