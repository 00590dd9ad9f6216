import Foundation

/// Draws hit ratios by the size of the cache, from a table that `Scripts/hit-ratios` writes.
struct HitRatioPlot {
  /// The traces that are drawn, with a description of each.
  private static let traces = [
    ("web12", "web12: a web application"),
    ("orm-busy", "orm-busy: an ORM"),
    ("gli", "gli: a text search in loops"),
  ]

  private struct Row {
    let trace: String
    /// The number of objects, in per cent of the keys of the trace.
    let share: Double
    /// Per cent of a byte budget, the memory tier, LRU and the optimal policy.
    let hits: [Double]

    /// Parses a line; nil if its size is not given as a share.
    init?(_ line: Substring) throws {
      let words = line.split(separator: " ")
      let numbers = words.dropFirst(5).compactMap { Double($0) }
      guard words.count == 9, numbers.count == 4 else {
        throw UsageError(description: "not a row of a table of hit ratios: \(line)")
      }
      guard let share = Double(words[4]) else { return nil }
      (trace, self.share) = (String(words[0]), share)
      hits = [numbers[2], numbers[1], numbers[0], numbers[3]]
    }
  }

  private let rows: [Row]

  init(contentsOf file: URL) throws {
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    rows = try lines.dropFirst().compactMap(Row.init)
    for (trace, _) in Self.traces where !rows.contains(where: { $0.trace == trace }) {
      throw UsageError(description: "\(file.path()) has no shares of keys of the trace \(trace)")
    }
  }

  func svg() -> String {
    let panels = Self.traces.map { trace, title in
      let rows = rows.filter { $0.trace == trace }.sorted { $0.share < $1.share }
      return LinePanel(
        title: title, xTitle: "objects in the cache, % of the keys", yTitle: "hits, %",
        xTicks: rows.map { ($0.share, Axis.text($0.share)) }, yLabel: Axis.text(_:),
        lines: (0..<4).map { series in
          (series: series, points: rows.map { ($0.share, $0.hits[series]) })
        })
    }
    return Chart(
      title: "Hits by the size of the cache",
      source: "Traces by headissue GmbH (web12, orm-busy) and of the LIRS paper (gli)",
      series: ["byte budget", "memory", "LRU", "optimal"], panels: panels, columns: 3
    ).svg()
  }
}
