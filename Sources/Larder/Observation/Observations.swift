import LarderBytes
import LarderEngine
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
  }

  let what: What
  /// The physical key of the record, followed by the record if it was set; the tag if a tag was
  /// invalidated; empty if the cache was cleared.
  let bytes: [UInt8]
  let keyCount: Int
}

/// The observers of a store's caches.
final class Observations: Sendable {
  fileprivate struct Observer {
    let cache: any OpenCache
    /// The id of the cache at the last reported change.
    var id: UInt64
    /// The user's key to observe; nil for all keys.
    let key: [UInt8]?
    let stream: AsyncStream<CommittedChange>.Continuation
  }

  /// A cleared cache: its old ids, and its new id.
  struct Renumbering {
    let from: [UInt64]
    let to: UInt64
  }

  fileprivate struct State {
    var observers: [Int: Observer] = [:]
    /// The caches that the clearing batch in flight renumbers.
    var renumbered: [Renumbering] = []
    var lastNumber = 0
    var isFinished = false
  }

  private let state = Mutex(State())
  private let count = Atomic<Int>(0)

  /// Whether there are no observers; writes skip the observations then.
  var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

  func stream(
    of cache: any OpenCache, key: [UInt8]?, buffered: Int
  ) -> AsyncStream<CommittedChange> {
    precondition(buffered >= 1, "a buffer for \(buffered) changes; at least 1 is needed")
    let (stream, continuation) = AsyncStream.makeStream(
      of: CommittedChange.self, bufferingPolicy: .bufferingNewest(buffered))
    let number: Int? = state.withLock { state in
      let id = cache.id
      guard !state.isFinished, id != droppedCacheID else { return nil }
      state.lastNumber += 1
      state.observers[state.lastNumber] = Observer(
        cache: cache, id: id, key: key, stream: continuation)
      count.store(state.observers.count, ordering: .relaxed)
      return state.lastNumber
    }
    guard let number else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in self?.remove(number) }
    return stream
  }

  private func remove(_ number: Int) {
    // Releases the observer outside the lock, because its deinitialisation may run any code.
    let removed = state.withLock { state in
      defer { count.store(state.observers.count, ordering: .relaxed) }
      return state.observers.removeValue(forKey: number)
    }
    _ = removed
  }

  /// Ends all streams; streams created later end at once.
  func finish() {
    let observers = state.withLock { state in
      defer { state.observers = [:] }
      state.isFinished = true
      count.store(0, ordering: .relaxed)
      return state.observers
    }
    for observer in observers.values { observer.stream.finish() }
  }
}

// MARK: - Notifying

extension Observations {
  /// Sets the caches that the next clearing batch renumbers, or withdraws them.
  ///
  /// Called under the registry lock, so there is only one clearing batch at a time.
  func expectClear(of renumbered: [Renumbering]) { state.withLock { $0.renumbered = renumbered } }

  /// Notifies the observers of a committed batch, without the rows whose condition has failed.
  func notify(_ batch: borrowing WriteBatch, failed: Set<Int>) {
    let ended = batch.bytes.withBytes { bytes in
      let rows = batch.rows
      let isClearing = batch.isClearing
      return state.withLock { state in
        let ended = state.followCaches()
        state.notify(rows, in: bytes, without: failed)
        guard isClearing, !state.renumbered.isEmpty else { return ended }
        for renumbering in state.renumbered { state.clear(renumbering) }
        // Entries that the batch saves after the clear have the new id.
        state.notify(rows, in: bytes, without: failed)
        return ended
      }
    }
    for observer in ended { observer.stream.finish() }
  }

  /// Notifies the observers of caches that were dropped, and ends their streams.
  func endDropped() {
    let ended = state.withLock { $0.followCaches() }
    // Outside the lock: ending a stream removes its observer.
    for observer in ended { observer.stream.finish() }
  }
}

extension Observations.State {
  /// Notifies the observers of caches that were dropped, or cleared by a write that was reported as
  /// failed.
  ///
  /// The cache has a new id then.
  ///
  /// - Returns: The observers of dropped caches, which are removed; the caller ends their streams.
  fileprivate mutating func followCaches() -> [Observations.Observer] {
    var ended: [Observations.Observer] = []
    for (number, observer) in observers where observer.cache.id > observer.id {
      observers[number]?.id = observer.cache.id
      observer.stream.yield(.cleared)
      if observer.cache.isDropped, let observer = observers.removeValue(forKey: number) {
        ended.append(observer)
      }
    }
    return ended
  }

  fileprivate mutating func clear(_ renumbering: Observations.Renumbering) {
    for (number, observer) in observers where renumbering.from.contains(observer.id) {
      observers[number]?.id = renumbering.to
      observer.stream.yield(.cleared)
    }
  }

  fileprivate func notify(
    _ rows: [WriteBatch.Row], in bytes: UnsafeRawBufferPointer, without failed: Set<Int>
  ) {
    for row in rows where row.isKept(without: failed) {
      let recordKey = UnsafeRawBufferPointer(rebasing: bytes[row.key])
      guard recordKey.first == KeySpace.records.rawValue else {
        notifyOfTag(row, under: recordKey)
        continue
      }
      var offset = 1
      let id = readVarint(recordKey.bytes, at: &offset)
      var change: CommittedChange?
      for observer in observers.values where observer.id == id {
        if let key = observer.key, !recordKey[offset...].elementsEqual(key) { continue }
        change = change ?? CommittedChange(row, in: bytes)
        if let change { observer.stream.yield(change) }
      }
    }
  }
}

extension Observations.State {
  /// Notifies the observers of caches with tagged entries if `row` invalidates a tag.
  private func notifyOfTag(_ row: WriteBatch.Row, under key: UnsafeRawBufferPointer) {
    guard row.kind == .put, key.starts(with: Metadata.tagPrefix) else { return }
    let tag = Metadata.tag(in: Array(key))
    let change = CommittedChange(what: .invalidated, bytes: tag, keyCount: tag.count)
    for observer in observers.values where observer.cache.features.contains(.tags) {
      observer.stream.yield(change)
    }
  }
}

extension CommittedChange {
  /// The change of a record; nil if observers are not notified of it.
  fileprivate init?(_ row: WriteBatch.Row, in bytes: UnsafeRawBufferPointer) {
    switch row.kind {
    case .put:
      guard row.note != Self.sameValue else { return nil }
      what = .set
    case .remove: what = .removed(RemovalCause(rawValue: row.note) ?? .removed)
    }
    // The value follows its key in the batch.
    self.bytes = Array(bytes[row.key.lowerBound..<row.value.upperBound])
    keyCount = row.keyCount
  }

  fileprivate static var cleared: CommittedChange {
    CommittedChange(what: .cleared, bytes: [], keyCount: 0)
  }

  /// The note of a put that rewrites the same value in another encoding.
  package static let sameValue: UInt8 = 1
}
