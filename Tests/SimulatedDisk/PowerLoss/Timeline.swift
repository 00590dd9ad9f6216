/// The states of a store after each commit, with their positions in the disk's journal.
package struct Timeline<State: Hashable & Sendable>: Sendable {
  /// When a state came into effect.
  private struct Moment {
    /// The length of the journal before the operation that made the state, and after it.
    let started: Int
    let acknowledged: Int
    /// Whether this state and all earlier ones survive a power loss from then on.
    let isDurable: Bool
  }

  private var moments: [Moment] = []
  private var numbers: [State: [Int]] = [:]

  /// Starts with an initial state.
  package init(_ state: State) {
    add(state, started: 0, acknowledged: 0, isDurable: true)
  }

  package mutating func add(
    _ state: State, started: Int, acknowledged: Int, isDurable: Bool
  ) {
    numbers[state, default: []].append(moments.count)
    moments.append(
      Moment(started: started, acknowledged: acknowledged, isDurable: isDurable))
  }

  /// The moments at which the store was in this state.
  package func moments(of state: State) -> [Int] { numbers[state] ?? [] }

  /// The moments whose states are allowed after a crash at a position in the journal.
  ///
  /// An unfinished operation may have taken effect.
  package func allowed(at place: Int, after model: CrashModel) -> ClosedRange<Int> {
    let acknowledged = moments.lastIndex { $0.acknowledged <= place } ?? 0
    let durable = moments.lastIndex { $0.isDurable && $0.acknowledged <= place } ?? 0
    let started = moments.lastIndex { $0.started < place } ?? 0
    return (model == .everything ? acknowledged : durable)...max(acknowledged, started)
  }
}
