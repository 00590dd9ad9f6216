import Foundation
import LarderEngine

extension Store {
  /// Deletes what has expired, in every cache of the store, those that are not open included.
  ///
  /// ```swift
  /// let count = try store.sweep()
  /// ```
  ///
  /// Nothing has to be swept for an expired entry to be hidden: this gives back its room. It goes
  /// by an index of what expires when, and so takes time for what it deletes and not for what is
  /// kept. It deletes an entry up to a 64th of its lifetime after it has expired.
  ///
  /// It obeys the clock at once, wherever that was set. Entries that are saved, touched or migrated
  /// while this runs are never deleted by it. A cache that is not open is judged by the lifetime it
  /// was last opened with. Stale entries are kept.
  ///
  /// Left for ``Cache/validate(maxAge:)``: entries that are damaged; and entries that were saved
  /// with a longer lifetime than the cache has now, or with none, which the index has under a later
  /// date, or nowhere. Left for a newer program: entries of a newer schema version or record
  /// format.
  ///
  /// When it is interrupted, by an error or the end of the process, what was deleted stays deleted,
  /// and the next call goes on with the rest.
  ///
  /// - Returns: How many entries were deleted.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)`` with an empty key, after everything else
  ///   was swept, when a part of an index or what the store remembers of a cache is damaged;
  ///   ``StoreError/diskFull``, ``StoreError/io(_:)`` or ``StoreError/writesDisabled(cause:)`` when
  ///   deleting failed; ``StoreError/readOnly(cause:)``, ``StoreError/closed``.
  /// - Complexity: With nothing to be deleted one look at each cache, without a lookup. Else, for
  ///   each entry that has expired and for each time one was overwritten, one step, one checksum
  ///   and one lookup, or two if anything was written meanwhile; one append for 256 of them. After
  ///   many deletions the ranges that they emptied are compacted. Memory for 4 MiB of keys and the
  ///   largest value.
  @discardableResult public func sweep() throws -> Int {
    try requireWritable()
    do throws(EngineError) {
      // Before the lock: in a forked child nobody may be left to give it up.
      try engine.checkOpen()
    } catch {
      throw StoreError(error)
    }
    // Also before the lock: the clock may call the store.
    let now = clock.now()
    return try withSweeper { sweeper throws(StoreError) in
      try sweeper.sweep(self, at: now, asked: true)
    }
  }

  /// A bounded sweep that nobody asked for: only while the clock goes steadily.
  func sweepUnasked() {
    let reading = ClockWatch.Reading(of: clock)
    withSweeperIfAvailable { sweeper in
      guard let now = sweeper.watch(reading) else { return }
      do throws(StoreError) {
        try sweeper.sweep(self, at: now, asked: false)
      } catch {
        // Nobody waits for it. What is left is tried again the next time; whatever is wrong, a
        // read or write that it concerns will say so.
      }
    }
  }
}

/// What the sweeps of a store know from one to the next.
struct Sweeper {
  /// How many slices of 256 rows a sweep that nobody asked for takes.
  static let unaskedSlices = 40

  private var watch = ClockWatch()
  private var places: [CacheName: SweepPlace] = [:]
  /// The caches that were registered and not open when this was first asked for.
  private var dormant: [CacheName: (registration: Registration, due: NextDue)]?
  private var damaged: [CacheName] = []

  /// Takes a reading of the clock, and returns the date that may be deleted by unasked, if there is
  /// one.
  @discardableResult mutating func watch(_ reading: ClockWatch.Reading) -> Date? {
    watch.steadyDate(at: reading)
  }

  /// Sweeps every cache of `store` of what has expired at `now`; unless somebody asked for it, a
  /// part of that at most.
  @discardableResult mutating func sweep(
    _ store: Store, at now: Date, asked: Bool
  ) throws(StoreError) -> Int {
    guard let last = CacheSweep.lastBucket(at: now) else { return 0 }
    store.counts.sweeps.add()
    var (deleted, slicesLeft) = (0, asked ? .max : Self.unaskedSlices)
    var damage: StoreError?
    if dormant == nil { try findDormant(in: store) }
    for name in damaged where store.allOpenCaches[name] == nil {
      damage = .corrupt(cache: name.text, key: "", file: nil)
    }
    for cache in dueCaches(of: store, last: last) where slicesLeft > 0 {
      do throws(EngineError) {
        deleted += try sweep(
          cache, of: store, at: now, last: last, asked: asked, slices: &slicesLeft)
      } catch .corrupt(let message) {
        damage = StoreError(.corrupt(message), cache: cache.name.text)
      } catch {
        throw StoreError(error, cache: cache.name.text)
      }
    }
    if let damage { throw damage }
    return deleted
  }

  /// Whether a sweep of `store` at `now` might find rows that are due, as far as is known without
  /// looking.
  func mayFindSomething(in store: Store, at now: Date) -> Bool {
    guard let last = CacheSweep.lastBucket(at: now) else { return false }
    return dormant == nil || !dueCaches(of: store, last: last).isEmpty
  }

  private mutating func findDormant(in store: Store) throws(StoreError) {
    do throws(EngineError) {
      let found = try store.withRegistry { registry throws(EngineError) in
        try registry.dormant(in: store.engine)
      }
      dormant = found.caches.mapValues { ($0, NextDue()) }
      damaged = found.damaged
    } catch {
      throw StoreError(error)
    }
  }

  private func dueCaches(of store: Store, last: Int64) -> [DueCache] {
    var caches: [DueCache] = []
    let open = store.allOpenCaches
    for (name, cache) in open where cache.nextDue.isDue(at: last) {
      caches.append(
        DueCache(name: name, due: cache.nextDue, isOpen: true) { cache.registration(id: cache.id) })
    }
    for (name, cache) in dormant ?? [:] where cache.due.isDue(at: last) && open[name] == nil {
      caches.append(
        DueCache(name: name, due: cache.due, isOpen: false) { cache.registration })
    }
    return caches
  }

  private mutating func sweep(
    _ cache: DueCache, of store: Store, at now: Date, last: Int64, asked: Bool,
    slices: inout Int
  ) throws(EngineError) -> Int {
    let due = cache.due.take()
    // After that: a cache that is cleared from here on notes the rows that it gets.
    let registration = cache.registration()
    guard registration.lifetime.expiry(from: now) != nil else {
      // It may have rows from a time when it had a limit, for a time when it has one again.
      cache.due.set(.max)
      return 0
    }
    let place = places[cache.name].flatMap { $0.id == registration.id ? $0 : nil }
    var sweep = CacheSweep(
      of: registration, in: store.engine, telling: store.observations,
      counting: store.counts.ofCache(cache.name.text), at: now, last: last, from: place,
      due: cache.due)
    defer { places[cache.name] = sweep.place }
    // What was found under another number says nothing of this one.
    try sweep.run(from: place == nil ? (.min, .min) : due, slices: &slices) {
      slice throws(EngineError) in
      guard !cache.isOpen else {
        try slice()
        return true
      }
      // Opened meanwhile, it may have another lifetime, and is swept by that from now on.
      return try store.withRegistry { registry throws(EngineError) in
        guard registry.open.cache(named: cache.name.text) == nil else { return false }
        try slice()
        return true
      }
    }
    try sweep.compact(asked: asked)
    return sweep.deleted
  }
}

/// A cache of which something may be due.
private struct DueCache {
  let name: CacheName
  let due: NextDue
  let isOpen: Bool
  let registration: () -> Registration
}
