import Foundation
import LarderBytes
import Synchronization
import Testing

@testable import Larder

extension Fixture {
  /// The buckets of a cache's index, by key; in order.
  func buckets(of cache: Cache<String, Int>) throws -> [String: [Int64]] {
    let prefix = KeySpace.expiry.prefix(ofCache: cache.core.id)
    var buckets: [String: [Int64]] = [:]
    for (row, _) in try rows(in: .expiry) where row.starts(with: prefix) {
      let found = IndexRow.bucket(in: row.span.bytes, after: prefix.count)
      let bucket = try #require(found)
      let key = String(decoding: row[(prefix.count + 8)...], as: UTF8.self)
      buckets[key, default: []].append(bucket)
    }
    return buckets
  }

  /// Where a cache's record of a key is.
  func recordKey(_ key: String, in cache: Cache<String, Int>) throws -> [UInt8] {
    try cache.core.recordKey(of: key, id: cache.core.id).bytes
  }

  /// What is wrong between the records and the index of the whole store after a sweep at `now`;
  /// nil for nothing.
  ///
  /// A record that expires has a row at its date or later, which is not due. No row is due, but for
  /// those of caches without a limit, by their numbers.
  func disagreement(at now: Date, endless: Set<UInt64> = []) throws -> String? {
    var rows: [[UInt8]: Int64] = [:]
    for (row, _) in try self.rows(in: .expiry) {
      var offset = 1
      guard let id = readVarint(row.span.bytes, at: &offset),
        let bucket = IndexRow.bucket(in: row.span.bytes, after: offset)
      else { return "a row of another form" }
      guard !endless.contains(id) else { continue }
      if Double(bucket) <= now.timeIntervalSinceReferenceDate { return "a row that is due" }
      let key = KeySpace.records.prefix(ofCache: id) + row[(offset + 8)...]
      rows[key] = max(rows[key] ?? .min, bucket)
    }
    for (key, value) in try self.rows(in: .records) {
      var offset = 1
      if let id = readVarint(key.span.bytes, at: &offset), endless.contains(id) { continue }
      let record = try Record(value.span.bytes, under: key.span.bytes)
      guard let expiresAt = record.expiresAt else { continue }
      guard let bucket = rows[key] else { return "a record without a row" }
      if Double(bucket) < expiresAt.timeIntervalSinceReferenceDate {
        return "a record whose row comes too early"
      }
    }
    return nil
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
