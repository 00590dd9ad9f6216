import Foundation
import LarderEngineSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Everything that was committed to a cache, in the order of the commits, checked as it arrives.
///
/// The clock must never be set back. All entries have one lifetime, in seconds.
final class CommitHistory: Sendable {
  /// The value of a key from one commit on; nil for no value.
  fileprivate struct Change {
    let place: Int
    let value: Int?
    let savedAt: Date
    let sequence: UInt64
  }

  fileprivate struct State {
    // Weak: the cache holds the engine, and the engine this history.
    weak var core: CacheCore<Int>?
    var changes: [String: [Change]] = [:]
    var retired: Set<UInt64> = []
    var lastSequence: UInt64 = 0
    var counts = Counts()
    var faults: [String] = []
  }

  /// How many rows of records were committed.
  struct Counts {
    /// Saves: puts without a condition.
    var saves = 0
    /// Entries rewritten on condition that they had not changed: touched or migrated.
    var restamps = 0
    /// Deletions that a caller asked for.
    var removals = 0
    var expirations = 0
    /// Deletions to make room.
    ///
    /// Each is a commit, like a removal, so a later read must miss.
    var evictions = 0
    var clears = 0
  }

  /// The result of one read of a key, and the commits and dates between which it happened.
  struct Reading {
    let key: String
    let value: Int?
    /// The number of batches reported when it began.
    let first: Int
    /// The number of batches reported when it ended.
    let last: Int
    let began: Date
    let ended: Date
  }

  /// The most batches that may be visible and not yet reported: those of one group.
  private static let mostUnreported = 9

  private let clock: ManualClock
  private let lifetime: Double
  fileprivate let state = Mutex(State())
  private let reported = Atomic(0)

  init(clock: ManualClock, lifetime: Double) { (self.clock, self.lifetime) = (clock, lifetime) }

  /// The number of batches reported so far.
  var place: Int { reported.load(ordering: .sequentiallyConsistent) }
  var counts: Counts { state.withLock { $0.counts } }
  var faults: [String] { state.withLock { $0.faults } }

  /// Continues with a cache that was opened again.
  func follow(_ cache: Cache<String, Int>) { state.withLock { $0.core = cache.core } }

  /// The current values, by key.
  var values: [String: Int] {
    state.withLock { $0.changes.compactMapValues { $0.last?.value } }
  }
}

// MARK: - Commits

extension CommitHistory {
  fileprivate func add(_ batch: borrowing WriteBatch, _ commit: Commit) {
    batch.bytes.withBytes { bytes in
      state.withLock { state in
        let place = reported.load(ordering: .relaxed)
        if commit.sequence <= state.lastSequence { state.faults.append("commits out of order") }
        state.lastSequence = commit.sequence
        if batch.isClearing { clear(batch.rows, in: bytes, at: place, &state) }
        for row in batch.rows where row.isKept(without: commit.failed) {
          let condition = row.requirement.map { batch.requirements[$0].condition }
          note(row, if: condition, in: bytes, at: place, &state)
        }
      }
    }
    reported.add(1, ordering: .sequentiallyConsistent)
  }

  /// Entries under the cache ids that the batch retires are hidden from here on.
  private func clear(
    _ rows: [WriteBatch.Row], in bytes: UnsafeRawBufferPointer, at place: Int,
    _ state: inout State
  ) {
    let prefix = Metadata.reclaim(0).dropLast(8)
    for row in rows where bytes[row.key].starts(with: prefix) {
      let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
      if let id = Metadata.reclaimedID(in: key.bytes) { state.retired.insert(id) }
    }
    state.counts.clears += 1
    for key in state.changes.keys { state.append(nil, to: key, at: place) }
  }

  private func note(
    _ row: WriteBatch.Row, if condition: WriteBatch.Condition?,
    in bytes: UnsafeRawBufferPointer, at place: Int, _ state: inout State
  ) {
    let recordKey = UnsafeRawBufferPointer(rebasing: bytes[row.key])
    guard recordKey.first == KeySpace.records.rawValue else { return }
    var offset = 1
    guard let id = readVarint(recordKey.bytes, at: &offset) else { return }
    if row.stamp != nil, condition == nil { state.counts.saves += 1 }
    if row.kind == .remove, row.note == RemovalCause.evicted.rawValue {
      state.counts.evictions += 1
    }
    // A save under a retired id takes effect before the clear, whenever it was committed.
    guard !state.retired.contains(id) else { return }
    let key = String(decoding: recordKey[offset...], as: UTF8.self)
    let old = state.changes[key]?.last
    if case .unchanged(let since, _)? = condition, old?.value == nil || old?.sequence != since {
      state.faults.append("\(key), batch \(place): changed since it was read")
    }
    if row.kind == .remove {
      remove(key, old, row, if: condition, at: place, &state)
    } else {
      put(UnsafeRawBufferPointer(rebasing: bytes[row.value]), recordKey, key, at: place, &state)
      guard condition != nil else { return }
      state.counts.restamps += 1
      if state.changes[key]?.last?.value != old?.value {
        state.faults.append("\(key), batch \(place): restamped with another value")
      }
    }
  }

