import Larder

extension Inspection {
  /// Writes what a running program has counted in its store since the line before.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path.
  ///   - limit: Ends after this number of lines; nil for never.
  ///   - style: The style of the report; not `json`, whose document would never end.
  ///   - output: Receives the report, and is flushed after each line.
  ///   - pause: Waits before each line; returns false to end.
  /// - Returns: Always `fine`.
  /// - Throws: An ``InspectionError`` with the status `unavailable` if there is no store or no
  ///   process publishes its statistics, or when it has closed the store; `usage`, `io`.
  package static func watchStatistics(
    of directory: String, limit: Int?, style: Style, to output: inout some FlushedOutput,
    pause: () -> Bool
  ) throws(InspectionError) -> Outcome {
    try requireStreamed(style)
    let path = try FileAccess.directory(directory)
    var last = try liveStatistics(of: path)
    let names = [
      "reads", "fresh", "memory", "saves", "removals", "loads", "expired", "evicted",
    ]
    let report = Report(
      style: style, title: DatabaseFiles.title(of: path),
      columns: names.map { Report.Column(.number($0.uppercased()), $0) }
        + [Report.Column("TIME", "time")])
    var renderer = report.renderer
    renderer.begin(to: &output)
    renderer.flush(to: &output)
    output.flush()
    var count = 0
    while limit.map({ count < $0 }) ?? true, pause() {
      let next = try liveStatistics(of: path)
      let isSame = next.process == last.process && next.uptime >= last.uptime
      let (now, before) = (
        StatisticsTotals(next.statistics).counts,
        isSame ? StatisticsTotals(last.statistics).counts : StatisticsTotals().counts
      )
      let time = Moment.text(Moment.now()).map(Report.Cell.text) ?? .none
      let cells = zip(now, before).map { Report.Cell.number($0 - $1) }
      renderer.add(Report.Row(cells + [time]), to: &output)
      renderer.flush(to: &output)
      output.flush()
      count += 1
      last = next
    }
    return .fine
  }

  private static func liveStatistics(
    of path: String
  ) throws(InspectionError) -> PublishedStatistics {
    if let live = try StatisticsRecord(of: path)?.live { return live }
    _ = try identify(path)
    throw InspectionError(
      .unavailable,
      try StoreOwner(of: path)?.isRunning == true
        ? "the process that has \(path) open publishes no statistics: it must open the store with "
          + "the option publishesStatistics" : "no process has \(path) open")
  }
}
