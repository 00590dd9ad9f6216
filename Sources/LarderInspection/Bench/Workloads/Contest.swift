/// Two implementations of the same work, measured in alternation within one run.
struct Contest {
  /// Does the work once on one side and returns the time it took, without the set-up.
  typealias Run = () throws -> Duration

  let name: String
  let operations: Int
  /// The largest ratio that meets the goal; nil if the contest has no goal.
  var goal: Double?
  /// The goal is also met if A takes at most this many nanoseconds more than B.
  var goalMargin: Double?
  /// The maximum number of rounds, for a contest whose runs take long.
  var mostRounds = Int.max
  let a: Run
  let b: Run

  /// A contest in which each run of a side does `operations` operations.
  init(
    name: String, operations: Int, goal: Double? = nil, goalMargin: Double? = nil,
    mostRounds: Int = .max, a: @escaping Run, b: @escaping Run
  ) {
    (self.name, self.operations) = (name, operations)
    (self.goal, self.goalMargin) = (goal, goalMargin)
    (self.mostRounds, self.a, self.b) = (mostRounds, a, b)
  }

  /// Measures A B B A in every round, so that a drift of the machine affects both sides equally.
  ///
  /// One run of each side before the first round warms up and is not counted.
  func measure(rounds: Int) throws -> Comparison {
    _ = try (a(), b())
    var comparison = Comparison(name: name, goal: goal, goalMargin: goalMargin, rounds: [])
    for _ in 0..<min(rounds, mostRounds) {
      let runs = try [a(), b(), b(), a()].map { $0 / .nanoseconds(operations) }
      comparison.rounds.append(Round(a: [runs[0], runs[3]], b: [runs[1], runs[2]]))
    }
    return comparison
  }
}

/// Nanoseconds per operation in the runs of one round.
struct Round: Codable, Sendable {
  let a: [Double]
  let b: [Double]

  var ratio: Double { (a[0] + a[1]) / (b[0] + b[1]) }
  /// The second run of A divided by the first: the machine's own effect on a ratio.
  var noise: Double { a[1] / a[0] }
}

/// The result of a contest: medians, and an interval for their ratio.
struct Comparison: Sendable {
  let name: String
  let goal: Double?
  let goalMargin: Double?
  var rounds: [Round]

  var a: Double { median(rounds.flatMap(\.a)) }
  var b: Double { median(rounds.flatMap(\.b)) }
  var ratio: Double { median(rounds.map(\.ratio)) }
  var noise: Double { median(rounds.map(\.noise)) }

  /// An interval that contains the true median ratio with at least 95 % certainty.
  ///
  /// Its ends are two of the sorted ratios (the sign test), so it assumes nothing about their
  /// distribution. It is nil with fewer than 6 rounds.
  var interval: ClosedRange<Double>? {
    let sorted = rounds.map(\.ratio).sorted()
    var rank = 0
    var outside = 2 * binomialHalf(sorted.count, rank)
    while outside <= 0.05 {
      rank += 1
      outside += 2 * binomialHalf(sorted.count, rank)
    }
    return rank == 0 ? nil : sorted[rank - 1]...sorted[sorted.count - rank]
  }
}

func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  let middle = sorted.count / 2
  return sorted.count.isMultiple(of: 2)
    ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
}

/// The probability of exactly `k` heads in `n` fair tosses.
private func binomialHalf(_ n: Int, _ k: Int) -> Double {
  let ways = (0..<k).reduce(1.0) { $0 * Double(n - $1) / Double($1 + 1) }
  return ways / Double(1 << n)
}
