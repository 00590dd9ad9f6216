/// A type that reads and writes its own fields in the binary format, several times faster than
/// `Codable`.
///
/// ```swift
/// struct Song: Codable, Sendable {
///   var id: UUID
///   var title: String
///   var subtitle: String?
/// }
///
/// extension Song: DirectCoding {
///   init(from fields: inout FieldReader) throws {
///     id = try fields.read("id")
///     title = try fields.read("title")
///     subtitle = try fields.readIfPresent("subtitle")
///   }
///
///   func write(to fields: inout FieldWriter) {
///     fields.write(id, as: "id")
///     fields.write(title, as: "title")
///     fields.writeIfPresent(subtitle, as: "subtitle")
///   }
/// }
/// ```
///
/// `swift package generate-direct-coding` writes the extension: see <doc:GeneratingDirectCoding>.
///
/// A cache of such values, or of arrays of them, uses this conformance with ``Coder/binary``; there
/// is nothing to turn on. The payload has the same format as by the type's `Codable` conformance.
/// Each of the two reads what the other has written, so the conformance can be added or removed at
/// any time. The two must agree:
///
/// - The field names are the names of the coding keys. Each coding key is written exactly once.
/// - Every value writes the same fields in the same order. Optional fields are written with
///   ``FieldWriter/writeIfPresent(_:as:)-(String?,_)``, even if they are nil.
/// - `init(from:)` accepts the values that the `Codable` initialiser accepts. If it throws, the
///   value is decoded again through `Codable`; if that fails too, the `Codable` error is reported.
///
/// Such values are coded directly wherever they are: alone, within each other, in optionals,
/// arrays, sets and dictionaries with string keys, and in the fields of a type that is only
/// `Codable`. That type itself goes through `Codable`.
///
/// A value that breaks the second rule, or that has a `URL` with a base, is encoded through
/// `Codable` as a whole. So is one that leaves out a coding key: the first value of a type is
/// encoded both ways, and the fields are compared.
public protocol DirectCoding: Codable, Sendable {
  /// Creates a value from its fields.
  ///
  /// Fields may be read in any order, and unknown fields are skipped. Read a field that may be
  /// missing with ``FieldReader/readIfPresent(_:)-(StaticString)->String?``.
  init(from fields: inout FieldReader) throws

  /// Writes the fields of this value.
  func write(to fields: inout FieldWriter)
}
