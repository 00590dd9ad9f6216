import Foundation

/// How a stream writes the values of a type.
enum TypeForm: CodingForm {
  /// A URL without a base; one with a base encodes itself.
  case url
  case string
  /// Another scalar whose kind is the type of its field.
  case named(any WireScalar.Type)
  /// A scalar whose field is tagged.
  case scalar(any WireScalar.Type)
  case list(any StreamList.Type)
  /// A type whose values are written without `Codable`.
  case part(UnsafePointer<any StreamPart>)
  /// A type that encodes itself, as a map.
  case map
  /// A type that encodes itself.
  case other

  /// The type that gives its kind to a field; nil if the field is tagged.
  @inline(__always)
  var ofField: (any WireScalar.Type)? {
    if case .string = self { return String.self }
    return ofOptionalField
  }

  /// The type that gives its kind to an optional field; nil if the field is tagged.
  @inline(__always)
  var ofOptionalField: (any WireScalar.Type)? {
    switch self {
    case .url: URL.self
    case .named(let type): type
    default: nil
    }
  }

  /// Finds the form of a type; one that `parts` knows is written by its part.
  init(of type: Any.Type, parts: (any StreamParts.Type)?) {
    if let part = parts?.part(of: type) {
      self = .part(part)
    } else if type == URL.self {
      self = .url
    } else if type == String.self {
      self = .string
    } else if let scalar = type as? any WireScalar.Type {
      let isNamed = type == UUID.self || type == Date.self || type == Data.self
      self = isNamed ? .named(scalar) : .scalar(scalar)
    } else if let list = type as? any StreamList.Type {
      self = .list(list)
    } else {
      self = (type as? any MapLike.Type)?.hasDistinctNames == true ? .map : .other
    }
  }
}
