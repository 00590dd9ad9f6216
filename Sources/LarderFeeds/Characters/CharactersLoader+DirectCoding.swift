// Generated from CharactersLoader.swift by `swift package generate-direct-coding`. Do not edit.

public import Larder

extension CharacterItem: DirectCoding {
  /// Reads the saved fields.
  public init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    name = try fields.read("name")
    status = try fields.read("status")
    species = try fields.read("species")
    origin = try fields.read("origin")
    imageURL = try fields.read("imageURL")
  }

  /// Writes the fields to be saved.
  public func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.write(name, as: "name")
    fields.write(status, as: "status")
    fields.write(species, as: "species")
    fields.write(origin, as: "origin")
    fields.write(imageURL, as: "imageURL")
  }
}
