import Foundation
import Larder

/// Each public call in a store with many of a thing, against the same call with few of them.
///
/// A call must not take longer for what it does not touch. A cost that grows by more than
/// ``Growth/factor`` fails the run, unless the documentation names it.
struct GrowthSuite {
  /// The costs that grow, with the sentence of the documentation that says so.
  ///
  /// A new call goes into ``GrowthCall/all``, a new thing into ``GrowthThing``.
  static let named: [(call: String, things: [GrowthThing], sentence: String)] = [
    (
      "invalidate", [.observers, .observedCaches],
      "A clear and an invalidated tag are reported to each observer."
    ),
    (
      "sweep with nothing due", [.caches, .ownMemories, .observedCaches],
      "If nothing has expired, one check for each cache and no lookup."
    ),
    (
      "releaseMemory of none", [.ownMemories],
      "One check for each cache with memory of its own."
    ),
  ]

  let contests: [Contest]
  private let stages: GrowthStages

  init(_ scale: BenchScale, in workspace: Workspace) {
    let growth = scale.growth
    let stages = GrowthStages(in: workspace)
    self.stages = stages
    let few = growth.counts[0]
    var contests: [Contest] = []
    for thing in GrowthThing.allCases {
      for many in growth.counts.dropFirst() {
        for call in GrowthCall.all(in: growth) where call.applies(to: thing) {
          let isNamed = Self.named.contains { $0.call == call.name && $0.things.contains(thing) }
          contests.append(
            Contest(
              name: "\(call.name), \(many) \(thing.rawValue) to \(few)", operations: 1,
              goal: isNamed ? nil : growth.factor, goalMargin: isNamed ? nil : growth.margin,
              a: { try call.run(stages.stage(thing, many)) },
              b: { try call.run(stages.stage(thing, few)) }))
        }
      }
    }
    self.contests = contests
  }

  func close() throws { try stages.end() }

  /// The list of costs that may grow, as lines below the table.
  static var notes: String {
    named.map { named in
      let things = named.things.map(\.rawValue).joined(separator: ", ")
      return "- \(named.call), by \(things): \(named.sentence)"
    }.joined(separator: "\n")
  }
}

/// The sizes of the suite, and the growth that it allows.
struct Growth {
  /// The numbers of things; the first one is what the others are compared with.
  let counts: [Int]
  /// The number of calls in a run, for calls that take microseconds.
  let calls: Int
  /// The largest ratio, and the time in nanoseconds that a call may take more in any case.
  let factor: Double
  let margin: Double

  /// Cold memory makes a hit of 50 ns a few times slower among 10,000 things.
  static let full = Growth(counts: [100, 1000, 10_000], calls: 1000, factor: 3, margin: 500)
  /// Three short rounds show only costs that are many times higher.
  static let quick = Growth(counts: [10, 1000], calls: 100, factor: 8, margin: 20_000)
}

/// What a store can have many of.
enum GrowthThing: String, CaseIterable {
  case caches
  case ownMemories = "caches with memory of their own"
  case observers
  case observedCaches = "observed caches"
  case tags = "invalidated tags"
  case absent = "absent keys"
  case lifetimes = "lifetimes of a key"
  case entries
  case flights = "loads under way"
  case keys = "keys in a call"
}

/// The stores of the thing that is measured, made when a call needs them.
final class GrowthStages {
  private let workspace: Workspace
  private var thing: GrowthThing?
  private var stages: [Int: GrowthStage] = [:]

  init(in workspace: Workspace) { self.workspace = workspace }

  func stage(_ thing: GrowthThing, _ count: Int) throws -> GrowthStage {
    if thing != self.thing {
      try end()
      self.thing = thing
    }
    if let stage = stages[count] { return stage }
    let stage = try GrowthStage(
      with: count, thing, at: workspace.directory("growth-\(count)"))
    stages[count] = stage
    return stage
  }

  /// Closes the stores, and removes them.
  func end() throws {
    for (count, stage) in stages {
      try stage.end()
      try workspace.remove("growth-\(count)")
    }
    stages = [:]
  }
}
