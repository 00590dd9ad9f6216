import Foundation
import LarderEngine

/// What both cursors are made of: a walk over the records of a cache.
final class RecordWalk<Key: CacheKey, Value: Sendable> {
  let cache: Cache<Key, Value>
  private let cursor: StoreCursor
  private let prefixCount: Int

  init(_ cache: Cache<Key, Value>, _ range: KeyRange<Key>) throws(StoreError) {
    self.cache = cache
    let prefix = KeySpace.records.prefix(ofCache: cache.core.id)
    prefixCount = prefix.count
    cursor = try cache.core.context.cursor(
      over: range.engineRange(after: prefix), cache: cache.name)
  }

  /// Moves to the next record that `read` makes something of, or that cannot be read.
  ///
  /// `read` answers nil for a record that is to be passed over.
  func next<Part>(
    _ read: (Record, RawSpan, _ recordKey: RawSpan, _ now: Date) throws(StoreError) -> Part?
  ) throws(StoreError) -> (key: Key, entry: Result<Part, StoreError>)? {
    while try cursor.next() {
      let part = cursor.withEntry { recordKey, bytes -> Result<Part, StoreError>? in
        do throws(StoreError) {
          let record = try cache.core.record(bytes, under: recordKey)
          return try read(record, bytes, recordKey, cache.core.context.clock.now()).map {
            .success($0)
          }
        } catch {
          return .failure(error)
        }
      }
      guard let part else { continue }
      return (try key(), part)
    }
    return nil
  }

  private func key() throws(StoreError) -> Key {
    try cursor.withEntry { recordKey, _ throws(StoreError) in
      let bytes = recordKey.extracting(prefixCount..<recordKey.byteCount)
      guard let key = Key(encodedKey: bytes) else {
        throw .undecodable(
          key: cache.core.describe(recordKey), underlying: UnreadableKey(type: Key.self))
      }
      return key
    }
  }
}

/// A stored key that is none of the cache's key type.
private struct UnreadableKey: LocalizedError, CustomStringConvertible {
  let type: any CacheKey.Type

  var description: String { "the key is no \(type)" }
  var errorDescription: String? { description }
}
