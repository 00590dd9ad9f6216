import Foundation

/// The memory of an open cache for decoded values, which other caches may share.
///
/// Reads look here first. What is here is the value of a fresh entry, so a read that finds it needs
/// only the date; all other reads go to the disk.
final class CacheMemory: Sendable {
  let residents: MemoryCache
  /// The number by which `residents` counts the hits of the cache.
  private let owner: Int
  private let store: StoreMemory
  private let engine: any StorageEngine
  private let clock: any WallClock
  private let hasSystemClock: Bool
  private let invalidatedTags: InvalidatedTags

  /// - Parameters:
  ///   - residents: The cache's own memory, or the shared memory of the store.
  ///   - store: The memory of the store.
  ///   - context: The context of the store, which is not held.
  init(_ residents: MemoryCache, of store: StoreMemory, in context: StoreContext) {
    self.residents = residents
    self.store = store
    owner = residents.newOwner()
    engine = context.engine
    clock = context.clock
    hasSystemClock = context.clock is SystemClock
    invalidatedTags = context.invalidatedTags
  }

  /// The number of reads that found their value here.
  var hits: Int { residents.hits(of: owner) }

  /// Notes that the cache, which had the id `old` or none, is about to have the id `new`.
  func follow(from old: UInt64, to new: UInt64) { store.follow(residents, from: old, to: new) }
}

// MARK: - Finding values

extension CacheMemory {
  /// Finds the fresh value of a user's encoded key, and counts the hit; nil if it is not here.
  ///
  /// It finds nothing in a store that is closed or belongs to another process: the read from disk
  /// then throws. That is checked first, because a lock may be held in another process.
  ///
  /// - Parameters:
  ///   - userKey: The encoded key.
  ///   - cacheID: The id of the cache.
  ///   - hash: Set to the hash of the key.
  /// - Returns: The value, which is locked until the caller ends the loan.
  func lend(
    _ userKey: UnsafeRawBufferPointer, in cacheID: UInt64, _ hash: inout UInt64
  ) -> MemoryCache.Loan? {
    let key = store.key(userKey, in: cacheID)
    hash = key.hash
    guard engine.isUp else { return nil }
    // Before the lock: a clock of the program's may call the store.
    let now = now
    return residents.lend(key, to: owner) { isValid($0, at: now) }
  }

  /// Takes back a hit whose value was not used after all.
  func takeBackHit(hash: UInt64) { residents.takeBackHit(hash: hash, by: owner) }

  /// The most by which the coarse clock is late, in seconds, with a margin.
  private static let coarseness = 0.02

  /// The time, in seconds since the reference date, or some milliseconds later.
  @inline(__always)
  private var now: Double {
    hasSystemClock
      ? coarseSecondsSinceReferenceDate() + Self.coarseness
      : clock.now().timeIntervalSinceReferenceDate
  }

  /// ``WallClock/uptime()`` in nanoseconds.
  var uptimeNanoseconds: Int {
    hasSystemClock ? SystemClock.uptimeNanoseconds : clock.uptime().wholeNanoseconds
  }

  @inline(__always)
  private func isValid(_ resident: Resident, at now: Double) -> Bool {
    if let epoch = resident.tagEpoch, epoch != invalidatedTags.epoch { return false }
    return now < resident.validUntil || hasSystemClock && isValidExactly(resident)
  }

  private func isValidExactly(_ resident: Resident) -> Bool {
    clock.now().timeIntervalSinceReferenceDate < resident.validUntil
  }
}

// MARK: - Adding values

extension CacheMemory {
  /// Begins to read a record from disk; nil if its value cannot be added afterwards.
  func beginReading(hash: UInt64) -> StoreMemory.Reading? {
    store.beginReading(hash: hash, tagEpoch: invalidatedTags.epoch)
  }

  /// Removes the value of a key that was changed on another machine.
  func changedElsewhere(_ key: RecordKey) {
    key.withUserKey { store.changedElsewhere(store.key($0, in: key.cacheID)) }
  }

  /// Begins a read for callers that did not look into memory.
  func beginReading(_ key: RecordKey) -> StoreMemory.Reading? {
    key.withUserKey { beginReading(hash: store.key($0, in: key.cacheID).hash) }
  }

  /// Adds what was read from disk, unless it was written since.
  func add(_ entry: Resident, weight: Int, under key: RecordKey, _ reading: StoreMemory.Reading) {
    key.withUserKey { bytes in
      store.add(
        entry, weight: weight, under: store.key(bytes, in: key.cacheID), reading, to: residents)
    }
  }
}
