extension Cache {
  /// Removes the entries of a range of keys that were saved before the call.
  ///
  /// ```swift
  /// let count = try genres.remove(in: .prefix("user 7/"))
  /// ```
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
/// It removes only entries that were committed before `beginning`, a commit that it makes first. A
/// cursor may show entries that were saved after it was made; they stay.
private struct RangeRemoval {
  let id: UInt64
  private(set) var count = 0
  private let name: String
  private let context: StoreContext

  init<Value>(from core: CacheCore<Value>) throws(StoreError) {
    id = try core.usableID()
    name = core.name
    context = core.context
  }

  mutating func run(_ range: EngineRange) throws(StoreError) {
    // Revoke loads first: the commit below then runs after every save that is already in the queue.
    // And again at the end: later callers must not join a load that began during the removal.
    context.loads.noteRemoval(of: range, fromCache: id)
    defer { context.loads.noteRemoval(of: range, fromCache: id) }
    let beginning = try commitBeginning()
    let visit: RecordPass.Visit = { key, bytes, count, changes in
      guard let (saved, condition) = Self.inspect(bytes, of: count, under: key),
        saved < beginning
      else { return }
      changes.remove([UInt8](key), bytes: key.byteCount + count, if: condition, .removed)
    }
    var pass = try RecordPass(
      over: range, ofCache: name, readsPayloads: false, freesRoom: false, in: context)
    while try pass.next() {
      try pass.visit(visit)
      if pass.isFull { try pass.commit(visiting: visit) { _ in count += 1 } }
    }
    try pass.commit(visiting: visit) { _ in count += 1 }
    if let damage = pass.damage { throw damage }
  }

  /// Commits an empty change and returns its sequence number.
  private func commitBeginning() throws(StoreError) -> UInt64 {
    var write = WriteBatch()
    let key = Metadata.beginning
    write.remove(key.span.bytes)
    return try context.commit(&write).sequence
  }

  /// The original sequence of a record of `count` bytes, of which `bytes` may lack the payload, and
  /// the condition under which it is removed; nil if the key is malformed.
  private static func inspect(
    _ bytes: RawSpan, of count: Int, under key: RawSpan
  ) -> (saved: UInt64, condition: WriteBatch.Condition)? {
    guard RecordKey(key) != nil else { return nil }
    // A record of a later format has its sequence at the same place.
    let isIntact = bytes.byteCount < count || Record.stamp.isIntact(bytes, key: key)
    guard isIntact, let sequence = Record.stamp.sequence(of: bytes) else {
      return (0, .damaged(Record.stamp))
    }
    let condition = WriteBatch.Condition.unchanged(since: sequence, in: Record.stamp)
    do throws(RecordFault) {
      return (try Record(head: bytes, of: count, under: key).originalSequence, condition)
    } catch {
      // Damaged, or written by a later version: only its sequence can be read.
      return (sequence, condition)
    }
  }
}
