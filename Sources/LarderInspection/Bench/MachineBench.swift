import Foundation
import Larder

/// The settings of a benchmark.
package struct BenchSettings: Sendable {
  /// The number of rounds of A B B A, 1 to 100.
  package let rounds: Int
  /// The number of records in the temporary databases, 100 to 10,000,000.
  package let records: Int

  /// Checks the numbers of a command line; nil stands for the defaults, 7 and 100,000.
  ///
  /// - Throws: An ``InspectionError`` with the status `usage` for a number outside its range.
  package init(rounds: Int?, records: Int?) throws(InspectionError) {
    self.rounds = rounds ?? 7
    self.records = records ?? 100_000
    guard (1...100).contains(self.rounds) else {
      throw InspectionError(.usage, "--rounds takes a number from 1 to 100")
    }
    guard (100...10_000_000).contains(self.records) else {
      throw InspectionError(.usage, "--records takes a number from 100 to 10,000,000")
    }
  }

  /// Whether this program was built with the optimizer; the times of a debug build mean little.
  static var isOptimized: Bool {
    #if DEBUG
      false
    #else
      true
    #endif
  }

  /// The lines above the results, with a warning for debug builds.
  var heading: String {
    let warning = Self.isOptimized ? "" : "THIS IS A DEBUG BUILD: its times mean little.\n"
    return warning + "nanoseconds per operation, medians of \(rounds) alternating rounds\n"
  }

  var members: Report.Members {
    [
      ("schemaVersion", reportVersion), ("isOptimized", .bool(Self.isOptimized)),
      ("rounds", .integer(rounds)),
    ]
  }
}

/// Measures this machine with some of larder-bench's workloads, in a temporary directory.
package enum MachineBench {
  private typealias Row = (times: Comparison, other: String)

  /// Runs the workloads and reports a row for each.
  ///
  /// - Parameters:
  ///   - settings: The numbers of records and rounds.
  ///   - style: The style of the report; `csv` is not supported.
  /// - Returns: A report, whose outcome is `fine`.
  /// - Throws: An ``InspectionError`` with the status `usage` for the format `csv`, `io` if the
  ///   temporary directory cannot be created or a result is wrong. The directory is removed.
  package static func run(
    _ settings: BenchSettings, style: Style
  ) throws(InspectionError) -> Report {
    try style.expectNoCSV("bench does")
    let temporary = FileManager.default.temporaryDirectory.path(percentEncoded: false)
    guard let directory = PrivateDirectory(in: temporary, named: "kvinspect-") else {
      throw InspectionError(.io, "cannot create a directory in \(temporary)")
    }
    var rows: [Row] = []
    do {
      // The directory is removed with its last reference.
      try withExtendedLifetime(directory) {
        try MachineWorkloads.measure(
          records: settings.records, rounds: settings.rounds,
          in: URL(filePath: "\(directory.path)/bench", directoryHint: .isDirectory)
        ) { rows.append(($0, $1)) }
      }
    } catch {
      throw InspectionError(.io, "\(error)")
    }
    return report(of: rows, settings, style: style)
  }

  private static func report(
    of rows: [Row], _ settings: BenchSettings, style: Style
  ) -> Report {
    Report(
      style: style, title: "\(settings.heading)\(settings.records) records of 16 + 100 bytes",
      members: settings.members + [("records", .integer(settings.records))],
      columns: [
        .init("WORKLOAD", "workload"), .init(.number("LARDER"), "larderNanoseconds"),
        .init(nil, "other"), .init(.number("OTHER"), "otherNanoseconds"),
        .init(.number("RATIO"), "ratio"), .init("95 %", nil), .init(nil, "ratioLow"),
        .init(nil, "ratioHigh"), .init(.number("A/A"), "sameAgainstSame"), .init("OTHER IS", nil),
      ]
    ) { add in
      for (times, other) in rows { add(Report.Row(cells(of: times, other: other))) }
      return Report.Ending()
    }
  }

  private static func cells(of times: Comparison, other: String) -> [Report.Cell] {
    func ratio(_ number: Double) -> Report.Cell { .shown(decimals(number), .real(number)) }
    let interval = times.interval.map {
      "\(decimals($0.lowerBound)) to \(decimals($0.upperBound))"
    }
    return [
      .text(times.name), .nanoseconds(times.a), .text(other), .nanoseconds(times.b),
      ratio(times.ratio), interval.map(Report.Cell.text) ?? .none,
      times.interval.map { ratio($0.lowerBound) } ?? .none,
      times.interval.map { ratio($0.upperBound) } ?? .none, ratio(times.noise), .text(other),
    ]
  }

  private static func decimals(_ number: Double) -> String { String(format: "%.3f", number) }
}

extension Report.Cell {
  /// In tables rounded to an integer; nil for none.
  static func nanoseconds(_ time: Double?) -> Report.Cell {
    time.map { .shown(String(format: "%.0f", $0), .real($0)) } ?? .none
  }
}
