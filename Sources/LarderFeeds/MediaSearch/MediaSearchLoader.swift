public import Foundation
public import Larder

/// A song, a film or another item of the iTunes catalogue.
public struct MediaItem: Codable, Hashable, Sendable {
  /// The item's name.
  public var trackName: String
  /// Who made it.
  public var artistName: String
  /// The album or the series it belongs to.
  public var collectionName: String
  /// Where its picture of 100 by 100 points is, as the server wrote it.
  public var artworkUrl100: String?
  /// Where its picture of 60 by 60 points is, as the server wrote it.
  public var artworkUrl60: String?
  /// Where a part of it can be heard or seen, as the server wrote it.
  public var previewURL: String?

  /// Makes an item.
  ///
  /// It has no pictures and no preview by default.
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

/// Finds media items by a term: from the server, each time.
public typealias MediaSearchLoader = Loader<String, String, [MediaItem]>

extension Loader where Input == String, Key == String, Value == [MediaItem] {
  /// A loader for what a server finds at `search?term=TERM`.
  ///
  /// Nothing is saved: without a connection there is nothing to show. A load takes the term as it
  /// is, an empty one too, and delivers the items in the server's order.
  ///
  /// A search finds media of all kinds. Every item that has the three names is delivered. Items of
  /// other kinds often lack one: an incomplete item is left out, and counted in
  /// ``Loaded/leftOut``, if the server declares another `wrapperType` than `track` for it, or
  /// another `kind` than `song`. An incomplete song is invalid data.
  ///
  /// - Parameters:
  ///   - base: The server's URL; a port and a path are kept. `https://itunes.apple.com` by default.
  ///   - parameters: What the server is told besides the term, in this order: for example
  ///     `[("media", "music"), ("entity", "song")]`. Nothing by default.
  ///   - client: What sends the requests.
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

  /// The public server of the iTunes catalogue.
  public static var iTunes: URL {
    guard let url = URL(string: "https://itunes.apple.com") else {
      preconditionFailure("a literal URL that does not parse")
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
  /// What the server says about the kind of an item.
  struct Declaration: Decodable {
    var wrapperType: String?
    var kind: String?
    /// True unless the server says otherwise.
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
