import Foundation

/// The songs that the media search finds.
extension Payloads {
  package static let songCount = 60

  package struct Song: Encodable, Sendable {
    package var wrapperType = "track"
    package var kind = "song"
    package var trackId: Int
    package var trackName: String
    package var artistName: String
    package var collectionName: String
    package var previewUrl: String?
    package var artworkUrl60: String?
    package var artworkUrl100: String?
    package var trackPrice = 0.99
    package var isStreamable = true
  }

  /// All songs, in the order in which the server sends them.
  package static let songs: [Song] = (1...songCount).map { number in
    let album = albums[number % albums.count]
    return Song(
      trackId: 90_000 + number, trackName: "\(things[number % things.count]) No. \(number)",
      artistName: artists[number % artists.count], collectionName: album,
      previewUrl: number % 7 == 0 ? nil : "https://audio.example.org/p/\(90_000 + number).m4a",
      artworkUrl60: number % 4 == 0 ? nil : "https://art.example.org/\(number)/60x60.jpg",
      artworkUrl100: number % 4 == 0 ? nil : "https://art.example.org/\(number)/100x100.jpg")
  }

  /// The songs whose names contain a term, ignoring case.
  package static func songs(for term: String) -> [Song] {
    songs.filter { song in
      [song.trackName, song.artistName, song.collectionName].contains {
        $0.lowercased().contains(term.lowercased())
      }
    }
  }

  /// The response to a form-encoded query; nil if it has no term.
  static func mediaJSON(query: String) throws -> Data? {
    struct Root: Encodable {
      var resultCount: Int
      var results: [Song]
    }
    let fields = query.split(separator: "&").map {
      $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    }
    guard let field = fields.first(where: { $0.first == "term" }), field.count == 2,
      let term = field[1].replacing("+", with: " ").removingPercentEncoding
    else { return nil }
    let found = songs(for: term)
    return try encode(Root(resultCount: found.count, results: found))
  }

  private static let things = ["Harbour Bell", "Sparrow", "Low Tide", "Rust & Rain", "Lamp+Moth"]
  private static let artists = ["The Lantern Keepers", "Mira Oduya", "AC/Quay", "Jos\u{E9} Umber"]
  private static let albums = ["Low Tide Songs", "Field Notes", "100% Weather"]
}
