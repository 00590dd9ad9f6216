public import Foundation
public import Larder

/// A song, a film or another item of the iTunes catalogue.
public struct MediaItem: Codable, Hashable, Sendable {
  /// The item's name.
  public var trackName: String
  /// The artist's name.
  public var artistName: String
  /// The name of the item's album or series.
  public var collectionName: String
  /// The URL of the picture of 100 by 100 points, as the server sent it.
  public var artworkUrl100: String?
  /// The URL of the picture of 60 by 60 points, as the server sent it.
  public var artworkUrl60: String?
  /// The URL of an audio or video preview, as the server sent it.
  public var previewURL: String?

  /// Makes an item, by default without pictures and a preview.
  public init(
    trackName: String, artistName: String, collectionName: String, artworkUrl100: String? = nil,
    artworkUrl60: String? = nil, previewURL: String? = nil
  ) {
    self.trackName = trackName
    self.artistName = artistName
    self.collectionName = collectionName
    self.artworkUrl100 = artworkUrl100
    self.artworkUrl60 = artworkUrl60
    self.previewURL = previewURL
  }
}

/// Searches a server for media items by a term.
public typealias MediaSearchLoader = Loader<String, String, [MediaItem]>

extension Loader where Input == String, Key == String, Value == [MediaItem] {
  /// Makes a loader for the items that a server finds at `search?term=TERM`.
  ///
  /// Nothing is saved, so a search needs a connection. A load sends the term unchanged, even an
  /// empty one, and delivers the items in the server's order.
  ///
  /// A search finds media of all kinds. Every item with all three names is delivered. An incomplete
  /// item is left out and counted in ``Loaded/leftOut`` if the server declares a `wrapperType`
  /// other than `track` for it, or a `kind` other than `song`. An incomplete song is invalid data.
  ///
  /// - Parameters:
  ///   - base: The server's URL, which may have a port and a path. `https://itunes.apple.com` by
  ///     default.
  ///   - parameters: The fields that follow the term in the query, in this order: for example
  ///     `[("media", "music"), ("entity", "song")]`. Empty by default.
  ///   - client: The client that sends the requests.
  /// - Returns: The loader.
  public static func mediaSearch(
    from base: URL = iTunes, parameters: [(name: String, value: String)] = [],
    client: any HTTPClient
  ) -> MediaSearchLoader {
    let search = base.appending(path: "search")
    return MediaSearchLoader(
      .json(
        RemoteMedia.self,
        at: { search.replacingQuery(with: [("term", $0)] + parameters) }, \.models,
        leftOut: \.leftOut),
      client: client, cache: nil, key: { $0 }, policy: LoadPolicy(.remoteOnly))
  }

  /// The URL of the public server of the iTunes catalogue.
  public static var iTunes: URL {
    guard let url = URL(string: "https://itunes.apple.com") else {
      preconditionFailure("the literal URL is invalid")
    }
    return url
  }
}

private struct RemoteMedia: Decodable {
  struct Item: Decodable {
    var trackName: String
    var artistName: String
    var collectionName: String
    var artworkUrl100: String?
    var artworkUrl60: String?
    var previewUrl: String?
    var model: MediaItem {
      MediaItem(
        trackName: trackName, artistName: artistName, collectionName: collectionName,
        artworkUrl100: artworkUrl100, artworkUrl60: artworkUrl60, previewURL: previewUrl)
    }
  }
  /// The kind of an item, as the server declares it.
  struct Declaration: Decodable {
    var wrapperType: String?
    var kind: String?
    /// True unless the server declares another kind.
    var isSong: Bool { (wrapperType ?? "track") == "track" && (kind ?? "song") == "song" }
  }
  struct Result: Decodable {
    /// Nil if the item is incomplete and not a song.
    var model: MediaItem?
    init(from decoder: any Decoder) throws {
      do {
        model = try Item(from: decoder).model
      } catch {
        if try Declaration(from: decoder).isSong { throw error }
      }
    }
  }
  var results: [Result]
  var models: [MediaItem] { results.compactMap(\.model) }
  var leftOut: Int { results.count { $0.model == nil } }
}
