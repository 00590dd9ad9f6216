import AcceptanceRows
import Foundation
import Larder
import LarderFeeds
import LarderTesting
import Synchronization
import Testing

private let url = ImageBench.url

/// A cancelled image load delivers nothing, makes no further request and saves nothing.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct ImageCancellationTests {
  /// The results that a request can have after it was cancelled.
  enum Outcome: CaseIterable {
    case bytes, notFound, failure, cancelled

    var result: ScriptedClient.Answer {
      switch self {
      case .bytes: .reply(200, ImageBench.bytes)
      case .notFound: .reply(404, ImageBench.bytes)
      case .failure: .fail(URLError(.timedOut))
      case .cancelled: .fail(URLError(.cancelled))
      }
    }
  }

  @Test("Cancelling stops the pending request, and nothing stops it before.")
  func requestIsCancelled() async throws {
    let bench = try ImageBench(ScriptedClient(last: .hold))

    let load = bench.loader.load(url) { _ in Issue.record("a cancelled load delivered") }
    try await bench.client.waitForHeldRequests(1)
    #expect(bench.client.cancelledRequests == [] && bench.engine.messages == [.retrieve])
    load.cancel()

    try await bench.client.waitForCancellation(of: 0)
    bench.client.release(0, with: Outcome.cancelled.result)
  }

  @Test("The result of a cancelled request is not delivered or saved.", arguments: Outcome.allCases)
  func nothingIsDelivered(outcome: Outcome) async throws {
    let bench = try ImageBench(ScriptedClient(last: .hold))
    let delivered = Counter()

    let load = bench.loader.load(url) { _ in _ = delivered.next() }
    try await bench.client.waitForHeldRequests(1)
    load.cancel()
    load.cancel()
    try await bench.client.waitForCancellation(of: 0)
    bench.client.release(0, with: outcome.result)
    // Another load is through when the first one's reply has long been handled.
    let second = Task { try await bench.loader(.remoteOnly).load(url) }
    try await bench.client.waitForHeldRequests(1)
    bench.client.release(1, with: .fail(URLError(.timedOut)))
    await #expect(throws: FeedError.self) { try await second.value }
    load.cancel()

    #expect(delivered.next() == 1)
    #expect(try bench.saved() == nil)
    #expect(bench.client.urls.count == 2)
  }

  @Test("A cancelled task throws CancellationError, and nothing else.", arguments: Outcome.allCases)
  func cancelledTask(outcome: Outcome) async throws {
    let bench = try ImageBench(ScriptedClient(last: .hold))

    let load = Task { try await bench.loader.load(url) }
    try await bench.client.waitForHeldRequests(1)
    load.cancel()
    try await bench.client.waitForCancellation(of: 0)
    bench.client.release(0, with: outcome.result)

    await #expect(throws: CancellationError.self) { try await load.value }
    #expect(bench.engine.messages == [.retrieve])
  }

  @Test("Cancelling a load that has delivered takes nothing back.")
  func cancelledAfterwards() async throws {
    let bench = try ImageBench(ScriptedClient(.reply(200, ImageBench.bytes)))
    let task = Mutex<Task<Void, Never>?>(nil)
    let delivered = Counter()

    let result = try await completion { done in
      let load = bench.loader.load(url) { result in
        _ = delivered.next()
        done(result)
      }
      task.withLock { $0 = load }
    }
    for _ in 1...2 { task.withLock { $0?.cancel() } }

    #expect(try result.get().value == ImageBench.bytes)
    #expect(try bench.saved() == ImageBench.bytes)
    #expect(delivered.next() == 2)
  }

  @Test(
    "A load cancelled while it reads the cache delivers nothing, and makes no request.",
    arguments: [SourceOrder.cacheOnly, .cacheThenRemote], ["data", "nothing", "an error"])
  func cancelledWhileReading(order: SourceOrder, found: String) async throws {
    let bench = try ImageBench(ScriptedClient(last: .reply(200, Data([7]))))
    if found == "data" { try bench.cache.save(ImageBench.bytes, for: url) }
    if found == "an error" { bench.engine.failReads(.io("unreadable")) }
    let running = Mutex<Task<Loaded<Data>, any Error>?>(nil)
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    bench.engine.beforeReads { running.withLock { $0?.cancel() } }

    let load = Task {
      for await _ in started { break }
      return try await bench.loader(order).load(url)
    }
    running.withLock { $0 = load }
    start.yield()

    await #expect(throws: CancellationError.self) { try await load.value }
    #expect(bench.client.urls == [])
    #expect(bench.engine.messages.last == .retrieve)
  }

  @Test(
    "A load with a completion that is cancelled while it reads the cache delivers nothing.",
    arguments: [SourceOrder.cacheOnly, .cacheThenRemote], [true, false])
  func nothingIsDeliveredWhileReading(order: SourceOrder, isSaved: Bool) async throws {
    let bench = try ImageBench(ScriptedClient(last: .reply(200, Data([7]))))
    if isSaved { try bench.cache.save(ImageBench.bytes, for: url) }
    let delivered = Counter()
    let running = Mutex<Task<Void, Never>?>(nil)
    let (reads, read) = AsyncStream.makeStream(of: Void.self)
    bench.engine.beforeReads {
      running.withLock { $0?.cancel() }
      read.yield()
    }

    running.withLock { $0 = bench.loader(order).load(url) { _ in _ = delivered.next() } }
    for await _ in reads { break }
    bench.engine.beforeReads(nil)
    // A second load is through when the first one's lookup has long been handled.
    _ = try? await bench.loader(.cacheOnly).load(url)

    #expect(delivered.next() == 1)
    #expect(bench.client.urls == [])
  }

  @Test("A load that is cancelled while it saves delivers nothing; the save takes effect.")
  func cancelledWhileSaving() async throws {
    let faults = StoreFaults()
    let store = Store.inMemory(options: Store.Options(), faults: faults)
    let client = ScriptedClient(.reply(200, ImageBench.bytes))
    let loader = try ImageDataLoader.imageData(client: client, store: store)
    let delivered = Counter()
    faults.holdWrites()

    let load = loader.load(url) { _ in _ = delivered.next() }
    try await faults.waitForHeldWrites(1)
    load.cancel()
    faults.releaseWrites()
    await load.value

    #expect(delivered.next() == 1)
    #expect(try loader.cache?.value(for: url) == ImageBench.bytes)
  }

  @Test("If one of two loads of an image is cancelled, the other one delivers.")
  func oneOfTwo() async throws {
    let bench = try ImageBench(ScriptedClient(last: .hold))

    let first = Task { try await bench.loader.load(url) }
    try await bench.client.waitForHeldRequests(1)
    let second = Task { try await bench.loader.load(url) }
    try await bench.client.waitForHeldRequests(2)
    first.cancel()
    try await bench.client.waitForCancellation(of: 0)
    bench.client.release(0, with: Outcome.bytes.result)
    bench.client.release(1, with: Outcome.bytes.result)

    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(try await second.value.value == ImageBench.bytes)
    #expect(bench.client.cancelledRequests == [0])
  }
}
