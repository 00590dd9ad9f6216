package import Foundation
import Larder

/// What an import reads.
package enum ImportSource: Sendable {
  /// The lines of an export in a file, or on standard input for `-`.
  case lines(String)
  /// Each file in a directory and in the directories in it: its relative path is the key, and the
  /// date of its last change the date of the save.
  case files(String, cache: NewCache)
  /// Each entry of a LevelDB database that is no store; all of them are saved now.
  case levelDB(String, cache: NewCache)
}

/// The cache that an import creates for entries that have none.
package struct NewCache: Sendable {
  let name: String
  let lifetime: Lifetime
  let coder: PayloadFormat

  /// - Parameters:
  ///   - name: 1 to 255 bytes of UTF-8.
  ///   - lifetime: A number of days, or `unlimited`.
  ///   - coder: The name of the coder of its values.
  /// - Throws: An ``InspectionError`` with the status `usage` for another lifetime or coder.
  package init(name: String, lifetime: String, coder: String) throws(InspectionError) {
    self.name = name
    self.coder = try PayloadFormat(called: coder)
    guard lifetime != "unlimited" else {
      self.lifetime = .unlimited
      return
    }
    guard let days = Int(lifetime), (0...3_650_000).contains(days) else {
      throw InspectionError(.usage, "\(lifetime) is neither unlimited nor 0 to 3,650,000 days")
    }
    self.lifetime = .days(days)
  }
}

extension PayloadFormat {
  /// The coder that reports call `name`.
  init(called name: String) throws(InspectionError) {
    guard let format = Self.allCases.first(where: { "\($0)" == name }) else {
      let names = Self.allCases.map { "\($0)" }.joined(separator: ", ")
      throw InspectionError(.usage, "there is no coder \(name): there are \(names)")
    }
    self = format
  }
}

extension Inspection {
  /// Creates a store from what a program wrote before, or an earlier export.
  ///
  /// - Parameters:
  ///   - source: What is read; it is not changed.
  ///   - directory: The new store's directory, missing or empty; nil to check the source only.
  ///   - leftOut: Whether files and entries of LevelDB that cannot be imported are left out, and
  ///     who reports them. An export is imported completely or not at all.
  ///   - now: The date of entries without one.
  ///   - progress: Shows how many lines of an export are read; nil to show nothing.
  ///   - style: The style of the report.
  /// - Returns: A report. Its outcome is `damaged` if something was left out: an entry, or an
  ///   unreadable part of the logs of a LevelDB database.
  /// - Throws: An ``InspectionError`` with the status `damaged` if the source is, which names the
  ///   line of an export; `usage` for a name that is not UTF-8, an entry of another source that is
  ///   too large, or a directory that cannot be used; `unavailable` if there is no such source;
  ///   `unsupported`, `io`. Then `directory` is unchanged.
  /// - Complexity: One append for 256 records or 1 MiB, and a few fsyncs. One record is in memory
  ///   at a time.
  package static func importing(
    _ source: ImportSource, to directory: String?, leavingOut leftOut: LeftOut = LeftOut(),
    now: Date, progress: ProgressLine? = nil, style: Style
  ) throws(InspectionError) -> Report {
    try style.expectNoCSV("import does")
    var leftOut = leftOut
    var place: String?
    if case .files(let path, _) = source { place = try FileAccess.directory(path, of: "directory") }
    if case .levelDB(let path, _) = source {
      place = try FileAccess.directory(path, of: "database")
    }
    var store: StoreImport
    do {
      store = try StoreImport(to: directory, outside: place)
    } catch {
      throw InspectionError(error)
    }
    switch source {
    case .lines(let path):
      var lines = try LineImport(of: path)
      try lines.run(into: &store, progress)
    case .files(_, let cache):
      try store.addFiles(in: place ?? "", to: cache, now: now, leavingOut: &leftOut)
    case .levelDB(_, let cache):
      try store.addRows(ofDatabaseAt: place ?? "", to: cache, now: now, leavingOut: &leftOut)
    }
    let (records, bytes) = (store.recordCount, store.payloadBytes)
    do {
      try store.finish()
    } catch {
      throw InspectionError(error)
    }
    leftOut.end()
    return Report(
      importTo: directory, records: records, payloadBytes: bytes, leftOut: leftOut.count,
      style: style)
  }
}

extension Report {
  /// The report of an import, or of a dry run if `target` is nil.
  fileprivate init(
    importTo target: String?, records: Int, payloadBytes: Int, leftOut: Int, style: Style
  ) {
    let words = target.map { "imported to " + $0.escapedForTerminal } ?? "can be imported"
    let rest = leftOut == 0 ? "" : "; \(Amount.text(leftOut)) parts were left out"
    let text =
      "\(Amount.text(records)) records, \(Amount.bytes(payloadBytes)) of values, \(words)\(rest)"
    self.init(
      style: style, sections: [.text((style.isQuiet ? "\(records)" : text) + "\n")],
      members: [
        ("schemaVersion", reportVersion), ("store", .optional(target)),
        ("isDryRun", .bool(target == nil)), ("records", .integer(records)),
        ("payloadBytes", .integer(payloadBytes)), ("leftOut", .integer(leftOut)),
      ], isOneLine: true
    ) { _ in
      Ending(outcome: leftOut == 0 ? .fine : .damaged)
    }
  }
}
