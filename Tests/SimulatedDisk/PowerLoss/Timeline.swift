/// The states that a store went through, one commit after another, and when.
package struct Timeline<State: Hashable & Sendable>: Sendable {
  /// A state, and when it came to be.
  private struct Moment {
    /// How long the journal was before the operation that made the state, and after it.
    let started: Int
    let acknowledged: Int
    /// Whether it must survive a power loss from then on, as all before it.
    let isDurable: Bool
  }

  private var moments: [Moment] = []
  private var numbers: [State: [Int]] = [:]

  /// Begins with a state that is there from the start.
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

  /// Which moments a store may be in that is opened after a crash at a place in the journal.
  ///
  /// The operation under way may have taken effect.
  package func allowed(at place: Int, after model: CrashModel) -> ClosedRange<Int> {
    let acknowledged = moments.lastIndex { $0.acknowledged <= place } ?? 0
    let durable = moments.lastIndex { $0.isDurable && $0.acknowledged <= place } ?? 0
    let started = moments.lastIndex { $0.started < place } ?? 0
    return (model == .everything ? acknowledged : durable)...max(acknowledged, started)
  }
}
