import ArgumentParser
import Foundation
import HTTPTypes
import Larder
import LarderFeeds

/// The options of all commands.
struct ConnectionOptions: ParsableArguments {
  @Flag(help: "Make no requests, as if there were no connection.")
  var offline = false

  @Option(
    help: "How long a server may send nothing: 30s, 10m. A request takes four times that at most.",
    transform: span)
  var timeout: Duration = .seconds(30)

  var client: any HTTPClient {
    if offline { return Self.offlineClient }
    return URLSessionClient(requestTimeout: timeout, resourceTimeout: timeout * 4)
  }

  /// A client without a connection.
  static var offlineClient: any HTTPClient { OfflineClient() }
}

/// The options of commands with a cache.
struct CacheOptions: ParsableArguments {
  @Option(help: "The store's directory, which is created if it is missing.")
  var store: String

  @Option(
    help: """
      The maximum age of a cached value: 7d, 12h, 3600s or unlimited. It can only shorten the \
      cache's lifetime, which is seven days for genres and the list of images.
      """,
    transform: maximumAge)
  var maxAge: MaxAge?

  @Option(
    help: "Use another date than the system's: 2026-01-31T12:00:00Z, or +8d or -12h from now.",
    transform: ShiftedClock.init(argument:))
  var now: ShiftedClock?

  /// Opens the store.
  ///
  /// A damaged store is salvaged first; a line on standard error reports the loss.
  func open() throws -> Store {
    var options = options
    options.onDamage = .salvage
    let directory = URL(filePath: store, directoryHint: .isDirectory)
    let store = try Store(at: directory, options: options)
    if let recovery = store.recovery { complain("warning: \(recovery.summary)") }
    return store
  }

  private var options: Store.Options {
    var options = Store.Options()
    if let now { options.clock = now }
    return options
  }

  /// Opens the store and makes a loader with it.
  ///
  /// If either fails, the loader uses a store in memory, as an app would, because values from the
  /// server are useful without a cache. A line on standard error reports the error.
  ///
  /// - Returns: The loader, and the place of its store.
  func loader<L>(_ make: (Store) throws -> L) throws -> (L, StorePlace) {
    do {
      return (try make(open()), .disk)
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

/// The place where a command saves loaded values.
enum StorePlace {
  /// The directory named on the command line.
  case disk
  /// The memory of this process, which ends with the load.
  case memory
  /// The command has no cache.
  case nowhere
}

/// The options of commands that print a list.
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

/// The options and the common implementation of commands for a cached list.
struct FeedOptions: ParsableArguments {
  @OptionGroup var cache: CacheOptions
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var policy: PolicyOptions

  func run<Item: Sendable>(
    makeLoader: (any HTTPClient, Store) throws -> Loader<Void, String, [Item]>,
    line: (Int, Item) throws -> String
  ) async throws {
    let client = policy.reporting(connection.client)
    let (loader, place) = try cache.loader { store in
      policy.applied(to: try makeLoader(client, store))
    }
    let maxAge = cache.maxAge
    policy.report(loader.cache, "all", maxAge ?? loader.policy.loading.maxAge)
    let loaded = try await load(in: place) { try await loader.load(maxAge: maxAge) }
    try list.report(loaded, in: place, line: line)
  }
}

/// A client without a connection.
private struct OfflineClient: HTTPClient {
  func send(_ request: HTTPRequest, body: Data) async throws -> (HTTPResponse, Data) {
    throw URLError(.notConnectedToInternet)
  }
}
