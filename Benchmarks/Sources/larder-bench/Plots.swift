/// Draws a report: times by number of records, times by size of values, and coding to JSON.
///
/// Rows are selected by their names: `retrieve one of 10000`, `read 20 KB, to LMDB`,
/// `encode 100 feed items`.
enum Plots {
  /// The plots for which a report has rows, as SVG files.
  static func all(of report: Report) -> [(kind: String, image: String)] {
    let charts = [
      ("growth", growth(report)), ("values", values(report)), ("coding", coding(report)),
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
    let name = /retrieve one of ([0-9]+)/
    let rows = report.rows.compactMap { row in
      row.name.wholeMatch(of: name).flatMap { Double($0.1) }.map { (records: $0, row: row) }
    }.sorted { $0.records < $1.records }
    guard let last = rows.last else { return nil }
    let ticks = rows.map { (at: $0.records, label: count($0.records)) }
    let times = LinePanel(
      title: "Time", xTitle: "records in the store", yTitle: "time for one read", xTicks: ticks,
      yLabel: Axis.text(nanoseconds:),
      lines: [
        (series: 0, points: rows.map { ($0.records, $0.row.larder) }),
        (series: 1, points: rows.map { ($0.records, $0.row.other) }),
      ])
    let ratio = LinePanel(
      title: "Ratio", xTitle: "records in the store", yTitle: "Larder, to LevelDB", xTicks: ticks,
      yLabel: Axis.text(_:), lines: [(series: 0, points: rows.map { ($0.records, $0.row.ratio) })],
      level: last.row.goal.map { ($0, "goal: at most \(Axis.text($0))") })
    return Chart(
      title: "A typed read, as the store grows", source: source(report),
      series: ["Larder", "LevelDB in C++, the same bytes"], panels: [times, ratio], columns: 2)
  }

  private static func count(_ records: Double) -> String {
    records >= 1e6 ? "\(Axis.text(records / 1e6)) M" : "\(Axis.text(records / 1000)) k"
  }

  // MARK: - Sizes of values

  private struct Sized {
    let work: String
    let bytes: Double
    let label: String
    let peer: String
    let row: Report.Row

    init?(_ row: Report.Row) {
      guard
        let match = row.name.wholeMatch(of: /(read|write|overwrite) (([0-9]+) (KB|MB)), to (.+)/),
        let count = Double(match.3)
      else { return nil }
      (work, label, peer) = (String(match.1), String(match.2), String(match.5))
      bytes = count * (match.4 == "KB" ? 1e3 : 1e6)
      self.row = row
    }
  }

  private static func values(_ report: Report) -> Chart? {
    let rows = report.rows.compactMap(Sized.init)
    guard !rows.isEmpty else { return nil }
    var peers: [String] = []
    for row in rows where !peers.contains(row.peer) { peers.append(row.peer) }
    var ticks: [(at: Double, label: String)] = []
    for row in rows.sorted(by: { $0.bytes < $1.bytes }) where ticks.last?.at != row.bytes {
      ticks.append((row.bytes, row.label))
    }
    let panels = ["read", "write", "overwrite"].compactMap { work -> LinePanel? in
      let rows = rows.filter { $0.work == work }
      guard !rows.isEmpty else { return nil }
      func points(_ time: ([Sized]) -> Double?) -> [LinePanel.Point] {
        ticks.compactMap { tick in
          time(rows.filter { $0.bytes == tick.at }).map { (tick.at, $0) }
        }
      }
      // Larder has one time per peer; the plot has their median.
      let larder = points { $0.isEmpty ? nil : median($0.map(\.row.larder)) }
      let others = peers.enumerated().map { index, peer in
        (
          series: index + 1,
          points: points { $0.first { $0.peer == peer }?.row.other }
        )
      }
      return LinePanel(
        title: work, xTitle: "size of a value", yTitle: "time for one value", xTicks: ticks,
        isYLogarithmic: true, yLabel: Axis.text(nanoseconds:),
        lines: [(series: 0, points: larder)] + others.filter { !$0.points.isEmpty })
    }
    return Chart(
      title: "Values by their size (both axes are logarithmic)", source: source(report),
      series: ["Larder"] + peers, panels: panels, columns: 2)
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
