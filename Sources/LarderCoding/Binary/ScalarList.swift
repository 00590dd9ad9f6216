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
