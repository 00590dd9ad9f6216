import Foundation

extension Duration {
  /// The time from one date to another; negative if `end` is the earlier one.
  ///
  /// It is limited to 2^63 seconds in each direction. If a date is not a number, it is the longest
  /// one.
  init(from start: Date, to end: Date) {
    let seconds = end.timeIntervalSince(start)
    let whole = seconds.rounded(.towardZero)
    guard let count = Int64(exactly: whole) else {
      self = .seconds(seconds < 0 ? Int64.min : .max)
      return
    }
    self.init(
      secondsComponent: count,
      attosecondsComponent: Int64(((seconds - whole) * 1e18).rounded()))
  }

  /// The duration in seconds; a whole number of seconds below 2^53 is exact.
  package var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
