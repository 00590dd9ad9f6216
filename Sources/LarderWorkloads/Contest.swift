/// Two ways to do the same work, measured in turns within one run.
package struct Contest {
  /// Does the work once on one side and returns the time it took, set-up left out.
  package typealias Run = () throws -> Duration

  package let name: String
  package let operations: Int
  /// The largest ratio that is good enough, if one is set for this contest.
  package var goal: Double?
  /// So many nanoseconds more than B's are good enough, too, whatever the ratio.
  package var goalMargin: Double?
  /// How many rounds are enough, if one takes long.
  package var mostRounds = Int.max
  package let a: Run
  package let b: Run

  /// A contest in which each run of a side does `operations` operations.
  package init(
    name: String, operations: Int, goal: Double? = nil, goalMargin: Double? = nil,
    mostRounds: Int = .max, a: @escaping Run, b: @escaping Run
  ) {
    (self.name, self.operations) = (name, operations)
    (self.goal, self.goalMargin) = (goal, goalMargin)
    (self.mostRounds, self.a, self.b) = (mostRounds, a, b)
  }

  /// Measures A B B A in every round, so that a drift of the machine weighs on both sides alike.
  ///
  /// One run of each side before the first round is not counted.
  package func measure(rounds: Int) throws -> Comparison {
    _ = try (a(), b())
    var outcome = Comparison(name: name, goal: goal, goalMargin: goalMargin, rounds: [])
    for _ in 0..<min(rounds, mostRounds) {
      let runs = try [a(), b(), b(), a()].map { $0 / .nanoseconds(operations) }
      outcome.rounds.append(Round(a: [runs[0], runs[3]], b: [runs[1], runs[2]]))
    }
    return outcome
  }
}

/// Nanoseconds for one operation in the runs of one round.
package struct Round: Codable, Sendable {
  package let a: [Double]
  package let b: [Double]

  package var ratio: Double { (a[0] + a[1]) / (b[0] + b[1]) }
  /// The second run of A against the first: what the machine alone does to a ratio.
  package var noise: Double { a[1] / a[0] }
}

/// What came out of a contest: medians, and how far they can be trusted.
package struct Comparison: Sendable {
  package let name: String
  package let goal: Double?
  package let goalMargin: Double?
  package var rounds: [Round]

  package var a: Double { median(rounds.flatMap(\.a)) }
  package var b: Double { median(rounds.flatMap(\.b)) }
  package var ratio: Double { median(rounds.map(\.ratio)) }
  package var noise: Double { median(rounds.map(\.noise)) }

  /// An interval that holds the true median ratio with at least 95 % certainty.
  ///
  /// It lies between two ranks of the sorted ratios (the sign test), so it assumes nothing about
  /// how they are distributed. It takes 6 rounds or more.
  package var interval: ClosedRange<Double>? {
    let sorted = rounds.map(\.ratio).sorted()
    var rank = 0
    var outside = 2 * binomialHalf(sorted.count, rank)
    while outside <= 0.05 {
      rank += 1
      outside += 2 * binomialHalf(sorted.count, rank)
    }
    return rank == 0 ? nil : sorted[rank - 1]...sorted[sorted.count - rank]
  }

  /// What the run says of the goal; nil when there is none.
  package var verdict: Verdict? {
    goal.map { goal in
      if ratio <= goal { return .met }
      if let goalMargin, a - b <= goalMargin { return .met }
      return (interval?.lowerBound ?? ratio) <= goal ? .open : .missed
    }
  }
}

/// What a run says of a goal.
package enum Verdict: String, Codable, Sendable {
  case met
  /// The median misses it, the lower end of the interval does not.
  case open
  case missed
}

package func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  let middle = sorted.count / 2
  return sorted.count.isMultiple(of: 2)
    ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
}

/// The chance of exactly `k` heads in `n` fair tosses.
private func binomialHalf(_ n: Int, _ k: Int) -> Double {
  let ways = (0..<k).reduce(1.0) { $0 * Double(n - $1) / Double($1 + 1) }
  return ways / Double(1 << n)
}
