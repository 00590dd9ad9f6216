import Foundation

extension Store {
  /// Deletes the expired entries of every cache of the store, open or not.
  ///
  /// ```swift
  /// let count = try store.sweep()
  /// ```
  ///
  /// Expired entries are hidden from reads without a sweep; a sweep gives back their room. Its cost
  /// grows with the entries that it deletes, not with those it keeps. The first one after a crash,
  /// though, reads the heads of all records; see <doc:Sweeping>. An entry is deleted at the latest
  /// a 64th of its lifetime after it has expired.
  ///
  /// The sweep uses the clock's current date. Entries that are saved, touched or migrated while it
  /// runs are never deleted by it. A cache that is not open is swept by the lifetime that it was
  /// last opened with. Stale entries are kept.
  ///
  /// If a tag was invalidated, the entries that it ended are deleted too, by a scan of the caches
  /// that have tagged entries.
  ///
  /// Some entries are left for ``Cache/validate(maxAge:)``: damaged ones, and those that were saved
  /// with a longer lifetime than the cache has now, or with no limit, because they are noted for a
  /// later date or not at all. Entries of a newer schema version or record format are left for the
  /// program that wrote them.
  ///
  /// If the sweep is interrupted, by an error or the end of the process, the next call continues
  /// with the rest.
  ///
  /// - Returns: The number of deleted entries.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)`` with an empty key, after everything else
  ///   was swept, if a part of an index or a cache's registration is damaged;
  ///   ``StoreError/diskFull``, ``StoreError/io(_:)`` or ``StoreError/writesDisabled(cause:)`` if
  ///   deleting failed; ``StoreError/readOnly(cause:)``, ``StoreError/closed``.
  /// - Complexity: One step and one checksum for each entry of the caches with tagged entries if a
  ///   tag was invalidated since the last sweep, and one step for each record after a crash. If
  ///   nothing has expired, one check for each cache and no lookup. Otherwise, for each expired
  ///   entry, and for each bucket in which it was overwritten, a few steps or one lookup, and one
  ///   checksum; one append for 256 of them. The emptied range is compacted if a thousand entries
  ///   were deleted and no more bytes are rewritten than are freed.
  ///   Memory for 16 MiB of keys, their places, and the largest value. Payloads in segments are not
  ///   read.
  @discardableResult public func sweep() throws -> Int {
    try requireWritable()
    try context.engine.checkOpen()
    // Before the lock: the clock may call the store.
    let now = context.clock.now()
    let count = try withSweeper { sweeper throws(StoreError) in
      try sweeper.sweep(self, at: now, asked: true)
    }
    if count > 0 { context.engine.collectSegmentsSoon() }
    return count
  }

  /// Sweeps a bounded number of slices in the background, if the clock has been steady.
  func sweepUnasked() {
    let reading = ClockWatch.Reading(of: context.clock)
    withSweeperIfAvailable { sweeper in
      guard let now = sweeper.watch(reading) else { return }
      do throws(StoreError) {
        let count = try sweeper.sweep(self, at: now, asked: false)
        if count > 0 { context.engine.collectSegmentsSoon() }
      } catch {
        // No caller waits for it. The rest is tried again the next time, and reads or writes that
        // meet the same failure throw it.
      }
    }
  }

  /// Sweeps a bounded number of slices before the store is closed, if the last such sweep was an
  /// interval ago.
  ///
  /// Programs that run for less than an interval are swept by this alone. A deletion cannot be
  /// undone, so it does not trust the present date, but one at which the store was closed before:
  /// a wrong date must be there at two closings, an interval apart, to delete an entry.
  ///
  /// - Returns: Whether the mark of the notes is to be written with another date.
  func sweepAtClosing() -> Bool {
    guard let interval = context.sweepInterval, context.hasWritableFiles else { return false }
    let now = context.clock.now()
    guard now.timeIntervalSinceReferenceDate.isFinite else { return false }
    let last = context.notes.closingDate
    if let last, now >= last {
      let passed = now.timeIntervalSince(last)
      guard passed >= max(interval.inSeconds, ClockWatch.steadySeconds) else { return false }
      withSweeperIfAvailable { sweeper in
        do throws(StoreError) {
          try sweeper.sweep(self, at: last, asked: false)
        } catch {
          // The store is closed nevertheless. The rest is swept at a later closing.
        }
      }
    }
    return context.notes.setClosingDate(now)
  }
}
