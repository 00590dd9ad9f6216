import Foundation

/// Tells when the date can be trusted so far that entries may be deleted by it unasked.
///
/// A read is right for the date in force, whatever it was before. A deletion cannot be undone. So
/// what nobody asked for waits until date and uptime have gone on together for ten minutes, to
/// within an hour, since the first look or since the last jump.
struct ClockWatch {
  static let steadySeconds = 600.0
  static let toleratedSeconds = 3600.0

  /// What a clock says at one moment.
  struct Reading {
    let now: Date
    let uptime: Duration

    /// Reads the clock, which may be code of the user's: hold no lock.
    init(of clock: any WallClock) {
      now = clock.now()
      uptime = clock.uptime()
    }
  }

  private var start: Reading?

  /// Takes a reading of the clock, and returns the date that may be deleted by; nil when there is
  /// none.
  ///
  /// Between two readings the clock may have been set to another date. A drift is counted from the
  /// start, so that many small jumps make a large one.
  mutating func steadyDate(at reading: Reading) -> Date? {
    let (now, uptime) = (reading.now, reading.uptime)
    guard let start else {
      self.start = reading
      return nil
    }
    let passed = (uptime - start.uptime) / .seconds(1)
    let drift = now.timeIntervalSince(start.now) - passed
    guard abs(drift) <= Self.toleratedSeconds else {
      self.start = reading
      return nil
    }
    return passed >= Self.steadySeconds ? now : nil
  }
}
