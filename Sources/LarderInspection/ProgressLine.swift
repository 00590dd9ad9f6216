package import Dispatch
import Larder
import Synchronization

/// Shows how far a scan is, once it has taken a while, and ends it if nobody waits for it any more.
///
/// One line replaces the one before, four times a second, and is removed at the end.
package final class ProgressLine: Sendable {
  private static let interval: UInt64 = 250_000_000

  private let now: @Sendable () -> DispatchTime
  private let isWanted: @Sendable () -> Bool
  private let show: @Sendable (String?) -> Void
  private let state: Mutex<State>

  private struct State {
    var began: UInt64
    var next: UInt64
    var count = 0
    var isShown = false
  }

  /// - Parameters:
  ///   - delay: The seconds after which the first line is shown.
  ///   - now: Returns the time on the monotonic clock.
  ///   - isWanted: Returns whether somebody still waits for the result; by default always.
  ///   - show: Shows a line in place of the one before; removes it if it is nil.
  package init(
    after delay: Double = 1, now: @escaping @Sendable () -> DispatchTime = { .monotonicNow },
    whileWanted isWanted: @escaping @Sendable () -> Bool = { true },
    showing show: @escaping @Sendable (String?) -> Void
  ) {
    (self.now, self.isWanted, self.show) = (now, isWanted, show)
    let began = now().uptimeNanoseconds
    state = Mutex(State(began: began, next: began + UInt64(delay * 1e9)))
  }

  /// A line on a terminal.
  ///
  /// - Parameter write: Writes a text to the terminal at once.
  package convenience init(writing write: @escaping @Sendable (String) -> Void) {
    // The control sequence erases the line.
    self.init(showing: { write("\r\u{1B}[K" + ($0 ?? "")) })
  }

  /// Begins to count from 0; a command may have several passes over its records.
  func restart() {
    state.withLock { state in
      state.began = now().uptimeNanoseconds
      state.count = 0
    }
  }

  /// Counts a record.
  ///
  /// - Parameter share: Returns the share of the pass that is done, 0 to 1; nil if it is unknown.
  /// - Returns: False if nobody waits for the result any more, which is asked once in 64 calls.
  func step(_ share: () -> Double?) -> Bool {
    state.withLock { state in
      state.count += 1
      // A look at the clock for each record would cost as much as reading it.
      guard state.count & 0x3F == 0 else { return true }
      guard isWanted() else { return false }
      let time = now().uptimeNanoseconds
      guard time >= state.next else { return true }
      state.next = time + Self.interval
      state.isShown = true
      let seconds = Double(time - state.began) / 1e9
      show(Self.text(of: state.count, after: seconds, share: share()))
      return true
    }
  }

  /// Removes the line, and shows no other one.
  package func end() {
    state.withLock { state in
      if state.isShown { show(nil) }
      state.isShown = false
      state.next = .max
    }
  }

  private static func text(of count: Int, after seconds: Double, share: Double?) -> String {
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
