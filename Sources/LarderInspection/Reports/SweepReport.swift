package import Foundation
import Larder

extension Inspection {
  /// Writes what a sweep would delete.
  package func dryRun(
    style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let backlog = try backlog()
    try SweepReport(path: path, now: now, records: backlog.due.entries, isDryRun: true)
      .write(style: style, to: &output)
    return damage.isEmpty && backlog.isComplete ? .fine : .damaged
  }

  /// Sweeps the store in a directory itself, and writes how much that deleted.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path. It must not be open elsewhere.
  ///   - now: The moment to judge lifetimes by.
  ///   - style: How the report is written.
  ///   - output: Where to.
  /// - Returns: That it was fine.
  /// - Throws: An ``InspectionError`` with the status `unavailable` when there is no store or it is
  ///   open, `unsupported` when it is another program's or a later version's, `damaged`, `io`. What
  ///   was deleted before stays deleted.
  package static func sweep(
    _ directory: String, now: Date, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    guard let path = try FileAccess.realPath(directory), FileAccess.isDirectory(path) else {
      throw InspectionError(.unavailable, "there is no store at \(directory)")
    }
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

/// What a sweep did, or would do.
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
    case .csv: throw InspectionError(.usage, "sweep cannot be written as csv")
    }
  }
}

/// The moment that a command is told.
private struct StandingClock: WallClock {
  let date: Date

  func now() -> Date { date }
  func uptime() -> Duration { .zero }
}

extension InspectionError {
  /// The failure of a store as a tool says it.
  fileprivate init(_ error: any Error) {
    switch error {
    case StoreError.locked(let pid):
      self.init(.unavailable, "the store is open in \(pid.map { "process \($0)" } ?? "a process")")
    case StoreError.corrupt(let cache, _, let file):
      self.init(.damaged, "the store is damaged: \(file ?? "cache \(cache)")")
    case StoreError.incompatible(let message): self.init(.unsupported, message)
    case StoreError.io(let message): self.init(.io, message)
    case StoreError.diskFull: self.init(.io, "the disk is full")
    case StoreError.writesDisabled(let cause):
      self.init(.io, "the store cannot be written: \(cause)")
    default: self.init(.io, "\(error)")
    }
  }
}
