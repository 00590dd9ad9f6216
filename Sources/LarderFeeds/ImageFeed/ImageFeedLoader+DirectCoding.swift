// Generated from ImageFeedLoader.swift by `swift package generate-direct-coding`. Do not edit.

public import Larder

extension FeedImage: DirectCoding {
  /// Reads the saved fields.
  public init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    description = try fields.readIfPresent("description")
    location = try fields.readIfPresent("location")
    url = try fields.read("url")
  }

  /// Writes the fields to be saved.
  public func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.writeIfPresent(description, as: "description")
    fields.writeIfPresent(location, as: "location")
    fields.write(url, as: "url")
  }
}
