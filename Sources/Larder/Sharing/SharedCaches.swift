import Synchronization

/// The caches of a store that are shared with other machines, by their ids.
///
/// A change of their records that does not go through their tier is refused: the tier would bring
/// the old value back.
final class SharedCaches: Sendable {
  private let names = Lock<[UInt64: String]>([:])
  private let count = Atomic<Int>(0)

  func add(_ name: String, id: UInt64) {
    names.withLock { names in
      names[id] = name
      count.store(names.count, ordering: .releasing)
    }
  }

  /// Throws if a batch changes records of a shared cache without its tier.
  ///
  /// Changes that the store makes by itself, such as deleting expired entries, carry a note.
  @inline(__always)
  func check(_ write: borrowing WriteBatch) throws(StoreError) {
    if count.load(ordering: .relaxed) > 0, !write.isOfTier { try checkRows(of: write) }
  }

  private func checkRows(of write: borrowing WriteBatch) throws(StoreError) {
    let names = names.withLock { $0 }
    let name = write.bytes.withBytes { bytes -> String? in
      for row in write.rows where row.note == 0 {
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key]).bytes
        let id = row.recordCacheID(in: bytes) ?? Metadata.reclaimedID(in: key)
        if let id, let name = names[id] { return name }
      }
      return nil
    }
    guard let name else { return }
    throw .invalidArgument(
      """
      cache "\(name)" is shared with other machines, which would not hear of this change; change \
      it through its SharedCache
      """)
  }
}

extension StoreError {
  static func tagsInSharedCache(_ name: String) -> StoreError {
    .invalidArgument(
      """
      cache "\(name)" is shared with other machines, which would not hear that a tag is \
      invalidated; save its values without tags
      """)
  }
}
