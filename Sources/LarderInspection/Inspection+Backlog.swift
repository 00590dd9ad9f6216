import Larder
import LarderEngine

extension Inspection {
  /// What a sweep would find at ``now``: the index, and what is due, of all caches.
  ///
  /// - Complexity: One step for each row of the index, one lookup and one checksum for each that is
  ///   due. Memory for the keys of what would be deleted of one cache.
  func backlog() throws(InspectionError) -> CacheContents {
    var backlog = CacheContents()
    do throws(EngineError) {
      for case let registration? in catalog.caches.map(\.registration) {
        try backlog.addIndex(of: registration, in: engine, at: now)
      }
    } catch {
      throw failure(error)
    }
    return backlog
  }
}
