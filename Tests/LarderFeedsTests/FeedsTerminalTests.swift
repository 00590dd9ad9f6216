import FeedServer
import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import Testing

/// A server's text cannot control the terminal of `feeds`.
@Suite(.timeLimit(.minutes(30))) struct FeedsTerminalTests {
  /// It clears the screen, rings, goes back to the line's start, reverses the text, and forges a
  /// line of the program's own.
  private static let hostile = "\u{1B}[2J\u{7}\r\u{0}\u{9B}\u{202E}\u{2028}\n120 in all, saved\n"

  @Test(
    "Control characters, forged lines and direction marks are escaped.",
    arguments: [
      ("genres", FeedServer.genresPath), ("characters", FeedServer.charactersPath),
      ("feed", FeedServer.feedPath), ("images", FeedServer.imagesPath),
      ("search", FeedServer.searchPath),
    ])
  func escaped(command: String, path: String) async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let store = command == "search" ? ["a"] : ["--store", directory.path("store")]
      let page = command == "characters" ? ["--page", "1"] : []
      let query = path == FeedServer.searchPath ? "?term=a" : "?page=1"
      let url = try #require(URL(string: server.url.absoluteString + path + query))
      let harmless = try await URLSessionClient.patient.get(url).body
      let body = try JSONSerialization.data(
        withJSONObject: Self.spoiled(try JSONSerialization.jsonObject(with: harmless)))
      server.answer(path, with: [.reply(status: 200, body: body)])

      let outcome = try await feeds([command, "--server", "\(server.url)"] + store + page)

      #expect(outcome.status == 0)
      #expect(outcome.output.split(separator: "\n").count == 12)
      #expect(outcome.output.unicodeScalars.allSatisfy { $0 == "\n" || $0.isSafeOnTerminal })
      let escaped = "\\u001b[2J\\u0007\\u000d\\u0000\\u009b\\u202e\\u2028\\u000a120 in all, saved"
      #expect(outcome.output.contains(escaped))
    }
  }

  @Test("A message that quotes the command line is escaped, too.")
  func complaints() async throws {
    let directory = try TemporaryDirectory()
    let store = directory.path("missing/\u{1B}[2J\nfeeds: forged")
    let outcome = try await feeds([
      "genres", "--server", "http://127.0.0.1:1", "--offline", "--store", store,
    ])

    #expect(outcome.status == 2)
    #expect(outcome.complaints.contains("\\u001b[2J\\u000afeeds: forged"))
    #expect(!outcome.complaints.contains("\u{1B}") && !outcome.complaints.contains("\nfeeds: f"))
  }

  /// The same document with hostile characters after every text that `feeds` shows.
  private static func spoiled(_ value: Any, under name: String = "") -> Any {
    let shown = [
      "name", "status", "species", "description", "location", "trackName", "artistName",
      "collectionName",
    ]
    return switch value {
    case let list as [Any]: list.map { spoiled($0) }
    case let object as [String: Any]:
      Dictionary(uniqueKeysWithValues: object.map { ($0, spoiled($1, under: $0)) })
    case let text as String where shown.contains(name): text + hostile
    default: value
    }
  }
}
