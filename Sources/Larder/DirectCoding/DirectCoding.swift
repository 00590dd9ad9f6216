/// A type that hands its fields to the binary coder by itself, which is several times as fast as
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
/// A cache of such values or of arrays of them, with ``Coder/binary``, needs nothing else. The
/// payload is the same as that of the type's `Codable` conformance: what one has written, the other
/// reads, so a type may conform at any time, and stop to. For that the two have to agree:
///
/// - The names are those of the coding keys, all of them and each once.
/// - Every value writes the same fields in the same order, those that are nil with
///   ``FieldWriter/writeIfPresent(_:as:)-(String?,_)``.
/// - `init(from:)` accepts what the `Codable` one accepts: when it throws, that one is asked what
///   to make of the bytes, and its error is the one that is reported.
///
/// A value that does not go this way goes by `Codable`: one that breaks the second rule, or has a
/// `URL` with a base; and so does one within a value of a type that is only `Codable`.
public protocol DirectCoding: Codable, Sendable {
  /// Makes a value of its fields.
  ///
  /// A field that was removed, added or moved needs nothing here, as long as one that may be
  /// missing is read with ``FieldReader/readIfPresent(_:)-(StaticString)->String?``.
  init(from fields: inout FieldReader) throws

  /// Hands over the fields.
  func write(to fields: inout FieldWriter)
}
