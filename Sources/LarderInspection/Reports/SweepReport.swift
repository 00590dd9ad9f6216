package import Foundation
import Larder

extension Inspection {
  /// Writes how many records a sweep would delete.
  package func dryRun(
    style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let backlog = try backlog()
    try SweepReport(path: path, now: now, records: backlog.due.entries, isDryRun: true)
      .write(style: style, to: &output)
    return damage.isEmpty && backlog.isComplete ? .fine : .damaged
  }

  /// Sweeps the store in a directory, not a snapshot, and writes how many records it deleted.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path. It must not be open elsewhere.
  ///   - now: The moment at which lifetimes are evaluated.
  ///   - style: The style of the report.
  ///   - output: Receives the report.
  /// - Returns: Always `fine`.
  /// - Throws: An ``InspectionError`` with the status `unavailable` if there is no store or it is
  ///   open, `unsupported` if another program or a later version wrote it, `damaged`, or `io`.
  ///   Records deleted before the error stay deleted.
  package static func sweep(
    _ directory: String, now: Date, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let path = try FileAccess.directory(directory)
    _ = try identify(path)
    var options = Store.Options()
    options.createIfMissing = false
    options.clock = StandingClock(date: now)
    let count: Int
    do {
      let store = try Store(at: URL(filePath: path, directoryHint: .isDirectory), options: options)
      count = try store.sweep()
      try store.close()
    } catch {
      throw InspectionError(error)
    }
    try SweepReport(path: path, now: now, records: count, isDryRun: false)
      .write(style: style, to: &output)
    return .fine
  }
}

/// The report of a sweep or a dry run.
private struct SweepReport {
  let path: String
  let now: Date
  let records: Int
  let isDryRun: Bool

  func write(
    style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) {
    switch style.format {
    case .table:
      let words = isDryRun ? "would be deleted" : "deleted"
      output.write(
        style.isQuiet
          ? "\(records)\n" : "\(path.escapedForTerminal)\n\n\(records) records \(words)\n")
    case .json, .jsonl:
      JSONValue.object([
        ("schemaVersion", reportVersion), ("store", .string(path)),
        ("now", .optional(Moment.text(now))), ("isDryRun", .bool(isDryRun)),
        ("deleted", .integer(isDryRun ? 0 : records)), ("due", .integer(records)),
      ]).write(to: &output)
      output.write("\n")
    case .csv: throw InspectionError(.usage, "sweep does not support csv")
    }
  }
}

/// A clock that always returns the time given by `--now`.
struct StandingClock: WallClock {
  let date: Date

  func now() -> Date { date }
  func uptime() -> Duration { .zero }
}
