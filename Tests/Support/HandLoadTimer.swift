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
    var entries: [Entry] = []
    var all: [Duration] = []
  }

  private let state = Watched(State())

  package init() {}

  /// The delays of all timers that were started.
  package var started: [Duration] { state.read { $0.all } }

  /// The delays of the timers that run.
  package var running: [Duration] { state.read { $0.entries.map(\.delay) } }

  package var schedule: Schedule {
    { [self] delay, fire in
      let id = state.change { state in
        state.all.append(delay)
        state.entries.append(Entry(id: state.all.count, delay: delay, fire: fire))
        return state.all.count
      }
      return { [self] in state.change { state in state.entries.removeAll { $0.id == id } } }
    }
  }

  /// Waits until so many timers run.
  ///
  /// Returns early if the calling task is cancelled, for example by a time limit.
  package func wait(untilRunning count: Int) async {
    await state.wait { $0.entries.count == count }
  }

  /// Waits until a timer with a delay runs, fires those that do, and returns their number.
  ///
  /// A load starts its timer on its own thread, which may be after its request has begun. Returns
  /// 0 if the calling task is cancelled before, for example by a time limit.
  @discardableResult package func fire(_ delay: Duration) async -> Int {
    await state.wait { state in state.entries.contains { $0.delay == delay } }
    let due = state.change { state in
      let due = state.entries.filter { $0.delay == delay }
      state.entries.removeAll { $0.delay == delay }
      return due
    }
    for entry in due { entry.fire() }
    return due.count
  }
}
