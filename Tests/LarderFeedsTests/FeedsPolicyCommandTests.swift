import FeedServer
import Foundation
import Larder
import LarderTestSupport
import Testing

/// The options of `feeds` that change a policy and report requests, and `feeds validate`.
@Suite(.timeLimit(.minutes(30))) struct FeedsPolicyCommandTests {
  @Test("With HTTP caching, a feed is fresh for the server's max-age, and then confirmed.")
  func httpCaching() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = [
        "feed", "--server", server.url.absoluteString, "--store", directory.path("store"),
        "--policy", "cache-first", "--policy", "http-caching", "--verbose",
      ]
      let now = { (time: String) in ["--now", "2026-01-01T\(time)Z"] }

      let first = try await feeds(command + now("12:00:00"))
      #expect(first.output.hasSuffix("from the server, saved\n"))
      let lines = first.complaints.split(separator: "\n")
      #expect(lines.first == "feeds: the entry in the cache essential-feed is missing")
      #expect(lines.contains("feeds: > GET \(server.url.absoluteString)/v1/feed"))
      #expect(lines.contains { $0.hasPrefix("feeds: < 200, ") && $0.contains("max-age=60") })

      let fresh = try await feeds(command + now("12:00:59"))
      #expect(fresh.output.hasSuffix("59 seconds ago\n"))
      #expect(fresh.complaints == "feeds: the entry in the cache essential-feed is fresh\n")

      let confirmed = try await feeds(command + now("12:01:00"))
      #expect(confirmed.output.hasSuffix("from the cache, confirmed by the server\n"))
      #expect(confirmed.complaints.contains("/v1/feed, If-None-Match: \""))
      #expect(confirmed.complaints.contains("feeds: < 304, 0 bytes"))
      #expect(server.count(FeedServer.feedPath) == 2)
    }
  }

  @Test("A stale value is shown only if the policy allows it, and is called stale.")
  func stale() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = [
        "feed", "--server", server.url.absoluteString, "--store", directory.path("store"),
      ]
      #expect(try await feeds(command).status == 0)
      let late = command + ["--offline", "--now", "+2h", "--max-age", "1h"]
      #expect(try await feeds(late).status == 2)
      let stale = try await feeds(late + ["--policy", "stale-on-failure", "-v"])
      #expect(stale.status == 0 && stale.output.contains("from the cache, stale, saved "))
      #expect(stale.complaints.contains("essential-feed is at the maximum age\n"))
      #expect(stale.complaints.contains("feeds: < no response: "))
      #expect(stale.complaints.contains("feeds: warning: The server could not be reached."))
    }
  }

  @Test("The order of the sources can be changed.")
  func order() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = [
        "genres", "--server", server.url.absoluteString, "--store", directory.path("store"),
        "--policy",
      ]
      #expect(try await feeds(command + ["cache-only"]).status == 2)
      let unsaved = try await feeds(command + ["server-only"])
      #expect(unsaved.output.hasSuffix("from the server, not saved\n"))
      for _ in 0..<2 {
        let loaded = try await feeds(command + ["server-first"])
        #expect(loaded.output.hasSuffix("from the server, saved\n"))
      }
      #expect(server.count(FeedServer.genresPath) == 3)
      #expect(try await feeds(command + ["cache-only"]).status == 0)
      let unknown = try await feeds(command + ["cache-last"])
      #expect(unknown.status == 64 && unknown.complaints.contains("cache-first"))
    }
  }

  @Test("Validating deletes what has expired in all caches, and counts it.")
  func validate() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let store = ["--store", directory.path("store")]
      for feed in ["genres", "feed"] {
        let command = [feed, "--server", server.url.absoluteString] + store
        let outcome = try await feeds(command + ["--now", "2026-01-01T12:00:00Z"])
        #expect(outcome.status == 0)
      }
      let outcome = try await feeds(["validate", "--now", "2026-01-08T12:00:00Z"] + store)
      #expect(outcome.status == 0 && outcome.complaints == "")
      #expect(
        outcome.output == """
          genres: 1 deleted, 0 kept
          characters: 0 deleted, 0 kept
          essential-feed: 0 deleted, 1 kept
          image-feed: 0 deleted, 0 kept
          image-data: 0 deleted, 0 kept

          """)
      let aged = try await feeds(
        ["validate", "--now", "2026-01-08T12:00:00Z", "--max-age", "7d"] + store)
      #expect(aged.output.contains("essential-feed: 1 deleted, 0 kept"))
    }
  }

  @Test("A store that cannot be opened is not validated.")
  func unopenable() async throws {
    let directory = try TemporaryDirectory()
    try Data("x".utf8).write(to: URL(filePath: directory.path("file")))
    let outcome = try await feeds(["validate", "--store", directory.path("file")])
    #expect(outcome.status == 4 && outcome.complaints.contains("could not be validated"))
  }
}
