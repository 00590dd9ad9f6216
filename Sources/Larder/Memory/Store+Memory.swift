#if canImport(Darwin)
  import Dispatch
#endif

/// The decoded values that a store has in memory.
public struct MemoryStatistics: Sendable, Hashable, Codable {
  /// The number of values.
  public var entries = 0
  /// Their size, in bytes, as it counts towards the limits.
  ///
  /// It is an estimate by the sizes of the encoded values.
  public var bytes = 0
  /// The number of values that were released because there was no room for them.
  public var evictions = 0
  /// The number of values that were not kept because they are larger than a quarter of the limit.
  public var tooLarge = 0

  init() {}

  mutating func add(_ other: MemoryStatistics) {
    entries += other.entries
    bytes += other.bytes
    evictions += other.evictions
    tooLarge += other.tooLarge
  }
}

extension Store {
  /// Releases decoded values from memory until the others take at most a number of bytes.
  ///
  /// ```swift
  /// store.releaseMemory()   // when the system asks for memory
  /// ```
  ///
  /// Nothing is deleted: the next reads take the values from disk, and keep them in memory again.
  /// On Apple's systems, a store halves its values when the system warns of little memory, and
  /// releases all of them when memory is critical.
  ///
  /// - Parameter bytes: The most that the values may take afterwards; 0, the default, releases
  ///   all. A negative number counts as 0.
  /// - Complexity: Proportional to the number of values that are released. One check for each cache
  ///   with memory of its own.
  public func releaseMemory(to bytes: Int = 0) {
    context.memory?.reduce(to: max(0, bytes))
  }
}

#if canImport(Darwin)
  extension StoreMemory {
    /// Releases values when the system warns of little memory.
    ///
    /// It ends with a call of the returned closure.
    func watchPressure(_ log: StoreLog) -> @Sendable () -> Void {
      // Only `cancel` is called once it is active, which is allowed on any thread.
      nonisolated(unsafe) let source = DispatchSource.makeMemoryPressureSource(
        eventMask: [.warning, .critical], queue: .global(qos: .utility))
      source.setEventHandler { [weak self] in
        guard let self else { return }
        let held = statistics.bytes
        reduce(to: source.data.contains(.critical) ? 0 : held / 2)
        log.released(bytes: held - statistics.bytes)
      }
      source.activate()
      return { source.cancel() }
    }
  }
#endif

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
