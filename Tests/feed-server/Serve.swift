import ArgumentParser
import Dispatch
import FeedServer
import Foundation

@main struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "feed-server",
    abstract: "Serve made-up genres and characters on loopback.",
    discussion: """
      Paths: /api/v2/genres and /api/character?page=1 to 42. Serves until standard input ends or \
      SIGTERM comes.
      """)

  @Option(help: "The port; 0 takes any free one.")
  var port: UInt16 = 0

  @Option(help: "How /api/v2/genres answers, in turn; the last one stays: \(Answer.words).")
  var genres: [Answer] = []

  @Option(help: "How /api/character answers, in turn; the last one stays.")
  var characters: [Answer] = []

  func run() async throws {
    let server = try await FeedServer(port: port)
    if !genres.isEmpty { server.answer(FeedServer.genresPath, with: genres) }
    if !characters.isEmpty { server.answer(FeedServer.charactersPath, with: characters) }
    say("listening on \(server.url.absoluteString)")
    await untilStopped()
    await server.stop()
    for path in Set(server.requests.map(\.path)).sorted() {
      say("\(server.count(path)) requests for \(path)")
    }
  }

  private func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

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
