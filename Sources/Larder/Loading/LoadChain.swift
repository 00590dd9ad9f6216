import Synchronization

/// A call of a closure that loads: the mark of its tasks, and the loads that they wait for.
///
/// A task that outlives the call, or the flight, is no longer a part of the load.
///
/// A load that waits for itself, directly or through others, would wait for ever. Links between
/// flights find such circles, across caches and stores.
final class LoadChain: Sendable {
  @TaskLocal static var current: LoadChain?

  private static let lastNumber = Atomic<Int>(0)
  /// The flights that each flight waits for, each with the number of its waiters there.
  private static let links = Lock<[Int: [Int: Int]]>([:])

  /// The call that the current task is a part of; nil outside a call, or after it has ended.
  static var running: LoadChain? { current.flatMap { $0.hasEnded ? nil : $0 } }

  private let ended = Atomic<Bool>(false)
  /// The number of the flight in this process.
  let number: Int
  /// The keys that the flight loads, and the cache.
  private let keys: Set<RecordKey>
  private let cache: ObjectIdentifier

  init(_ number: Int, _ keys: Set<RecordKey>, of cache: ObjectIdentifier) {
    (self.number, self.keys, self.cache) = (number, keys, cache)
  }

  private var hasEnded: Bool { ended.load(ordering: .acquiring) }

  /// Ends the call: the load waits for no other one.
  func end() {
    Self.links.withLock { links in
      guard !hasEnded else { return }
      ended.store(true, ordering: .releasing)
      links[number] = nil
    }
  }

  /// A number for a flight or a waiter, larger than all before in this process.
  static func newNumber() -> Int {
    lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Whether the load is for a key.
  func includes(_ key: RecordKey, of cache: ObjectIdentifier) -> Bool {
    self.cache == cache && keys.contains(key)
  }

  /// Notes that this load waits for a flight; false, and nothing is noted, if that one waits for
  /// this load.
  func link(to flight: Int) -> Bool {
    Self.links.withLock { links in
      if hasEnded { return true }
      var (visited, next): (Set<Int>, [Int]) = ([], [flight])
      while let flight = next.popLast() {
        guard flight != number else { return false }
        if visited.insert(flight).inserted { next += (links[flight] ?? [:]).keys }
      }
      links[number, default: [:]][flight, default: 0] += 1
      return true
    }
  }

  func unlink(from flight: Int) {
    Self.links.withLock { links in
      // A later call of the flight may have links.
      guard !hasEnded, let count = links[number]?[flight] else { return }
      links[number]?[flight] = count > 1 ? count - 1 : nil
      if links[number]?.isEmpty == true { links[number] = nil }
    }
  }
}
