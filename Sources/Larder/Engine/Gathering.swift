import Dispatch

/// How long the leader of a group of durable writes waits for others, to share an fsync with them.
///
/// Otherwise those who have just been woken would miss the next group by microseconds, and two half
/// groups would take turns. A wait takes at most half the time of an fsync, as PostgreSQL
/// recommends for its `commit_delay`, and at most 5 ms. If others come during a wait, a second one
/// follows, and then a third. After a group of one member there is no wait.
struct Gathering {
  /// The longest wait, in nanoseconds; it matters after a slow fsync.
  private static let longestWait = 5_000_000
  private static let maxWaits = 3

  /// The number of members of the last group, and of those that came while it was written.
  private var regulars = 1
  private var nanosecondsOfLastGroup = 0
  /// The signal for a leader that waits.
  private var arrival: DispatchSemaphore?
  /// The number of waits for the next group, and of the members that were there before the last.
  private var waits = (count: 0, members: 0)

  /// Whether the last group had one member, and no other came while it was written.
  var isAlone: Bool { regulars <= 1 }

  /// A leader's wait for others.
  struct Wait {
    fileprivate let arrival: DispatchSemaphore
    fileprivate let nanoseconds: Int

    /// Returns true once all are there, or false when the time is over.
    @discardableResult func end() -> Bool {
      arrival.wait(timeout: .monotonicNow + .nanoseconds(nanoseconds)) == .success
    }
  }

  /// The next wait of a leader for others; nil if all are there, or it has waited long enough.
  ///
  /// `count` is the number of members that are there, the leader included if it is one.
  mutating func wait(with count: Int) -> Wait? {
    let isUseful = waits.count == 0 || (waits.count < Self.maxWaits && count > waits.members)
    guard count < regulars, isUseful else {
      (arrival, waits) = (nil, (0, 0))
      return nil
    }
    waits = (waits.count + 1, count)
    let arrival = DispatchSemaphore(value: 0)
    self.arrival = arrival
    return Wait(
      arrival: arrival, nanoseconds: min(nanosecondsOfLastGroup / 2, Self.longestWait))
  }

  /// Notes that another member has come, and that `count` are there now.
  mutating func noteArrival(_ count: Int) {
    guard count >= regulars, let arrival else { return }
    arrival.signal()
    self.arrival = nil
  }

  /// Notes that a group was written.
  ///
  /// - Parameters:
  ///   - start: When writing it began.
  ///   - count: The number of its members, and of those that came while it was written.
  mutating func didWrite(since start: DispatchTime, _ count: Int) {
    nanosecondsOfLastGroup = Int(
      DispatchTime.monotonicNow.uptimeNanoseconds - start.uptimeNanoseconds)
    regulars = count
  }
}
