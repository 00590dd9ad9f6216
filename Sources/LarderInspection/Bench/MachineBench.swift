import Foundation
import LarderEngine

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

  var fields: [(name: String, value: JSONValue)] {
    [
      ("schemaVersion", reportVersion), ("isOptimized", .bool(Self.isOptimized)),
      ("rounds", .integer(rounds)),
    ]
  }
}

/// Measures this machine with some of larder-bench's workloads, in a temporary directory.
package enum MachineBench {
  private typealias Row = (times: Comparison, other: String)

  /// Runs the workloads and writes a row for each.
  ///
  /// - Parameters:
  ///   - settings: The numbers of records and rounds.
  ///   - style: The style of the report; `csv` is not supported.
  ///   - output: Receives the report.
  /// - Returns: Always `fine`.
  /// - Throws: An ``InspectionError`` with the status `usage` for the format `csv`, `io` if the
  ///   temporary directory cannot be created or a result is wrong. The directory is removed.
  package static func run(
    _ settings: BenchSettings, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    try style.expectNoCSV()
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
    write(rows, settings, style: style, to: &output)
    return .fine
  }

  private static func write(
    _ rows: [Row], _ settings: BenchSettings, style: Style, to output: inout some TextOutputStream
  ) {
    let objects = rows.map { JSONValue.object(fields(of: $0.times, other: $0.other)) }
    guard style.format == .table else {
      let heading = settings.fields + [("records", .integer(settings.records))]
      return objects.write(under: heading, style: style, to: &output)
    }
    if !style.isQuiet {
      output.write("\(settings.heading)\(settings.records) records of 16 + 100 bytes\n\n")
    }
    var table = Table(
      [
        "WORKLOAD", .number("LARDER"), .number("OTHER"), .number("RATIO"), "95 %", .number("A/A"),
        "OTHER IS",
      ], style: style)
    for (times, other) in rows {
      let interval = times.interval.map {
        "\(decimals($0.lowerBound)) to \(decimals($0.upperBound))"
      }
      let cells = [
        times.name, whole(times.a), whole(times.b), decimals(times.ratio),
        interval ?? "-", decimals(times.noise), other,
      ]
      table.add(cells, to: &output)
    }
    table.flush(to: &output)
  }

  private static func fields(
    of times: Comparison, other: String
  ) -> [(name: String, value: JSONValue)] {
    [
      ("workload", .string(times.name)), ("larderNanoseconds", .real(times.a)),
      ("other", .string(other)), ("otherNanoseconds", .real(times.b)),
      ("ratio", .real(times.ratio)),
      ("ratioLow", times.interval.map { .real($0.lowerBound) } ?? .null),
      ("ratioHigh", times.interval.map { .real($0.upperBound) } ?? .null),
      ("sameAgainstSame", .real(times.noise)),
    ]
  }

  private static func decimals(_ number: Double) -> String { String(format: "%.3f", number) }
}

/// Nanoseconds, rounded to an integer.
func whole(_ nanoseconds: Double) -> String { String(format: "%.0f", nanoseconds) }

extension Style {
  func expectNoCSV() throws(InspectionError) {
    if format == .csv { throw InspectionError(.usage, "bench does not support csv") }
  }
}
