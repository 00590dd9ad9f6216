// An older program does not overwrite entries of a newer schema version. A cache that is opened
// with a lower schema version than it once had reads each key before it is saved; other caches do
// not.
//
// The save carries no condition. One process has the store open, and each cache has one
// configuration until the store closes. So nobody writes an entry of a newer version between the
// read and the save.

extension CacheCore {
  /// Throws if a save of `key` would replace an entry of a newer schema version or record format.
  ///
  /// `earlier` holds the changes that the same batch makes before. An entry that it removes is not
  /// replaced.
  func refuseNewerEntry(
    of key: some CacheKey, id: UInt64, after earlier: borrowing WriteBatch
  ) throws(StoreError) {
    guard mayHoldNewerEntries(id) else { return }
    let recordKey = try recordKey(of: key, id: id)
    var buffer = ValueBuffer(from: spareBuffer)
    do throws(StoreError) {
      _ = try record(under: recordKey, into: &buffer, readsPayload: false)
    } catch {
      // A damaged entry cannot be read by any program.
      if case .corrupt = error { return }
      guard earlier.hasRow(under: recordKey.bytes) else { throw error }
    }
  }
}
