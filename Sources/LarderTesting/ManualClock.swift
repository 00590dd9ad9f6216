public import Foundation
public import Larder
import Synchronization

/// A clock that stands still until it is told otherwise.
///
/// ```swift
/// let clock = ManualClock()
/// var options = Store.Options()
/// options.clock = clock
/// let store = Store.inMemory(options: options)
///
/// try cache.save(value, for: "k")
/// clock.advance(by: 604_800)
/// #expect(try cache.value(for: "k") == nil)     // seven days exactly: no longer fresh
/// ```
///
/// Copies of the store's options share one clock. It may be moved from any thread.
public final class ManualClock: WallClock {
  private struct Reading {
    var now: Date
    var uptime: Duration = .zero
    var count = 0
  }

  private let reading: Mutex<Reading>

  /// Makes a clock that tells `date`; 2026-01-01 00:00 UTC by default.
  public init(_ date: Date = Date(timeIntervalSinceReferenceDate: 788_918_400)) {
    reading = Mutex(Reading(now: date))
  }

  /// The date it was set to.
  ///
  /// Asking is counted, see ``readings``.
  public func now() -> Date {
    reading.withLock { reading in
      reading.count += 1
      return reading.now
    }
  }

  /// The sum of what it was advanced by.
  ///
  /// Setting it to another date does not change it.
  public func uptime() -> Duration { reading.withLock { $0.uptime } }

  /// How often ``now()`` was asked.
  public var readings: Int { reading.withLock { $0.count } }

  /// Lets time pass: date and uptime go on by `seconds`.
  ///
  /// 0 to 10^15 are allowed, thirty million years; anything else is a programmer's error.
  public func advance(by seconds: TimeInterval) {
    precondition(
      (0...1e15).contains(seconds),
      "the clock advances by 0 to 1e15 seconds, not \(seconds); set(_:) moves the date")
    reading.withLock { reading in
      reading.now += seconds
      reading.uptime += .seconds(seconds)
    }
  }

  /// Sets the date, as a user or a time server does: no time passes.
  public func set(_ date: Date) { reading.withLock { $0.now = date } }
}
