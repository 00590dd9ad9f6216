import Foundation
import LarderBytes

/// How a stream writes the values of a type.
enum TypeForm {
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

/// The forms of the types that were last encoded; a dynamic cast takes as long as a small value.
struct TypeForms: ~Copyable {
  private struct Entry {
    var type = ObjectIdentifier(Never.self)
    var form = TypeForm.other
  }

  /// A power of two.
  private static let capacity = 64

  // Unsafe: `capacity` entries, freed in `deinit`.
  private let entries: UnsafeMutablePointer<Entry>

  init() {
    entries = .allocate(capacity: Self.capacity)
    entries.initialize(repeating: Entry(), count: Self.capacity)
  }

  deinit { entries.deallocate() }

  /// Forgets all forms.
  func removeAll() { entries.update(repeating: Entry(), count: Self.capacity) }

  @inline(__always)
  func form(of type: Any.Type, parts: (any StreamParts.Type)?) -> TypeForm {
    let id = ObjectIdentifier(type)
    // The addresses of types are multiples of 8.
    let bits = UInt(bitPattern: id) >> 3
    let entry = entries + Int((bits ^ (bits >> 6)) & UInt(Self.capacity - 1))
    if entry.pointee.type != id {
      entry.pointee = Entry(type: id, form: TypeForm(of: type, parts: parts))
    }
    return entry.pointee.form
  }
}
