import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// A store on disk with a timer that a test fires by hand, and a source of numbers.
final class LoadFixture {
  static let lifetime = Lifetime.fresh(for: .seconds(100), thenStaleFor: .seconds(900))

  let base: Fixture
  let timer = HandLoadTimer()
  var clock: ManualClock { base.clock }
  var store: Store { base.store }

  init(_ kind: StoreKind = .disk, chance: Double = 0.5) throws {
    let timer = timer
    base = try Fixture(kind) { options in
      options.loadTimer = timer.schedule
      options.random = { chance }
    }
  }

  func end() { base.end() }

  func numbers(
    _ name: String = "numbers", lifetime: Lifetime = lifetime,
    _ set: (inout Loading) -> Void = { _ in }
  ) throws -> Cache<String, Int> {
    var loading = Loading()
    set(&loading)
    return try store.cache(name, of: Int.self, lifetime: lifetime, loading: loading)
  }

  /// Statistics of the loads of a cache.
  func loads(_ name: String = "numbers") -> CacheStatistics.Loads {
    store.statistics.caches[name]?.loads ?? CacheStatistics.Loads()
  }
}

/// A source whose loads wait until a test lets them end.
final class Source: Sendable {
  struct Failure: Error, Equatable { var number = 0 }

  struct State: Sendable {
    var begun = 0
    var ended = 0
    var cancelled = 0
    /// The replies that loads may return; each load takes the first one.
    var replies: [Result<LoadReply<Int>, Failure>] = []
    var previous: [Previous<Int>?] = []
  }

  let state = Watched(State())

  init(_ replies: [Result<LoadReply<Int>, Failure>] = []) { reply(replies) }

  var begun: Int { state.read { $0.begun } }

  /// Lets as many loads end, with these replies.
  func reply(_ replies: [Result<LoadReply<Int>, Failure>]) {
    state.change { $0.replies += replies }
  }

  func reply(_ value: Int) { reply([.success(.value(value))]) }

  /// Waits until so many loads have begun.
  func begun(_ count: Int) async { await state.wait { $0.begun >= count } }

  /// A load: waits for a reply, or to be cancelled.
  func load(_ previous: Previous<Int>? = nil) async throws -> LoadReply<Int> {
    state.change { state in
      state.begun += 1
      state.previous.append(previous)
    }
    await state.wait { !$0.replies.isEmpty }
    let reply = state.change { state -> Result<LoadReply<Int>, Failure>? in
      state.ended += 1
      if Task.isCancelled { state.cancelled += 1 }
      return Task.isCancelled || state.replies.isEmpty ? nil : state.replies.removeFirst()
    }
    guard let reply else { throw CancellationError() }
    return try reply.get()
  }
}

/// Waits until a condition holds that other tasks bring about.
///
/// It yields, and records an issue if the task is cancelled before, by the time limit of its suite.
/// No number of yields says how much the other tasks have done.
func eventually(
  _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
  _ isMet: () throws -> Bool
) async rethrows {
  while try !isMet() {
    guard !Task.isCancelled else {
      Issue.record(what, sourceLocation: sourceLocation)
      return
    }
    await Task.yield()
  }
}

/// Runs a job at once, on the thread that enqueues it.
final class ImmediateExecutor: TaskExecutor {
  func enqueue(_ job: UnownedJob) { job.runSynchronously(on: asUnownedTaskExecutor()) }
}
