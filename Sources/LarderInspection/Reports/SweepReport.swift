package import Foundation
import Larder

extension Inspection {
  /// How many records a sweep would delete.
  package func dryRun(style: Style) throws(InspectionError) -> Report {
    let backlog = try backlog()
    try style.expectNoCSV("sweep does")
    let outcome = damage.isEmpty && backlog.isComplete ? Outcome.fine : .damaged
    return Report(
      sweepOf: path, at: now, (backlog.due.entries, backlog.due.bytes), isDryRun: true, outcome,
      style: style)
  }

  /// Sweeps the store in a directory, not a snapshot, and reports how many records it deleted.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path.
  ///   - place: Where it is swept: in files that are not open elsewhere, or by the process that has
  ///     the store open, by the store's clock.
  ///   - now: The moment at which lifetimes are evaluated in files.
  ///   - style: The style of the report.
  /// - Returns: A report, whose outcome is `fine`.
  /// - Throws: An ``InspectionError`` with the status `unavailable` if there is no store or it is
  ///   open, or its process cannot be reached, `unsupported` if another program or a later version
  ///   wrote it, `damaged`, or `io`. Records deleted before the error stay deleted.
  package static func sweep(
    _ directory: String, in place: ChangePlace = .files, now: Date, style: Style
  ) throws(InspectionError) -> Report {
    let path = try FileAccess.directory(directory)
    _ = try identify(path)
    try style.expectNoCSV("sweep does")
    if place == .process {
      guard case .swept(let entries) = try RunningStore(path: path).ask(.sweep) else {
        throw .strayReply
      }
      return Report(sweepOf: path, at: nil, (entries, nil), isDryRun: false, .fine, style: style)
    }
    var options = Store.Options()
    options.createIfMissing = false
    options.clock = StandingClock(date: now)
    options.sweepInterval = nil
    #if Encryption
      options.leavesSealed = true
    #endif
    var deleted = (entries: 0, bytes: 0)
    do {
      let store = try Store(at: URL(filePath: path, directoryHint: .isDirectory), options: options)
      try store.sweep()
      try store.close()
      for cache in store.statistics.caches.values {
        deleted.entries += cache.deletions.sweeps.entries
        deleted.bytes += cache.deletions.sweeps.bytes
      }
    } catch {
      throw InspectionError(error)
    }
    return Report(sweepOf: path, at: now, deleted, isDryRun: false, .fine, style: style)
  }
}

extension Report {
  /// The report of a sweep or a dry run.
  fileprivate init(
    sweepOf path: String, at now: Date?, _ total: (entries: Int, bytes: Int?), isDryRun: Bool,
    _ outcome: Outcome, style: Style
  ) {
    let records = total.entries
    self.init(
      style: style, title: path.escapedForTerminal,
      sections: [.total(total, "deleted", isDryRun: isDryRun, style)],
      members: [
        ("schemaVersion", reportVersion), ("store", .string(path)),
        ("now", .optional(now.flatMap(Moment.text))), ("isDryRun", .bool(isDryRun)),
        ("deleted", .integer(isDryRun ? 0 : records)), ("due", .integer(records)),
        ("bytes", total.bytes.map(JSONValue.integer) ?? .null),
      ], isOneLine: true
    ) { _ in
      Ending(outcome: outcome)
    }
  }
}

/// A clock that always returns the time given by `--now`.
struct StandingClock: WallClock {
  let date: Date

  func now() -> Date { date }
  func uptime() -> Duration { .zero }
}
