public import Larder

extension FeedItem: DirectCoding {
  /// Reads an item's saved fields.
  public init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    description = try fields.readIfPresent("description")
    location = try fields.readIfPresent("location")
    imageURL = try fields.read("imageURL")
  }

  /// Writes the fields to be saved.
  public func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.writeIfPresent(description, as: "description")
    fields.writeIfPresent(location, as: "location")
    fields.write(imageURL, as: "imageURL")
  }
}
