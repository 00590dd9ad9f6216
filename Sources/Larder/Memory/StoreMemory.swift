import Synchronization

/// The decoded values that a store has in memory, and the rules by which they agree with the disk.
///
/// Only reads from disk add values, and each write removes the value of its key:
///
/// 1. Before a batch is written, the value of each of its keys is removed, and the key counts as
///    being written until the write has ended, whatever its outcome.
/// 2. A reader that finds no value notes the state of the key, reads the disk, and adds the value
///    only if the key was not being written at that time and was not written since.
///
/// So a value in memory is what the disk has, and a failed write leaves none. Keys share 1,024
/// counters by their hashes: a write may prevent the addition of another key's value, which the
/// next read of that key adds.
///
/// Values of a cleared cache are never found again, because their keys have its old id.
final class StoreMemory {
  private static let stripeCount = 1024

  /// The values of all caches that have no limit of their own; nil if there are none.
  let shared: MemoryCache?
  /// The memory that caches have of their own, by the present ids of the caches.
  private let own = Lock<[UInt64: MemoryCache]>([:])
  private let ownCount = Atomic<Int>(0)
  private let keyHash = KeyHash()
  private let owner = ProcessOwner()
  // A number of writes in the lower half, and that of the writes under way in the upper half. An
  // array cannot hold atomics.
  private let stripes: UnsafeMutablePointer<Atomic<UInt64>>

  /// - Parameter limit: The room for ``shared``, in bytes; 0 for none.
  init(limit: Int) {
    shared = limit > 0 ? MemoryCache(limit: limit) : nil
    stripes = .allocate(capacity: Self.stripeCount)
    for stripe in 0..<Self.stripeCount { (stripes + stripe).initialize(to: Atomic(0)) }
  }

  deinit {
    stripes.deinitialize(count: Self.stripeCount)
    stripes.deallocate()
  }

  /// Notes that a cache with memory of its own, which had the id `old`, now has the id `new`.
  ///
  /// Nobody looks for values under the old id any more.
  func follow(_ cache: MemoryCache, from old: UInt64, to new: UInt64) {
    guard cache !== shared else { return }
    own.withLock { own in
      own[old] = nil
      if new != droppedCacheID { own[new] = cache }
      ownCount.store(own.count, ordering: .releasing)
    }
  }

  /// All memory caches.
  private var all: [MemoryCache] { (shared.map { [$0] } ?? []) + own.withLock { $0.values } }

  var statistics: MemoryStatistics {
    all.reduce(into: MemoryStatistics()) { $0.add($1.statistics) }
  }

  /// Releases values, beginning with the largest cache, until all together have `bytes` at most.
  func reduce(to bytes: Int) {
    // In a forked child, a lock may be held by a thread that does not exist there.
    guard owner.isCurrent else { return }
    let caches = all.map { (cache: $0, weight: $0.weight) }.sorted { $0.weight > $1.weight }
    var others = caches.reduce(0) { $0 + $1.weight }
    for (cache, weight) in caches {
      others -= weight
      cache.reduce(to: max(0, bytes - others))
    }
  }

  /// Whether a value in memory was read since the last call; false if it is not there.
  func takeRead(_ key: RecordKey, in cache: MemoryCache?) -> Bool {
    guard let cache else { return false }
    return key.withUserKey { cache.takeRead(self.key($0, in: key.cacheID)) }
  }

  /// The key under which the value of a user's encoded key is in memory.
  @inline(__always)
  func key(_ userKey: UnsafeRawBufferPointer, in cacheID: UInt64) -> MemoryKey {
    keyHash.key(userKey, in: cacheID)
  }
}

// @unchecked: the pointer never changes, and what it points to are atomics.
extension StoreMemory: @unchecked Sendable {}

// MARK: - Agreeing with the disk

extension StoreMemory {
  /// The state of a key before it is read from disk.
  struct Reading {
    fileprivate let hash: UInt64
    fileprivate let stripe: UInt64
    /// The epoch of invalidated tags.
    let tagEpoch: UInt64

    /// The state after one more write of the key, and of no other key that shares its counter.
    var afterOneWrite: Reading {
      Reading(hash: hash, stripe: stripe + oneWrite, tagEpoch: tagEpoch)
    }
  }

  private static let oneWriter: UInt64 = 1 << 32
  private static let oneWrite: UInt64 = 1

  @inline(__always)
  private func stripe(of hash: UInt64) -> UnsafeMutablePointer<Atomic<UInt64>> {
    stripes + Int(truncatingIfNeeded: (hash >> 32) & UInt64(Self.stripeCount - 1))
  }

  /// Begins to read a key from disk; nil if it is being written.
  func beginReading(hash: UInt64, tagEpoch: UInt64) -> Reading? {
    let state = stripe(of: hash).pointee.load(ordering: .acquiring)
    guard state < Self.oneWriter else { return nil }
    return Reading(hash: hash, stripe: state, tagEpoch: tagEpoch)
  }

  /// Adds what was read from disk, unless the key was written since.
  func add(
    _ entry: Resident, weight: Int, under key: MemoryKey, _ reading: Reading, to cache: MemoryCache
  ) {
    let stripe = stripe(of: reading.hash)
    cache.insert(entry, weight: weight, under: key) {
      // A writer that comes later removes the entry once it gets the lock.
      stripe.pointee.load(ordering: .acquiring) == reading.stripe
    }
  }

  /// Removes the value of a key that was changed on another machine.
  func changedElsewhere(_ key: MemoryKey) {
    stripe(of: key.hash).pointee.wrappingAdd(Self.oneWrite, ordering: .acquiringAndReleasing)
    remove(key)
  }

  /// Notes that the records of a batch are about to be written.
  func willWrite(_ batch: borrowing WriteBatch) { forEachRecord(of: batch) { willWrite($0) } }

  /// Notes that the write of a batch's records has ended.
  func didWrite(_ batch: borrowing WriteBatch) {
    forEachRecord(of: batch) { key in
      stripe(of: key.hash).pointee.wrappingSubtract(Self.oneWriter, ordering: .releasing)
    }
  }

  /// Calls `body` with the key of each record that a batch changes.
  @inline(__always)
  private func forEachRecord(of batch: borrowing WriteBatch, _ body: (MemoryKey) -> Void) {
    batch.bytes.withBytes { bytes in
      for row in batch.rows {
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        if key.first == KeySpace.records.rawValue { body(self.key(ofRecord: key)) }
      }
    }
  }

  private func willWrite(_ key: MemoryKey) {
    stripe(of: key.hash).pointee.wrappingAdd(
      Self.oneWriter + Self.oneWrite, ordering: .acquiringAndReleasing)
    remove(key)
  }

  private func remove(_ key: MemoryKey) {
    shared?.remove(key)
    guard ownCount.load(ordering: .acquiring) > 0 else { return }
    own.withLock { $0[key.cacheID] }?.remove(key)
  }

  private func key(ofRecord recordKey: UnsafeRawBufferPointer) -> MemoryKey {
    var userStart = 1
    let cacheID = readVarint(recordKey.bytes, at: &userStart)
    // A record's key begins with the id of a cache.
    return key(UnsafeRawBufferPointer(rebasing: recordKey[userStart...]), in: cacheID ?? 0)
  }

  /// Forgets everything after the database was reopened, which may put a failed write into effect.
  func reopened() {
    for stripe in 0..<Self.stripeCount {
      stripes[stripe].wrappingAdd(Self.oneWrite, ordering: .acquiringAndReleasing)
    }
    reduce(to: 0)
  }
}
