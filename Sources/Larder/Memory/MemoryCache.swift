import Foundation
import Synchronization

/// Objects in memory, by key, whose weights together stay below a limit.
///
/// The keys are divided among shards by their hashes, each with a lock, so that threads seldom wait
/// for each other. All shards share the limit; a shard that needs room evicts its own objects
/// first. No object is released under a lock, because that may run any code.
package final class MemoryCache {
  /// A shard with its lock, apart from its neighbours' cache lines.
  private struct LockedShard: ~Copyable {
    // The first field, so that the shard has the same address.
    var lock = SystemLock()
    var shard: MemoryShard
    private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) =
      (0, 0, 0, 0, 0, 0, 0, 0)

    init(limit: Int) { shard = MemoryShard(limit: limit) }
  }

  /// The room for which a shard of its own is worth while.
  private static let shardBytes = 128 << 10

  /// The most that the weights may be together.
  let limit: Int
  // An array cannot hold what has a lock.
  private let shards: UnsafeMutablePointer<LockedShard>
  private let shardCount: Int
  private let held = Atomic<Int>(0)
  private let evictions = Atomic<Int>(0)
  private let refusals = Atomic<Int>(0)
  private let owners = Lock(0)

  /// - Parameters:
  ///   - limit: The most that the weights may be together.
  ///   - wanted: The number of shards, a power of two; by default up to 16 for each
  ///     processor.
  package init(limit: Int, shardCount wanted: Int? = nil) {
    var count = 1
    let most = min(16 * ProcessInfo.processInfo.activeProcessorCount, limit / Self.shardBytes)
    while 2 * count <= most { count *= 2 }
    count = wanted ?? count
    precondition(count > 0 && count & (count - 1) == 0, "\(count) shards, not a power of two")
    shards = .allocate(capacity: count)
    (self.limit, shardCount) = (limit, count)
    for shard in 0..<count {
      (shards + shard).initialize(to: LockedShard(limit: limit / count))
      SystemLock.initialize(lock(of: shard))
    }
  }

  deinit {
    reduce(to: 0)
    for shard in 0..<shardCount { SystemLock.destroy(lock(of: shard)) }
    shards.deinitialize(count: shardCount)
    shards.deallocate()
  }

  /// A number by which ``read(_:by:)`` counts hits.
  package func newOwner() -> Int {
    owners.withLock { owners in
      for shard in 0..<shardCount { withShard(shard) { $0.addOwner() } }
      owners += 1
      return owners - 1
    }
  }

  /// The number of hits of an owner.
  func hits(of owner: Int) -> Int {
    (0..<shardCount).reduce(0) { sum, shard in
      sum + withShard(shard) { $0.hits(of: owner) }
    }
  }

  @inline(__always)
  private func shard(of hash: UInt64) -> Int {
    Int(truncatingIfNeeded: hash >> 48) & (shardCount - 1)
  }
}

// MARK: - Locks

extension MemoryCache {
  @inline(__always)
  private func lock(of shard: Int) -> UnsafeMutablePointer<SystemLock> {
    UnsafeMutableRawPointer(shards + shard).assumingMemoryBound(to: SystemLock.self)
  }

  @inline(__always)
  private func withShard<Result>(
    _ shard: Int, _ body: (inout MemoryShard) -> Result
  ) -> Result {
    let lock = lock(of: shard)
    SystemLock.take(lock)
    defer { SystemLock.release(lock) }
    return body(&shards[shard].shard)
  }
}

// @unchecked: the pointer never changes, and what it points to has locks.
extension MemoryCache: @unchecked Sendable {}

// MARK: - Reading

extension MemoryCache {
  /// An object in memory, whose shard is locked until ``end()``.
  ///
  /// A reader that only copies a part of the object need not retain it.
  struct Loan {
    let object: Unmanaged<Resident>
    fileprivate let lock: UnsafeMutablePointer<SystemLock>

    @inline(__always)
    func end() { SystemLock.release(lock) }

    /// Whether a tier is known to have the value, at a time of the clock's uptime.
    func isConfirmed(atNanoseconds uptime: Int) -> Bool {
      object._withUnsafeGuaranteedRef { $0.lease?.isRunning(atNanoseconds: uptime) == true }
    }
  }

  /// Finds the object of a key, and counts a hit of an owner.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - owner: The owner.
  ///   - isValid: Whether the object may be used; it is removed otherwise. Called under the lock of
  ///     the shard.
  /// - Returns: The object; nil if the key has none that is valid. Until its loan is ended, the
  ///   caller must not call what may use the cache.
  @inline(__always)
  func lend(
    _ key: MemoryKey, to owner: Int, if isValid: (Resident) -> Bool
  ) -> Loan? {
    let shard = shard(of: key.hash)
    let lock = lock(of: shard)
    SystemLock.take(lock)
    guard let object = shards[shard].shard.read(key, by: owner) else {
      SystemLock.release(lock)
      return nil
    }
    if object._withUnsafeGuaranteedRef({ isValid($0) }) { return Loan(object: object, lock: lock) }
    shards[shard].shard.takeBackHit(by: owner)
    let taken = shards[shard].shard.remove(key)
    SystemLock.release(lock)
    if let taken { release(taken) }
    return nil
  }

