import Foundation
import LarderEngine

/// How a bench is run.
package struct BenchSettings: Sendable {
  /// How often each side is measured: rounds of A B B A, 1 to 100.
  package let rounds: Int
  /// How many records the databases have that are made for it; 100 to 10,000,000.
  package let records: Int

  /// Takes numbers as they come from a command line; nil for the defaults, 7 and 100,000.
  ///
  /// - Throws: An ``InspectionError`` with the status `usage` for a number outside its range.
  package init(rounds: Int?, records: Int?) throws(InspectionError) {
    self.rounds = rounds ?? 7
    self.records = records ?? 100_000
    guard (1...100).contains(self.rounds) else {
      throw InspectionError(.usage, "--rounds takes a number from 1 to 100")
    }
    guard (100...10_000_000).contains(self.records) else {
      throw InspectionError(.usage, "--records takes a number from 100 to 10000000")
    }
  }

  /// Whether this program was built with the optimizer; its times mean little if not.
  static var isOptimized: Bool {
    #if DEBUG
      false
    #else
      true
    #endif
  }

  /// What people should know before they look at the times.
  var heading: String {
    let warning = Self.isOptimized ? "" : "THIS IS A DEBUG BUILD: its times mean little.\n"
    return warning + "nanoseconds for one operation, medians of \(rounds) rounds in turns\n"
  }

  var fields: [(name: String, value: JSONValue)] {
    [
      ("schemaVersion", reportVersion), ("isOptimized", .bool(Self.isOptimized)),
      ("rounds", .integer(rounds)),
    ]
  }
}

/// Measures this machine: some of the benchmarks' workloads, in a temporary directory.
package enum MachineBench {
  private typealias Row = (times: Comparison, other: String)

  /// Measures, and writes a row for each workload.
  ///
  /// - Parameters:
  ///   - settings: How many records and rounds.
  ///   - style: How the report is written; not as `csv`.
  ///   - output: Where to.
  /// - Returns: That it was fine.
  /// - Throws: An ``InspectionError`` with the status `usage` for a form that there is not, `io`
  ///   when no directory can be made, and for a wrong result. Nothing is left behind.
  package static func run(
    _ settings: BenchSettings, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    try style.expectNoCSV()
    let temporary = FileManager.default.temporaryDirectory.path(percentEncoded: false)
    guard let directory = PrivateDirectory(in: temporary, named: "kvinspect-") else {
      throw InspectionError(.io, "no directory can be made in \(temporary)")
    }
    var rows: [Row] = []
    do {
      // The directory goes with its last reference.
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
    var table = Table(["WORKLOAD", "LARDER", "OTHER", "RATIO", "95 %", "A/A", "OTHER IS"])
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

/// A time in whole nanoseconds.
func whole(_ nanoseconds: Double) -> String { String(format: "%.0f", nanoseconds) }

extension Style {
  func expectNoCSV() throws(InspectionError) {
    if format == .csv { throw InspectionError(.usage, "bench cannot be written as csv") }
  }
}

extension [JSONValue] {
  /// Writes rows as lines, or as one document under a heading.
  func write(
    under heading: [(name: String, value: JSONValue)], style: Style,
    to output: inout some TextOutputStream
  ) {
    if style.format == .jsonl {
      for row in self {
        row.write(to: &output)
        output.write("\n")
      }
    } else {
      JSONValue.object(heading + [("rows", .array(self))]).writePretty(to: &output)
      output.write("\n")
    }
  }
}
