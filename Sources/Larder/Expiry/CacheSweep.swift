import Foundation

/// The date of a sweep.
struct SweepDate {
  let now: Date
  /// The last bucket that has ended.
  let lastBucket: Int64

  /// Nil if `now` is not a valid date: with it every entry would look expired.
  init?(_ now: Date) {
    let seconds = now.timeIntervalSinceReferenceDate.rounded(.down)
    guard seconds.isFinite else { return nil }
    self.now = now
    lastBucket = Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max - 1)
  }
}

/// One pass over the due notes of a cache.
///
/// It reads packs of due notes, sorts the keys in them, and visits the records in the same order.
/// Records that have expired are deleted in slices, on condition that they are still the ones that
/// were read. Then the packs are deleted, without a condition: a record that was saved in between
/// has a later note. Notes that are still needed go into new packs by the same write.
struct CacheSweep: ~Copyable {
  /// The number of notes in a slice.
  static var sliceNotes: Int { 256 }
  private static var sliceKeyBytes: Int { 1 << 20 }
  /// The bytes of keys that are sorted at once.
  static var sortedKeyBytes: Int { 16 << 20 }
  /// A note of a record that cannot be judged is due again after so many seconds, or a 64th of the
  /// cache's lifetime if that is more.
  private static var leastDelay: Double { 3600 }

  private let context: StoreContext
  private let counts: CacheCounts
  private let cache: SweptCache
  private let date: SweepDate
  private let packRange: EngineRange

  private(set) var emptied: EmptiedRange
  private(set) var deleted = 0
  private var keys = KeyList()
  private var changes: RecordChanges
  /// Notes that are still needed, by their buckets.
  private var kept: [Int64: KeyList] = [:]

  /// Packs that were read.
  private struct Packs {
    var found: [NotePack] = []
    /// The first bucket behind them; nil if there may be more of them.
    var next: Int64?
  }

  /// `emptied` is what earlier sweeps of the cache have left to compact.
  init(
    of cache: SweptCache, at date: SweepDate, _ emptied: EmptiedRange, in context: StoreContext
  ) {
    self.context = context
    self.cache = cache
    self.date = date
    self.emptied = emptied
    counts = context.counts.ofCache(cache.name.text)
    packRange = EngineRange(prefix: KeySpace.notes.prefix(ofCache: cache.registration.id))
    changes = RecordChanges(in: context, freesRoom: true)
  }

  /// Sweeps about `slices` slices of notes.
  ///
  /// `slices` is the number of slices left. `perform` runs its argument, which reads and writes one
  /// slice; it returns false if the cache must not be swept any further.
  mutating func run(
    slices: inout Int, _ perform: (() throws(StoreError) -> Void) throws(StoreError) -> Bool
  ) throws(StoreError) {
    let id = cache.registration.id
    var earliest = context.notes.takeEarliest(of: id)
    defer { context.notes.lower(id, to: earliest) }
    keys = KeyList()
    while slices > 0 {
      let packs = try readPacks(atMost: slices.multipliedReportingOverflow(by: Self.sliceNotes))
      keys.sort()
      var first = 0
      while first < keys.count {
        let notes = sliceOfKeys(from: first)
        guard try perform({ () throws(StoreError) in try sweep(notes) }) else { return }
        slices -= 1
        first = notes.upperBound
      }
      keys = KeyList()
      if !packs.found.isEmpty {
        guard try perform({ () throws(StoreError) in try delete(packs.found) }) else { return }
      }
      if let next = packs.next {
        earliest = next
        return
      }
    }
  }

  /// Compacts the emptied ranges if that is worth it.
  mutating func compact(asked: Bool) throws(StoreError) {
    try emptied.compact(in: context, asked: asked)
  }

  /// Reads due packs until there are enough notes for some slices, or for the memory.
  private mutating func readPacks(
    atMost limit: (partialValue: Int, overflow: Bool)
  ) throws(StoreError) -> Packs {
    var packs = Packs()
    let most = limit.overflow ? Int.max : limit.partialValue
    do throws(StoreError) {
      let cursor = try context.engine.cursor(over: packRange)
      while try cursor.next() {
        let pack = cursor.withEntry { key, _ in NotePack(key: key) }
        // Malformed keys are left to verification.
        guard let pack else { continue }
        guard pack.bucket <= date.lastBucket else {
          packs.next = pack.bucket
          return packs
        }
        guard keys.count < most, keys.byteCount < Self.sortedKeyBytes else { return packs }
        if !cursor.withEntry({ _, value in keys.append(pack, value) }) {
          context.noteDamagedNotes(isUnreadable: false)
        }
        packs.found.append(pack)
      }
    } catch .corrupt {
      context.noteDamagedNotes(isUnreadable: true)
    }
    packs.next = .max
    return packs
  }

