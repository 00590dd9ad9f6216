/// A scan that deletes the entries of invalidated tags, and then forgets the tags.
///
/// Notes do not name these entries, so the scan visits every record of the caches that
/// have tagged entries. It can be interrupted after any record, and continued later. Its tags are
/// those that were invalidated when it began. An entry that is saved during the scan has a higher
/// sequence than all of them, so it need not be visited.
struct TagScan {
  /// The tags, with their sequences.
  let tags: [[UInt8]: UInt64]
  /// The caches that are left to scan; the first one is scanned from `reached` on.
  private var caches: [(name: CacheName, id: UInt64, keyKind: KeyKind)] = []
  /// The physical key of the last record that was visited in the first cache.
  private var reached: [UInt8]?
  /// Whether every record so far could be judged.
  private var isComplete = true
  private(set) var damage: StoreError?

  init(of store: Store) throws(StoreError) {
    // Before the caches: a cache that is registered later has no older entries.
    tags = store.context.invalidatedTags.all
    let (dormant, names) = try store.withRegistry { registry throws(StoreError) in
      (try registry.dormant().caches, try registry.registeredNames())
    }
    let open = store.allOpenCaches
    for (name, cache) in open where cache.features.contains(.tags) {
      caches.append((name, cache.id, cache.keyKind))
    }
    for (name, registration) in dormant
    where open[name] == nil && registration.features?.contains(.tags) == true {
      caches.append((name, registration.id, KeyKind(code: registration.keyKind)))
    }
    caches.sort { $0.id < $1.id }
    // A cache whose registration cannot be read may have tagged entries.
    isComplete = names.map(CacheName.init).allSatisfy { open[$0] != nil || dormant[$0] != nil }
  }

  /// Whether there is nothing left to scan.
  var isFinished: Bool { caches.isEmpty }

  /// Visits up to `steps` records, and deletes those that have ended.
  ///
  /// After the last record it removes the rows of the tags, unless a record could not be judged.
  /// Then the tags stay, and their entries stay hidden.
  ///
  /// - Returns: The number of entries that were deleted.
  mutating func run(in context: StoreContext, steps: inout Int) throws(StoreError) -> Int {
    var deleted = 0
    while let cache = caches.first {
      guard try scan(cache, in: context, steps: &steps, &deleted) else { return deleted }
      caches.removeFirst()
      reached = nil
    }
    if isComplete { try removeTags(in: context) }
    return deleted
  }

  /// Scans the rest of a cache; returns false if the steps did not suffice.
  private mutating func scan(
    _ cache: (name: CacheName, id: UInt64, keyKind: KeyKind), in context: StoreContext,
    steps: inout Int,
    _ deleted: inout Int
  ) throws(StoreError) -> Bool {
    let counts = context.counts.ofCache(cache.name.text)
    let prefix = KeySpace.records.prefix(ofCache: cache.id)
    let start = reached.map { $0 + [0] } ?? prefix
    var pass = try RecordPass(
      over: EngineRange(from: start, upTo: EngineRange.successor(ofPrefix: prefix)),
      ofCache: cache.name.text, readsPayloads: false, freesRoom: true, in: context)
    var isJudged = true
    let visit: RecordPass.Visit = { key, bytes, count, changes in
      var record: Record
      do throws(RecordFault) {
        record = try Record(head: bytes, of: count, under: key)
      } catch {
        // A later version wrote it.
        if error != .damaged { isJudged = false }
        return
      }
      context.invalidatedTags.judge(&record, in: bytes)
      guard record.isInvalidated else { return }
      let same = WriteBatch.Condition.unchanged(since: record.sequence, in: Record.stamp)
      changes.remove([UInt8](key), bytes: key.byteCount + count, if: same, .expired)
    }
    func commit(_ pass: inout RecordPass) throws(StoreError) {
      try pass.commit(visiting: visit) { change in
        deleted += 1
        counts.deleted(change, .sweep, keyedBy: cache.keyKind)
      }
    }
    defer { if !isJudged { isComplete = false } }
    while steps > 0 {
      guard try pass.next() else {
        if let error = pass.damage {
          // A damaged block may hold an entry that has ended, and may be readable later.
          (isComplete, damage) = (false, error)
        }
        try commit(&pass)
        return true
      }
      steps -= 1
      try pass.visit(visit)
      guard pass.isFull || steps == 0 else { continue }
      let key = pass.cursor.withEntry { key, _ in [UInt8](key) }
      try commit(&pass)
      reached = key
    }
    return false
  }

  /// Removes the rows of the tags that were not invalidated again meanwhile.
  private func removeTags(in context: StoreContext) throws(StoreError) {
    var changes = RecordChanges(in: context, freesRoom: true)
    var added: [[UInt8]: [UInt8]] = [:]
    func commit() throws(StoreError) {
      guard !changes.isEmpty else { return }
      for change in try changes.commit().applied {
        guard let tag = added[change.key], let sequence = tags[tag] else { continue }
        context.invalidatedTags.remove(tag, invalidatedBy: sequence)
      }
    }
    for (tag, sequence) in tags.sorted(by: { $0.value < $1.value }) {
      let key = Metadata.tag(tag)
      added[key] = tag
      let same = WriteBatch.Condition.unchanged(since: sequence, in: InvalidatedTags.stamp)
      changes.remove(key, bytes: 0, if: same, .removed)
      if changes.isFull { try commit() }
    }
    try commit()
  }
}
