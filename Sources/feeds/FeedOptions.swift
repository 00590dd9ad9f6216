import ArgumentParser
import Foundation
import Larder
import LarderFeeds

/// What both commands take, and what they do alike: load, print, and say what went wrong.
struct FeedOptions: ParsableArguments {
  @Option(help: "The store's directory; it is created if it is missing.")
  var store: String

  @Flag(help: "Act as if there were no connection.")
  var offline = false

  @Option(
    help: """
      How old a list from the cache may be: 7d, 12h, 3600s or unlimited. It only shortens what the \
      cache keeps: genres never come from it after seven days.
      """,
    transform: maximumAge)
  var maxAge: MaxAge?

  @Option(
    help: "Another date than the system's: 2026-01-31T12:00:00Z, or +8d, -12h from now.",
    transform: ShiftedClock.init(argument:))
  var now: ShiftedClock?

  @Flag(help: "Print the whole list.")
  var all = false

  private static let shortListCount = 10

  func run<Item: Sendable>(
    makeLoader: (any HTTPClient, Store) throws(StoreError) -> Loader<Void, String, [Item]>,
    line: (Int, Item) throws -> String
  ) async throws {
    let loader: Loader<Void, String, [Item]>
    do throws(StoreError) {
      var options = Store.Options()
      if let now { options.clock = now }
      let directory = URL(filePath: store, directoryHint: .isDirectory)
      let store = try Store(at: directory, options: options)
      loader = try makeLoader(offline ? OfflineClient() : URLSessionClient(), store)
    } catch {
      complain("The store at \(store) could not be opened: \(error)")
      throw ExitCode(4)
    }
    do {
      try report(try await loader.load(maxAge: maxAge), line: line)
    } catch let error as FeedError {
      if case .remote(_, cache: nil) = error {
        complain("\(error) Nothing that is saved is fresh enough to be shown.")
      } else {
        complain("\(error)")
      }
      if case .remote(.invalidData, _) = error { throw ExitCode(3) }
      throw ExitCode(2)
    }
  }

  private func report<Item>(
    _ loaded: Loaded<[Item]>, line: (Int, Item) throws -> String
  ) throws {
    let shown = all ? loaded.value[...] : loaded.value.prefix(Self.shortListCount)
    for (position, item) in shown.enumerated() { print(try line(position, item)) }
    let hidden = loaded.value.count - shown.count
    if hidden > 0 { print("... and \(hidden) more") }
    print("\(loaded.value.count) in all, \(provenance(of: loaded))")
    if let failure = loaded.remoteFailure { complain("warning: \(failure)") }
    if let failure = loaded.saveFailure { complain("warning: the list was not saved: \(failure)") }
  }

  private func provenance<Item>(of loaded: Loaded<[Item]>) -> String {
    guard let savedAt = loaded.savedAt, let age = loaded.age else {
      return loaded.isSaved ? "from the server, saved" : "from the server, not saved"
    }
    return "from the cache, saved \(savedAt.formatted(.iso8601)), \(words(forAge: age))"
  }

  private func complain(_ message: String) {
    FileHandle.standardError.write(Data("feeds: \(message)\n".utf8))
  }
}

/// An age in the largest unit that says something, rounded down.
private func words(forAge seconds: TimeInterval) -> String {
  guard seconds >= 0 else { return "later than it is now" }
  let units = [(86_400.0, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
  guard let (length, name) = units.first(where: { seconds >= $0.0 }) else { return "just now" }
  let count = Int(seconds / length)
  return "\(count) \(name)\(count == 1 ? "" : "s") ago"
}

/// Plays a device without a connection.
private struct OfflineClient: HTTPClient {
  func get(_ url: URL) async throws -> HTTPReply { throw URLError(.notConnectedToInternet) }
}
