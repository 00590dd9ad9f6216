public import Larder

extension Genre: DirectCoding {
  /// Reads a genre's saved fields.
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
