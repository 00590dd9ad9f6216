/// Whether a run meets a goal.
enum Verdict: String, Codable, Sendable {
  case met
  /// The median misses the goal; the lower end of the interval meets it.
  case open
  case missed
}

extension Comparison {
  /// Whether the run meets the goal; nil if there is no goal.
  var verdict: Verdict? {
    goal.map { goal in
      if ratio <= goal { return .met }
      if let goalMargin, a - b <= goalMargin { return .met }
      return (interval?.lowerBound ?? ratio) <= goal ? .open : .missed
    }
  }
}
