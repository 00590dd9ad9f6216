import Foundation

/// The scale of an axis: its range and its ticks.
struct Axis {
  let ticks: [Double]
  private let isLogarithmic: Bool
  private let range: ClosedRange<Double>

  /// A linear axis from 0 to the first round number above all values.
  init(linear values: [Double]) {
    let most = max(values.max() ?? 1, .leastNormalMagnitude)
    let power = pow(10, (log10(most / 4)).rounded(.down))
    let step = [1, 2, 5, 10].map { $0 * power }.first { most / $0 <= 6 } ?? power
    let count = Int((most / step).rounded(.up))
    ticks = (0...max(1, count)).map { Double($0) * step }
    range = 0...(ticks.last ?? 1)
    isLogarithmic = false
  }

  /// A logarithmic axis over all values, widened to round numbers unless ticks are given.
  init(logarithmic values: [Double], ticks given: [Double]? = nil) {
    let (least, most) = (values.min() ?? 1, values.max() ?? 1)
    isLogarithmic = true
    if let given {
      (ticks, range) = (given, least...max(most, least * 1.001))
      return
    }
    let first = Int(log10(least).rounded(.down))
    let last = Int(log10(most).rounded(.down))
    let factors: [Double] = last - first < 3 ? [1, 2, 5] : [1]
    let all = (first...(last + 1)).flatMap { power in factors.map { $0 * pow(10, Double(power)) } }
    let bottom = all.last { $0 <= least } ?? all[0]
    let top = all.first { $0 >= most && $0 > bottom } ?? all[all.count - 1]
    range = bottom...top
    ticks = all.filter { (bottom...top).contains($0) }
  }

  /// The position of a value on the axis, from 0 to 1.
  func share(of value: Double) -> Double {
    guard isLogarithmic else {
      return (value - range.lowerBound) / (range.upperBound - range.lowerBound)
    }
    return log(value / range.lowerBound) / log(range.upperBound / range.lowerBound)
  }

  /// A number without trailing zeros.
  static func text(_ value: Double) -> String { String(format: "%g", value) }

  /// A time in a suitable unit.
  static func text(nanoseconds: Double) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "\u{B5}s"), (1.0, "ns")]
    let (size, unit) = units.first { nanoseconds >= $0.0 } ?? (1, "ns")
    return "\(text(nanoseconds / size)) \(unit)"
  }
}
