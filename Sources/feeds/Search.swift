import ArgumentParser
import Foundation
import LarderFeeds

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
