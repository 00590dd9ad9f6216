import Foundation
import LarderEngine

/// The entries of a cache in the order of their keys' bytes.
///
/// ```swift
/// let cursor = try genres.entries()
/// while let item = try cursor.next() {
///   switch item.entry {
///   case .success(let entry): show(item.key, entry.value)
///   case .failure(let error): report(item.key, error)      // damaged: an item, not the end
///   }
/// }
/// ```
///
/// It is not a `Sequence`: an iterator of one may not throw, and the end of a scan can. A cursor
/// belongs to one thread. It shows the cache as it was when it was made, for up to 100,000 entries
/// or 10 seconds, and then goes on with the cache as it is.
public final class EntryCursor<Key: CacheKey, Value: Sendable> {
  /// A key, and its entry or why that cannot be read.
  public typealias Item = (key: Key, entry: Result<Entry<Value>, StoreError>)

  private let walk: RecordWalk<Key, Value>

  init(_ walk: RecordWalk<Key, Value>) { self.walk = walk }

  /// Moves to the next entry that is fresh, or that cannot be read; nil at the end.
  ///
  /// Stale and expired entries are passed over, as ``Cache/value(for:)`` does.
  ///
  /// - Throws: ``StoreError/undecodable(key:underlying:)`` for a stored key that is none of the
  ///   cache's key type; the next call goes on behind it.
  ///   ``StoreError/corrupt(cache:key:file:)`` with an empty key at the end, when a part of a file
  ///   could not be read; everything else has been shown then. ``StoreError/io(_:)``,
  ///   ``StoreError/closed``.
  /// - Complexity: One step and one decode for each entry shown; one step and one checksum for
  ///   each that is passed over.
  public func next() throws -> Item? {
    try walk.next { record, bytes, recordKey, now throws(StoreError) in
      let found = try walk.cache.core.lookup(
        record, in: bytes, under: recordKey, at: now)
      guard case .fresh(let entry) = found else { return nil }
      return entry
    }
  }
}

/// The keys of a cache in the order of their bytes.
///
/// Else as ``EntryCursor``.
public final class KeyCursor<Key: CacheKey> {
  private let step: () throws(StoreError) -> Key?

  init<Value>(_ walk: RecordWalk<Key, Value>) {
    step = { () throws(StoreError) in
      let item = try walk.next { record, _, _, now throws(StoreError) in
        let freshness = walk.cache.core.lifetime.freshness(of: record.savedAt, at: now)
        return freshness == .fresh ? () : nil
      }
      return item?.key
    }
  }

  /// Moves to the next key whose entry is fresh, or damaged, or newer; nil at the end.
  ///
  /// - Throws: As ``EntryCursor/next()``.
  /// - Complexity: One step and one checksum for each entry. Nothing is decoded.
  public func next() throws -> Key? { try step() }
}

extension Cache {
  /// The keys in a range whose entries are fresh, in the order of their bytes.
  ///
  /// - Parameter range: All keys by default.
  /// - Returns: A cursor before the first of them.
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/closed``.
  public func keys(in range: KeyRange<Key> = .all) throws -> KeyCursor<Key> {
    KeyCursor(try RecordWalk(self, range))
  }

  /// The fresh entries in a range, in the order of their keys' bytes.
  ///
  /// - Parameter range: All keys by default.
  /// - Returns: A cursor before the first of them.
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/closed``.
  public func entries(
    in range: KeyRange<Key> = .all
  ) throws -> EntryCursor<Key, Value> {
    EntryCursor(try RecordWalk(self, range))
  }
}
