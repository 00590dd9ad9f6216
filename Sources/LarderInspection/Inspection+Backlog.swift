import Larder

extension Inspection {
  /// The expiry index of all caches, and the records that a sweep at ``now`` would delete.
  ///
  /// - Complexity: One step for each index row, one lookup and one checksum for each due row.
  ///   Memory for the keys of one cache's due records.
  func backlog() throws(InspectionError) -> CacheContents {
    var backlog = CacheContents()
    do throws(StoreError) {
      for case let registration? in catalog.caches.map(\.registration) {
        try backlog.addIndex(
          of: registration, endedBy: catalog.invalidatedTags, in: engine, at: now)
      }
    } catch {
      throw failure(error)
    }
    return backlog
  }
}
