import ArgumentParser
import Dispatch
import FeedServer
import Foundation

@main struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "feed-server",
    abstract: "Serve invented feeds and images on loopback.",
    discussion: """
      Paths: /api/v2/genres, /api/character?page=1 to 42, /v1/feed, /search?term=, /v1/images, and \
      /images/1.png to 60.png. Serves until standard input ends or SIGTERM arrives.
      """)

  @Option(help: "The port; 0 takes any free one.")
  var port: UInt16 = 0

  @Option(help: "How /api/v2/genres answers, in turn; the last one is repeated: \(Answer.words).")
  var genres: [Answer] = []

  @Option(help: "How /api/character answers, in turn; the last one is repeated.")
  var characters: [Answer] = []

  @Option(help: "How /v1/feed answers, in turn; the last one is repeated.")
  var feed: [Answer] = []

  @Option(help: "How /search answers, in turn; the last one is repeated.")
  var search: [Answer] = []

  @Option(help: "How /v1/images answers, in turn; the last one is repeated.")
  var images: [Answer] = []

  @Option(help: "How the images answer, all of them in turn; the last one is repeated.")
  var image: [Answer] = []

  @Flag(help: "Print each request as it arrives.")
  var log = false

  func run() async throws {
    let server = try await FeedServer(port: port) { [log] request in
      if log { Self.say("\(request.method) \(request.path)") }
    }
    let plans = [
      (FeedServer.genresPath, genres), (FeedServer.charactersPath, characters),
      (FeedServer.feedPath, feed), (FeedServer.searchPath, search),
      (FeedServer.imagesPath, images), (FeedServer.imagePath, image),
    ]
    for (path, answers) in plans where !answers.isEmpty { server.answer(path, with: answers) }
    Self.say("listening on \(server.url.absoluteString)")
    await untilStopped()
    await server.stop()
    for path in Set(server.requests.map(\.path)).sorted() {
      Self.say("\(server.count(path)) requests for \(path)")
    }
  }

  private static func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }

  private func untilStopped() async {
    let (stops, stop) = AsyncStream.makeStream(of: Void.self)
    signal(SIGTERM, SIG_IGN)
    let terminations = DispatchSource.makeSignalSource(signal: SIGTERM)
    terminations.setEventHandler { stop.yield() }
    terminations.resume()
    DispatchQueue.global().async {
      while !FileHandle.standardInput.availableData.isEmpty {}
      stop.yield()
    }
    for await _ in stops { break }
    terminations.cancel()
  }
}

extension Answer: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
}
