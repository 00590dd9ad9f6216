import AcceptanceRows
import FeedServer
import Foundation
import Larder
import LarderTestSupport
import Testing

/// The `feeds` program prints what it loads, and says where it came from.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct FeedsCommandTests {
  @Test("Genres come from the server, the cache, or offline from the cache until they expire.")
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
      let stale = "No saved value is fresh enough to show.\n"
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

  @Test("Characters come from the server, or from the cache as a fallback until they expire.")
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

  @Test("The essential feed falls back to a saved feed of any age, unless a limit is given.")
  func essentialFeed() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = [
        "feed", "--server", server.url.absoluteString, "--store", directory.path("store"),
      ]

      let online = try await feeds(command)
      #expect(online.status == 0 && online.complaints == "")
      let first = "https://img.example.org/feed/1.png  Night market, no. 1; North ridge\n"
      #expect(online.output.hasPrefix(first))
      #expect(online.output.hasSuffix("... and 50 more\n60 in all, from the server, saved\n"))

      server.answer(FeedServer.feedPath, with: [.brokenJSON])
      let fallback = try await feeds(command + ["--now", "+400d", "--all"])
      #expect(fallback.status == 0)
      #expect(fallback.output.split(separator: "\n").count == 61)
      #expect(fallback.output.hasSuffix("400 days ago\n"))
      #expect(fallback.complaints == "feeds: warning: The server's answer is not valid.\n")

      let old = ["--now", "+7d", "--max-age", "7d"]
      #expect(try await feeds(command + ["--offline"] + old).status == 2)
      #expect(try await feeds(command + old).status == 3)
      #expect(server.count(FeedServer.feedPath) == 3)
    }
  }

  @Test("The list of images falls back to a saved list until it expires.")
  func images() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = [
        "images", "--server", server.url.absoluteString, "--store", directory.path("store"),
      ]

      let online = try await feeds(command)
      #expect(online.status == 0 && online.complaints == "")
      #expect(online.output.hasPrefix("\(server.url.absoluteString)/images/1.png  Night market"))
      #expect(online.output.hasSuffix("60 in all, from the server, saved\n"))

      let offline = try await feeds(command + ["--now", "+6d", "--offline"])
      #expect(offline.status == 0 && offline.output.hasSuffix("6 days ago\n"))
      let expired = ["--now", "+7d", "--max-age", "unlimited"]
      #expect(try await feeds(command + ["--offline"] + expired).status == 2)
    }
  }

  @Test("The search needs the server, and saves nothing.")
  func search() async throws {
    try await withServer { server in
      let command = ["search", "--server", server.url.absoluteString]

      let online = try await feeds(command + ["lamp+moth", "--all", "--parameter", "media=a&b"])
      #expect(online.status == 0 && online.complaints == "")
      #expect(online.output.hasPrefix("Lamp+Moth No. 4 - The Lantern Keepers, Field Notes\n"))
      #expect(online.output.hasSuffix("12 in all, from the server, not saved\n"))
      #expect(server.requests.map(\.query) == ["term=lamp%2Bmoth&media=a%26b"])

      let offline = try await feeds(command + ["lamp+moth", "--offline"])
      #expect(offline.status == 2 && offline.output == "")
      #expect(offline.complaints == "feeds: The server could not be reached.\n")
      server.answer(FeedServer.searchPath, with: [.status(500)])
      #expect(try await feeds(command + ["lamp"]).status == 3)
      #expect(try await feeds(command + ["lamp", "--parameter", "media"]).status == 64)
      #expect(try await feeds(command).status == 64)
      // Without a server there is the real one, which this does not ask.
      #expect(try await feeds(["search", "lamp", "--offline"]).status == 2)
      #expect(try await feeds(["feed", "--offline", "--store", "unused"]).status == 64)
    }
  }

  @Test("The search says how many incomplete items it left out.")
  func searchLeavesOut() async throws {
    try await withServer { server in
      let song = #"{"trackName":"Bell","artistName":"Mira","collectionName":"Tides"}"#
      let book = #"{"wrapperType":"audiobook","artistName":"Mira","collectionName":"Tides"}"#
      let replies = [[song, book, book], [book], [song]].map { items in
        Answer.reply(
          status: 200, body: Data(#"{"results":[\#(items.joined(separator: ","))]}"#.utf8))
      }
      server.answer(FeedServer.searchPath, with: replies)
      let command = ["search", "bell", "--server", server.url.absoluteString]

      let two = try await feeds(command)
      #expect(two.status == 0 && two.complaints == "")
      let summary = "1 in all, from the server, not saved\n2 incomplete items were left out\n"
      #expect(two.output == "Bell - Mira, Tides\n" + summary)
      let one = try await feeds(command)
      #expect(
        one.output == "0 in all, from the server, not saved\n1 incomplete item was left out\n")
      #expect(try await feeds(command).output.hasSuffix("1 in all, from the server, not saved\n"))
    }
  }

  @Test("Without --page, characters come from a random page.")
  func randomPage() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = [
        "characters", "--server", server.url.absoluteString, "--store", directory.path("store"),
      ]

      // By chance, all are the same page once in 10^8 runs of this test.
      for _ in 1...6 { _ = try await feeds(command) }

      #expect(server.requests.count == 6)
      #expect(Set(server.requests.map(\.query)).count > 1)
    }
  }

  @Test("If the store cannot be opened, the result is kept in memory only.")
  func noStore() async throws {
    let directory = try TemporaryDirectory()
    try await withServer { server in
      try await expectMemoryOnly(server, store: directory.path("missing/store"))
    }
  }

  @Test("A damaged store is salvaged, and what is loaded then is kept.")
  func damagedStore() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = [
        "genres", "--server", server.url.absoluteString, "--store", directory.path("store"),
      ]
      for _ in 0..<2 { _ = try await feeds(command + ["--max-age", "1s", "--now", "+1h"]) }
      let table = try #require(
        try Damage.files(in: directory.path("store"), endingIn: ".ldb").first)
      try Damage.flipByte(at: 20, of: table)

      let salvaged = try await feeds(command)
      #expect(salvaged.status == 0)
      #expect(salvaged.complaints.contains("warning: The store was damaged"))
      #expect(salvaged.output.hasSuffix("120 in all, from the server, saved\n"))

      let offline = try await feeds(command + ["--offline"])
      #expect(offline.status == 0 && offline.complaints == "")
      #expect(offline.output.contains("120 in all, from the cache, saved "))
    }
  }

  @Test("While another process has the store open, the result is kept in memory only.")
  func lockedStore() async throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"), directoryHint: .isDirectory)
    let store = try Store(at: place)
    try await withServer { server in
      try await expectMemoryOnly(server, store: directory.path("store"))
    }
    try store.close()
  }

  /// Runs `feeds` with a store that cannot be opened: for a list, for an image, and offline.
  private func expectMemoryOnly(_ server: FeedServer, store: String) async throws {
    let address = server.url.absoluteString
    let warning = "The store at \(store) could not be opened; this run keeps its result in memory"

    let list = try await feeds(["genres", "--server", address, "--store", store])
    #expect(list.status == 0)
    #expect(list.output.hasSuffix("120 in all, from the server, kept in memory only\n"))
    #expect(list.complaints.hasPrefix("feeds: " + warning))
    #expect(list.complaints.split(separator: "\n").count == 1)

    let image = try await feeds(["image", address + FeedServer.imagePath(3), "--store", store])
    #expect(image.status == 0 && image.bytes == Payloads.imageBytes(3))
    #expect(image.complaints.hasPrefix("feeds: " + warning))
    #expect(image.complaints.hasSuffix("feeds: 77 bytes, from the server, kept in memory only\n"))

    let offline = try await feeds(["genres", "--server", address, "--store", store, "--offline"])
    #expect(offline.status == 2 && offline.output == "")
    #expect(offline.complaints.hasSuffix("\nfeeds: The server could not be reached.\n"))
  }

  @Test("A wrong command line is refused with a message.")
  func refusals() async throws {
    let directory = try TemporaryDirectory()
    let genres = ["genres", "--server", "http://127.0.0.1:1", "--offline", "--store"]
    let store = directory.path("store")
    for wrong in [
      ["--max-age", "soon"], ["--now", "later"], ["--palette", "red"], ["--max-age", "-1d"],
    ] {
      #expect(try await feeds(genres + [store] + wrong).status == 64, "\(wrong)")
    }
    #expect(try await feeds(["genres", "--server", "file:///x", "--store", store]).status == 64)
    let help = try await feeds(["--help"])
    #expect(help.status == 0)
    for code in ["0 ", "2 ", "3 ", "5 ", "64 ", "130 "] {
      #expect(help.output.contains("\n  \(code)"))
    }
  }

  @Test("The date may be given as a fixed date.")
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
}
