import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// A loader of image bytes over a scripted client and a real store whose engine is recorded.
struct ImageBench: Sendable {
  static let url = web("https://img.example.org/feed/Fog%2Fold.png?size=2")
  static let bytes = Data([0x89, 0x50, 0x00, 0xFF, 0x0A])

  let client: ScriptedClient
  let clock = ManualClock()
  let engine: RecordingEngine
  let store: Store
  let loader: ImageDataLoader
  let cache: Cache<URL, Data>

  init(
    _ client: ScriptedClient = ScriptedClient(), engine: any StorageEngine = InMemoryEngine(),
    lifetime: Lifetime? = nil
  ) throws {
    self.client = client
    self.engine = RecordingEngine(engine)
    var options = Store.Options()
    options.clock = clock
    store = try Store(engine: self.engine, options: options, origin: .memory)
    loader =
      if let lifetime {
        try .imageData(client: client, store: store, lifetime: lifetime)
      } else { try .imageData(client: client, store: store) }
    cache = try #require(loader.cache)
    self.engine.forgetMessages()
  }

  /// The loader with another source order.
  func loader(_ order: SourceOrder) -> ImageDataLoader {
    var copy = loader
    copy.policy.order = order
    return copy
  }

  /// The value in the cache for a URL.
  func saved(_ url: URL = url) throws -> Data? { try cache.value(for: url) }

  /// The reads and writes of the engine while `body` ran.
  func messages<R>(_ body: () async throws -> R) async rethrows -> [RecordingEngine.Message] {
    let before = engine.messages.count
    _ = try await body()
    return Array(engine.messages[before...])
  }
}

/// Runs `body` with a bench on either kind of store, and cleans up after it.
func withImageBench(
  on kind: StoreKind, _ client: ScriptedClient = ScriptedClient(),
  _ body: (ImageBench) async throws -> Void
) async throws {
  switch kind {
  case .memory: try await body(try ImageBench(client))
  case .disk:
    let directory = try TemporaryDirectory()
    let bench = try ImageBench(client, engine: try LevelDBEngine(at: directory.path("store")))
    try await body(bench)
    try bench.store.close()
  }
}
