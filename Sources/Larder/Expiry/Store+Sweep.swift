import Foundation

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
    try context.checkOpen()
    // Before the lock: the clock may call the store.
    let now = context.clock.now()
    return try withSweeper { sweeper throws(StoreError) in
      try sweeper.sweep(self, at: now, asked: true)
    }
  }

  /// Sweeps a bounded number of slices in the background, if the clock has been steady.
  func sweepUnasked() {
    let reading = ClockWatch.Reading(of: context.clock)
    withSweeperIfAvailable { sweeper in
      guard let now = sweeper.watch(reading) else { return }
      do throws(StoreError) {
        try sweeper.sweep(self, at: now, asked: false)
      } catch {
        // No caller waits for it. The rest is tried again the next time, and reads or writes that
        // meet the same failure throw it.
      }
    }
  }
}
