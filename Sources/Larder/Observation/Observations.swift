import Synchronization

/// The reason for a removal, as the note of its row in a batch.
enum RemovalCause: UInt8 {
  case removed = 0
  case expired = 1
  case evicted = 2
}

/// A committed change, encoded as in its batch.
package struct CommittedChange: Sendable {
  enum What: Sendable {
    case set
    case removed(RemovalCause)
    case cleared
    case invalidated
    /// The database was reopened after a failure: a write that failed may have taken effect.
    case reopened
  }

  let what: What
  /// The physical key of the record, followed by the record if it was set; the tag if a tag was
  /// invalidated; otherwise empty.
  let bytes: [UInt8]
  let keyCount: Int
  /// The number of its commit; nil if its commit was reported as failed, if a cache was dropped, or
  /// if the database was reopened.
  var sequence: UInt64?
}

/// Who is told of the changes to a cache, or to one of its keys.
///
/// It is called under a lock, in the order of the commits: it must not wait, nor call the store.
protocol ChangeObserver: AnyObject, Sendable {
  func report(_ change: CommittedChange)

  /// There will be no more changes. Called without a lock.
  func finish()
}

/// The observers of a store's caches.
///
/// A changed row finds its observers by the id of its cache and by its key, so a write takes no
/// longer for the observers of other caches and keys.
final class Observations: Sendable {
  /// The observers by their numbers.
  fileprivate typealias Observers = [Int: any ChangeObserver]

  /// The observers of one cache.
  fileprivate struct Watched {
    let cache: any OpenCache
    /// The id of the cache at the last reported change.
    var id: UInt64
    /// The observers of all keys.
    var whole: Observers = [:]
    /// The observers of single keys, by the user's key; no list is empty.
    var single: [[UInt8]: Observers] = [:]

    var isEmpty: Bool { whole.isEmpty && single.isEmpty }
  }

  /// A cleared cache: its old ids, and its new id.
  struct Renumbering {
    let from: [UInt64]
    let to: UInt64
  }

  fileprivate struct State {
    /// The observed caches, by identity.
    var watched: [ObjectIdentifier: Watched] = [:]
    /// The observed caches that were not dropped, by ``Watched/id``.
    var caches: [UInt64: ObjectIdentifier] = [:]
    /// The observed caches that were dropped, whose observers have not ended yet.
    var dropped: [ObjectIdentifier] = []
    /// The caches that the clearing batch in flight renumbers.
    var renumbered: [Renumbering] = []
    var lastNumber = 0
    var isFinished = false
  }

  private let state = Lock(State())
  /// The number of observed caches.
  private let count = Atomic<Int>(0)

  /// Whether there are no observers; writes skip the observations then.
  var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

  /// Adds an observer of a cache, or of one of its keys.
  ///
  /// - Returns: A closure that removes it again; nil, and nothing was added, if the cache was
  ///   dropped or the store closed.
  func add(
    _ observer: some ChangeObserver, of cache: any OpenCache, key: [UInt8]?
  ) -> (@Sendable () -> Void)? {
    let identity = ObjectIdentifier(cache)
    let number: Int? = state.withLock { state in
      guard !state.isFinished, !cache.isDropped else { return nil }
      state.lastNumber += 1
      state.add(observer, number: state.lastNumber, of: cache, key: key)
      count.store(state.watched.count, ordering: .relaxed)
      return state.lastNumber
    }
    guard let number else { return nil }
    return { [weak self] in self?.remove(number, of: identity, key: key) }
  }

  private func remove(_ number: Int, of cache: ObjectIdentifier, key: [UInt8]?) {
    // Releases the observer outside the lock, because its deinitialisation may run any code.
    let removed = state.withLock { state in
      defer { count.store(state.watched.count, ordering: .relaxed) }
      return state.remove(number, of: cache, key: key)
    }
    _ = removed
  }

  /// Sets the id of a cache by `set`, and reports a change of the id that was not reported yet.
  ///
  /// The id was reported already if the batch that cleared the cache was acknowledged. It was not
  /// if the batch was reported as failed and took effect when the database was reopened, or if the
  /// cache was dropped.
  func follow(_ cache: any OpenCache, to id: UInt64, set: () -> Void) {
    state.withLock { state in
      // Under the lock: an observer is added under the id that the cache has.
      set()
      state.renumber(ObjectIdentifier(cache), to: id)
    }
  }

  /// Notifies all observers that a write that failed may have taken effect.
  func reopened() {
    let change = CommittedChange(what: .reopened, bytes: [], keyCount: 0)
    state.withLock { state in
      for watched in state.watched.values where watched.id != droppedCacheID {
        watched.report(change)
      }
    }
  }

  /// Ends all observers; none can be added any more.
  func finish() {
    let watched = state.withLock { state in
      defer { (state.watched, state.caches, state.dropped) = ([:], [:], []) }
      state.isFinished = true
      count.store(0, ordering: .relaxed)
      return state.watched
    }
    for cache in watched.values { cache.finish() }
  }
}

extension Observations.Watched {
  func report(_ change: CommittedChange) {
    for observer in whole.values { observer.report(change) }
    for observers in single.values { for observer in observers.values { observer.report(change) } }
  }

  /// Ends all observers.
  ///
  /// Called without a lock, because an observer that ends is removed.
  func finish() {
    for observer in whole.values { observer.finish() }
    for observers in single.values { for observer in observers.values { observer.finish() } }
  }
}

extension Observations.State {
  fileprivate mutating func add(
    _ observer: any ChangeObserver, number: Int, of cache: any OpenCache, key: [UInt8]?
  ) {
    let identity = ObjectIdentifier(cache)
    if watched[identity] == nil {
      watched[identity] = Observations.Watched(cache: cache, id: cache.id)
      caches[cache.id] = identity
    }
    if let key {
      watched[identity]?.single[key, default: [:]][number] = observer
    } else {
      watched[identity]?.whole[number] = observer
    }
  }

