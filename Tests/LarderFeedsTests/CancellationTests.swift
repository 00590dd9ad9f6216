import AcceptanceRows
import Foundation
import LarderFeeds
import LarderTesting
import Synchronization
import Testing

/// After a cancellation there is no delivery, no error, no retry, no fallback and no save.
@Suite(.acceptance, .timeLimit(.minutes(30))) struct CancellationTests {
  @Test(
    "A cancelled load throws CancellationError, whatever its request then returns.",
    arguments: Feed.all, ["valid", "invalid", "failure"])
  func cancelledRequest(feed: Feed, outcome: String) async throws {
    for order in [SourceOrder.remoteThenCache, .remoteOnly] {
      let bench = try Bench(feed, ScriptedClient(last: .hold))
      try bench.save(1, age: 7 * day - 1)

      let messages = try await bench.messages {
        let load = Task { try await bench.handles.load(order, nil) }
        try await bench.client.waitForHeldRequests(1)
        load.cancel()
        try await bench.client.waitForCancellation(of: 0)
        bench.client.release(0, with: result(outcome, feed))
        await #expect(throws: CancellationError.self) { try await load.value }
      }

      #expect(messages == [])
      #expect(bench.client.urls.count == 1)
      #expect(try await bench.handles.cached(nil) == bench.items(1))
    }
  }

  @Test("A cancelled load with a completion delivers nothing.", arguments: Feed.lists)
  func cancelledCompletion(feed: Feed) async throws {
    let bench = try Bench(feed, ScriptedClient(last: .hold))
    let delivered = Counter()

    let load = bench.handles.start(nil) { _ in _ = delivered.next() }
    try await bench.client.waitForHeldRequests(1)
    load.cancel()
    load.cancel()
    try await bench.client.waitForCancellation(of: 0)
    bench.client.release(0, with: result("valid", feed))
    // A second load is through when the first one's reply has long been handled.
    let second = Task { try await bench.handles.load(nil, nil) }
    try await bench.client.waitForHeldRequests(1)
    bench.client.release(1, with: result("valid", feed))
    _ = try await second.value

    #expect(delivered.next() == 1)
  }

  @Test("Cancelling one load does not affect another one of the same URL.")
  func oneOfTwo() async throws {
    let bench = try Bench(.genres, ScriptedClient(last: .hold))

    let first = Task { try await bench.handles.load(nil, nil) }
    try await bench.client.waitForHeldRequests(1)
    let second = Task { try await bench.handles.load(nil, nil) }
    try await bench.client.waitForHeldRequests(2)
    first.cancel()
    try await bench.client.waitForCancellation(of: 0)
    bench.client.release(0, with: .fail(URLError(.cancelled)))
    bench.client.release(1, with: result("valid", .genres))

    #expect(try await second.value.items == bench.items(1))
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(bench.client.cancelledRequests == [0])
  }

  @Test(
    "A load cancelled while it reads the cache delivers nothing, and makes no request.",
    arguments: Feed.all, [true, false])
  func cancelledWhileReading(feed: Feed, isSaved: Bool) async throws {
    let bench = try Bench(feed, ScriptedClient(last: .reply(200, feed.payload(1))))
    if isSaved { try bench.save(2) }
    let running = Mutex<Task<Delivery, any Error>?>(nil)
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    bench.engine.beforeReads { running.withLock { $0?.cancel() } }

    let load = Task {
      for await _ in started { break }
      return try await bench.handles.load(.cacheThenRemote, nil)
    }
    running.withLock { $0 = load }
    start.yield()

    await #expect(throws: CancellationError.self) { try await load.value }
    #expect(bench.client.urls == [])
  }

  @Test(
    "A load with a completion that is cancelled while it reads the cache delivers nothing.",
    arguments: Feed.all, [SourceOrder.cacheOnly, .cacheThenRemote])
  func cancelledCompletionWhileReading(feed: Feed, order: SourceOrder) async throws {
    for isSaved in [true, false] {
      let bench = try Bench(feed, ScriptedClient(last: .reply(200, feed.payload(1))))
      if isSaved { try bench.save(2) }
      let delivered = Counter()
      let running = Mutex<Cancellable?>(nil)
      let (reads, read) = AsyncStream.makeStream(of: Void.self)
      bench.engine.beforeReads {
        running.withLock { $0?.cancel() }
        read.yield()
      }

      running.withLock { $0 = bench.handles.start(order) { _ in _ = delivered.next() } }
      for await _ in reads { break }
      bench.engine.beforeReads(nil)
      // A second load is through when the first one's lookup has long been handled.
      _ = try? await bench.handles.load(.cacheOnly, nil)

      #expect(delivered.next() == 1)
      #expect(bench.client.urls == [])
    }
  }

  @Test("A task that is cancelled before it loads does nothing.", arguments: Feed.all)
  func cancelledBefore(feed: Feed) async throws {
    let bench = try Bench(feed)
    for order in [SourceOrder.remoteOnly, .cacheOnly, .remoteThenCache, .cacheThenRemote] {
      let load = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await bench.handles.load(order, nil)
      }
      await #expect(throws: CancellationError.self) { try await load.value }
    }
    #expect(bench.client.urls == [] && bench.engine.messages == [])
  }

  @Test("A client that reports a cancellation which nobody asked for has failed.")
  func foreignCancellation() async throws {
    let bench = try Bench(.genres, ScriptedClient(.fail(CancellationError())))

    let error = await feedError { try await bench.handles.load(nil, nil) }

    #expect(error?.reason == .connectivity)
  }

  private func result(_ outcome: String, _ feed: Feed) -> ScriptedClient.Answer {
    switch outcome {
    case "valid": .reply(200, Data(feed.payload(1).utf8))
    case "invalid": .reply(500, Data())
    default: .fail(URLError(.cancelled))
    }
  }
}
