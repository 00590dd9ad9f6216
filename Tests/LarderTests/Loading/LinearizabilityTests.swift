import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// Reads, changes and loads of a key, on several threads, take effect in one order.
@Suite struct LinearizabilityTests {
  @Test("There is one order of each round's calls that explains all their results.")
  func rounds() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers(lifetime: .unlimited)
    var kinds: Set<String> = []
    for round in 0..<300 * proofFactor {
      let history = History()
      try await withThrowingTaskGroup { group in
        for task in 0..<4 {
          group.addTask {
            var random = SplitMix64(seed: UInt64(round * 4 + task))
            for call in 0..<5 {
              let value = round * 100 + task * 10 + call + 1
              try await history.call(.random(in: 0..<5, using: &random), value, on: numbers)
            }
          }
        }
        try await group.waitForAll()
      }
      let calls = history.calls
      kinds.formUnion(calls.map(\.effect.name))
      let last = try numbers.value(for: "a")
      try #require(
        Linearization(calls, end: last).exists,
        "seed \(round): \(calls.map(\.description).joined(separator: "\n"))")
      try numbers.remove("a")
    }
    #expect(kinds == ["read", "save", "remove", "fill"], "not all kinds of calls happened")
  }

  @Test("The check finds a value that comes back, and a read that is too old.")
  func checkFinds() {
    func call(_ effect: Call.Effect, _ begin: Int, _ end: Int) -> Call {
      Call(effect: effect, begin: begin, end: end)
    }
    func exists(_ calls: [Call], end: Int?) -> Bool {
      Linearization(calls, end: end).exists
    }
    #expect(exists([call(.save(1), 0, 3), call(.read(nil), 1, 2)], end: 1))
    #expect(!exists([call(.save(1), 0, 1), call(.read(nil), 2, 3)], end: 1))
    #expect(exists([call(.fill(1), 0, 3), call(.remove, 1, 2), call(.read(nil), 4, 5)], end: nil))
    #expect(!exists([call(.save(1), 0, 1), call(.remove, 2, 3), call(.read(1), 4, 5)], end: 1))
    #expect(!exists([call(.save(1), 0, 1), call(.fill(2), 2, 3)], end: 2))
  }
}

/// A call that has ended: what it did to the key, and between which times.
private struct Call: CustomStringConvertible {
  enum Effect {
    case read(Int?)
    case save(Int)
    case remove
    /// The save of a load, which happens only if there is no value.
    case fill(Int)

    var name: String {
      switch self {
      case .read: "read"
      case .save: "save"
      case .remove: "remove"
      case .fill: "fill"
      }
    }

    /// Applies the effect; false if a call with this result is impossible.
    func apply(to value: inout Int?) -> Bool {
      switch self {
      case .read(let result): return result == value
      case .save(let new): value = new
      case .remove: value = nil
      case .fill(let new):
        guard value == nil else { return false }
        value = new
      }
      return true
    }
  }

  let effect: Effect
  let begin: Int
  let end: Int

  var description: String { "\(begin)...\(end): \(effect)" }
}

/// Makes calls, and records them.
private final class History: Sendable {
  private struct Fill {
    let begin: Int
    /// A time at which a caller had the value; nil if it was not saved.
    var end: Int?
  }

  private let time = Atomic<Int>(0)
  private let state = Mutex((calls: [Call](), fills: [Int: Fill]()))

  /// The calls, and the save of each load that has saved.
  var calls: [Call] {
    state.withLock { state in
      state.calls
        + state.fills.compactMap { value, fill in
          fill.end.map { Call(effect: .fill(value), begin: fill.begin, end: $0) }
        }
    }
  }

  private func now() -> Int { time.add(1, ordering: .sequentiallyConsistent).newValue }

  func call(_ kind: Int, _ value: Int, on numbers: Cache<String, Int>) async throws {
    let begin = now()
    let effect: Call.Effect
    switch kind {
    case 0: effect = .read(try numbers.value(for: "a"))
    case 1:
      try numbers.save(value, for: "a")
      effect = .save(value)
    case 2:
      try numbers.remove("a")
      effect = .remove
    default:
      let entry = try await numbers.entry(for: "a") { _ in
        self.state.withLock { $0.fills[value] = Fill(begin: self.now()) }
        await Task.yield()
        return .value(value)
      }
      guard let result = entry?.value else { return }
      // A load that a change has overtaken returns its value, and leaves nothing.
      if entry?.origin == .loaded, entry?.isSaved == false { return }
      let end = now()
      if entry?.origin == .loaded {
        state.withLock { state in
          if state.fills[result]?.end == nil { state.fills[result]?.end = end }
        }
      }
      effect = .read(result)
    }
    let call = Call(effect: effect, begin: begin, end: now())
    state.withLock { $0.calls.append(call) }
  }
}

/// Searches for an order of calls in which each one could have had its result, and no call comes
/// after one that had begun only after its end (Wing and Gong, 1993).
private struct Linearization {
  private struct Place: Hashable {
    let done: UInt64
    let value: Int?
  }

  private let calls: [Call]
  private let end: Int?

  /// - Parameters:
  ///   - calls: The calls, 64 at most.
  ///   - end: The value after all calls; there is none before them.
  init(_ calls: [Call], end: Int?) {
    precondition(calls.count <= 64)
    (self.calls, self.end) = (calls, end)
  }

  var exists: Bool {
    var failed: Set<Place> = []
    return search(Place(done: 0, value: nil), &failed)
  }

  private func search(_ place: Place, _ failed: inout Set<Place>) -> Bool {
    if place.done.nonzeroBitCount == calls.count { return place.value == end }
    guard !failed.contains(place) else { return false }
    let open = calls.indices.filter { place.done & 1 << UInt64($0) == 0 }
    let firstEnd = open.map { calls[$0].end }.min() ?? 0
    for index in open where calls[index].begin <= firstEnd {
      var value = place.value
      guard calls[index].effect.apply(to: &value) else { continue }
      if search(Place(done: place.done | 1 << UInt64(index), value: value), &failed) {
        return true
      }
    }
    failed.insert(place)
    return false
  }
}
