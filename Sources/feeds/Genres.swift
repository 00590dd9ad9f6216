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
