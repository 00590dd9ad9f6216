import ArgumentParser
import Foundation
import Larder
import LarderFeeds

struct Genres: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show podcast genres, from the cache until they are seven days old.")

  @OptionGroup var options: FeedOptions

  @Option(help: "The server's URL; the list is at api/v2/genres below it.", transform: webURL)
  var server: URL

  @Option(help: "The colours of the genres, in turn: six hexadecimal digits each.")
  var palette: [String] = ["#3366CC", "#DC3912", "#FF9900", "#109618", "#990099"]

  func validate() throws {
    do {
      _ = try colors()
    } catch {
      throw ValidationError("\(error)")
    }
  }

  func run() async throws {
    let palette = try colors()
    try await options.run { client, store in
      try .genres(from: server, client: client, store: store)
    } line: { position, genre in
      "\(try palette.color(at: position))  \(genre.id)  \(genre.name)"
    }
  }

  private func colors() throws -> Palette<String> {
    var palette = Palette { $0.uppercased() }
    try palette.setColors(self.palette)
    return palette
  }
}

struct EssentialFeed: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "feed",
    abstract: "Show a feed from the server, or the last saved one of any age if it fails.")

  @OptionGroup var options: FeedOptions

  @Option(help: "The server's URL; the feed is at v1/feed below it.", transform: webURL)
  var server: URL

  func run() async throws {
    try await options.run { client, store in
      try .essentialFeed(at: server.appending(path: "v1/feed"), client: client, store: store)
    } line: { _, item in
      words(item.description, item.location, item.imageURL)
    }
  }
}

/// An image's URL with its description and location, if any, as one line.
func words(_ description: String?, _ location: String?, _ url: URL) -> String {
  let said = [description, location].compactMap { $0 }.filter { !$0.isEmpty }
  return "\(url.absoluteString)  \(said.isEmpty ? "(no words)" : said.joined(separator: "; "))"
}

struct Search: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Search a server for songs and other media by a term.",
    discussion: """
      Nothing is saved. Items of any kind are shown if they have a track, an artist and a \
      collection. Items other than songs without these names are left out and counted. To find \
      songs only, add --parameter media=music --parameter entity=song.
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var list: ListOptions

  @Option(help: "The server's URL; the search is at search?term=TERM below it.", transform: webURL)
  var server: URL = MediaSearchLoader.iTunes

  @Option(help: "Another field of the query, as NAME=VALUE. Can be repeated.")
  var parameter: [Parameter] = []

  @Argument(help: "The term to search for.")
  var term: String

  func run() async throws {
    let loader = MediaSearchLoader.mediaSearch(
      from: server, parameters: parameter.map { ($0.name, $0.value) }, client: connection.client)
    let term = term
    let loaded = try await load(in: .nowhere) { try await loader.load(term) }
    try list.report(loaded, in: .nowhere) { _, item in
      "\(item.trackName) - \(item.artistName), \(item.collectionName)"
    }
  }
}

/// A field of a search's query, written as `NAME=VALUE`.
struct Parameter: ExpressibleByArgument {
  var name: String
  var value: String

  init?(argument: String) {
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty else { return nil }
    (name, value) = (String(parts[0]), String(parts[1]))
  }
}

struct Characters: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show random characters from the server, or the last saved ones if it fails.")

  @OptionGroup var options: FeedOptions

  @Option(
    help: "The server's URL; the pages are at api/character?page=1 to 42 below it.",
    transform: webURL)
  var server: URL = CharactersLoader.rickAndMorty

  @Option(help: "The page to load; a random page by default.")
  var page: Int?

  func run() async throws {
    try await options.run { client, store in
      try .characters(
        from: server, randomPage: { page ?? .random(in: $0) }, client: client, store: store)
    } line: { _, character in
      """
      \(character.id)  \(character.name): \(character.status), \(character.species), \
      from \(character.origin)
      """
    }
  }
}

struct Images: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show a list of images from the server, or the last saved one if it fails.")

  @OptionGroup var options: FeedOptions

  @Option(help: "The server's URL; the list is at v1/images below it.", transform: webURL)
  var server: URL

  func run() async throws {
    try await options.run { client, store in
      try .imageFeed(at: server.appending(path: "v1/images"), client: client, store: store)
    } line: { _, image in
      words(image.description, image.location, image.url)
    }
  }
}

struct Image: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write the bytes of an image, from the cache or else from the server.",
    discussion: """
      The source of the bytes is reported on standard error, or on standard output if --output is \
      given. Saved images are used at any age.
      """)

  @OptionGroup var cache: CacheOptions
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var policy: PolicyOptions

  @Option(name: [.short, .long], help: "The file to write to, instead of standard output.")
  var output: String?

  @Argument(help: "The image's URL.", transform: webURL)
  var url: URL

  func validate() throws {
    guard output != nil || isatty(STDOUT_FILENO) == 0 else {
      throw ValidationError(
        "An image is not printed to a terminal. Name a file with --output, or redirect the output.")
    }
  }

  func run() async throws {
    let client = policy.reporting(connection.client)
    let (loader, place) = try cache.loader { store in
      policy.applied(to: try ImageDataLoader.imageData(client: client, store: store))
    }
    let (url, maxAge) = (url, cache.maxAge)
    policy.report(loader.cache, url, maxAge)
    let loaded = try await load(in: place) { try await loader.load(url, maxAge: maxAge) }
    let count = loaded.value.count
    let summary = "\(count) byte\(count == 1 ? "" : "s"), \(provenance(of: loaded, in: place))"
    do {
      if let output {
        try loaded.value.write(to: URL(filePath: output), options: .atomic)
        print(summary)
      } else {
        try FileHandle.standardOutput.write(contentsOf: loaded.value)
        complain(summary)
      }
    } catch {
      let place = output ?? "standard output"
      complain("\(place) could not be written: \(error.localizedDescription)")
      throw ExitCode(5)
    }
    warn(about: loaded, "the image")
  }
}

struct Validate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Delete expired and unreadable values of all feeds from a store.")

  @OptionGroup var cache: CacheOptions

  func run() async throws {
    let client = ConnectionOptions.offlineClient
    let nowhere = URL(filePath: "/")
    do {
      let store = try cache.open()
      try validate("genres", GenresLoader.genres(from: nowhere, client: client, store: store))
      try validate("characters", CharactersLoader.characters(client: client, store: store))
      try validate(
        "essential-feed",
        EssentialFeedLoader.essentialFeed(at: nowhere, client: client, store: store))
      try validate(
        "image-feed", ImageFeedLoader.imageFeed(at: nowhere, client: client, store: store))
      try validate("image-data", ImageDataLoader.imageData(client: client, store: store))
      try store.close()
    } catch {
      complain("The store at \(cache.store) could not be validated: \(error)")
      throw ExitCode(4)
    }
  }

  private func validate<Input, Key, Value>(
    _ name: String, _ loader: Loader<Input, Key, Value>
  ) throws {
    guard let report = try loader.validate(maxAge: cache.maxAge) else { return }
    let kept = report.kept + report.newer
    print("\(name): \(report.expired + report.unreadable) deleted, \(kept) kept")
  }
}
