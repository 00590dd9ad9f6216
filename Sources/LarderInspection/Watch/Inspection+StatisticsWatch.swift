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
    let report = Report(
      style: style, title: DatabaseFiles.title(of: path),
      columns: [
        .init(.number("READS"), "reads"), .init(nil, "fresh"), .init(.number("HITS"), nil),
        .init(nil, "memory"), .init(.number("MEMORY"), nil), .init(.number("SAVES"), "saves"),
        .init(nil, "removals"), .init(.number("LOADS"), "loads"),
        .init(.number("A LOAD"), "loadSeconds"), .init(nil, "expired"), .init(nil, "evicted"),
        .init(.number("DELETED"), nil), .init(.number("HELD"), "memoryBytes"),
        .init("TIME", "time"),
      ])
    var renderer = report.renderer
    renderer.begin(to: &output)
    renderer.flush(to: &output)
    output.flush()
    var count = 0
    while limit.map({ count < $0 }) ?? true, pause() {
      let next = try liveStatistics(of: path)
      let isSame = next.process == last.process && next.uptime >= last.uptime
      let now = StatisticsTotals(next.statistics)
      let counts = now - (isSame ? StatisticsTotals(last.statistics) : StatisticsTotals())
      renderer.add(
        Report.Row(counts.cells(holding: next.statistics.memory.bytes)), to: &output)
      renderer.flush(to: &output)
      output.flush()
      count += 1
      last = next
    }
    return .fine
  }

  static func liveStatistics(
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

extension StatisticsTotals {
  /// The cells of a line, for what was counted since the line before.
  fileprivate func cells(holding memoryBytes: Int) -> [Report.Cell] {
    let load = loads > 0 ? loadSeconds / Double(loads) : nil
    let time = Moment.text(Moment.now())
    // The time of the day; the day is known to whoever watches.
    let clock = time.map { String($0.dropFirst(11).prefix(8)) }
    return [
      .number(reads), .number(fresh), .text(Amount.share(fresh, of: reads)), .number(memory),
      .text(Amount.share(memory, of: reads)), .number(saves), .number(removals), .number(loads),
      load.map { .shown(Amount.duration($0), .real($0)) } ?? .none, .number(expired),
      .number(evicted), .number(expired + evicted), .bytes(memoryBytes),
      clock.map { .shown($0, .optional(time)) } ?? .none,
    ]
  }
}
