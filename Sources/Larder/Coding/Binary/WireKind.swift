// A payload of the binary coder. Integers are fixed-width and little-endian.
//
//   offset  bytes  field
//   0       1      format version, always 1
//   1       4      n, the size of the value
//   5       n      the value, tagged: its type, followed by its body
//   5 + n   rest   the table of shapes: their number (1 byte); for each shape the number of its
//                  fields (varint); for each field its type, the length of its name (varint) and
//                  the name
//
//   type    one byte: a kind, with the top bit set for an optional; `object` is followed by the
//           number of its shape (1 byte), `list` by the type of its elements
//   body    depends on the kind, see below; an optional's body is preceded by a byte, 1 for present
//           or 0 for absent (then there is no body)
//
// This layout is on users' disks. Do not change a kind or a field: add a format version, and keep
// reading this one. Explained in Larder's Documentation.docc/StorageFormat.md.

/// The kind of a value, which determines how its body is encoded.
///
/// The raw values are on users' disks: never change or reuse one.
package enum WireKind: UInt8, Sendable, CaseIterable {
  /// No bytes.
  ///
  /// Only tagged values can be null.
  case null = 0
  /// 1 byte, 0 or 1.
  case bool = 1
  case int8 = 2
  case int16 = 3
  case int32 = 4
  case int64 = 5
  case int128 = 6
  case uint8 = 7
  case uint16 = 8
  case uint32 = 9
  case uint64 = 10
  case uint128 = 11
  /// The bits of a `Float`.
  case float = 12
  /// The bits of a `Double`.
  case double = 13
  /// The bits of a `Double`, seconds since 2001.
  case date = 14
  /// 16 bytes.
  case uuid = 15
  /// Length (varint) and UTF-8 bytes.
  case string = 16
  /// Length (varint) and bytes.
  case data = 17
  /// A URL without a base, as a string.
  case url = 18
  /// Number of elements (4 bytes) and their bodies.
  case list = 19
  /// Number of entries (4 bytes), and for each its name as a string and its value, tagged.
  case map = 20
  /// The bodies of the shape's fields, in the shape's order.
  case object = 21
  /// A type and a body of that type, which is neither tagged nor optional.
  case tagged = 22
}

extension WireKind {
  /// The bit that marks an optional in a type's byte.
  static let optionalBit: UInt8 = 0x80

  /// The size of a body in bytes; nil for kinds whose bodies vary in size.
  var width: Int? {
    switch self {
    case .null: 0
    case .bool, .int8, .uint8: 1
    case .int16, .uint16: 2
    case .int32, .uint32, .float: 4
    case .int64, .uint64, .double, .date: 8
    case .int128, .uint128, .uuid: 16
    case .string, .data, .url, .list, .map, .object, .tagged: nil
    }
  }
}

/// Larder's own coder, which encodes any `Codable` value so that it can be read without its type.
package enum Binary {
  static let version: UInt8 = 1
  /// The offset of the value's size.
  static let sizeOffset = 1
  /// The number of bytes before the value.
  static let headBytes = 5
  /// The largest nesting depth of lists, maps and objects.
  package static let maximumDepth = 128
  /// The largest number of nested `encode(to:)` calls.
  ///
  /// It exceeds ``maximumDepth``, because a value may encode another one in its own place.
  static let maximumNesting = 512
  /// The largest table of shapes, in bytes.
  package static let maximumTableBytes = 4096
  static let maximumShapes = 255
}

/// The error for bytes that cannot be read as the requested type.
package enum Fault: Error, CustomStringConvertible {
  /// The bytes violate a rule of the format.
  case malformed(StaticString)
  /// The value has another kind.
  case mismatch(found: WireKind)
  /// The value cannot be converted to the requested type, or the direct reader does not support
  /// the payload.
  case unsuitable(StaticString)

  /// The value is absent.
  static var missing: Fault { .unsuitable("it is absent") }

  package var description: String {
    switch self {
    case .malformed(let reason): "Malformed payload: \(reason)"
    case .mismatch(let kind): Self.mismatches[Int(kind.rawValue)]
    case .unsuitable(let reason): "Unsuitable: \(reason)"
    }
  }

  // Made once: a type may try one kind after another until a value fits.
  private static let mismatches = WireKind.allCases.map { "Found \($0)" }
}
