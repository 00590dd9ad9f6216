import Foundation

/// Tells when the date can be trusted so far that entries may be deleted by it unasked.
///
/// A read is right for the date in force, whatever it was before. A deletion cannot be undone. So
/// what nobody asked for waits until date and uptime have gone on together for ten minutes, to
/// within an hour, since the first look or since the last jump.
struct ClockWatch {
  static let steadySeconds = 600.0
  static let toleratedSeconds = 3600.0

  private var start: (now: Date, uptime: Duration)?

  /// Looks at the clock, and answers the date that may be deleted by; nil when there is none.
  ///
  /// Asked again, the clock may have been set to another one. A drift is counted from the start, so
  /// that many small jumps make a large one.
  mutating func steadyDate(of clock: any WallClock) -> Date? {
    let (now, uptime) = (clock.now(), clock.uptime())
    guard let start else {
      self.start = (now, uptime)
      return nil
    }
    let passed = (uptime - start.uptime) / .seconds(1)
    let drift = now.timeIntervalSince(start.now) - passed
    guard abs(drift) <= Self.toleratedSeconds else {
      self.start = (now, uptime)
      return nil
    }
    return passed >= Self.steadySeconds ? now : nil
  }
}
