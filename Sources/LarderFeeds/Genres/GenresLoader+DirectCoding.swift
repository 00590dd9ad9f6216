// Generated from GenresLoader.swift by `swift package generate-direct-coding`. Do not edit.

public import Larder

extension Genre: DirectCoding {
  /// Reads the saved fields.
  public init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    name = try fields.read("name")
  }

  /// Writes the fields to be saved.
  public func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.write(name, as: "name")
  }
}
