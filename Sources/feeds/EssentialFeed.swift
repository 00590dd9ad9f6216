import ArgumentParser
import Foundation
import Larder
import LarderFeeds

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
