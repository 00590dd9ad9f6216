import Foundation
import Larder

extension Inspection {
  /// Makes a backup of the store in another directory, as the library does.
  ///
  /// The store may be open in another process: the backup holds its commits up to some moment.
  /// `directory` is missing or empty, and outside of the store. Damaged records are copied as they
  /// are.
  ///
  /// - Throws: An ``InspectionError`` with the status `damaged` if commits may be missing because
  ///   the logs, the metadata or the MANIFEST are damaged, `usage` if the directory cannot be used,
  ///   `io`. Then `directory` is unchanged.
  package func backup(
    to directory: String, style: Style
  ) throws(InspectionError) -> Report {
    guard backup == nil else {
      throw InspectionError(.usage, "\(path) is a backup: restore makes a store of it")
    }
    if let message = damage.first {
      throw InspectionError(.damaged, "a backup of a damaged store may lack commits: \(message)")
    }
    // The engine knows only the snapshot.
    let parent = URL(filePath: directory).deletingLastPathComponent().path(percentEncoded: false)
    if let real = try FileAccess.realPath(parent), real == path || real.hasPrefix(path + "/") {
      throw InspectionError(.usage, "\(directory) is in the store")
    }
    try style.expectNoCSV("copies do")
    do {
      try engine.backup(to: directory, date: Moment.now().timeIntervalSinceReferenceDate)
    } catch {
      throw failure(error)
    }
    return try Report(copyOf: path, to: directory, style: style)
  }

  /// Makes a store of a backup.
  ///
  /// `directory` is missing or empty, and outside of the backup.
  ///
  /// - Throws: An ``InspectionError`` with the status `damaged` if a file of the backup is damaged,
  ///   `unsupported` if it is no backup or one of a later version, `usage` if the directory cannot
  ///   be used, `io`. Then `directory` is unchanged.
  package static func restore(
    _ backup: String, to directory: String, style: Style
  ) throws(InspectionError) -> Report {
    let path = try FileAccess.directory(backup, of: "backup")
    try style.expectNoCSV("copies do")
    do {
      try Store.restore(from: URL(directory: path), to: URL(directory: directory))
    } catch {
      throw InspectionError(error)
    }
    return try Report(copyOf: path, to: directory, style: style)
  }

  /// Copies the readable entries of a damaged store to a new one, as `Store.salvage` does.
  ///
  /// If no intact MANIFEST lists the tables, the newest rows in all tables and logs are used.
  /// Entries of which a newer state may be lost are doubtful: they may have been removed or
  /// replaced.
  ///
  /// - Parameters:
  ///   - store: The store's directory. It is only read, with its lock held: it must not be open.
  ///   - directory: A missing or empty directory outside of it.
  ///   - keepsDoubtful: Whether doubtful entries are copied, too.
  ///   - style: The style of the report.
  /// - Returns: A report. Its outcome is `damaged` if entries may be lost, or are doubtful.
  /// - Throws: An ``InspectionError`` with the status `damaged` if nothing can be read;
  ///   `unavailable` if there is no store or it is open; `unsupported`; `usage` if the directory
  ///   cannot be used; `io`. Then `directory` is unchanged.
  package static func repair(
    _ store: String, to directory: String, keepsDoubtful: Bool = false, style: Style
  ) throws(InspectionError) -> Report {
    let path = try FileAccess.directory(store)
    try style.expectNoCSV("repair does")
    let faults = try DatabaseFiles(at: path).faults()
    let found: (report: SalvageReport, rebuild: Rebuild.Report?)
    do {
      found = try Store.salvage(
        from: URL(directory: path), to: URL(directory: directory),
        rebuilding: keepsDoubtful ? .keepingDoubtful : .leavingOutDoubtful)
    } catch {
      throw InspectionError(error)
    }
    return RepairReport(
      source: path, target: directory, report: found.report, rebuild: found.rebuild,
      keepsDoubtful: keepsDoubtful, faults: faults,
      catalog: try Inspection(at: directory, now: Moment.now()).catalog
    ).report(in: style)
  }
}

extension DatabaseFiles {
  /// A sentence for each file that is missing, and for each damaged part of the logs.
  fileprivate func faults() throws(InspectionError) -> [String] {
    var faults = manifest?.missingFile(in: names).map { ["\($0) is missing"] } ?? []
    for name in logs where manifest == nil || isLive(name) {
      var scan = LogScan(try bytes(of: name), of: .batches(minimumSequence: 0))
      while let part = scan.nextPart() {
        guard case .damaged(let place, let next) = part else { continue }
        faults.append(
          "\(name) is damaged from byte \(place) on, and valid again at \(next): changes are lost")
      }
    }
    return faults
  }
}

extension Report {
  /// The report of a copy of a store.
  fileprivate init(
    copyOf source: String, to target: String, style: Style
  ) throws(InspectionError) {
    let bytes = try FileAccess.byteCount(ofFilesIn: target)
    let text = "copied to \(target.escapedForTerminal), \(Amount.bytes(bytes))\n"
    self.init(
      style: style, title: source.escapedForTerminal,
      sections: style.isQuiet ? [] : [.text(text)],
      members: [
        ("schemaVersion", reportVersion), ("source", .string(source)), ("target", .string(target)),
        ("bytes", .integer(bytes)),
      ], isOneLine: true)
  }
}

extension URL {
  fileprivate init(directory path: String) {
    self.init(filePath: path, directoryHint: .isDirectory)
  }
}
