public import Foundation

/// Saves entries of another cache; see ``Store/importing(_:)``.
public struct Importer: ~Copyable {
  private let store: Store
  private let now: Date
  private var write = WriteBatch()
  /// The condition of each entry in the write, and the counts of its cache.
  private var waiting: [(requirement: Int, counts: CacheCounts)] = []
  fileprivate private(set) var report = ImportReport()

  fileprivate init(into store: Store) {
    self.store = store
    now = store.context.clock.now()
  }

  /// Saves a value under a key with the date at which it was saved before, unless the key has an
  /// entry.
  ///
  /// ```swift
  /// try store.importing { importer in
  ///   for old in oldEntries {
  ///     try importer.save(old.list, for: old.name, in: genres, savedAt: old.date)
  ///   }
  /// }
  /// ```
  ///
  /// A value that has expired is not saved. A date in the future counts as now: otherwise the value
  /// would live longer than a new one.
  ///
  /// - Parameters:
  ///   - value: At most 32 MiB encoded.
  ///   - key: Up to 64 KiB encoded. Of two values with one key, the first is saved.
  ///   - cache: A cache of the store.
  ///   - savedAt: The date from which its lifetime counts.
  ///   - lifetime: The entry's own lifetime; nil, the default, leaves it to the cache.
  ///   - validator: 1 to 4,096 bytes; nil, the default, for none.
  ///   - tags: Up to 16, of 1 to 64 bytes of UTF-8 each; none by default.
  /// - Throws: ``StoreError/encoding(key:underlying:)`` or ``StoreError/invalidArgument(_:)``, also
  ///   for a date that is not a number: this value is not saved, and the import can go on.
  ///   Otherwise as ``Cache/save(_:for:lifetime:validator:tags:durability:)``: each value since the
  ///   last 256 may be missing.
  /// - Complexity: One encode and one point lookup; one append for 256 values or 1 MiB, or
  ///   for each value if a budget is below 64 MiB.
  public mutating func save<Key, Value>(
    _ value: Value, for key: Key, in cache: borrowing Cache<Key, Value>, savedAt: Date,
    lifetime: Lifetime? = nil, validator: Validator? = nil, tags: [String] = []
  ) throws {
    guard cache.store === store else {
      throw StoreError.invalidArgument("cache \(cache.name) belongs to another store")
    }
    guard savedAt.timeIntervalSinceReferenceDate.isFinite else {
      throw StoreError.invalidArgument("a date that is not a number")
    }
    let core = cache.core
    let savedAt = min(savedAt, now)
    let recordKey = try core.recordKey(of: key, id: core.id)
    let fields = try store.fields(
      of: core, lifetime: lifetime, validator: validator, tags: tags, savedAt: savedAt)
    let applied = fields.lifetime?.lifetime ?? core.lifetime
    guard applied.freshness(of: savedAt, at: now) != .expired else {
      report.expired += 1
      return
    }
    if write.hasRow(under: recordKey.bytes) {
      report.kept += 1
      return
    }
    let requirement = write.require(recordKey.bytes, .absent)
    try core.add(
      value, under: recordKey, savedAt: savedAt, fields: fields, if: requirement, to: &write)
    waiting.append((requirement, core.counts))
    if write.isFullSlice || !slicesFitBudgets { try commit() }
  }

  /// Whether a slice fits into each budget: up to 1 MiB, and the value that exceeds that.
  private var slicesFitBudgets: Bool {
    store.context.budgets.accounting.smallestBudget >= 2 * Record.maximumPayloadBytes
  }

  /// Writes the values that were added since the last slice.
  fileprivate mutating func commit() throws(StoreError) {
    // Forgotten in any case: a failed write may have taken effect.
    defer {
      write.reset()
      waiting.removeAll(keepingCapacity: true)
    }
    let failed = try store.context.commit(&write).failed
    for (requirement, counts) in waiting {
      guard !failed.contains(requirement) else {
        report.kept += 1
        continue
      }
      report.saved += 1
      counts.saves.add()
    }
  }
}

/// The result of ``Store/importing(_:)``.
public struct ImportReport: Sendable, Hashable {
  /// The number of values that were saved.
  public internal(set) var saved = 0
  /// The number of values that were not saved because their key had an entry, in any state.
  public internal(set) var kept = 0
  /// The number of values that were not saved because they had expired.
  public internal(set) var expired = 0
}

extension Store {
  /// Saves entries of another cache, with the dates at which that saved them.
  ///
  /// ```swift
  /// let report = try store.importing { entries in
  ///   for file in try oldCache.files() {
  ///     try entries.save(
  ///       try Data(contentsOf: file.url), for: file.key, in: images, savedAt: file.modified)
  ///   }
  /// }
  /// ```
  ///
  /// An entry that a cache has is kept. So an import may run beside the rest of the program, and
  /// one that failed or was killed is repeated as a whole. Delete the old cache once this returns.
  /// `kvinspect import` makes a store of a directory of files, whose names are its keys.
  ///
  /// - Parameter body: Saves the entries. If it throws, those that it has saved stay; an error that
  ///   keeps them from being written is thrown instead of its own. No lock is held meanwhile.
  /// - Returns: The number of values that were saved, and of those that were not. They survive a
  ///   power loss from then on.
  /// - Throws: The error of `body`; ``StoreError/diskFull`` or ``StoreError/io(_:)`` if a write
  ///   failed: some of the values may be missing. ``StoreError/budgetExceeded(bytes:budget:)``,
  ///   ``StoreError/readOnly(cause:)``, ``StoreError/writesDisabled(cause:)``,
  ///   ``StoreError/closed``.
  /// - Complexity: As ``Importer/save(_:for:in:savedAt:lifetime:validator:tags:)`` for each value,
  ///   and one fsync.
  @discardableResult public func importing(
    _ body: (inout Importer) throws -> Void
  ) throws -> ImportReport {
    try requireWritable()
    var importer = Importer(into: self)
    do {
      try body(&importer)
    } catch {
      try importer.commit()
      throw error
    }
    try importer.commit()
    try flush()
    return importer.report
  }
}
