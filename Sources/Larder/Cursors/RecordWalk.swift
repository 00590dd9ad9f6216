import Foundation
import LarderEngine

/// A scan over the records of a cache; both kinds of cursors use it.
final class RecordWalk<Key: CacheKey, Value: Sendable> {
  let cache: Cache<Key, Value>
  private let cursor: StoreCursor
  private let prefixCount: Int
  /// The generation of invalidated tags before the cursor was made.
  private let generation: UInt64

  init(_ cache: Cache<Key, Value>, _ range: KeyRange<Key>) throws(StoreError) {
    self.cache = cache
    let prefix = KeySpace.records.prefix(ofCache: cache.core.id)
    prefixCount = prefix.count
    generation = cache.core.context.invalidatedTags.generation
    cursor = try cache.core.context.cursor(
      over: range.engineRange(after: prefix), cache: cache.name)
  }

  /// Moves to the next record that `read` accepts or that is unreadable; returns nil at the end.
  ///
  /// `read` returns nil for a record to skip.
  func next<Part>(
    _ read: (Record, RawSpan, _ recordKey: RawSpan, _ now: Date) throws(StoreError) -> Part?
  ) throws(StoreError) -> (key: Key, entry: Result<Part, StoreError>)? {
    while try cursor.next() {
      let part = cursor.withEntry { recordKey, bytes -> Result<Part, StoreError>? in
        do throws(StoreError) {
          let record = try cache.core.record(bytes, under: recordKey)
          let part =
            isOutdated(record)
            ? try readAgain(recordKey, read)
            : try read(record, bytes, recordKey, cache.core.clock.now())
          return part.map { .success($0) }
        } catch {
          return .failure(error)
        }
      }
      guard let part else { continue }
      return (try key(), part)
    }
    return nil
  }

  /// Whether a record may have been deleted because of a tag that was forgotten since.
  private func isOutdated(_ record: Record) -> Bool {
    record.tags != nil && cache.core.context.invalidatedTags.generation != generation
  }

  private func readAgain<Part>(
    _ recordKey: RawSpan,
    _ read: (Record, RawSpan, _ recordKey: RawSpan, _ now: Date) throws(StoreError) -> Part?
  ) throws(StoreError) -> Part? {
    var buffer = ValueBuffer()
    guard let key = RecordKey(recordKey),
      let record = try cache.core.record(under: key, into: &buffer)
    else { return nil }
    return try buffer.withBytes { bytes throws(StoreError) in
      try read(record, bytes, recordKey, cache.core.clock.now())
    }
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

/// The error for a stored key that is not valid for the cache's key type.
private struct UnreadableKey: LocalizedError, CustomStringConvertible {
  let type: any CacheKey.Type

  var description: String { "the stored key is not a valid \(type)" }
  var errorDescription: String? { description }
}
