import Foundation

/// Decides when the date is reliable enough for deletions in the background.
///
/// A read with a wrong date can be repeated; a deletion cannot be undone. So background sweeps wait
/// until date and uptime have advanced together for ten minutes, to within an hour, since the first
/// reading or since the last jump.
struct ClockWatch {
  static let steadySeconds = 600.0
  static let toleratedSeconds = 3600.0

  /// The date and the uptime of a clock at one moment.
  struct Reading {
    let now: Date
    let uptime: Duration

    /// Reads the clock, which may be the user's code: the caller must hold no lock.
    init(of clock: any WallClock) {
      now = clock.now()
      uptime = clock.uptime()
    }
  }

  private var start: Reading?

  /// Takes a reading of the clock; returns its date if that is reliable.
  ///
  /// Between two readings the clock may have been set to another date. Drift is measured from the
  /// first reading, so many small jumps add up.
  mutating func steadyDate(at reading: Reading) -> Date? {
    let (now, uptime) = (reading.now, reading.uptime)
    guard let start else {
      self.start = reading
      return nil
    }
    let passed = (uptime - start.uptime).inSeconds
    let drift = now.timeIntervalSince(start.now) - passed
    guard abs(drift) <= Self.toleratedSeconds else {
      self.start = reading
      return nil
    }
    return passed >= Self.steadySeconds ? now : nil
  }
}
