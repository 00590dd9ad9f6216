// Generated from MediaSearchLoader.swift by `swift package generate-direct-coding`. Do not edit.

public import Larder

extension MediaItem: DirectCoding {
  /// Reads the saved fields.
  public init(from fields: inout FieldReader) throws {
    trackName = try fields.read("trackName")
    artistName = try fields.read("artistName")
    collectionName = try fields.read("collectionName")
    artworkUrl100 = try fields.readIfPresent("artworkUrl100")
    artworkUrl60 = try fields.readIfPresent("artworkUrl60")
    previewURL = try fields.readIfPresent("previewURL")
  }

  /// Writes the fields to be saved.
  public func write(to fields: inout FieldWriter) {
    fields.write(trackName, as: "trackName")
    fields.write(artistName, as: "artistName")
    fields.write(collectionName, as: "collectionName")
    fields.writeIfPresent(artworkUrl100, as: "artworkUrl100")
    fields.writeIfPresent(artworkUrl60, as: "artworkUrl60")
    fields.writeIfPresent(previewURL, as: "previewURL")
  }
}
