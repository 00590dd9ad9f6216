import LarderEngine

// What a newer program has saved is not lost to a save of an older one. A cache that is opened with
// a lower schema version than it once had looks at each key before it is saved; others do not.
//
// The save carries no condition. One process has the store open, and for each cache one set of
// settings until it closes: nobody writes an entry of a newer version meanwhile, so none can appear
// between the look and the save.

extension Store {
  /// Throws if a save of `key` would replace an entry of a newer schema version or record format.
  ///
  /// `earlier` is what the same batch does before. An entry that it removes is not replaced.
  func refuseNewerEntry<V: Sendable>(
    of key: some CacheKey, in core: CacheCore<V>, id: UInt64, after earlier: borrowing WriteBatch
  ) throws(StoreError) {
    guard core.mayHoldNewerEntries(id) else { return }
    let recordKey = try core.recordKey(of: key, id: id)
    var buffer = ValueBuffer(from: core.spareBuffer)
    do throws(StoreError) {
      guard try get(recordKey, in: core, into: &buffer) else { return }
      _ = try buffer.withBytes { bytes throws(StoreError) in
        try core.record(bytes, under: recordKey.span.bytes)
      }
    } catch {
      // What is damaged no program can read any more.
      if case .corrupt = error { return }
      guard earlier.hasRow(under: recordKey) else { throw error }
    }
  }
}
