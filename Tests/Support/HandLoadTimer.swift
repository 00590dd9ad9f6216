import Synchronization

/// Timers of loads that fire when a test says so.
package final class HandLoadTimer: Sendable {
  package typealias Schedule =
    @Sendable (_ delay: Duration, _ fire: @escaping @Sendable () -> Void) -> @Sendable () -> Void

  private struct Entry: Sendable {
    let id: Int
    let delay: Duration
    let fire: @Sendable () -> Void
  }

  private struct State {
    var lastID = 0
    var entries: [Entry] = []
    var all: [Duration] = []
  }

  private let state = Mutex(State())

  package init() {}

  /// The delays of all timers that were started.
  package var started: [Duration] { state.withLock { $0.all } }

  /// The delays of the timers that run.
  package var running: [Duration] { state.withLock { $0.entries.map(\.delay) } }

  package var schedule: Schedule {
    { [self] delay, fire in
      let id = state.withLock { state in
        state.lastID += 1
        state.entries.append(Entry(id: state.lastID, delay: delay, fire: fire))
        state.all.append(delay)
        return state.lastID
      }
      return { [self] in state.withLock { state in state.entries.removeAll { $0.id == id } } }
    }
  }

  /// Fires the timers with a delay, and returns their number.
  @discardableResult package func fire(_ delay: Duration) -> Int {
    let due = state.withLock { state in
      let due = state.entries.filter { $0.delay == delay }
      state.entries.removeAll { $0.delay == delay }
      return due
    }
    for entry in due { entry.fire() }
    return due.count
  }
}