  /// Returns the object of a key, and counts a hit of an owner; nil if the key has no object.
  package func read(_ key: MemoryKey, by owner: Int) -> Resident? {
    guard let loan = lend(key, to: owner, if: { _ in true }) else { return nil }
    defer { loan.end() }
    return loan.object.takeUnretainedValue()
  }

  /// Takes back a hit whose object was not used after all.
  func takeBackHit(hash: UInt64, by owner: Int) {
    withShard(shard(of: hash)) { $0.takeBackHit(by: owner) }
  }

  /// Whether a key's object was read since the last call; false if there is none.
  func takeRead(_ key: MemoryKey) -> Bool {
    withShard(shard(of: key.hash)) { $0.takeRead(key) }
  }

  /// The sums over all shards.
  var statistics: MemoryStatistics {
    var statistics = MemoryStatistics()
    for shard in 0..<shardCount {
      statistics.entries += withShard(shard) { $0.count }
    }
    statistics.bytes = held.load(ordering: .relaxed)
    statistics.evictions = evictions.load(ordering: .relaxed)
    statistics.tooLarge = refusals.load(ordering: .relaxed)
    return statistics
  }

  /// The weight of all objects.
  var weight: Int { held.load(ordering: .relaxed) }
}

// MARK: - Changing

extension MemoryCache {
  /// Objects that were taken out of a shard, to be released without its lock.
  private struct Taken {
    private var first: MemoryShard.Object?
    private var others: [MemoryShard.Object] = []
    private(set) var weight = 0

    mutating func add(_ taken: (object: MemoryShard.Object, weight: Int)) {
      weight += taken.weight
      if first == nil { first = taken.object } else { others.append(taken.object) }
    }

    func release() {
      first?.release()
      for object in others { object.release() }
    }
  }

  /// Adds an object, in place of the one that the key has, and evicts others if there is no room.
  ///
  /// - Parameters:
  ///   - object: The object.
  ///   - weight: Its weight. An object that weighs more than a quarter of the limit is refused and
  ///     counted: it would replace too many others.
  ///   - key: Its key.
  ///   - isCurrent: Whether the object may still be added; called under the lock of the shard.
  package func insert(
    _ object: Resident, weight: Int, under key: MemoryKey, if isCurrent: () -> Bool
  ) {
    guard weight <= max(1, limit / 4) else {
      refusals.add(1, ordering: .relaxed)
      return
    }
    let home = shard(of: key.hash)
    var replaced = Taken()
    var evicted = Taken()
    withShard(home) { shard in
      guard isCurrent() else { return }
      held.add(weight, ordering: .relaxed)
      // Released by whoever takes it out of the shard.
      let object = Unmanaged.passRetained(object)
      if let old = shard.replace(key, by: object, weight: weight) {
        replaced.add(old)
        held.subtract(old.weight, ordering: .relaxed)
      } else {
        let wasGhost = shard.removeGhost(of: key)
        makeRoom(in: &shard, upTo: limit, &evicted)
        shard.insert(object, weight: weight, under: key, wasGhost: wasGhost)
      }
    }
    makeRoom(upTo: limit, from: home, &evicted)
    replaced.release()
    evicted.release()
  }

  /// Removes the object of a key, if there is one.
  package func remove(_ key: MemoryKey) {
    if let taken = withShard(shard(of: key.hash), { $0.remove(key) }) { release(taken) }
  }

  /// Releases what was taken out of a shard, without its lock.
  private func release(_ taken: (object: MemoryShard.Object, weight: Int)) {
    held.subtract(taken.weight, ordering: .relaxed)
    taken.object.release()
  }

  /// Evicts objects until their weight is `weight` at most.
  func reduce(to weight: Int) {
    var evicted = Taken()
    makeRoom(upTo: weight, from: 0, &evicted)
    if weight == 0 {
      for shard in 0..<shardCount { withShard(shard) { $0.shrink() } }
    }
    evicted.release()
  }

  /// Evicts objects of all shards, beginning with the one after `first`, while they weigh too much.
  private func makeRoom(upTo limit: Int, from first: Int, _ evicted: inout Taken) {
    var shard = first
    for _ in 0..<shardCount where held.load(ordering: .relaxed) > limit {
      shard = (shard + 1) & (shardCount - 1)
      withShard(shard) { makeRoom(in: &$0, upTo: limit, &evicted) }
    }
  }

  private func makeRoom(in shard: inout MemoryShard, upTo limit: Int, _ evicted: inout Taken) {
    while held.load(ordering: .relaxed) > limit, let victim = shard.evict() {
      held.subtract(victim.weight, ordering: .relaxed)
      evictions.add(1, ordering: .relaxed)
      evicted.add(victim)
    }
  }
}
