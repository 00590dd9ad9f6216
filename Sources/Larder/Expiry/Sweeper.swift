import Foundation

/// The state that a store's sweeps keep from one to the next.
struct Sweeper {
  /// The number of slices of 256 rows that a sweep in the background takes at most.
  static let unaskedSlices = 40
  /// The number of records that a sweep in the background visits at most for invalidated tags, and
  /// for missing notes.
  static let unaskedSteps = 100_000

  private var watch = ClockWatch()
  /// What earlier sweeps have left to compact, by the ids of the caches.
  private var emptied: [UInt64: EmptiedRange] = [:]
  /// The caches that were registered and not open at the first sweep; nil before it.
  private var dormant: [CacheName: Registration]?
  private var damaged: [CacheName] = []
  /// The scan for invalidated tags that a sweep in the background has begun.
  private var tagScan: TagScan?
  /// The tags of the last scan that has finished.
  private var scannedTags: [[UInt8]: UInt64] = [:]

  /// Takes a reading of the clock; returns the date to sweep by in the background, if the clock has
  /// been steady.
  @discardableResult mutating func watch(_ reading: ClockWatch.Reading) -> Date? {
    watch.steadyDate(at: reading)
  }

  /// Sweeps every cache of `store`; in the background (not `asked`) a bounded number of slices.
  ///
  /// - Returns: The number of entries that were deleted.
  @discardableResult mutating func sweep(
    _ store: Store, at now: Date, asked: Bool
  ) throws(StoreError) -> Int {
    guard let date = SweepDate(now) else { return 0 }
    store.context.counts.sweeps.add()
    var (deleted, slicesLeft) = (0, asked ? .max : Self.unaskedSlices)
    var damage: StoreError?
    if dormant == nil { try findDormant(in: store) }
    for name in damaged where store.allOpenCaches[name] == nil {
      damage = .corrupt(cache: name.text, key: "", file: nil)
    }
    var steps = asked ? Int.max : Self.unaskedSteps
    try store.context.noteMissing(steps: &steps)
    let due = store.context.notes.due(at: date.lastBucket)
    if due.hasPending { try store.context.writeNotes() }
    for cache in caches(of: store, in: due) where slicesLeft > 0 {
      do throws(StoreError) {
        deleted += try sweep(cache, of: store, at: date, asked: asked, slices: &slicesLeft)
      } catch {
        guard case .corrupt(_, _, let file) = error else { throw error }
        damage = .corrupt(cache: cache.name.text, key: "", file: file)
      }
    }
    let (ended, tagDamage) = try sweepTags(of: store, asked: asked)
    deleted += ended
    if let damage = damage ?? tagDamage { throw damage }
    return deleted
  }

  /// Deletes the entries of invalidated tags; in the background from a bounded number of records.
  private mutating func sweepTags(
    of store: Store, asked: Bool
  ) throws(StoreError) -> (deleted: Int, damage: StoreError?) {
    var (deleted, steps) = (0, asked ? .max : Self.unaskedSteps)
    var damage: StoreError?
    // A sweep that was asked for finishes a scan of the background first.
    for mayBegin in tagScan != nil && asked ? [false, true] : [true] {
      if tagScan == nil, mayBegin {
        let isWorthIt =
          asked ? !store.context.invalidatedTags.all.isEmpty : hasUnscannedTags(store.context)
        guard isWorthIt else { break }
        tagScan = try TagScan(of: store)
      }
      guard var scan = tagScan.take() else { break }
      defer { tagScan = scan.isFinished ? nil : scan }
      deleted += try scan.run(in: store.context, steps: &steps)
      damage = scan.damage
      if scan.isFinished { scannedTags = scan.tags }
    }
    return (deleted, damage)
  }

  /// Whether a sweep of `store` at `now` might delete entries, as far as is known without a scan.
  func mayFindSomething(in store: Store, at now: Date) -> Bool {
    guard let date = SweepDate(now) else { return false }
    let notes = store.context.notes
    return dormant == nil || hasUnscannedTags(store.context) || !notes.isComplete
      || !caches(of: store, in: notes.due(at: date.lastBucket)).isEmpty
  }

  private func hasUnscannedTags(_ context: StoreContext) -> Bool {
    context.invalidatedTags.all.contains { tag, sequence in scannedTags[tag] != sequence }
  }

  private mutating func findDormant(in store: Store) throws(StoreError) {
    let found = try store.withRegistry { registry throws(StoreError) in try registry.dormant() }
    dormant = found.caches
    damaged = found.damaged
  }

  private func caches(of store: Store, in due: ExpiryNotes.Due) -> [DueCache] {
    let open = store.allOpenCaches
    var caches = open.filter { due.contains($1.id) }.map { name, cache in
      DueCache(name: name, isOpen: true) { cache.registration(id: cache.id) }
    }
    for (name, registration) in dormant ?? [:]
    where open[name] == nil && due.contains(registration.id) {
      caches.append(DueCache(name: name, isOpen: false) { registration })
    }
    return caches
  }

  private mutating func sweep(
    _ cache: DueCache, of store: Store, at date: SweepDate, asked: Bool, slices: inout Int
  ) throws(StoreError) -> Int {
    let registration = cache.registration()
    // It may have notes of an earlier limit, which are kept for a later one.
    guard registration.mayExpire else { return 0 }
    var sweep = CacheSweep(
      of: SweptCache(name: cache.name, registration: registration), at: date,
      emptied[registration.id] ?? EmptiedRange(), in: store.context)
    defer { emptied[registration.id] = sweep.emptied }
    try sweep.run(slices: &slices) { slice throws(StoreError) in
      guard !cache.isOpen else {
        try slice()
        return true
      }
      // A cache that is opened meanwhile may have another lifetime, and is swept by that. The
      // rows of a dropped one are reclaimed.
      return try store.withRegistry { registry throws(StoreError) in
        guard registry.open.cache(named: cache.name.text) == nil,
          try registry.registration(of: cache.name.text)?.id == registration.id
        else { return false }
        try slice()
        return true
      }
    }
    try sweep.compact(asked: asked)
    return sweep.deleted
  }
}

/// A cache that is swept.
struct SweptCache {
  let name: CacheName
  let registration: Registration
}

/// A cache that may have due notes.
private struct DueCache {
  let name: CacheName
  let isOpen: Bool
  let registration: () -> Registration
}
