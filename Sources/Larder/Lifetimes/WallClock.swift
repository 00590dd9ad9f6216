public import Foundation

/// The one place where time enters a store.
///
/// A store holds no lock while it reads the clock, so that a clock may call the store.
///
/// Give a store a clock of your own (``Store/Options/clock``) to try expiry without waiting. It is
/// not called `Clock`: that name is Swift's, for clocks that measure and do not tell the date.
public protocol WallClock: Sendable {
  /// The date that entries are stamped with and judged by.
  func now() -> Date

  /// Time that passed since an arbitrary moment.
  ///
  /// It never goes back, whatever is done to the date; only differences mean something. It tells a
  /// jump of ``now()`` from time that passed.
  func uptime() -> Duration
}

/// The clock of the system.
///
/// The default of ``Store/Options/clock``.
public struct SystemClock: WallClock {
  private static let start = ContinuousClock.now

  /// Makes the system's clock.
  public init() {}

  /// The system's date.
  public func now() -> Date { Date() }

  /// The time since this process first asked, by a clock that goes on while the system sleeps.
  public func uptime() -> Duration { Self.start.duration(to: .now) }
}
