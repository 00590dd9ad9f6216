/// Draws a report: times by number of records, and coding to JSON.
///
/// Rows are selected by their names: `retrieve one of 10000`, `save with a lifetime among 10000, to
/// without`, `encode 100 feed items`.
enum Plots {
  /// The plots for which a report has rows, as SVG files.
  static func all(of report: Report) -> [(kind: String, image: String)] {
    let charts = [
      ("growth", growth(report)), ("lifetimes", lifetimes(report)), ("coding", coding(report)),
    ]
    return charts.compactMap { kind, chart in chart.map { (kind, $0.svg()) } }
  }

  private static func source(_ report: Report) -> String {
    let machine = report.machine
    return "\(machine.processor), \(machine.cores) cores, \(machine.system), "
      + "commit \(machine.commit), \(machine.day)"
  }

  // MARK: - Growth

  private static func growth(_ report: Report) -> Chart? {
    bySize(
      report, /retrieve one of ([0-9]+)/, title: "A typed read, as the store grows",
      axes: ("records in the store", "time for one read", "Larder, to LevelDB"),
      series: ["Larder", "LevelDB in C++, the same bytes"])
  }

  private static func lifetimes(_ report: Report) -> Chart? {
    bySize(
      report, /save with a lifetime among ([0-9]+), to without/,
      title: "A save over one of many live entries, with a lifetime and without",
      axes: ("live entries", "time for one save", "with a lifetime, to without"),
      series: ["with a lifetime of 7 days", "without a lifetime"])
  }

  /// The times and ratios of the rows of a name, by the number in it.
  private static func bySize(
    _ report: Report, _ name: Regex<(Substring, Substring)>, title: String,
    axes: (x: String, time: String, ratio: String), series: [String]
  ) -> Chart? {
    let rows = report.rows.compactMap { row in
      row.name.wholeMatch(of: name).flatMap { Double($0.1) }.map { (records: $0, row: row) }
    }.sorted { $0.records < $1.records }
    guard let last = rows.last else { return nil }
    let ticks = rows.map { (at: $0.records, label: count($0.records)) }
    let times = LinePanel(
      title: "Time", xTitle: axes.x, yTitle: axes.time, xTicks: ticks,
      yLabel: Axis.text(nanoseconds:),
      lines: [
        (series: 0, points: rows.map { ($0.records, $0.row.larder) }),
        (series: 1, points: rows.map { ($0.records, $0.row.other) }),
      ])
    let ratio = LinePanel(
      title: "Ratio", xTitle: axes.x, yTitle: axes.ratio, xTicks: ticks,
      yLabel: Axis.text(_:), lines: [(series: 0, points: rows.map { ($0.records, $0.row.ratio) })],
      level: last.row.goal.map { ($0, "goal: at most \(Axis.text($0))") })
    return Chart(
      title: title, source: source(report), series: series, panels: [times, ratio], columns: 2)
  }

  private static func count(_ records: Double) -> String {
    records >= 1e6 ? "\(Axis.text(records / 1e6)) M" : "\(Axis.text(records / 1000)) k"
  }

  // MARK: - Coding

  private static func coding(_ report: Report) -> Chart? {
    let rows = report.rows.filter { row in
      (row.name.hasPrefix("encode ") || row.name.hasPrefix("decode "))
        && !row.name.contains(", to ")
    }
    guard !rows.isEmpty else { return nil }
    let panels = ["encode", "decode"].compactMap { work -> BarPanel? in
      let bars = rows.filter { $0.name.hasPrefix(work) }.map { row in
        (name: String(row.name.dropFirst(work.count + 1)), value: row.ratio, goal: row.goal)
      }
      guard !bars.isEmpty else { return nil }
      return BarPanel(
        title: work, xTitle: "share of JSON's time (red: at most, where a goal is set)",
        bars: bars, level: (1, "JSON"))
    }
    return Chart(
      title: "Larder's binary coder, to Foundation's JSON", source: source(report), panels: panels)
  }
}
