import Foundation
import LarderBytes
import LarderEngine
import LarderTesting
import Synchronization

@testable import Larder

/// All that was committed to a cache, in the order of its commits, checked as it comes.
///
/// It goes by a clock that is never set back, and a lifetime of so many seconds.
final class CommitHistory: CommitObserver {
  /// What a key has had since a commit: a value, or nothing.
  fileprivate struct Change {
    let place: Int
    let value: Int?
    let savedAt: Date
    let sequence: UInt64
  }

  fileprivate struct State {
    var core: CacheCore<Int>?
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
    /// Entries written anew if they were still the same: touched or migrated.
    var restamps = 0
    /// Deletions because somebody asked for them.
    var removals = 0
    var expirations = 0
    /// Deletions because there was no room; each by a commit, like a removal, so what is read
    /// afterwards must be missing.
    var evictions = 0
    var clears = 0
  }

  /// What somebody has read of a key, and between which commits and dates.
  struct Reading {
    let key: String
    let value: Int?
    /// So many batches had been told when it began.
    let first: Int
    /// So many had been told when it ended.
    let last: Int
    let began: Date
    let ended: Date
  }

  /// So many batches may be visible and not told yet: those of one group.
  private static let mostUntold = 9

  private let clock: ManualClock
  private let lifetime: Double
  fileprivate let state = Mutex(State())
  private let told = Atomic(0)

  init(clock: ManualClock, lifetime: Double) { (self.clock, self.lifetime) = (clock, lifetime) }

  /// How many batches it has been told.
  var place: Int { told.load(ordering: .sequentiallyConsistent) }
  var counts: Counts { state.withLock { $0.counts } }
  var faults: [String] { state.withLock { $0.faults } }

  /// Goes on with the cache as it was opened anew.
  func follow(_ cache: Cache<String, Int>) { state.withLock { $0.core = cache.core } }

  /// What is there now: values by key.
  var values: [String: Int] {
    state.withLock { $0.changes.compactMapValues { $0.last?.value } }
  }
}

// MARK: - Commits

extension CommitHistory {
  func didCommit(_ batch: borrowing WriteBatch, _ commit: Commit) {
    batch.bytes.withBytes { bytes in
      state.withLock { state in
        let place = told.load(ordering: .relaxed)
        if commit.sequence <= state.lastSequence { state.faults.append("commits out of order") }
        state.lastSequence = commit.sequence
        if batch.isClearing { clear(batch.rows, in: bytes, at: place, &state) }
        for row in batch.rows where row.isKept(without: commit.failed) {
          let condition = row.requirement.map { batch.requirements[$0].condition }
          note(row, if: condition, in: bytes, at: place, &state)
        }
      }
    }
    told.add(1, ordering: .sequentiallyConsistent)
  }

  /// Nothing of the numbers that the batch takes out of use is shown from here on.
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
    // Saved or given back after a clear, it counts as before it.
    guard !state.retired.contains(id) else { return }
    let key = String(decoding: recordKey[offset...], as: UTF8.self)
    let old = state.changes[key]?.last
    if case .unchanged(let since, _)? = condition, old?.value == nil || old?.sequence != since {
      state.faults.append("\(key), batch \(place): changed, and is not the one that was read")
    }
    if row.kind == .remove {
      remove(key, old, row, if: condition, at: place, &state)
    } else {
      put(UnsafeRawBufferPointer(rebasing: bytes[row.value]), recordKey, key, at: place, &state)
      guard condition != nil else { return }
      state.counts.restamps += 1
      if state.changes[key]?.last?.value != old?.value {
        state.faults.append("\(key), batch \(place): stamped anew, with another value")
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
        state.faults.append("\(key), batch \(place): deleted as expired, and it lives")
      }
    } else if row.note == RemovalCause.evicted.rawValue {
      // What is damaged or gone may be evicted without a look, and nothing here is.
      guard case .unchanged? = condition else {
        return state.faults.append("\(key), batch \(place): evicted, whatever it is")
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
      guard let core = state.core else { return }
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
  /// Which of these cannot be: at no moment between its beginning and its end was there, or was
  /// shown, what was read.
  ///
  /// For when all that was read has been told. Forgets what the next readings do not need.
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
    // By bisection: there are many.
    var (low, high) = (0, changes.count)
    while low < high {
      let middle = (low + high) / 2
      if changes[middle].place < reading.first { low = middle + 1 } else { high = middle }
    }
    let start = max(low - 1, 0)
    // Before the first change there was nothing.
    if low == 0, reading.value == nil { return true }
    return changes[start...].prefix { $0.place < reading.last + Self.mostUntold }.contains {
      guard let value = reading.value else {
        return $0.value == nil || reading.ended >= $0.savedAt + lifetime
      }
      return $0.value == value && reading.began < $0.savedAt + lifetime
    }
  }
}

/// An engine that tells a history of each batch.
final class HistoryEngine: StorageEngine {
  private let base: any StorageEngine
  private let history: CommitHistory

  init(_ base: any StorageEngine, _ history: CommitHistory) {
    (self.base, self.history) = (base, history)
  }

  func write(_ batch: inout WriteBatch, synced: Bool) throws(EngineError) -> Commit {
    batch.observer = history
    return try base.write(&batch, synced: synced)
  }

  var writeCount: Int? { base.writeCount }

  func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(EngineError) -> Bool {
    try base.get(key, into: &buffer)
  }

  func cursor(over range: EngineRange) throws(EngineError) -> any EngineCursor {
    try base.cursor(over: range)
  }

  func approximateBytes(in range: EngineRange) throws(EngineError) -> UInt64 {
    try base.approximateBytes(in: range)
  }

  func compact(_ range: EngineRange) throws(EngineError) { try base.compact(range) }

  func property(_ name: String) throws(EngineError) -> String? { try base.property(name) }

  func measure(by meter: any CommitMeter) { base.measure(by: meter) }

  func checkOpen() throws(EngineError) { try base.checkOpen() }

  func close() throws(EngineError) { try base.close() }
}
