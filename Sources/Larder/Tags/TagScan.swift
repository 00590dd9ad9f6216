import LarderBytes

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
  private var caches: [(name: CacheName, id: UInt64)] = []
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
      caches.append((name, cache.id))
    }
    for (name, registration) in dormant
    where open[name] == nil && registration.features?.contains(.tags) == true {
      caches.append((name, registration.id))
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
    _ cache: (name: CacheName, id: UInt64), in context: StoreContext, steps: inout Int,
    _ deleted: inout Int
  ) throws(StoreError) -> Bool {
    var slice = EndedRecords(of: cache.name, in: context)
    defer { deleted += slice.deleted }
    let prefix = KeySpace.records.prefix(ofCache: cache.id)
    let start = reached.map { $0 + [0] } ?? prefix
    let cursor = try context.cursor(
      over: EngineRange(from: start, upTo: EngineRange.successor(ofPrefix: prefix)),
      cache: cache.name.text, readsPayloads: false)
    while steps > 0 {
      do throws(StoreError) {
        guard try cursor.next() else {
          try slice.commit()
          return true
        }
      } catch {
        guard case .corrupt = error else { throw error }
        // A damaged block may hold an entry that has ended, and may be readable later.
        (isComplete, damage) = (false, error)
        try slice.commit()
        return true
      }
      steps -= 1
      let count = cursor.valueCount
      let isJudged = cursor.withEntry { key, value in
        slice.inspect(value, of: count, under: key, readBy: .cursor)
      }
      if !isJudged { isComplete = false }
      guard slice.isFull || steps == 0 else { continue }
      let key = cursor.withEntry { key, _ in [UInt8](key) }
      try slice.commit()
      reached = key
    }
    return false
  }

  /// Removes the rows of the tags that were not invalidated again meanwhile.
  private func removeTags(in context: StoreContext) throws(StoreError) {
    var slice = ConditionalSlice<[UInt8]>(in: context, freesRoom: true)
    func commit() throws(StoreError) {
      guard !slice.isEmpty else { return }
      for tag in try slice.commit().applied {
        guard let sequence = tags[tag] else { continue }
        context.invalidatedTags.remove(tag, invalidatedBy: sequence)
      }
    }
    for (tag, sequence) in tags.sorted(by: { $0.value < $1.value }) {
      let key = Metadata.tag(tag)
      slice.add(
        tag, key: key, if: .unchanged(since: sequence, in: InvalidatedTags.stamp), readBy: .cursor
      ) { write, requirement in
        write.rows.remove(key.span.bytes, if: requirement)
      }
      if slice.isFull { try commit() }
    }
    try commit()
  }
}

/// A slice of the deletions of a ``TagScan``.
private struct EndedRecords: ~Copyable {
  struct Finding {
    let key: [UInt8]
    let bytes: Int
  }

  private let context: StoreContext
  private let counts: CacheCounts
  private var slice: ConditionalSlice<Finding>
  private(set) var deleted = 0

  init(of cache: CacheName, in context: StoreContext) {
    self.context = context
    counts = context.counts.ofCache(cache.text)
    slice = ConditionalSlice(in: context, freesRoom: true)
  }

  var isFull: Bool { slice.isFull }

  /// Adds the deletion of a record if it has ended; returns false if a later version wrote it.
  ///
  /// The record has `count` bytes, of which `bytes` may lack the payload.
  mutating func inspect(
    _ bytes: RawSpan, of count: Int, under key: RawSpan,
    readBy source: ConditionalSlice<Finding>.Source
  ) -> Bool {
    var record: Record
    do throws(RecordFault) {
      record = try Record(head: bytes, of: count, under: key)
    } catch {
      return error == .damaged
    }
    context.invalidatedTags.judge(&record, in: bytes)
    guard record.isInvalidated else { return true }
    let key = [UInt8](key)
    slice.add(
      Finding(key: key, bytes: key.count + count), key: key,
      if: .unchanged(since: record.sequence, in: Record.stamp), readBy: source
    ) { write, requirement in
      write.rows.remove(key.span.bytes, if: requirement, note: RemovalCause.expired.rawValue)
    }
    return true
  }

  /// Commits the deletions, and inspects the records that have changed meanwhile again.
  mutating func commit() throws(StoreError) {
    var buffer = ValueBuffer()
    while !slice.isEmpty {
      let (applied, changed) = try slice.commit()
      deleted += applied.count
      for record in applied { counts.swept.add(bytes: record.bytes) }
      for record in changed {
        guard let count = try slice.getHead(record.key, into: &buffer) else { continue }
        _ = buffer.withBytes { bytes in
          inspect(bytes, of: count, under: record.key.span.bytes, readBy: .lookup)
        }
      }
    }
  }
}
