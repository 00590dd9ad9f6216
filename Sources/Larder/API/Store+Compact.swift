/// The result of ``Store/compact(progress:)``.
public struct CompactionReport: Sendable, Hashable, Codable {
  /// The size of the store's files before, in bytes.
  public var bytesBefore = 0
  /// The size of the store's files after, in bytes.
  ///
  /// Segments that an open cursor may still read are included; they are deleted when it ends.
  public var bytesAfter = 0

  init() {}
}

extension Store {
  /// Gives back the room of values that were removed or overwritten, while the store is in use.
  ///
  /// ```swift
  /// let report = try await store.compact { fraction in
  ///   progressBar.value = fraction             // on a thread of the store
  /// }
  /// print("freed \(report.bytesBefore - report.bytesAfter) bytes")
  /// ```
  ///
  /// No program needs to call this: the store gives back room by itself, up to the bounds in
  /// <doc:LargeValues>. It is for a moment when a program has removed much and wants the room at
  /// once. Expired entries stay; call ``sweep()`` before. Entries do not change.
  ///
  /// Rows of cleared and dropped caches are deleted. All of LevelDB's tables are rewritten, so
  /// values that are kept in LevelDB are written once. Segments in which nothing is live are
  /// deleted. What is live in segments that are at least an eighth dead is copied. Other calls
  /// continue, and share the device. While the disk is nearly full, saves may throw
  /// ``StoreError/diskFull``.
  ///
  /// If the task is cancelled, the call ends after the range of keys, or the megabyte of payloads,
  /// that it is working on. What was given back until then stays so, and the next call does the
  /// rest. The same holds if it throws.
  ///
  /// - Parameter progress: Called on a thread of the store with the share of the work that is done,
  ///   from 0 to 1, never less than before. Nothing is reported by default.
  /// - Returns: The sizes of the files before and after; zeros for a store in memory.
  /// - Throws: `CancellationError` if the task was cancelled.
  ///   ``StoreError/corrupt(cache:key:file:)`` if a row could not be read: no segment is deleted
  ///   then; ``StoreError/diskFull`` if the disk has no room for a table or a copy;
  ///   ``StoreError/io(_:)``, ``StoreError/writesDisabled(cause:)``,
  ///   ``StoreError/readOnly(cause:)``, ``StoreError/closed``.
  /// - Complexity: Reads and writes all of LevelDB's tables, and the payloads that are copied; two
  ///   steps for each record; some fsyncs. Memory for a megabyte of payloads and the largest value.
  @discardableResult
  @concurrent public func compact(
    progress: @escaping @Sendable (_ fraction: Double) -> Void = { _ in }
  ) async throws -> CompactionReport {
    try await run {
      try compact { fraction in
        progress(fraction)
        return !Task.isCancelled
      }
    }
  }

  /// The same on the caller's thread; throws `CancellationError` once `proceed` returns false.
  private func compact(while proceed: (_ fraction: Double) -> Bool) throws -> CompactionReport {
    try requireWritable()
    try context.engine.checkOpen()
    var report = CompactionReport()
    report.bytesBefore = try context.engine.storedBytes()
    guard try compactFiles(while: proceed) else { throw CancellationError() }
    report.bytesAfter = try context.engine.storedBytes()
    _ = proceed(1)
    return report
  }

  /// Gives back all room; returns false once `proceed` does.
  func compactFiles(
    while proceed: (_ fraction: Double) -> Bool
  ) throws(StoreError) -> Bool {
    try reclaimAll()
    var isCancelled = !proceed(0)
    let ranges = try rangesOfCaches()
    for (index, range) in ranges.enumerated() where !isCancelled {
      try context.engine.compact(range)
      isCancelled = !proceed(Double(index + 1) / Double(2 * ranges.count))
    }
    if !isCancelled {
      try context.engine.collectSegments(.complete) { copied, total in
        isCancelled = !proceed(0.5 + 0.5 * Double(copied) / Double(max(total, 1)))
        return !isCancelled
      }
    }
    return !isCancelled
  }

  /// The whole store as ranges that begin with a cache, at most ``mostRanges``.
  private func rangesOfCaches() throws(StoreError) -> [EngineRange] {
    var ids = try withRegistry { registry throws(StoreError) in
      var ids: [UInt64] = []
      for name in try registry.registeredNames() {
        if let id = try registry.registration(of: name)?.id { ids.append(id) }
      }
      return ids
    }
    ids.sort()
    let step = max(1, 2 * ids.count / Self.mostRanges)
    var bounds: [[UInt8]] = [[]]
    for space in [KeySpace.records, .notes] {
      for index in stride(from: 0, to: ids.count, by: step) {
        bounds.append(space.prefix(ofCache: ids[index]))
      }
    }
    return zip(bounds, bounds.dropFirst().map(Optional.some) + [nil]).map {
      EngineRange(from: $0, upTo: $1)
    }
  }

  private static let mostRanges = 64
}
