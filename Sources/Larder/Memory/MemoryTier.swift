/// The memory that a cache has for decoded values, which are returned without a read from disk.
///
/// Each value that is read from disk while it is fresh is kept in memory as long as there is room
/// for it; see <doc:Caching>.
public enum MemoryTier: Sendable, Hashable {
  /// The store's memory, which all caches with this setting share.
  ///
  /// Its size is ``Store/Options/memoryBytes``.
  case shared
  /// Memory of the cache's own, in bytes; at least 1.
  case bytes(Int)
  /// No memory: each read decodes the value from disk.
  case none
}
