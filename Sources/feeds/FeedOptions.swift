import ArgumentParser
import Foundation
import Larder
import LarderFeeds

/// What all commands take.
struct ConnectionOptions: ParsableArguments {
  @Flag(help: "Act as if there were no connection.")
  var offline = false

  var client: any HTTPClient { offline ? OfflineClient() : URLSessionClient() }
}

/// What commands with a cache take.
struct CacheOptions: ParsableArguments {
  @Option(help: "The store's directory; it is created if it is missing.")
  var store: String

  @Option(
    help: """
      How old what comes from the cache may be: 7d, 12h, 3600s or unlimited. It only shortens what \
      the cache keeps: genres and the list of images never come from it after seven days.
      """,
    transform: maximumAge)
  var maxAge: MaxAge?

  @Option(
    help: "Another date than the system's: 2026-01-31T12:00:00Z, or +8d, -12h from now.",
    transform: ShiftedClock.init(argument:))
  var now: ShiftedClock?

  /// Opens the store and makes a loader over it.
  ///
  /// A damaged store is salvaged first; a line on standard error says what was lost.
  ///
  /// If either fails, the loader uses a store in memory, as an app would: what the server has is
  /// worth showing without a cache. A line on standard error says why.
  ///
  /// - Returns: The loader, and where its store is.
  func loader<L>(_ make: (Store) throws -> L) throws -> (L, StorePlace) {
    var options = Store.Options()
    if let now { options.clock = now }
    options.onDamage = .salvage
    do {
      let directory = URL(filePath: store, directoryHint: .isDirectory)
      let store = try Store(at: directory, options: options)
      if let recovery = store.recovery { complain("warning: \(recovery.summary)") }
      return (try make(store), .disk)
    } catch {
      complain(
        """
        The store at \(store) could not be opened; this run keeps its result in memory only: \
        \(error)
        """)
      return (try make(.inMemory(options: options)), .memory)
    }
  }
}

/// Where a command keeps what it loads.
enum StorePlace {
  /// In the directory that the command line names.
  case disk
  /// In the memory of this process, which ends with the load.
  case memory
  /// Nowhere: the command has no cache.
  case nowhere
}

/// What commands that print a list take.
struct ListOptions: ParsableArguments {
  @Flag(help: "Print the whole list.")
  var all = false

  private static let shortListCount = 10

  func report<Item>(
    _ loaded: Loaded<[Item]>, in place: StorePlace, line: (Int, Item) throws -> String
  ) throws {
    let shown = all ? loaded.value[...] : loaded.value.prefix(Self.shortListCount)
    for (position, item) in shown.enumerated() {
      print(try line(position, item).escapedForTerminal)
    }
    let hidden = loaded.value.count - shown.count
    if hidden > 0 { print("... and \(hidden) more") }
    print("\(loaded.value.count) in all, \(provenance(of: loaded, in: place))")
    if loaded.leftOut > 0 {
      let count = loaded.leftOut
      print("\(count) incomplete \(count == 1 ? "item was" : "items were") left out")
    }
    warn(about: loaded, "the list")
  }
}

/// What commands for a list with a cache take, and what they do alike.
struct FeedOptions: ParsableArguments {
  @OptionGroup var cache: CacheOptions
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var list: ListOptions

  func run<Item: Sendable>(
    makeLoader: (any HTTPClient, Store) throws -> Loader<Void, String, [Item]>,
    line: (Int, Item) throws -> String
  ) async throws {
    let client = connection.client
    let (loader, place) = try cache.loader { store in try makeLoader(client, store) }
    let maxAge = cache.maxAge
    let loaded = try await load(in: place) { try await loader.load(maxAge: maxAge) }
    try list.report(loaded, in: place, line: line)
  }
}

/// Plays a device without a connection.
private struct OfflineClient: HTTPClient {
  func get(_ url: URL) async throws -> HTTPReply { throw URLError(.notConnectedToInternet) }
}
