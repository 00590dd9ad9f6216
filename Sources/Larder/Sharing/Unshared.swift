import Synchronization

/// The keys of a shared cache whose last change its tier has not acknowledged.
///
/// The commit of such a change also writes a row in the key space `unshared`. A key with a row is
/// settled: the tier gets a tombstone for it, so that no machine continues to use the value from
/// before the change. That happens before the tier is asked for the key, and for all keys when the
/// tier can be reached again. The value itself is not sent later, because another machine may have
/// changed it since.
final class Unshared: Sendable {
  static let stamp = Stamp(at: 0)

  /// The number of calls of ``noteRows()``, and the number up to which all rows are settled.
  private let notes = Atomic<Int>(0)
  private let settled = Atomic<Int>(0)
  /// The number of calls of ``settle(_:)``.
  private let requests = Atomic<Int>(0)
  private let isSettling = Atomic<Bool>(false)
  private let user = Lock(User())

  private let uses = Lock<[RecordKey: Uses]>([:])
  /// The keys that were settled and whose rows the disk did not remove, with the rows' sequences.
  private let leftRows = Lock<[RecordKey: UInt64]>([:])

  private struct User {
    weak var store: Store?
  }

  /// Why a key is written to the tier.
  enum Use {
    case change
    case settling
  }

  /// The uses of a key that are under way, and those that wait for them, in their order.
  private struct Uses {
    var changes = 0
    var isSettling = false
    var waiting: [(use: Use, continuation: CheckedContinuation<Void, Never>)] = []

    var isEmpty: Bool { changes == 0 && !isSettling && waiting.isEmpty }

    /// Begins a use; false if it has to wait.
    mutating func begin(_ use: Use) -> Bool {
      guard !isSettling, use == .change || changes == 0 else { return false }
      if use == .change { changes += 1 } else { isSettling = true }
      return true
    }

    mutating func end(_ use: Use) {
      if use == .change { changes -= 1 } else { isSettling = false }
    }
  }

  /// The store whose threads settle keys; nil if it is gone.
  var store: Store? {
    get { user.withLock { $0.store } }
    set { user.withLock { $0.store = newValue } }
  }

  /// The row of a record's key.
  static func row(of key: RecordKey) -> [UInt8] {
    [KeySpace.unshared.rawValue] + key.bytes.dropFirst()
  }

  /// Whether there is no such key; otherwise there may be some.
  var isEmpty: Bool {
    settled.load(ordering: .sequentiallyConsistent) == notes.load(ordering: .sequentiallyConsistent)
  }

  /// Notes that there may be rows: before one is written, so that it is found, and afterwards, for
  /// a task that has settled all others meanwhile.
  func noteRows() { notes.add(1, ordering: .sequentiallyConsistent) }

  /// Adds a key to the commit of its change.
  func add(_ key: RecordKey, to write: inout WriteBatch) {
    write.put(Self.row(of: key).span.bytes, stamp: Self.stamp)
    noteRows()
  }

  /// Removes the row of a key whose change the tier has acknowledged, in the commit of the change.
  func remove(_ key: RecordKey, from write: inout WriteBatch) {
    if !isEmpty { write.remove(Self.row(of: key).span.bytes) }
  }

  /// Calls `body`, which settles all keys.
  ///
  /// If another task is settling keys, that task calls its `body` once more instead.
  ///
  /// - Parameter body: Returns whether no key is left of those that were noted before.
  func settle(_ body: () async -> Bool) async {
    requests.add(1, ordering: .sequentiallyConsistent)
    while !isEmpty, !isSettling.exchange(true, ordering: .sequentiallyConsistent) {
      let request = requests.load(ordering: .sequentiallyConsistent)
      let note = notes.load(ordering: .sequentiallyConsistent)
      if await body() { settled.store(note, ordering: .sequentiallyConsistent) }
      isSettling.store(false, ordering: .sequentiallyConsistent)
      if requests.load(ordering: .sequentiallyConsistent) == request { return }
    }
  }
}

// MARK: - Rows that the disk did not remove

extension Unshared {
  /// Whether a key was settled, and its row of this sequence is still there.
  ///
  /// Another tombstone would remove what another machine has saved since.
  func isLeft(_ sequence: UInt64, of key: RecordKey) -> Bool {
    leftRows.withLock { $0[key] == sequence }
  }

  /// Notes the sequence of the row of a settled key; nil if it was removed.
  func noteLeft(_ sequence: UInt64?, of key: RecordKey) {
    leftRows.withLock { $0[key] = sequence }
  }

  /// Forgets all such rows, when there are no rows at all.
  func forgetLeft() { leftRows.withLock { $0 = [:] } }
}

