import LarderBytes

extension Cache {
  /// Removes the entries of a range of keys that were saved before the call.
  ///
  /// When it returns, none of them is left, also if it was touched or migrated meanwhile. An entry
  /// that is saved while this runs stays. Entries in every state are removed: expired ones, damaged
  /// ones and those of a newer program too. If the call fails or the process ends, the entries of a
  /// part of the range have been removed. To remove all entries of a cache at once, use
  /// ``removeAll()``.
  ///
  /// - Parameter range: The range of keys.
  /// - Returns: The number of entries that were removed.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)`` with an empty key if a block of a file is
  ///   damaged: all other entries were removed. ``StoreError/diskFull``, ``StoreError/io(_:)`` or
  ///   ``StoreError/writesDisabled(cause:)`` if deleting failed; ``StoreError/readOnly(cause:)``,
  ///   ``StoreError/closed``.
  /// - Complexity: One append; one step and one checksum for each entry of the range; one append
  ///   for up to 256 deletions, with an fsync each if the store's durability is
  ///   ``Durability/powerLoss``. Payloads in segments are not read. While loads are under way, one
  ///   search among the keys of the cache that are loaded or remembered as absent.
  @discardableResult public func remove(in range: KeyRange<Key>) throws -> Int {
    try store.requireWritable()
    var removal = try RangeRemoval(from: core)
    defer { core.counts.removals.add(removal.count) }
    try removal.run(range.engineRange(after: KeySpace.records.prefix(ofCache: removal.id)))
    return removal.count
  }
}

/// One call of ``Cache/remove(in:)``.
///
/// Its beginning is a commit sequence. A cursor may show entries that were saved after it was made;
/// their original sequences are higher, and they stay.
private struct RangeRemoval: ~Copyable {
  let id: UInt64
  private(set) var count = 0
  private let name: String
  private let context: StoreContext
  private var slice: ConditionalSlice<RecordKey>
  /// The sequence of the commit with which the call began.
  private var beginning: UInt64 = 0

  init<Value>(from core: CacheCore<Value>) throws(StoreError) {
    id = try core.usableID()
    name = core.name
    context = core.context
    slice = ConditionalSlice(in: context, freesRoom: false)
  }

  mutating func run(_ range: EngineRange) throws(StoreError) {
    // Before: the commit also waits for the saves of loads that had their turn. And at the end:
    // callers that come later join no load that has begun meanwhile.
    context.loads.noteRemoval(of: range, fromCache: id)
    defer { context.loads.noteRemoval(of: range, fromCache: id) }
    beginning = try commitBeginning()
    let cursor = try context.cursor(over: range, cache: name, readsPayloads: false)
    var damage: StoreError?
    while try advance(cursor, &damage) {
      let count = cursor.valueCount
      cursor.withEntry { key, bytes in inspect(bytes, of: count, under: key, readBy: .cursor) }
      if slice.isFull { try commit() }
    }
    try commit()
    if let damage { throw damage }
  }

  /// Removes a key that is never put: a commit without effect, for its sequence.
  private func commitBeginning() throws(StoreError) -> UInt64 {
    var write = PendingWrite()
    let key = Metadata.beginning
    write.rows.remove(key.span.bytes)
    return try context.commit(&write).sequence
  }

  /// Moves to the next record; keeps the error of a damaged block, which ends the range.
  private func advance(
    _ cursor: StoreCursor, _ damage: inout StoreError?
  ) throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try cursor.next()
    } catch .corrupt(let cache, let key, let file) {
      damage = .corrupt(cache: cache, key: key, file: file)
      return false
    }
  }

  /// Adds the deletion of a record of `count` bytes, of which `bytes` may lack the payload.
  private mutating func inspect(
    _ bytes: RawSpan, of count: Int, under key: RawSpan,
    readBy source: ConditionalSlice<RecordKey>.Source
  ) {
    guard let recordKey = RecordKey(key) else { return }
    var saved: UInt64
    let condition: WriteBatch.Condition
    // A record of a later format has its sequence at the same place.
    let isIntact = bytes.byteCount < count || Record.stamp.isIntact(bytes, key: key)
    if isIntact, let sequence = Record.stamp.sequence(of: bytes) {
      saved = sequence
      condition = .unchanged(since: sequence, in: Record.stamp)
    } else {
      saved = 0
      condition = .damaged(Record.stamp)
    }
    do throws(RecordFault) {
      saved = try Record(head: bytes, of: count, under: key).originalSequence
    } catch {
      // Damaged, or written by a later version: only its sequence can be read.
    }
    guard saved < beginning else { return }
    slice.add(recordKey, key: recordKey.bytes, if: condition, readBy: source) {
      write, requirement in
      write.rows.remove(recordKey.bytes.span.bytes, if: requirement)
    }
  }

  /// Commits the deletions, and inspects the entries that have changed meanwhile again.
  private mutating func commit() throws(StoreError) {
    var buffer = ValueBuffer()
    while !slice.isEmpty {
      let (applied, changed) = try slice.commit()
      count += applied.count
      for key in changed {
        guard let count = try slice.getHead(key.bytes, into: &buffer) else { continue }
        buffer.withBytes { bytes in
          inspect(bytes, of: count, under: key.bytes.span.bytes, readBy: .lookup)
        }
      }
    }
  }
}
