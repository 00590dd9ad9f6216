// A payload of Larder's own coder. Integers are fixed-width and little-endian.
//
//   offset  bytes  field
//   0       1      format version, always 1
//   1       4      n, the size of the value
//   5       n      the value, tagged: its type, and then its body
//   5 + n   rest   the shapes: their number (1 byte), and each as the number of its fields (varint)
//                  and for every field its type, the length of its name (varint) and the name
//
//   type    one byte: a kind, and the top bit for an optional; behind `object` the number of its
//           shape (1 byte), behind `list` the type of its elements
//   body    by kind, below; an optional has a byte before it, 0 for absent (then no body), or 1
//
// This layout is on users' disks. Do not change a kind or a field: add a format version, and keep
// reading this one. Explained in Larder's Documentation.docc/StorageFormat.md.

/// What a body is.
///
/// These numbers are on users' disks: never change one, never use one again.
package enum Kind: UInt8, Sendable, CaseIterable {
  /// No bytes.
  ///
  /// Only of tagged values.
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
  /// Length (varint) and UTF-8.
  case string = 16
  /// Length (varint) and bytes.
  case data = 17
  /// A URL without a base, as a string.
  case url = 18
  /// Number of elements (4 bytes), and their bodies.
  case list = 19
  /// Number of entries (4 bytes), and for each its name as a string, and its value, tagged.
  case map = 20
  /// The bodies of the shape's fields, in their order.
  case object = 21
  /// A type, and a body of that type, which is neither tagged nor optional.
  case tagged = 22
}

extension Kind {
  static let optionalBit: UInt8 = 0x80

  /// How many bytes a body has, for the kinds where all have the same number.
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

/// Larder's own coder: any `Codable` value as bytes that can be read without its type.
package enum Binary {
  static let version: UInt8 = 1
  /// Where the size of the value is.
  static let sizeOffset = 1
  /// Bytes before the value.
  static let headBytes = 5
  /// How many lists, maps and objects can be within each other.
  package static let maximumDepth = 128
  /// How many values can be within each other while they are encoded.
  ///
  /// More than containers, as a value may write another one in its own place.
  static let maximumNesting = 512
  /// The largest table of shapes, in bytes.
  package static let maximumTableBytes = 4096
  static let maximumShapes = 255
}

/// Why bytes cannot be read as what was asked for.
package enum Fault: Error, CustomStringConvertible {
  /// The bytes break a rule of the format.
  case malformed(StaticString)
  /// There is a value of another kind.
  case mismatch(found: Kind)
  /// There is a value of the right kind that does not fit.
  case unfit(StaticString)

  /// There is no value.
  static var missing: Fault { .unfit("there is none") }

  package var description: String {
    switch self {
    case .malformed(let reason): "Malformed payload: \(reason)"
    case .mismatch(let kind): "Found \(kind)"
    case .unfit(let reason): "Unfit: \(reason)"
    }
  }
}