  /// The keys from `first` on that fit into a slice.
  private func sliceOfKeys(from first: Int) -> Range<Int> {
    var (end, bytes) = (first, 0)
    while end < keys.count, end - first < Self.sliceNotes, bytes < Self.sliceKeyBytes {
      bytes += keys[end].count
      end += 1
    }
    return first..<end
  }

  private mutating func sweep(_ notes: Range<Int>) throws(StoreError) {
    for index in notes {
      try inspect(RecordKey(cacheID: cache.registration.id, userKey: keys[index]))
    }
    while !changes.isEmpty {
      let (applied, changed) = try changes.commit()
      for change in applied {
        deleted += 1
        counts.deleted(change, .sweep, keyedBy: KeyKind(code: cache.registration.keyKind))
        emptied.addRecord(change.key, bytes: change.bytes)
      }
      for change in changed {
        if let key = RecordKey(change.key.span.bytes) { try inspect(key) }
      }
    }
  }

  /// Decides what becomes of a record and its note.
  private mutating func inspect(_ key: RecordKey) throws(StoreError) {
    switch try changes.findNext(key) {
    // Neither can be judged by this version, or now.
    case .unreadable, .unsupported: keep(key, in: laterBucket)
    case .missing, .damaged: return
    case .intact(let record, let bytes):
      guard Int(record.schemaVersion) <= cache.registration.schemaVersion else {
        return keep(key, in: laterBucket)
      }
      guard cache.registration.lifetime.freshness(of: record, at: date.now) != .expired else {
        let same = WriteBatch.Condition.unchanged(since: record.sequence, in: Record.stamp)
        return changes.remove(key.bytes, bytes: bytes, if: same, .expired)
      }
      // Saved with this lifetime, the record has a note in this bucket or a later one. Saved with
      // another one, it gets a note for when it expires now, if it does.
      let lifetime = cache.registration.lifetime.applied(to: record)
      guard let expiry = lifetime.expiry(from: record.savedAt), expiry != record.expiresAt else {
        return
      }
      let bucket = ExpiryNotes.bucket(savedAt: record.savedAt, expiresAt: expiry)
      keep(key, in: max(bucket, date.lastBucket + 1))
    }
  }

  /// The bucket for a note of a record that cannot be judged.
  private var laterBucket: Int64 {
    let lifetime = cache.registration.lifetime
    let share = ((lifetime.freshSeconds ?? 0) + (lifetime.staleSeconds ?? 0)) / 64
    let delay = Int64(min(max(Self.leastDelay, share), 1e9))
    let (bucket, overflow) = date.lastBucket.addingReportingOverflow(delay)
    return overflow ? .max : bucket
  }

  private mutating func keep(_ key: RecordKey, in bucket: Int64) {
    kept[bucket, default: KeyList()].append(key.userKey)
  }

  /// Deletes packs, and adds new ones of the notes that are kept.
  private mutating func delete(_ packs: [NotePack]) throws(StoreError) {
    let notes = context.notes
    var rows = WriteBatch()
    for pack in packs { rows.remove(pack.key.span.bytes) }
    let id = cache.registration.id
    for (bucket, list) in kept.sorted(by: { $0.key < $1.key }) {
      var list = list
      list.sort()
      for keys in list.packs() {
        rows.put(NotePack(cacheID: id, bucket: bucket, number: notes.takeNumber()), keys)
      }
    }
    rows.isAlwaysAdmitted = true
    rows.mayUseReserve = true
    do throws(StoreError) {
      try context.engine.write(&rows, synced: false)
    } catch {
      // It may have taken effect.
      for bucket in kept.keys { notes.lower(id, to: bucket) }
      throw error
    }
    for bucket in kept.keys { notes.lower(id, to: bucket) }
    kept = [:]
  }
}
