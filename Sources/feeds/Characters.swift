import ArgumentParser
import Foundation
import Larder
import LarderFeeds

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
