import Foundation
import Larder
import Synchronization

/// Calls by many threads or tasks, against as many calls by one.
///
/// If a lock made each thread wait for another one to be woken, many would take longer than one.
struct ThreadsSuite {
  private static let goal = 1.0
  private static let many = 16
  private static let keys = 1000
  private static let smallBytes = 100
  private static let largeBytes = 20_000

  private let store: Store
  private let small: Cache<Int, Data>
  private let large: Cache<Int, Data>
  /// The reads of small values; other calls take longer.
  private let operations: Int
  /// The next key that no call has loaded.
  private let newKeys = KeyCounter()

  private final class KeyCounter: Sendable {
    private let next = Atomic(ThreadsSuite.keys)

    func take() -> Int { next.wrappingAdd(1, ordering: .relaxed).oldValue }
  }

  init(_ scale: BenchScale, in workspace: Workspace) throws {
    operations = scale.visited
    store = try Store(at: workspace.directory("threads"))
    let caches = try [Self.smallBytes, Self.largeBytes].map { [store] bytes in
      let cache = try store.cache(
        "of \(bytes)", of: Data.self, keyedBy: Int.self, coder: .bytes, memory: .none)
      for key in 0..<Self.keys { try cache.save(Data(count: bytes), for: key) }
      return cache
    }
    (small, large) = (caches[0], caches[1])
  }

  func close() throws { try store.close() }

  var contests: [Contest] {
    let (small, large) = (small, large)
    return [
      reading("small value from disk", small, Self.smallBytes, operations),
      reading("20 KB from disk", large, Self.largeBytes, operations / 10),
      threads("save of a small value", operations / 4) { key in
        try small.save(Data(count: Self.smallBytes), for: key)
        return true
      },
      tasks("fresh entry on disk by value(for:load:)", operations / 10) { number in
        let value = try await small.value(for: number % Self.keys) { throw NotLoaded() }
        return value.count == Self.smallBytes
      },
      tasks("new value by value(for:load:)", operations / 40) { [newKeys] _ in
        let value = try await small.value(for: newKeys.take()) { Data(count: Self.smallBytes) }
        return value.count == Self.smallBytes
      },
    ]
  }

  private struct NotLoaded: Error {}

  private func reading(
    _ name: String, _ cache: Cache<Int, Data>, _ bytes: Int, _ count: Int
  ) -> Contest {
    threads(name, count) { try cache.value(for: $0)?.count == bytes }
  }

  /// Calls with a key of each, by many threads and by one.
  private func threads(
    _ name: String, _ count: Int, _ call: @escaping @Sendable (_ key: Int) throws -> Bool
  ) -> Contest {
    func time(byThreads threads: Int) throws -> Duration {
      try timed(expecting: count) {
        try sum(onThreads: threads) { thread in
          try stride(from: thread, to: count, by: threads).count { try call($0 % Self.keys) }
        }
      }
    }
    return Contest(
      name: "\(name), \(Self.many) threads to 1", operations: count, goal: Self.goal,
      a: { try time(byThreads: Self.many) }, b: { try time(byThreads: 1) })
  }

  private func tasks(
    _ name: String, _ count: Int, _ call: @escaping @Sendable (Int) async throws -> Bool
  ) -> Contest {
    Contest(
      name: "\(name), \(Self.many) tasks to 1", operations: count, goal: Self.goal,
      a: { try timedInTasks(Self.many, count, call) }, b: { try timedInTasks(1, count, call) })
  }
}
