import FeedServer
import Foundation
import LarderTestSupport
import Testing

/// `feeds image` delivers the bytes of an image, and says where they came from.
@Suite(.timeLimit(.minutes(30))) struct FeedsImageCommandTests {
  @Test("The bytes go to standard output, and their source to standard error.")
  func standardOutput() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = ["image", url(3, of: server), "--store", directory.path("store")]

      let online = try await feeds(command)
      #expect(online.status == 0 && online.bytes == Payloads.imageBytes(3))
      #expect(online.complaints == "feeds: 77 bytes, from the server, saved\n")

      let cached = try await feeds(command + ["--now", "+400d"])
      #expect(cached.status == 0 && cached.bytes == Payloads.imageBytes(3))
      #expect(cached.complaints.hasPrefix("feeds: 77 bytes, from the cache, saved "))
      #expect(cached.complaints.hasSuffix("400 days ago\n"))
      #expect(server.count(FeedServer.imagePath(3)) == 1)

      let old = try await feeds(command + ["--now", "+60s", "--max-age", "1m", "--offline"])
      #expect(old.status == 2 && old.bytes.isEmpty)
    }
  }

  @Test("With --output the bytes go to a file, and their source to standard output.")
  func file() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let file = directory.path("image.png")
      let command = [
        "image", url(4, of: server), "--store", directory.path("store"), "--output",
      ]

      let online = try await feeds(command + [file])
      #expect(online.status == 0 && online.complaints == "")
      #expect(online.output == "77 bytes, from the server, saved\n")
      #expect(try Data(contentsOf: URL(filePath: file)) == Payloads.imageBytes(4))

      let refused = try await feeds(command + [directory.path("missing/image.png")])
      #expect(refused.status == 5 && refused.output == "")
      #expect(refused.complaints.contains("missing/image.png could not be written: "))
    }
  }

  @Test("An image is not written to a terminal.")
  func terminal() async throws {
    var (controller, end): (Int32, Int32) = (-1, -1)
    try #require(openpty(&controller, &end, nil, nil, nil) == 0)
    defer { close(controller) }
    let terminal = FileHandle(fileDescriptor: end, closeOnDealloc: true)

    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = ["image", url(6, of: server), "--store", directory.path("store")]

      let refused = try await feeds(command, to: terminal)
      #expect(refused.status == 64 && refused.complaints.contains("--output"))
      #expect(server.requests == [])
      let written = try await feeds(command + ["-o", directory.path("image.png")], to: terminal)
      #expect(written.status == 0)
    }
  }

  @Test("A response that is not an image is an error, and so is an invalid URL.")
  func refusals() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let store = ["--store", directory.path("store")]
      server.answer(FeedServer.imagePath, with: [.empty])

      #expect(try await feeds(["image", url(1, of: server)] + store).status == 3)
      #expect(try await feeds(["image", url(61, of: server)] + store).status == 3)
      #expect(try await feeds(["image", "images/1.png"] + store).status == 64)
      #expect(try await feeds(["image", url(1, of: server), "--offline"] + store).status == 2)
    }
  }

  @Test("An interrupt cancels the load: the request stops, and nothing is saved.")
  func interrupted() async throws {
    try await withServer { server in
      let directory = try TemporaryDirectory()
      let command = ["image", url(5, of: server), "--store", directory.path("store")]
      server.answer(FeedServer.imagePath(5), with: [.drip(milliseconds: 5), .payload])

      let cancelled = try await feeds(command) { process in
        await server.arrived(1, FeedServer.imagePath(5))
        process.interrupt()
      }
      #expect(cancelled.status == 130 && cancelled.bytes.isEmpty)
      #expect(cancelled.complaints == "feeds: The load was cancelled; nothing was saved.\n")
      await server.ended(1, FeedServer.imagePath(5))

      #expect(try await feeds(command + ["--offline"]).status == 2)
      #expect(try await feeds(command).bytes == Payloads.imageBytes(5))
      #expect(try await feeds(command + ["--offline"]).bytes == Payloads.imageBytes(5))
    }
  }

  private func url(_ number: Int, of server: FeedServer) -> String {
    server.url.absoluteString + FeedServer.imagePath(number)
  }
}
