public import Foundation

/// A source of dates: the only way time enters a store.
///
/// Set ``Store/Options/clock`` to a clock of your own to test expiry without waiting. A store holds
/// no lock while it reads the clock, so a clock may call the store.
///
/// It is not a Swift `Clock`: those measure durations and do not return dates.
public protocol WallClock: Sendable {
  /// The current date, which stamps saved entries and decides whether they have expired.
  func now() -> Date

  /// The time since an arbitrary moment.
  ///
  /// It never decreases, even if the date is set back; only differences are meaningful. The store
  /// compares it with ``now()`` to detect that the date was changed.
  func uptime() -> Duration
}

/// The system's clock, the default of ``Store/Options/clock``.
public struct SystemClock: WallClock {
  private static let start = continuousNanoseconds()

  /// ``uptime()`` in nanoseconds, which takes a third of its time.
  static var uptimeNanoseconds: Int { continuousNanoseconds() - start }

  /// Creates the system's clock.
  public init() {}

  /// The system's current date.
  public func now() -> Date { Date() }

  /// The time since the first call in this process, including the time the system was asleep.
  public func uptime() -> Duration { .nanoseconds(Self.uptimeNanoseconds) }
}
