import Dispatch
import Foundation

/// When the lifetime of an entry begins.
public struct Expiry: Sendable, Hashable {
  /// The longest time from a save to the end of the fresh time; nil if reads restart nothing.
  let limit: MaxAge?

  /// When the entry is saved or touched.
  public static let sinceSaved = Expiry(limit: nil)

  /// Also when the entry is read while it is fresh.
  ///
  /// So an entry that is used stays, and one that is not used expires. A read restarts the lifetime
  /// at its own date, at most once in a 16th of the fresh time, and shortly after it has returned:
  /// a crash, closing the store, or a failed write may lose the restarts of the last reads. Scans
  /// restart nothing.
  ///
  /// Up to 1,024 restarts wait for a thread of the store that writes them. A read that finds that
  /// many waiting writes them itself before it returns.
  public static let sliding = Expiry(limit: .unlimited)

  /// The same, up to a time after the entry was saved.
  ///
  /// ```swift
  /// // A session ends half an hour after its last use, and twelve hours after the login.
  /// let sessions = try store.cache(
  ///   "sessions", of: Session.self, lifetime: .minutes(30), expiry: .sliding(upTo: .hours(12)))
  /// ```
  ///
  /// Reads, and ``Cache/update(_:lifetime:keepsValidator:tries:durability:_:)`` of a fresh value,
  /// do not move that end. A save and a ``Cache/touch(_:lifetime:validator:)`` begin anew. An entry
  /// whose lifetime is longer than the limit keeps its lifetime, and does not slide.
  ///
  /// Once an entry has slid, its record has the end, which a later opening with another limit does
  /// not move.
  ///
  /// - Parameter limit: The end, counted from the save. With `unlimited`, as ``sliding``.
  /// - Returns: When lifetimes begin.
  /// - Important: A record with the end cannot be read by versions of this library before it.
  public static func sliding(upTo limit: MaxAge) -> Expiry { Expiry(limit: limit) }
}

extension Expiry: CustomStringConvertible {
  /// `sinceSaved`, `sliding`, or `sliding` with its limit.
  public var description: String {
    switch limit {
    case nil: "sinceSaved"
    case .unlimited?: "sliding"
    case let limit?: "sliding up to \(limit)"
    }
  }
}

/// The reads of a sliding cache that are to restart lifetimes.
///
/// Reads add to it, and a queue of its own writes, so a read does not wait for a write. Where reads
/// are faster than the queue, a read that finds no room writes the others, so no restart is lost
/// and the memory is bounded.
final class Slides: Sendable {
  typealias Reads = [[UInt8]: Date]

  static let capacity = 1024

  /// The dates of the last reads, by record key.
  private let reads = Lock<Reads>([:])
  private let queue = DispatchQueue(label: "larder.sliding", qos: .utility)
  private let activity: Activity

  /// - Parameter activity: Counts the writes that wait or are under way.
  init(_ activity: Activity) { self.activity = activity }

  /// Adds a read; `write` is called with all reads that were added before it runs.
  func add(
    _ recordKey: RawSpan, at date: Date, write: @escaping @Sendable (Reads) -> Void
  ) {
    let key = [UInt8](recordKey)
    let (isFirst, full) = reads.withLock { reads -> (Bool, Reads?) in
      let isFull = reads.count >= Self.capacity && reads[key] == nil
      let full = isFull ? reads : nil
      if isFull { reads = [:] }
      let wasEmpty = reads.isEmpty
      reads[key] = date
      // Under the lock: a read that finds another one here may return before that one does.
      if wasEmpty { activity.begin() }
      if isFull { activity.begin() }
      return (wasEmpty, full)
    }
    if isFirst {
      queue.async { [self] in
        let taken = reads.withLock { reads in
          defer { reads = [:] }
          return reads
        }
        end(taken, write)
      }
    }
    if let full { end(full, write) }
  }

  private func end(_ reads: Reads, _ write: (Reads) -> Void) {
    write(reads)
    for waiter in activity.end() { waiter.resume() }
  }

  /// Waits until every read that was added before is written.
  func waitUntilIdle() { queue.sync {} }
}

extension CacheCore {
  /// Restarts the lifetime of an entry that was read while it was fresh, if the cache slides.
  func slide(_ record: Record, under key: RawSpan, readAt now: Date) {
    guard let slides, isDueToSlide(record, at: now) else { return }
    slides.add(key, at: now) { [weak self] reads in
      do throws(StoreError) {
        try self?.restart(reads)
      } catch {
        // The reads have succeeded. The next reads try again, and a write that meets the same
        // failure throws it.
      }
    }
  }

  /// The date from which on a read restarts a record's lifetime, after a 16th of its fresh time.
  ///
  /// Nil if its fresh time is unlimited, or lasts to the end that it may have.
  func slideDate(of record: Record) -> Date? {
    guard let fresh = record.ownLifetime?.fresh ?? lifetime.fresh.approximateSeconds else {
      return nil
    }
    if let end = slideEnd(of: record), record.savedAt.addingTimeInterval(fresh) >= end {
      return nil
    }
    return record.savedAt.addingTimeInterval(fresh / 16)
  }

  /// The date at which a record's fresh time ends at the latest, however often it begins anew.
  func slideEnd(of record: Record) -> Date? {
    record.slidesUntil ?? slideLimit?.end(from: record.savedAt)
  }

  private func isDueToSlide(_ record: Record, at now: Date) -> Bool {
    guard let date = slideDate(of: record) else { return false }
    return now >= date
  }

  /// Restarts the lifetimes of entries that still are as they were read.
  private func restart(_ reads: Slides.Reads) throws(StoreError) {
    var write = WriteBatch()
    var buffer = ValueBuffer()
    for (bytes, date) in reads {
      if write.isEmpty { write.writeCountBeforeReading = context.engine.writeCount }
      guard let key = RecordKey(bytes.span.bytes), let record = readable(key, into: &buffer),
        isDueToSlide(record, at: date), lifetime.freshness(of: record, at: date) == .fresh
      else { continue }
      let same = write.require(
        key.bytes, .unchanged(since: record.sequence, in: Record.stamp))
      try buffer.withBytes { bytes throws(StoreError) in
        try addRestamped(
          record, in: bytes, under: key, savedAt: date, lifetime: nil,
          slidesUntil: slideEnd(of: record), validator: nil, note: CommittedChange.sameValue,
          to: &write, if: same)
      }
      guard write.bytes.count >= 1 << 20 else { continue }
      try context.commit(&write, .processCrash)
      write.reset()
    }
    try context.commit(&write, .processCrash)
  }

  /// The record under `key`; nil if it is missing or cannot be read.
  private func readable(_ key: RecordKey, into buffer: inout ValueBuffer) -> Record? {
    do throws(StoreError) {
      return try record(under: key, into: &buffer)
    } catch {
      // The other entries' lifetimes restart. The next read of this one throws the error.
      return nil
    }
  }
}
