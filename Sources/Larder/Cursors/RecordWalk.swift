import Foundation

/// A scan over the records of a cache; all cursors use it.
final class RecordWalk<Key: CacheKey, Value: Sendable> {
  private let cache: Cache<Key, Value>
  private let cursor: StoreCursor
  private let prefixCount: Int
  /// The generation of invalidated tags before the cursor was made.
  private let generation: UInt64
  private let states: EntryStates
  /// The tag that records must have; nil for all records.
  private let tag: [UInt8]?
  private let order: ScanOrder

  init(
    _ cache: Cache<Key, Value>, _ range: KeyRange<Key>, _ states: EntryStates,
    tagged tag: String? = nil, _ order: ScanOrder, readsPayloads: Bool = true
  ) throws(StoreError) {
    self.cache = cache
    self.states = states
    self.tag = try tag.map(Tags.bytes(of:))
    self.order = order
    let prefix = KeySpace.records.prefix(ofCache: try cache.core.usableID())
    prefixCount = prefix.count
    generation = cache.core.context.invalidatedTags.generation
    cursor = try cache.core.context.cursor(
      over: range.engineRange(after: prefix), cache: cache.name, readsPayloads: readsPayloads)
    if order == .descending { try cursor.seekToEnd() }
  }

  /// Moves to the next record that is in one of the states and has the tag, or is unreadable;
  /// returns nil at the end.
  ///
  /// `read` is passed the readable ones.
  func next<Part>(
    _ read: (
      Record, Freshness, RawSpan, _ recordKey: RawSpan, _ now: Date
    ) throws(StoreError) -> Part
  ) throws(StoreError) -> (key: Key, entry: Result<Part, StoreError>)? {
    while try advance() {
      let count = cursor.valueCount
      let part = cursor.withEntry { recordKey, bytes -> Result<Part, StoreError>? in
        do throws(StoreError) {
          let record = try cache.core.record(head: bytes, of: count, under: recordKey)
          let now = cache.core.clock.now()
          guard !isOutdated(record) else { return try readAgain(recordKey, at: now, read) }
          let freshness = cache.core.lifetime.freshness(of: record, at: now)
          guard isWanted(record, freshness, in: bytes) else { return nil }
          return .success(try read(record, freshness, bytes, recordKey, now))
        } catch {
          return .failure(error)
        }
      }
      guard let part else { continue }
      return (try key(), part)
    }
    return nil
  }

  private func isWanted(_ record: Record, _ freshness: Freshness, in bytes: RawSpan) -> Bool {
    guard states.contains(EntryStates(freshness)) else { return false }
    guard let tag else { return true }
    return Tags(of: record, in: bytes)?.all.contains { $0.elementsEqual(tag) } == true
  }

  /// Whether a record may have been deleted because of a tag that was forgotten since.
  private func isOutdated(_ record: Record) -> Bool {
    record.tags != nil && cache.core.context.invalidatedTags.generation != generation
  }

  private func readAgain<Part>(
    _ recordKey: RawSpan, at now: Date,
    _ read: (
      Record, Freshness, RawSpan, _ recordKey: RawSpan, _ now: Date
    ) throws(StoreError) -> Part
  ) throws(StoreError) -> Result<Part, StoreError>? {
    var buffer = ValueBuffer()
    guard let key = RecordKey(recordKey),
      let record = try cache.core.record(under: key, into: &buffer)
    else { return nil }
    let freshness = cache.core.lifetime.freshness(of: record, at: now)
    return try buffer.withBytes { bytes throws(StoreError) in
      guard isWanted(record, freshness, in: bytes) else { return nil }
      return .success(try read(record, freshness, bytes, recordKey, now))
    }
  }

  private func advance() throws(StoreError) -> Bool {
    switch order {
    case .ascending: try cursor.next()
    case .descending: try cursor.previous()
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
