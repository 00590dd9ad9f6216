import Foundation
import Larder
import Synchronization

/// A clock that stands still until it is advanced.
final class SteppingClock: WallClock {
  private let seconds = Mutex(0.0)

  func now() -> Date {
    Date(timeIntervalSinceReferenceDate: 788_918_400 + seconds.withLock { $0 })
  }
  func uptime() -> Duration { .seconds(seconds.withLock { $0 }) }
  func advance(by time: Double) { seconds.withLock { $0 += time } }
}
