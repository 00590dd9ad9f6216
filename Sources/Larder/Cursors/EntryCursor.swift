import Foundation
import LarderEngine

/// A cursor over the entries of a cache, in the order of their encoded keys.
///
/// ```swift
/// let cursor = try genres.entries()
/// while let item = try cursor.next() {
///   switch item.entry {
///   case .success(let entry): show(item.key, entry.value)
///   case .failure(let error): report(item.key, error)      // damaged; the scan continues
///   }
/// }
/// ```
///
/// A cursor belongs to one thread. It reads a snapshot that is taken when it is created. After
/// 100,000 entries or 10 seconds, it continues on a new snapshot.
///
/// It is not a `Sequence`, because the iterator of a `Sequence` cannot throw.
public final class EntryCursor<Key: CacheKey, Value: Sendable> {
  /// A key with its entry, or with the error that reading the entry threw.
  public typealias Item = (key: Key, entry: Result<Entry<Value>, StoreError>)

  private let walk: RecordWalk<Key, Value>

  init(_ walk: RecordWalk<Key, Value>) { self.walk = walk }

  /// Moves to the next entry that is fresh or unreadable, and returns it; nil at the end.
  ///
  /// Stale and expired entries are skipped, as in ``Cache/value(for:)``.
  ///
  /// - Throws: ``StoreError/undecodable(key:underlying:)`` for a stored key that is not valid for
  ///   the cache's key type; the next call continues after that key.
  ///   ``StoreError/corrupt(cache:key:file:)`` with an empty key if part of a file is damaged,
  ///   after all other entries were returned. ``StoreError/io(_:)``, ``StoreError/closed``.
  /// - Complexity: One step and one decode for each returned entry; one step and one checksum for
  ///   each skipped entry.
  public func next() throws -> Item? {
    try walk.next { record, bytes, recordKey, now throws(StoreError) in
      let found = try walk.cache.core.lookup(
        record, in: bytes, under: recordKey, at: now)
      guard case .fresh(let entry) = found else { return nil }
      return entry
    }
  }
}

/// A cursor over the keys of a cache, in the order of their encoded bytes.
///
/// It works like ``EntryCursor``, but decodes no values.
public final class KeyCursor<Key: CacheKey> {
  private let step: () throws(StoreError) -> Key?

  init<Value>(_ walk: RecordWalk<Key, Value>) {
    step = { () throws(StoreError) in
      let item = try walk.next { record, _, _, now throws(StoreError) in
        let freshness = walk.cache.core.lifetime.freshness(of: record, at: now)
        return freshness == .fresh ? () : nil
      }
      return item?.key
    }
  }

  /// Moves to the next key whose entry is fresh, damaged or of a newer program, and returns it.
  ///
  /// Returns nil at the end.
  ///
  /// - Throws: As ``EntryCursor/next()``.
  /// - Complexity: One step and one checksum for each entry. Nothing is decoded.
  public func next() throws -> Key? { try step() }
}

extension Cache {
  /// Scans the keys in a range whose entries are fresh.
  ///
  /// - Parameter range: The range of keys; all keys by default.
  /// - Returns: A cursor before the first key.
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/closed``.
  public func keys(in range: KeyRange<Key> = .all) throws -> KeyCursor<Key> {
    KeyCursor(try RecordWalk(self, range))
  }

  /// Counts the keys in a range whose entries are fresh.
  ///
  /// Damaged entries and those of a newer program count, as in ``keys(in:)``.
  ///
  /// - Parameter range: The range of keys; all keys by default.
  /// - Returns: The number of keys.
  /// - Throws: As ``KeyCursor/next()``.
  /// - Complexity: One step and one checksum for each entry of the range. Nothing is decoded.
  public func count(in range: KeyRange<Key> = .all) throws -> Int {
    let cursor = try keys(in: range)
    var count = 0
    while try cursor.next() != nil { count += 1 }
    return count
  }

  /// Scans the fresh entries in a range of keys.
  ///
  /// - Parameter range: The range of keys; all keys by default.
  /// - Returns: A cursor before the first entry.
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/closed``.
  public func entries(
    in range: KeyRange<Key> = .all
  ) throws -> EntryCursor<Key, Value> {
    EntryCursor(try RecordWalk(self, range))
  }
}
