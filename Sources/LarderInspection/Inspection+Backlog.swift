import Larder

extension Inspection {
  /// The records of all caches by state, and those that a sweep at ``now`` would delete.
  ///
  /// - Complexity: One step for each record.
  func backlog() throws(InspectionError) -> CacheContents {
    var backlog = CacheContents()
    do throws(StoreError) {
      for case let registration? in catalog.caches.map(\.registration) {
        try backlog.addRecords(
          of: registration, endedBy: catalog.invalidatedTags, in: engine, at: now)
      }
    } catch {
      throw failure(error)
    }
    return backlog
  }
}
