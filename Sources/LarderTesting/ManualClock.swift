public import Foundation
public import Larder
import Synchronization

/// A clock for tests, which stands still until it is advanced or set.
///
/// ```swift
/// let clock = ManualClock()
/// var options = Store.Options()
/// options.clock = clock
/// let store = Store.inMemory(options: options)
///
/// try cache.save(value, for: "k")
/// clock.advance(by: .seconds(604_800))
/// #expect(try cache.value(for: "k") == nil)     // exactly seven days old: not fresh
/// ```
///
/// Copies of the store's options share one clock. It can be advanced and set from any thread.
public final class ManualClock: WallClock {
  private struct Reading {
    var now: Date
    var uptime: Duration = .zero
    var count = 0
  }

  /// The date that a clock shows at first, unless it is made with another: 2026-01-01 00:00 UTC.
  public static let start = Date(timeIntervalSinceReferenceDate: 788_918_400)

  private let reading: Mutex<Reading>

  /// Makes a clock that shows `date`; ``start`` by default.
  public init(_ date: Date = start) {
    reading = Mutex(Reading(now: date))
  }

  /// Returns the clock's date.
  ///
  /// Each call is counted, see ``readings``.
  public func now() -> Date {
    reading.withLock { reading in
      reading.count += 1
      return reading.now
    }
  }

  /// Returns the total time by which the clock was advanced.
  ///
  /// ``set(_:)`` does not change it.
  public func uptime() -> Duration { reading.withLock { $0.uptime } }

  /// How often ``now()`` was called.
  public var readings: Int { reading.withLock { $0.count } }

  /// Advances the date and the uptime by `span`.
  ///
  /// ```swift
  /// clock.advance(by: .seconds(3600))
  /// ```
  ///
  /// `span` must be between 0 and 10^15 seconds, thirty million years; anything else is a
  /// programmer error.
  public func advance(by span: Duration) {
    precondition(
      (.zero ... .seconds(1_000_000_000_000_000)).contains(span),
      "the clock advances by 0 to 1e15 seconds, not \(span); set(_:) moves the date")
    reading.withLock { reading in
      reading.now += span.inSeconds
      reading.uptime += span
    }
  }

  /// Sets the date, as a user or a time server does, without advancing the uptime.
  ///
  /// ```swift
  /// clock.set(clock.now() - 86_400)   // the user has corrected the date
  /// ```
  public func set(_ date: Date) { reading.withLock { $0.now = date } }
}