  private func remove(
    _ key: String, _ old: Change?, _ row: WriteBatch.Row, if condition: WriteBatch.Condition?,
    at place: Int, _ state: inout State
  ) {
    if row.note == RemovalCause.expired.rawValue {
      state.counts.expirations += 1
      if let old, clock.now() < old.savedAt + lifetime {
        state.faults.append("\(key), batch \(place): deleted as expired, but still alive")
      }
    } else if row.note == RemovalCause.evicted.rawValue {
      // Only damaged or missing entries may be evicted unread, and there are none here.
      guard case .unchanged? = condition else {
        return state.faults.append("\(key), batch \(place): evicted without a condition")
      }
    } else {
      state.counts.removals += 1
      if condition == .damaged(Record.stamp) {
        state.faults.append("\(key), batch \(place): damaged")
      }
    }
    state.append(nil, to: key, at: place)
  }

  private func put(
    _ bytes: UnsafeRawBufferPointer, _ recordKey: UnsafeRawBufferPointer, _ key: String,
    at place: Int, _ state: inout State
  ) {
    do {
      let core = try #require(state.core, "the history follows no cache")
      let record = try core.record(bytes.bytes, under: recordKey.bytes)
      let value = try core.value(of: record, in: bytes.bytes, under: recordKey.bytes)
      state.append(
        Change(place: place, value: value, savedAt: record.savedAt, sequence: record.sequence),
        to: key)
    } catch {
      state.faults.append("\(key), batch \(place): \(error)")
    }
  }
}

extension CommitHistory.State {
  fileprivate mutating func append(_ change: CommitHistory.Change, to key: String) {
    changes[key, default: []].append(change)
  }

  fileprivate mutating func append(_ nothing: Int?, to key: String, at place: Int) {
    append(
      CommitHistory.Change(place: place, value: nothing, savedAt: .distantPast, sequence: 0),
      to: key)
  }
}

// MARK: - Readings

extension CommitHistory {
  /// The impossible readings: those whose result was not visible at any moment between their
  /// beginning and their end.
  ///
  /// Call it after every commit that was read has been reported. It forgets the changes that later
  /// readings do not need.
  func faults(in readings: [Reading]) -> [String] {
    state.withLock { state in
      let faults = readings.compactMap { reading in
        isPossible(reading, state.changes[reading.key] ?? []) ? nil : "\(reading)"
      }
      for (key, changes) in state.changes { state.changes[key] = changes.suffix(1) }
      return faults
    }
  }

  private func isPossible(_ reading: Reading, _ changes: [Change]) -> Bool {
    // By bisection, because there are many changes.
    var (low, high) = (0, changes.count)
    while low < high {
      let middle = (low + high) / 2
      if changes[middle].place < reading.first { low = middle + 1 } else { high = middle }
    }
    let start = max(low - 1, 0)
    // Before the first change there was nothing.
    if low == 0, reading.value == nil { return true }
    return changes[start...].prefix { $0.place < reading.last + Self.mostUnreported }.contains {
      guard let value = reading.value else {
        return $0.value == nil || reading.ended >= $0.savedAt + lifetime
      }
      return $0.value == value && reading.began < $0.savedAt + lifetime
    }
  }
}

/// An engine that reports each batch to a history.
final class HistoryEngine: ForwardingEngine {
  let base: any StorageEngine
  private let history: CommitHistory

  init(_ base: any StorageEngine, _ history: CommitHistory) {
    (self.base, self.history) = (base, history)
  }

  func join(_ participant: any CommitParticipant) {
    base.join(Participant(base: participant, history: history))
  }

  private final class Participant: ForwardingParticipant {
    let base: (any CommitParticipant)?
    private let history: CommitHistory
    var needs: (counting: Bool, reports: Bool) {
      (counting: base?.needs.counting ?? false, reports: true)
    }

    init(base: any CommitParticipant, history: CommitHistory) {
      (self.base, self.history) = (base, history)
    }

    func committed(_ batch: borrowing WriteBatch, _ commit: Commit) {
      history.add(batch, commit)
      base?.committed(batch, commit)
    }
  }
}
