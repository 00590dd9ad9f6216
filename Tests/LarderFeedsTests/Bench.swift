import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// Both kinds of store.
enum StoreKind: CaseIterable, CustomTestStringConvertible {
  case disk, memory
  var testDescription: String { self == .disk ? "on disk" : "in memory" }
}

/// A feed's loader over a scripted client and a real store whose engine is recorded.
struct Bench: Sendable {
  let feed: Feed
  let client: ScriptedClient
  let clock: ManualClock
  let engine: RecordingEngine
  let store: Store
  let handles: Handles

  init(
    _ feed: Feed, _ client: ScriptedClient = ScriptedClient(), clock: ManualClock = ManualClock(),
    engine: any StorageEngine = InMemoryEngine()
  ) throws {
    self.feed = feed
    self.client = client
    self.clock = clock
    self.engine = RecordingEngine(engine)
    var options = Store.Options()
    options.clock = clock
    store = try Store(engine: self.engine, options: options, origin: .memory)
    handles = try feed.open(client, store)
    self.engine.forgetMessages()
  }

  /// Saves items with a date `age` seconds ago.
  func save(_ ids: Int..., age: TimeInterval = 0) throws {
    let now = clock.now()
    clock.set(now - age)
    try handles.save(ids)
    clock.set(now)
  }

  func items(_ ids: Int...) -> [String] { ids.map(handles.item) }

  /// The reads and writes of the engine while `body` ran.
  func messages<R>(_ body: () async throws -> R) async rethrows -> [RecordingEngine.Message] {
    let before = engine.messages.count
    _ = try await body()
    return Array(engine.messages[before...])
  }

  /// Makes the only record unreadable.
  func damageRecord(_ damage: RecordDamage = .flippedBit) throws {
    try engine.base.damageOnlyRecord(damage)
  }

  /// The only record with its header, as text.
  func recordText() throws -> String? {
    try engine.base.onlyRecord().map { String(decoding: $0.value, as: UTF8.self) }
  }
}

/// Why a record cannot be read.
enum RecordDamage: CaseIterable {
  /// A bit of the payload is wrong, which the checksum shows.
  case flippedBit
  /// The record is intact, but its payload does not decode as the feed's type.
  case undecodable

  /// Whether reading the record failed for this reason.
  func explains(_ error: StoreError?) -> Bool {
    switch (self, error) {
    case (.flippedBit, .corrupt), (.undecodable, .undecodable): true
    default: false
    }
  }
}

extension StorageEngine {
  /// Makes the only record unreadable.
  func damageOnlyRecord(_ damage: RecordDamage = .flippedBit) throws {
    var (key, value) = try #require(try onlyRecord())
    var rows = WriteBatch()
    switch damage {
    case .flippedBit:
      value[value.count - 1] ^= 1
      rows.put(key.span.bytes, value.span.bytes)
    case .undecodable:
      rows.put(key.span.bytes, stamp: Record.stamp) { $0.append(value.dropLast()) }
    }
    try write(&rows, synced: false)
  }

  func onlyRecord() throws -> (key: [UInt8], value: [UInt8])? {
    let records = EngineRange(prefix: [KeySpace.records.rawValue])
    let cursor = try cursor(over: records)
    guard try cursor.next() else { return nil }
    return cursor.withEntry { key, value in
      (key.withUnsafeBytes { [UInt8]($0) }, value.withUnsafeBytes { [UInt8]($0) })
    }
  }
}

/// Runs `body` with a bench on either kind of store, and cleans up after it.
func withBench<R>(
  _ feed: Feed, on kind: StoreKind, _ client: ScriptedClient = ScriptedClient(),
  _ body: (Bench) async throws -> R
) async throws -> R {
  switch kind {
  case .memory: return try await body(try Bench(feed, client))
  case .disk:
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path("store"))
    let bench = try Bench(feed, client, engine: engine)
    let result = try await body(bench)
    try bench.store.close()
    return result
  }
}

let day: TimeInterval = 86_400

extension FeedError {
  /// Why the server failed, if it did.
  var reason: RemoteFailure.Kind? {
    if case .remote(let failure, _) = self { failure.kind } else { nil }
  }
}

/// Waits for a completion to be called, and traps if it is called twice.
///
/// Throws if the test is cancelled before, for example by its time limit.
func completion<R: Sendable>(
  sourceLocation: SourceLocation = #_sourceLocation,
  of start: (@escaping @Sendable (R) -> Void) -> Void
) async throws -> R {
  let called = Watched<R?>(nil)
  start { result in
    called.change { previous in
      precondition(previous == nil, "a completion was called twice")
      previous = result
    }
  }
  await called.wait { $0 != nil }
  return try #require(
    called.read { $0 }, "the completion was not called", sourceLocation: sourceLocation)
}

/// The error with which a load ends.
func feedError<R>(
  _ body: () async throws -> R, sourceLocation: SourceLocation = #_sourceLocation
) async -> FeedError? {
  await #expect(throws: FeedError.self, sourceLocation: sourceLocation) { _ = try await body() }
}

/// Records that something ended with another error than it should have.
func unexpected(_ error: (any Error)?, sourceLocation: SourceLocation = #_sourceLocation) {
  Issue.record("\(error.map { "\($0)" } ?? "no error")", sourceLocation: sourceLocation)
}
