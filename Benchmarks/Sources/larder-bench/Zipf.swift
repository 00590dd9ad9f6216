import Foundation

/// Draws numbers by Zipf's law: the k-th most frequent has the weight 1 / k^exponent.
struct Zipf {
  private let cumulative: [Double]
  private let names: [Int]

  init(count: Int, exponent: Double) {
    var sum = 0.0
    cumulative = (1...count).map { rank in
      sum += 1 / pow(Double(rank), exponent)
      return sum
    }
    var random = WorkloadRandom(seed: Scale.seed)
    names = (0..<count).shuffled(using: &random)
  }

  func next(_ random: inout WorkloadRandom) -> Int {
    let at = Double.random(in: 0..<(cumulative.last ?? 1), using: &random)
    var range = 0..<cumulative.count - 1
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      if cumulative[middle] <= at {
        range = (middle + 1)..<range.upperBound
      } else {
        range = range.lowerBound..<middle
      }
    }
    return names[range.lowerBound]
  }
}