// MARK: - Uses

extension Unshared {
  /// The number of changes and settlements that wait for one of the same key.
  var waitingCount: Int { uses.withLock { $0.values.reduce(0) { $0 + $1.waiting.count } } }

  /// Waits until a key may be written to the tier; then it is used until ``end(_:of:)``.
  ///
  /// It does not heed cancellation: what it waits for is over after a reply or its deadline.
  func begin(_ use: Use, of key: RecordKey) async {
    await withCheckedContinuation { continuation in
      let begins = uses.withLock { uses in
        var state = uses[key] ?? Uses()
        // Those that wait come first, or a key that is changed again and again is never settled.
        let begins = state.waiting.isEmpty && state.begin(use)
        if !begins { state.waiting.append((use, continuation)) }
        uses[key] = state
        return begins
      }
      if begins { continuation.resume() }
    }
  }

  func end(_ use: Use, of key: RecordKey) {
    let next = uses.withLock { uses in
      guard var state = uses[key] else { return [CheckedContinuation<Void, Never>]() }
      state.end(use)
      var next: [CheckedContinuation<Void, Never>] = []
      while let first = state.waiting.first, state.begin(first.use) {
        next.append(state.waiting.removeFirst().continuation)
      }
      uses[key] = state.isEmpty ? nil : state
      return next
    }
    for continuation in next { continuation.resume() }
  }
}

extension CacheCore {
  /// Finds out whether there are rows of an earlier use of the cache.
  func readUnshared() throws(StoreError) {
    if try context.cursor(over: unsharedRows).next() { unshared.noteRows() }
  }

  private var unsharedRows: EngineRange {
    EngineRange(prefix: KeySpace.unshared.prefix(ofCache: id))
  }

  /// Settles a key, if it has a row.
  ///
  /// - Returns: Why the tier did not get the tombstone; nil if it did, or the key has no row.
  func settle(_ key: RecordKey, in tier: any RecordTier) async -> (any Error)? {
    guard !unshared.isEmpty else { return nil }
    await unshared.begin(.settling, of: key)
    defer { unshared.end(.settling, of: key) }
    do {
      let row = Unshared.row(of: key)
      guard let value = try context.engine.get(row.span.bytes) else { return nil }
      let sequence = Unshared.stamp.sequence(of: value.span.bytes) ?? 0
      if !unshared.isLeft(sequence, of: key) {
        let shared = try tier.key(for: key.userKey)
        let tombstone = SharedRecord.tombstone(version: .random(in: 1...(.max)), under: shared)
        let writing = await tier.write(
          tombstone, under: shared, if: .always, for: SharedRecord.tombstoneStay, arrived: {})
        if case .unavailable(let failure) = writing { return failure }
      }
      unshared.noteLeft(removeRow(row, sequence) ? nil : sequence, of: key)
      return nil
    } catch {
      return error
    }
  }

  /// Removes the row of a key that is settled; false if the disk refuses.
  private func removeRow(_ row: [UInt8], _ sequence: UInt64) -> Bool {
    do throws(StoreError) {
      var write = WriteBatch()
      // A later change of the key has a row of its own.
      let same = write.require(row, .unchanged(since: sequence, in: Unshared.stamp))
      write.remove(row.span.bytes, if: same)
      try context.commit(&write)
      return true
    } catch {
      return false
    }
  }

  /// Settles all keys, until the tier cannot be reached.
  func settleAll(in tier: any RecordTier) async {
    await unshared.settle {
      do {
        var range = unsharedRows
        // The first one tells whether the tier can be reached.
        var keys = try unsharedKeys(in: range, 1)
        while let last = keys.last {
          for key in keys where await settle(key, in: tier) != nil { return false }
          range.lower = Unshared.row(of: last) + [0]
          keys = try unsharedKeys(in: range, 256)
        }
        // A row that the disk did not remove goes when its key is read, or with the next change.
        guard try unsharedKeys(in: unsharedRows, 1).isEmpty else { return false }
        unshared.forgetLeft()
        return true
      } catch {
        return false
      }
    }
  }

  /// The first of the keys whose rows are in a range.
  private func unsharedKeys(
    in range: EngineRange, _ limit: Int
  ) throws(StoreError) -> [RecordKey] {
    let cursor = try context.cursor(over: range)
    var keys: [RecordKey] = []
    while keys.count < limit, try cursor.next() {
      cursor.withEntry { row, _ in
        let key = [KeySpace.records.rawValue] + [UInt8](row).dropFirst()
        if let key = RecordKey(key.span.bytes) { keys.append(key) }
      }
    }
    return keys
  }
}
