import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// A search returns media items from the server, and caches nothing.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct MediaSearchTests {
  private let payload = Feed.mediaSearch.payload(2, 1)

  @Test("Found items are delivered in the server's order, with all their fields.")
  func found() async throws {
    let loader = MediaSearchLoader.mediaSearch(client: ScriptedClient(.reply(200, payload)))

    let loaded = try await loader.load("jack johnson")

    #expect(loaded.value == [Feed.mediaItem(2), Feed.mediaItem(1)])
    #expect(loaded.origin == .loaded && loaded.savedAt == nil && !loaded.isSaved)
  }

  @Test("Without a connection there is an error.")
  func offline() async throws {
    let loader = MediaSearchLoader.mediaSearch(client: ScriptedClient())

    let error = await feedError { try await loader.load("a") }

    guard case .remote(let failure, cache: nil) = error, failure.kind == .connectivity else {
      return unexpected(error)
    }
  }

  @Test("Invalid data is an error.")
  func invalid() async throws {
    let loader = MediaSearchLoader.mediaSearch(client: ScriptedClient(last: .reply(200, "no")))

    let error = await feedError { try await loader.load("a") }

    guard case .remote(let failure, cache: nil) = error, failure.kind == .invalidData else {
      return unexpected(error)
    }
  }

  @Test(
    "Nothing is saved or read from a cache, in any source order.",
    arguments: [SourceOrder.remoteOnly, .cacheOnly, .remoteThenCache, .cacheThenRemote])
  func neverCached(order: SourceOrder) async throws {
    let client = ScriptedClient(.reply(200, payload))
    var loader = MediaSearchLoader.mediaSearch(client: client)
    #expect(loader.cache == nil && loader.policy == LoadPolicy(.remoteOnly))
    _ = try await loader.load("a")

    loader.policy.order = order
    let error = await feedError { try await loader.load("a") }

    if order == .cacheOnly {
      guard case .notFound = error else { return unexpected(error) }
    } else {
      #expect(error?.reason == .connectivity)
    }
    #expect(try await loader.cached("a") == [])
    #expect(try loader.validate() == nil)
  }

  @Test("Six of all the fields of an item are kept.")
  func sixFields() async throws {
    let items = try await load(
      """
      {"wrapperType":"track","kind":"song","artistId":70011,"collectionId":80022,"trackId":90033,
      "artistName":"The Lantern Keepers","collectionName":"Low Tide Songs",
      "trackName":"Harbour Bell","collectionCensoredName":"x","trackCensoredName":"x",
      "artistViewUrl":"https://x","collectionViewUrl":"https://x","trackViewUrl":"https://x",
      "previewUrl":"https://audio.example.org/p/90033.m4a",
      "artworkUrl30":"https://art.example.org/30.jpg",
      "artworkUrl60":"https://art.example.org/60.jpg",
      "artworkUrl100":"https://art.example.org/100.jpg","collectionPrice":9.99,"trackPrice":0.99,
      "releaseDate":"2021-06-04T12:00:00Z","collectionExplicitness":"notExplicit",
      "trackExplicitness":"notExplicit","discCount":1,"discNumber":1,"trackCount":14,
      "trackNumber":1,"trackTimeMillis":201345,"country":"USA","currency":"USD",
      "primaryGenreName":"Rock","isStreamable":true}
      """)

    let expected = MediaItem(
      trackName: "Harbour Bell", artistName: "The Lantern Keepers",
      collectionName: "Low Tide Songs", artworkUrl100: "https://art.example.org/100.jpg",
      artworkUrl60: "https://art.example.org/60.jpg",
      previewURL: "https://audio.example.org/p/90033.m4a")
    #expect(items == [expected])
    #expect(items.first.map { Mirror(reflecting: $0).children.count } == 6)
  }

  @Test(
    "Artwork and preview may be missing, and are kept as they are written.",
    arguments: ["artworkUrl100", "artworkUrl60", "previewUrl"])
  func optionalFields(field: String) async throws {
    for value in [nil, NSNull(), "", "no URL at all", "https://host/1"] as [Any?] {
      let json = try item(Feed.mediaSearch.json(1), with: field, set: value)
      var expected = Feed.mediaItem(1)
      let kept = value as? String
      switch field {
      case "artworkUrl100": expected.artworkUrl100 = kept
      case "artworkUrl60": expected.artworkUrl60 = kept
      default: expected.previewURL = kept
      }

      #expect(try await load(json) == [expected], "\(kept ?? "nil")")
    }
  }

  @Test("The field of the preview is previewUrl, with exactly this case.")
  func previewKey() async throws {
    let names = #""trackName":"t","artistName":"a","collectionName":"c""#

    #expect(try await load("{\(names),\"previewUrl\":\"p\"}").first?.previewURL == "p")
    let other = try await load("{\(names),\"previewURL\":\"p\"}")
    #expect(other.count == 1 && other.first?.previewURL == nil)
  }

  @Test(
    "The list decides, not the count beside it.",
    arguments: ["", "\"resultCount\":0,", "\"resultCount\":\"many\",", "\"resultCount\":null,"])
  func resultCount(field: String) async throws {
    let loader = MediaSearchLoader.mediaSearch(
      client: ScriptedClient(
        .reply(200, "{\(field)\"results\":[\(Feed.mediaSearch.json(1))]}")))

    #expect(try await loader.load("a").value == [Feed.mediaItem(1)])
  }

  /// The kinds that a server can declare for an item.
  struct Declaration: Sendable, CustomTestStringConvertible {
    let wrapperType: String?
    let kind: String?

    var testDescription: String { "\(wrapperType ?? "nothing"), \(kind ?? "nothing")" }

    /// An item with this declaration, and with a field removed (nil) or replaced.
    func item(_ id: Int, with field: String? = nil, set value: Any? = nil) throws -> String {
      var json = Feed.mediaSearch.json(id)
      json = try LarderFeedsTests.item(json, with: "wrapperType", set: wrapperType)
      json = try LarderFeedsTests.item(json, with: "kind", set: kind)
      guard let field else { return json }
      return try LarderFeedsTests.item(json, with: field, set: value)
    }
  }

  static let songs = [
    Declaration(wrapperType: "track", kind: "song"), Declaration(wrapperType: "track", kind: nil),
    Declaration(wrapperType: nil, kind: "song"), Declaration(wrapperType: nil, kind: nil),
  ]

  static let others = [
    Declaration(wrapperType: "audiobook", kind: nil),
    Declaration(wrapperType: "track", kind: "feature-movie"),
    Declaration(wrapperType: "collection", kind: "song"),
    Declaration(wrapperType: nil, kind: "ebook"), Declaration(wrapperType: "Track", kind: nil),
    Declaration(wrapperType: "", kind: "song"),
  ]

  @Test("Complete items of all kinds are delivered.", arguments: songs + others)
  func completeItem(declaration: Declaration) async throws {
    let loaded = try await search(declaration.item(1), declaration.item(2))

    #expect(loaded.value == [Feed.mediaItem(1), Feed.mediaItem(2)] && loaded.leftOut == 0)
  }

  @Test(
    "An incomplete item that is not a song is left out and counted.", arguments: others,
    Feed.mediaSearch.required)
  func incompleteItem(declaration: Declaration, field: String) async throws {
    for value in [nil, NSNull(), ["wrong type"]] as [Any?] {
      let bad = try declaration.item(2, with: field, set: value)
      let loaded = try await search(bad, Feed.mediaSearch.json(1), bad, Feed.mediaSearch.json(3))

      #expect(loaded.value == [Feed.mediaItem(1), Feed.mediaItem(3)] && loaded.leftOut == 2)
    }
    let only = try await search(declaration.item(2, with: field, set: nil))
    #expect(only.value == [] && only.leftOut == 1)
  }

  @Test(
    "An incomplete song is invalid data, whatever else the response holds.", arguments: songs,
    Feed.mediaSearch.required)
  func incompleteSong(declaration: Declaration, field: String) async throws {
    let leftOut = try Self.others[0].item(1, with: field, set: nil)
    for value in [nil, NSNull(), ["wrong type"]] as [Any?] {
      let bad = try declaration.item(2, with: field, set: value)

      let error = await feedError { try await search(leftOut, Feed.mediaSearch.json(1), bad) }

      #expect(error?.reason == .invalidData)
    }
  }

  @Test(
    "An item that is not an object, or declares its kind with a wrong type, is invalid data.",
    arguments: ["7", "null", "[]", "{}", #"{"wrapperType":7}"#, #"{"kind":["ebook"]}"#])
  func noDeclaration(json: String) async throws {
    #expect(await feedError { try await search(json) }?.reason == .invalidData)
  }

  private func load(_ json: String) async throws -> [MediaItem] {
    try await search(json).value
  }

  private func search(_ items: String...) async throws -> Loaded<[MediaItem]> {
    let client = ScriptedClient(.reply(200, Feed.mediaSearch.payload(of: items)))
    return try await MediaSearchLoader.mediaSearch(client: client).load("a")
  }
}

/// The URL of a search carries its term without loss.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct MediaSearchURLTests {
  /// The URL that is requested for a term.
  private func url(
    for term: String, from base: URL = MediaSearchLoader.iTunes,
    _ parameters: [(name: String, value: String)] = []
  ) async throws -> String {
    let client = ScriptedClient()
    let loader = MediaSearchLoader.mediaSearch(from: base, parameters: parameters, client: client)
    _ = await feedError { try await loader.load(term) }
    return try #require(client.urls.first).absoluteString
  }

  @Test("A term gives the real server's URL.")
  func realURL() async throws {
    #expect(
      try await url(for: "jack johnson") == "https://itunes.apple.com/search?term=jack+johnson")
  }

  @Test("Every byte is kept, written as a plus, or escaped in upper case.")
  func everyByte() async throws {
    let kept = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*")
    for code in 0..<128 {
      let character = Character(Unicode.Scalar(UInt8(code)))
      let escaped = "%" + (code < 16 ? "0" : "") + String(code, radix: 16, uppercase: true)
      let expected = character == " " ? "+" : kept.contains(character) ? "\(character)" : escaped

      #expect(try await url(for: "\(character)").hasSuffix("/search?term=\(expected)"), "\(code)")
    }
  }

  @Test(
    "A term is encoded like a form field, unchanged.",
    arguments: [
      ("a+b", "a%2Bb"), ("Simon & Garfunkel", "Simon+%26+Garfunkel"), ("100%", "100%25"),
      ("beyonc\u{E9}", "beyonc%C3%A9"), ("beyonce\u{301}", "beyonce%CC%81"),
      ("AC/DC", "AC%2FDC"), ("what?", "what%3F"), ("#1", "%231"), ("x=y", "x%3Dy"),
      ("*NSYNC", "*NSYNC"), ("P!nk", "P%21nk"), ("rock'n'roll", "rock%27n%27roll"),
      ("~tilde", "%7Etilde"), ("(live)", "%28live%29"), ("a;b:c@d,e$f", "a%3Bb%3Ac%40d%2Ce%24f"),
      ("  a  b\n", "++a++b%0A"), ("", ""), ("\u{65E5}\u{672C}", "%E6%97%A5%E6%9C%AC"),
      ("\u{1F600}", "%F0%9F%98%80"), ("%41", "%2541"),
    ])
  func terms(term: String, encoded: String) async throws {
    #expect(try await url(for: term) == "https://itunes.apple.com/search?term=\(encoded)")
  }

  @Test("A server decodes every term to the original.", arguments: [1, 2, 3] as [UInt64])
  func decoded(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      let scalars = (0..<Int.random(in: 0...12, using: &random)).map { _ in
        Unicode.Scalar(UInt32.random(in: 0..<0x2_0000, using: &random)) ?? " "
      }
      let term = scalars.reduce(into: "") { $0.unicodeScalars.append($1) }

      let query = try await url(for: term).split(separator: "?term=", maxSplits: 1)

      let read = (query.count == 2 ? String(query[1]) : "")
        .replacing("+", with: " ").removingPercentEncoding
      #expect(read.map { Array($0.utf8) } == Array(term.utf8))
    }
  }

  @Test("Parameters follow the term in order, with the same encoding; there are none by default.")
  func parameters() async throws {
    let asked = try await url(
      for: "a b",
      [("media", "music"), ("entity", "song"), ("at tribution", "x&y=z"), ("limit", "10")])

    #expect(
      asked == "https://itunes.apple.com/search?term=a+b&media=music&entity=song"
        + "&at+tribution=x%26y%3Dz&limit=10")
  }

  @Test("Another server's port and path are kept.")
  func otherServer() async throws {
    let asked = try await url(for: "a", from: web("http://127.0.0.1:8080/x/"))

    #expect(asked == "http://127.0.0.1:8080/x/search?term=a")
  }
}