  /// Removes an observer, and its cache with the last one.
  ///
  /// - Returns: The removed cache or observer, which the caller releases.
  fileprivate mutating func remove(
    _ number: Int, of cache: ObjectIdentifier, key: [UInt8]?
  ) -> (observer: (any ChangeObserver)?, watched: Observations.Watched?) {
    var observer: (any ChangeObserver)?
    if let key {
      observer = watched[cache]?.single[key]?.removeValue(forKey: number)
      if watched[cache]?.single[key]?.isEmpty == true { watched[cache]?.single[key] = nil }
    } else {
      observer = watched[cache]?.whole.removeValue(forKey: number)
    }
    guard let id = watched[cache]?.id, watched[cache]?.isEmpty == true else {
      return (observer, nil)
    }
    caches[id] = nil
    // Another cache may get this identity.
    if id == droppedCacheID { dropped.removeAll { $0 == cache } }
    return (observer, watched.removeValue(forKey: cache))
  }

  /// Reports that a cache was cleared or dropped, if it has a new id, which is higher.
  fileprivate mutating func renumber(
    _ cache: ObjectIdentifier, to id: UInt64, in sequence: UInt64? = nil
  ) {
    guard let old = watched[cache]?.id, old < id else { return }
    caches[old] = nil
    watched[cache]?.id = id
    watched[cache]?.report(
      CommittedChange(what: .cleared, bytes: [], keyCount: 0, sequence: sequence))
    if id == droppedCacheID { dropped.append(cache) } else { caches[id] = cache }
  }
}

// MARK: - Notifying

extension Observations {
  /// Sets the caches that the next clearing batch renumbers, or withdraws them.
  ///
  /// Called under the registry lock, so there is only one clearing batch at a time.
  func expectClear(of renumbered: [Renumbering]) { state.withLock { $0.renumbered = renumbered } }

  /// Notifies the observers of a committed batch, without the rows whose condition has failed.
  func notify(_ batch: borrowing WriteBatch, _ commit: Commit) {
    let ended = batch.bytes.withBytes { bytes in
      let rows = batch.rows
      let isClearing = batch.isClearing
      return state.withLock { state in
        let ended = takeDropped(&state)
        state.notify(rows, in: bytes, commit)
        guard isClearing, !state.renumbered.isEmpty else { return ended }
        for renumbering in state.renumbered {
          for id in renumbering.from {
            if let cache = state.caches[id] {
              state.renumber(cache, to: renumbering.to, in: commit.sequence)
            }
          }
        }
        // Entries that the batch saves after the clear have the new id.
        state.notify(rows, in: bytes, commit)
        return ended
      }
    }
    for cache in ended { cache.finish() }
  }

  /// Ends the observers of caches that were dropped.
  func endDropped() {
    let ended = state.withLock { takeDropped(&$0) }
    for cache in ended { cache.finish() }
  }

  /// Takes the caches that were dropped; the caller ends their observers without the lock.
  private func takeDropped(_ state: inout State) -> [Watched] {
    guard !state.dropped.isEmpty else { return [] }
    defer {
      state.dropped = []
      count.store(state.watched.count, ordering: .relaxed)
    }
    return state.dropped.compactMap { state.watched.removeValue(forKey: $0) }
  }
}

extension Observations.State {
  fileprivate func notify(
    _ rows: [WriteBatch.Row], in bytes: UnsafeRawBufferPointer, _ commit: Commit
  ) {
    for row in rows where row.isKept(without: commit.failed) {
      let recordKey = UnsafeRawBufferPointer(rebasing: bytes[row.key])
      guard recordKey.first == KeySpace.records.rawValue else {
        notifyOfTag(row, under: recordKey, in: commit.sequence)
        continue
      }
      var offset = 1
      guard let id = readVarint(recordKey.bytes, at: &offset), let cache = caches[id],
        let watched = watched[cache]
      else { continue }
      let observers = watched.single.isEmpty ? nil : watched.single[Array(recordKey[offset...])]
      guard observers != nil || !watched.whole.isEmpty,
        let change = CommittedChange(row, in: bytes, sequence: commit.sequence)
      else { continue }
      for observer in watched.whole.values { observer.report(change) }
      for observer in (observers ?? [:]).values { observer.report(change) }
    }
  }

  /// Notifies the observers of caches with tagged entries if `row` invalidates a tag.
  private func notifyOfTag(
    _ row: WriteBatch.Row, under key: UnsafeRawBufferPointer, in sequence: UInt64
  ) {
    guard row.kind == .put, key.starts(with: Metadata.tagPrefix) else { return }
    let tag = Metadata.tag(in: Array(key))
    let change = CommittedChange(
      what: .invalidated, bytes: tag, keyCount: tag.count, sequence: sequence)
    for watched in watched.values where watched.cache.features.contains(.tags) {
      watched.report(change)
    }
  }
}

extension CommittedChange {
  /// The change of a record; nil if observers are not notified of it.
  fileprivate init?(_ row: WriteBatch.Row, in bytes: UnsafeRawBufferPointer, sequence: UInt64) {
    switch row.kind {
    case .put:
      guard row.note != Self.sameValue else { return nil }
      what = .set
    case .remove: what = .removed(RemovalCause(rawValue: row.note) ?? .removed)
    }
    // The value follows its key in the batch.
    self.bytes = Array(bytes[row.key.lowerBound..<row.value.upperBound])
    keyCount = row.keyCount
    self.sequence = sequence
  }

  /// The note of a put that rewrites the same value in another encoding.
  package static let sameValue: UInt8 = 1
}
