import Foundation

/// The state that a store's sweeps keep from one to the next.
struct Sweeper {
  /// The number of slices of 256 rows that a sweep in the background takes at most.
  static let unaskedSlices = 40
  /// The number of records that a sweep in the background visits at most for invalidated tags.
  static let unaskedSteps = 100_000

  private var watch = ClockWatch()
  private var places: [CacheName: SweepPlace] = [:]
  /// The caches that were registered and not open at the first sweep; nil before it.
  private var dormant: [CacheName: (registration: Registration, due: NextDue)]?
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
    for cache in dueCaches(of: store, at: date) where slicesLeft > 0 {
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
    return dormant == nil || hasUnscannedTags(store.context)
      || !dueCaches(of: store, at: date).isEmpty
  }

  private func hasUnscannedTags(_ context: StoreContext) -> Bool {
    context.invalidatedTags.all.contains { tag, sequence in scannedTags[tag] != sequence }
  }

  private mutating func findDormant(in store: Store) throws(StoreError) {
    let found = try store.withRegistry { registry throws(StoreError) in try registry.dormant() }
    dormant = found.caches.mapValues { ($0, NextDue()) }
    damaged = found.damaged
  }

  private func dueCaches(of store: Store, at date: SweepDate) -> [DueCache] {
    var caches: [DueCache] = []
    let open = store.allOpenCaches
    for (name, cache) in open where cache.nextDue.isDue(at: date.lastBucket) {
      caches.append(
        DueCache(name: name, due: cache.nextDue, isOpen: true) { cache.registration(id: cache.id) })
    }
    for (name, cache) in dormant ?? [:]
    where cache.due.isDue(at: date.lastBucket) && open[name] == nil {
      caches.append(
        DueCache(name: name, due: cache.due, isOpen: false) { cache.registration })
    }
    return caches
  }

  private mutating func sweep(
    _ cache: DueCache, of store: Store, at date: SweepDate, asked: Bool, slices: inout Int
  ) throws(StoreError) -> Int {
    let bounds = cache.due.take()
    // Read after the notes: a cache that is cleared from here on notes its rows under its new id.
    let registration = cache.registration()
    guard registration.mayExpire else {
      // It may have rows of an earlier limit, and rows to be evicted by.
      cache.due.set(.max)
      return 0
    }
    let place = places[cache.name].flatMap { $0.id == registration.id ? $0 : nil }
    var sweep = CacheSweep(
      of: SweptCache(name: cache.name, registration: registration, due: cache.due), at: date,
      from: place, in: store.context)
    defer { places[cache.name] = sweep.place }
    // Bounds that were found under another id say nothing about this one.
    try sweep.run(from: place == nil ? (.min, .min) : bounds, slices: &slices) {
      slice throws(StoreError) in
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
  let due: NextDue
}

/// A cache that may have due rows.
private struct DueCache {
  let name: CacheName
  let due: NextDue
  let isOpen: Bool
  let registration: () -> Registration
}
