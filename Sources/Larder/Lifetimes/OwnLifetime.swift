package import Foundation

/// The lifetime of a single entry, as its record keeps it: in seconds, from the date it was saved.
package struct OwnLifetime: Sendable, Hashable {
  static let byteCount = 16

  /// The fresh time, and the stale time after it; infinity is unlimited.
  package let fresh: Double
  package let stale: Double

  /// The seconds that `lifetime` has for an entry that is saved at `savedAt`.
  ///
  /// Days of a calendar have as many seconds as they have from that date on.
  init(_ lifetime: Lifetime, from savedAt: Date) {
    func seconds(of limit: MaxAge, from start: Date?) -> Double {
      switch limit.rule {
      case .unlimited: .infinity
      case .seconds(let count): count
      case .days:
        // Not a number if `start` is not a date; then the entry has expired in any case.
        max(0, start.flatMap { limit.end(from: $0)?.timeIntervalSince($0) } ?? 0)
      }
    }
    fresh = seconds(of: lifetime.fresh, from: savedAt)
    stale = seconds(of: lifetime.stale, from: lifetime.fresh.end(from: savedAt))
  }

  /// Reads a lifetime; nil if it is negative or not a number.
  init?(in bytes: RawSpan, at offset: Int) {
    func seconds(at offset: Int) -> Double {
      let bits = bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
      return Double(bitPattern: UInt64(littleEndian: bits))
    }
    self.init(fresh: seconds(at: offset), stale: seconds(at: offset + 8))
  }

  /// A lifetime in seconds; nil if one of them is negative or not a number.
  package init?(fresh: Double, stale: Double) {
    guard fresh >= 0, stale >= 0 else { return nil }
    (self.fresh, self.stale) = (fresh, stale)
  }

  func append(to buffer: inout ByteBuffer) {
    buffer.append(littleEndian: fresh.bitPattern)
    buffer.append(littleEndian: stale.bitPattern)
  }

  package var lifetime: Lifetime {
    func limit(_ seconds: Double) -> MaxAge {
      seconds.isFinite ? .seconds(seconds) : .unlimited
    }
    return .fresh(for: limit(fresh), thenStaleFor: limit(stale))
  }
}

extension Lifetime {
  /// The lifetime that applies to a record in a cache with this one.
  package func applied(to record: Record) -> Lifetime { own(of: record)?.lifetime ?? self }

  /// What applies to a record in place of this lifetime, the cache's; nil if this one does.
  @inline(__always) package func own(of record: Record) -> OwnLifetime? {
    guard let end = record.slidesUntil else { return record.ownLifetime }
    return own(record.ownLifetime, from: record.savedAt, slidingUntil: end)
  }

  /// The same for an entry with a lifetime of its own, or nil, whose fresh time ends at `end` at
  /// the latest.
  func own(_ own: OwnLifetime?, from savedAt: Date, slidingUntil end: Date?) -> OwnLifetime? {
    guard let end else { return own }
    let whole = own ?? OwnLifetime(self, from: savedAt)
    let left = end.timeIntervalSince(savedAt)
    if left >= whole.fresh { return own }
    // It is NaN, and the time is over, if one of the dates is invalid.
    return OwnLifetime(fresh: left > 0 ? left : 0, stale: whole.stale)
  }

  /// The state at `now` of a record in a cache with this lifetime.
  @inline(__always) package func freshness(
    of record: Record, at now: Date, maxAge: MaxAge? = nil
  ) -> Freshness {
    if record.isInvalidated { return .expired }
    // Not by `applied(to:)`: each read would copy the cache's lifetime.
    if let own = own(of: record) {
      return own.lifetime.freshness(of: record.savedAt, at: now, maxAge: maxAge)
    }
    return freshness(of: record.savedAt, at: now, maxAge: maxAge)
  }
}
