import Foundation
import Larder
import Synchronization

/// A store with a number of one thing, and a cache whose calls are measured beside it.
final class GrowthStage: Sendable {
  /// The entries that each cache has whose calls are measured: the numbers from 0, by themselves.
  static let entries = 100
  /// A number from which on the keys are free for the things.
  private static let others = 1_000_000

  let store: Store
  let cache: Cache<Int, Int>
  /// A cache that is cleared.
  let cleared: Cache<Int, Int>
  /// The number of things.
  let count: Int
  private let observations = Mutex<[Changes<Int, Int>]>([])
  private let flights = Mutex<[Task<Void, Never>]>([])

  init(with count: Int, _ thing: GrowthThing, at directory: URL) throws {
    self.count = count
    store = try Store(at: directory)
    var loading = Loading()
    loading.absentFor = .seconds(86_400)
    cache = try store.cache("measured", of: Int.self, keyedBy: Int.self, loading: loading)
    cleared = try store.cache("cleared", of: Int.self, keyedBy: Int.self)
    try make(count, thing)
    try store.write { batch in
      for number in 0..<Self.entries {
        batch.save(number, for: number, in: cache, tags: ["tag"])
      }
    }
  }

  private func make(_ count: Int, _ thing: GrowthThing) throws {
    switch thing {
    case .caches: for number in 0..<count { _ = try open(number) }
    case .ownMemories: for number in 0..<count { _ = try open(number, memory: .bytes(10_000)) }
    case .observers:
      let changes = (0..<count).map { cache.changes(for: Self.others + $0) }
      observations.withLock { $0 = changes }
    case .observedCaches:
      let changes = try (0..<count).map { try open($0).changes() }
      observations.withLock { $0 = changes }
    case .tags:
      for number in 0..<count {
        try store.invalidate(tag: "tag \(number)", durability: .processCrash)
      }
    case .absent:
      let cache = cache
      try inTask {
        for key in Self.others..<Self.others + count {
          _ = try await cache.entry(for: key) { _ in .absent }
        }
      }
    case .lifetimes:
      for number in 0..<count {
        try cache.save(0, for: Self.others, lifetime: .hours(Double(number + 1)))
      }
    case .entries:
      try store.write { batch in
        for key in Self.others..<Self.others + count {
          batch.save(key, for: key, in: cache, tags: ["tag"])
        }
      }
    case .flights: startFlights(count)
    case .keys: break
    }
  }

  private func open(_ number: Int, memory: MemoryTier = .shared) throws -> Cache<Int, Int> {
    try store.cache("cache \(number)", of: Int.self, keyedBy: Int.self, memory: memory)
  }

  /// Begins loads that end only when they are cancelled, and returns when all have begun.
  private func startFlights(_ count: Int) {
    let (cache, begun) = (cache, DispatchSemaphore(value: 0))
    let tasks = (0..<count).map { number in
      Task {
        do {
          _ = try await cache.value(for: Self.others + number) {
            begun.signal()
            try await Task.sleep(for: .seconds(86_400))
            return 0
          }
        } catch {
          // It was cancelled, or the store was closed.
        }
      }
    }
    for _ in tasks { begun.wait() }
    flights.withLock { $0 = tasks }
  }

  func end() throws {
    for task in flights.withLock({ $0 }) { task.cancel() }
    observations.withLock { $0 = [] }
    try store.close()
  }
}

/// Runs `body` in a task, and waits for it.
@discardableResult
func inTask<Result: Sendable>(
  _ body: @escaping @Sendable () async throws -> Result
) throws -> Result {
  let outcome = Mutex<Swift.Result<Result, any Error>?>(nil)
  let ended = DispatchSemaphore(value: 0)
  Task {
    let result: Swift.Result<Result, any Error>
    do {
      result = .success(try await body())
    } catch {
      result = .failure(error)
    }
    outcome.withLock { $0 = result }
    ended.signal()
  }
  ended.wait()
  guard let result = outcome.withLock({ $0 }) else {
    throw WrongResults(description: "a task has ended without a result")
  }
  return try result.get()
}
