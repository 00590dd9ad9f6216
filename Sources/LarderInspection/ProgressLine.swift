package import Dispatch
import Larder

/// Shows on a terminal how far a command is, once it has taken a second.
///
/// One line is written over itself four times a second, and removed at the end. A line must be
/// used by one thread only.
package final class ProgressLine {
  private static let delay: UInt64 = 1_000_000_000
  private static let interval: UInt64 = 250_000_000
  /// Erases the line.
  private static let erasure = "\r\u{1B}[K"

  private let now: () -> DispatchTime
  private let write: (String) -> Void
  private var began: UInt64
  private var next: UInt64
  private var count = 0
  private var isShown = false

  /// - Parameters:
  ///   - now: Returns the time on the monotonic clock.
  ///   - write: Writes a text to the terminal at once.
  package init(
    now: @escaping () -> DispatchTime = { .monotonicNow }, writing write: @escaping (String) -> Void
  ) {
    (self.now, self.write) = (now, write)
    began = now().uptimeNanoseconds
    next = began + Self.delay
  }

  /// Begins to count from 0; a command may have several passes over its records.
  func restart() {
    began = now().uptimeNanoseconds
    count = 0
  }

  /// Counts a record.
  ///
  /// - Parameter share: Returns the share of the pass that is done, 0 to 1; nil if it is unknown.
  func step(_ share: () -> Double?) {
    count += 1
    // A look at the clock for each record would cost as much as reading it.
    guard count & 0x3F == 0 else { return }
    let time = now().uptimeNanoseconds
    guard time >= next else { return }
    next = time + Self.interval
    isShown = true
    write(Self.erasure + text(after: Double(time - began) / 1e9, share: share()))
  }

  /// Removes the line, and writes no other one.
  package func end() {
    if isShown { write(Self.erasure) }
    isShown = false
    next = .max
  }

  private func text(after seconds: Double, share: Double?) -> String {
    guard seconds > 0 else { return "\(Amount.text(count)) records" }
    var text =
      "\(Amount.text(count)) records, \(Amount.text(Int(Double(count) / seconds))) a second"
    guard let share, share > 0, share <= 1 else { return text }
    text += ", \(Int(100 * share)) %"
    let left = Int(min(seconds / share * (1 - share), 1e9))
    text += ", \(Amount.text(left / 60)):\(left % 60 < 10 ? "0" : "")\(left % 60) left"
    return text
  }
}
