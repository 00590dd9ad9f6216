import FeedServer
import Foundation
import LarderTestSupport
import Testing

/// The `feeds` program as users run it.
@Suite(.timeLimit(.minutes(1))) struct FeedsCommandTests {
  struct Outcome: Sendable {
    var status: Int32
    var output: String
    var complaints: String
  }

  @Test("online, from the cache, offline, expired: genres")
  func genres() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let store = directory.path("store")
      let command = ["genres", "--server", server.url.absoluteString, "--store", store]

      let online = try await feeds(command)
      #expect(online.status == 0 && online.complaints == "")
      #expect(online.output.hasPrefix("#3366CC  300  Urban Beekeeping\n"))
      #expect(online.output.contains("... and 110 more\n120 in all, from the server, saved\n"))
      #expect(server.count(FeedServer.genresPath) == 1)

      let cached = try await feeds(command + ["--now", "+6d", "--all"])
      #expect(cached.status == 0)
      #expect(cached.output.split(separator: "\n").count == 121)
      #expect(cached.output.contains("120 in all, from the cache, saved "))
      #expect(cached.output.hasSuffix("6 days ago\n"))
      #expect(server.count(FeedServer.genresPath) == 1)

      let offline = try await feeds(command + ["--offline", "--palette", "#aaaaaa"])
      #expect(offline.status == 0)
      #expect(offline.output.hasPrefix("#AAAAAA  300  Urban Beekeeping\n"))

      let expired = try await feeds(command + ["--offline", "--now", "+7d"])
      #expect(expired.status == 2 && expired.output == "")
      let stale = "Nothing that is saved is fresh enough to be shown.\n"
      #expect(expired.complaints == "feeds: The server could not be reached. \(stale)")
      let young = try await feeds(command + ["--offline", "--now", "+60s", "--max-age", "1m"])
      #expect(young.status == 2)

      server.answer(FeedServer.genresPath, with: [.brokenJSON])
      let invalid = try await feeds(command + ["--now", "+8d"])
      #expect(invalid.status == 3)
      #expect(invalid.complaints == "feeds: The server's answer is not valid. \(stale)")
      #expect(server.count(FeedServer.genresPath) == 4)
    }
  }

  @Test("online, fallback, offline, expired: characters")
  func characters() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let store = directory.path("store")
      let command = ["characters", "--server", server.url.absoluteString, "--store", store]

      let online = try await feeds(command + ["--page", "2"])
      #expect(online.status == 0)
      #expect(online.output.hasPrefix("101  "))
      #expect(online.output.hasSuffix("... and 90 more\n100 in all, from the server, saved\n"))
      #expect(server.requests.last?.query == "page=2")

      server.answer(FeedServer.charactersPath, with: [.status(500)])
      let fallback = try await feeds(command + ["--now", "+6d"])
      #expect(fallback.status == 0)
      #expect(fallback.output.hasPrefix("101  ") && fallback.output.hasSuffix("6 days ago\n"))
      #expect(fallback.complaints == "feeds: warning: The server's answer is not valid.\n")

      #expect(try await feeds(command + ["--offline", "--now", "+7d"]).status == 2)
      #expect(try await feeds(command + ["--now", "+7d"]).status == 3)
      let old = ["--offline", "--now", "+400d", "--max-age", "unlimited"]
      #expect(try await feeds(command + old).status == 0)
      #expect(server.requests.allSatisfy { $0.path == FeedServer.charactersPath })
    }
  }

  @Test("a store that cannot be opened, and a wrong command line")
  func refusals() async throws {
    let directory = try TemporaryDirectory()
    let genres = ["genres", "--server", "http://127.0.0.1:1", "--offline", "--store"]

    let noParent = try await feeds(genres + [directory.path("missing/store")])
    #expect(noParent.status == 4)
    #expect(noParent.complaints.hasPrefix("feeds: The store at "))

    let store = directory.path("store")
    for wrong in [
      ["--max-age", "soon"], ["--now", "later"], ["--palette", "red"], ["--max-age", "-1d"],
    ] {
      #expect(try await feeds(genres + [store] + wrong).status == 64, "\(wrong)")
    }
    #expect(try await feeds(["genres", "--server", "file:///x", "--store", store]).status == 64)
    let help = try await feeds(["--help"])
    #expect(help.status == 0)
    for code in ["0 ", "2 ", "3 ", "4 ", "64 "] { #expect(help.output.contains("\n  \(code)")) }
  }

  @Test("a date may be given as such")
  func fixedDate() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = [
        "genres", "--server", server.url.absoluteString, "--store", directory.path("store"),
      ]

      _ = try await feeds(command + ["--now", "2026-01-01T00:00:00Z"])
      let cached = try await feeds(command + ["--now", "2026-01-01T02:30:00Z", "--offline"])

      #expect(cached.output.hasSuffix("from the cache, saved 2026-01-01T00:00:00Z, 2 hours ago\n"))
    }
  }

  /// Runs the program to its end.
  private func feeds(_ arguments: [String]) async throws -> Outcome {
    let process = Process()
    let program = try #require(ChildProcess.path(of: "feeds"), "feeds is not beside the tests")
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    let (output, complaints) = (Pipe(), Pipe())
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = complaints
    let status = try await withCheckedThrowingContinuation { ended in
      process.terminationHandler = { ended.resume(returning: $0.terminationStatus) }
      do {
        try process.run()
      } catch {
        ended.resume(throwing: error)
      }
    }
    return Outcome(
      status: status, output: try text(of: output), complaints: try text(of: complaints))
  }

  /// What a program that has ended wrote; it is less than a pipe holds.
  private func text(of pipe: Pipe) throws -> String {
    String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
  }
}
