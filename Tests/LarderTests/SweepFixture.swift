import Foundation
import Synchronization
import Testing

@testable import Larder

extension Fixture {
  /// All notes, once those in memory were put into packs, and missing ones were searched for.
  ///
  /// `other` is a store that uses the engine instead of the fixture's own.
  func notes(of other: Store? = nil) throws -> Set<FoundNote> {
    let context = (other ?? store).context
    var steps = Int.max
    try context.noteMissing(steps: &steps)
    try context.writeNotes()
    return try FoundNote.all(in: engine)
  }

  /// The buckets of a cache's notes, by key; in order.
  func buckets(
    of cache: Cache<String, Int>, in other: Store? = nil
  ) throws -> [String: [Int64]] {
    var buckets: [String: [Int64]] = [:]
    for note in try notes(of: other) where note.cacheID == cache.core.id {
      buckets[String(decoding: note.userKey, as: UTF8.self), default: []].append(note.bucket)
    }
    return buckets.mapValues { $0.sorted() }
  }

  /// Where a cache's record of a key is.
  func recordKey(_ key: String, in cache: Cache<String, Int>) throws -> [UInt8] {
    try cache.core.recordKey(of: key, id: cache.core.id).bytes
  }

  /// What is wrong between the records and the notes of the whole store after a sweep at `now`; nil
  /// for nothing.
  ///
  /// A record that expires has a note at its date or later, which is not due. No note is due, but
  /// those of caches without a limit, by their numbers, and with `hasSaved` those of entries that
  /// were saved during the sweep.
  func disagreement(
    at now: Date, in other: Store? = nil, hasSaved: Bool = false, endless: Set<UInt64> = []
  ) throws -> String? {
    var buckets: [[UInt8]: Int64] = [:]
    for note in try notes(of: other) where !endless.contains(note.cacheID) {
      if Double(note.bucket) <= now.timeIntervalSinceReferenceDate, !hasSaved {
        return "a note that is due"
      }
      let key = KeySpace.records.prefix(ofCache: note.cacheID) + note.userKey
      buckets[key] = max(buckets[key] ?? .min, note.bucket)
    }
    for (key, value) in try self.rows(in: .records) {
      var offset = 1
      if let id = readVarint(key.span.bytes, at: &offset), endless.contains(id) { continue }
      let record = try Record(value.span.bytes, under: key.span.bytes)
      guard let expiresAt = record.expiresAt else { continue }
      guard let bucket = buckets[key] else { return "a record without a note" }
      if Double(bucket) < expiresAt.timeIntervalSinceReferenceDate {
        return "a record whose note comes too early"
      }
    }
    return nil
  }
}

/// A note in a pack.
struct FoundNote: Hashable {
  let cacheID: UInt64
  let bucket: Int64
  let userKey: [UInt8]

  /// The notes in all packs of an engine.
  static func all(in engine: any StorageEngine) throws -> Set<FoundNote> {
    var notes: Set<FoundNote> = []
    let cursor = try engine.cursor(over: EngineRange(prefix: [KeySpace.notes.rawValue]))
    while try cursor.next() {
      let isWhole = cursor.withEntry { key, value in
        guard let pack = NotePack(key: key) else { return false }
        return pack.forEachKey(in: value) { key in
          notes.insert(
            FoundNote(cacheID: pack.cacheID, bucket: pack.bucket, userKey: [UInt8](key)))
        } != nil
      }
      try #require(isWhole)
    }
    return notes
  }
}

/// A timer for background sweeps that fires on request.
final class HandTimer: Sendable {
  private struct State {
    var interval: Duration?
    var fire: (@Sendable () -> Void)?
    /// How many stores have started it.
    var starts = 0
  }

  private let state = Mutex(State())

  var trigger: IntervalTimer {
    { [self] interval, fire in
      let start = state.withLock { state in
        state = State(interval: interval, fire: fire, starts: state.starts + 1)
        return state.starts
      }
      // A store in memory that is reopened ends only after the next one begins.
      return { [self] in
        state.withLock { state in if state.starts == start { state.fire = nil } }
      }
    }
  }

  var interval: Duration? { state.withLock { $0.interval } }
  var isRunning: Bool { state.withLock { $0.fire != nil } }

  func fire() { state.withLock { $0.fire }?() }
}
