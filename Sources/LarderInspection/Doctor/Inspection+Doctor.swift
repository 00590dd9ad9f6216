package import Foundation
import Larder

extension Inspection {
  /// Checks a store, and reports what is to be done, with the command to run next.
  ///
  /// - Parameters:
  ///   - directory: The directory of a store or a backup.
  ///   - now: The moment at which lifetimes are evaluated.
  ///   - isDeep: Whether everything is verified, payloads in segments and notes included.
  ///   - progress: Shows how far it is; nil, the default, to show nothing.
  ///   - style: The style of the report.
  /// - Returns: A report. Its outcome is `damaged` if damage was found, and `fine` also if there is
  ///   advice.
  /// - Throws: As ``init(at:now:linking:key:progress:)``, except that a store that cannot be opened
  ///   because of damage gets a report.
  /// - Complexity: Two steps for each record; if `isDeep`, as `verify`.
  package static func doctor(
    _ directory: String, now: Date, isDeep: Bool, progress: ProgressLine? = nil, style: Style
  ) throws(InspectionError) -> Report {
    let path = try FileAccess.directory(directory)
    let findings = try examine(
      path, now: now, isDeep: isDeep, progress: progress, style: style
    ).findings
    return report(of: findings, in: path, style: style)
  }

  /// A snapshot of the store, nil if damage prevents one, and what is to be done.
  static func examine(
    _ path: String, now: Date, isDeep: Bool, progress: ProgressLine?, style: Style
  ) throws(InspectionError) -> (inspection: Inspection?, findings: [Finding]) {
    do throws(InspectionError) {
      let inspection = try Inspection(at: path, now: now, progress: progress)
      return (inspection, try inspection.findings(isDeep: isDeep, style: style))
    } catch {
      return (nil, try findings(in: path, notOpenedBy: error))
    }
  }

  /// What is to be done about a store that cannot be opened.
  ///
  /// - Throws: The error, unless the store is damaged.
  static func findings(
    in path: String, notOpenedBy error: InspectionError
  ) throws(InspectionError) -> [Finding] {
    guard error.status == .damaged else { throw error }
    var facts = StoreFacts()
    facts.openingFault = error.description
    try facts.addSurroundings(of: path)
    return facts.findings
  }

  /// What is to be done about the store.
  func findings(isDeep: Bool, style: Style) throws(InspectionError) -> [Finding] {
    var facts = try facts(isDeep: isDeep, style: style)
    try facts.addSurroundings(of: path)
    return facts.findings
  }

  /// A path as a word of a shell.
  static func shellWord(_ path: String) -> String {
    let isPlain = path.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "/._-+,:@".utf8.contains(byte)
      }
    }
    return isPlain ? path : "'" + path.replacing("'", with: "'\\''") + "'"
  }

  /// What the snapshot shows.
  private func facts(isDeep: Bool, style: Style) throws(InspectionError) -> StoreFacts {
    var facts = StoreFacts()
    facts.damage = damage
    facts.markerFault = markerFault
    try forEachItem(in: Selection(), keys: style.keys) { item throws(InspectionError) in
      switch item {
      case .unreadable(_, let message):
        if !facts.damage.contains(message) { facts.damage.append(message) }
      case .record(let record):
        facts.records += 1
        facts.liveBytes += record.entryBytes
        facts.separatedBytes += record.separatedBytes
        if record.cache.registration == nil {
          facts.ownerless.records += 1
          facts.ownerless.caches.insert(record.cache.label)
        }
        if record.state == .unsupported { facts.unsupported += 1 }
        if record.state == .damaged {
          let key = style.text(of: record.key, in: record.cache)
          facts.damage.append("the entry \(key) of cache \(record.cache.label)")
        }
      }
      return true
    }
    if isDeep {
      let known = facts.damage.count
      let problems = try verification().problems.filter {
        !$0.isUnsupported && !$0.hasOwnFinding
      }
      // The scan has found some of them; the rest is named by the verification.
      if problems.count > known { facts.damage = problems.map { description(of: $0, style) } }
    }
    facts.segmentBytes = snapshot.segments.byteCount
    // A backup is neither swept nor compacted.
    guard backup == nil else { return facts }
    let due = try backlog().due
    facts.due = (due.entries, due.bytes)
    let tables = snapshot.capture.manifest.tables.values
    facts.tableBytes = tables.reduce(0) { $0 + $1.bytes }
    facts.levelZeroTables = tables.count { $0.level == 0 }
    facts.logBytes = snapshot.logBytes
    for cache in catalog.caches {
      guard let budget = cache.registration?.byteBudget,
        let count = catalog.counts[cache.id] ?? nil,
        count > budget
      else { continue }
      facts.overBudget.append((cache.label, count, budget))
    }
    return facts
  }

  private func description(of problem: Problem, _ style: Style) -> String {
    guard let cache = problem.cache else { return problem.message }
    let key = problem.key.map { "the entry \(style.text(of: $0, in: cache)) of " } ?? ""
    return "\(key)cache \(cache.label): \(problem.message)"
  }

  /// The lines of findings for people, each with its command.
  static func facts(of findings: [Finding]) -> [Report.Fact] {
    findings.flatMap { finding in
      [
        Report.Fact(
          finding.severity.rawValue, finding.message,
          tint: finding.severity == .damage ? .bad : .aging),
        Report.Fact("", finding.command, isWhole: true),
      ]
    }
  }

  private static func report(of findings: [Finding], in path: String, style: Style) -> Report {
    let nothing: [Report.Section] =
      style.isQuiet ? [] : [.text("Nothing is to be done.\n")]
    return Report(
      style: style, title: path.escapedForTerminal,
      sections: findings.isEmpty ? nothing : [.facts(facts(of: findings))],
      members: [("schemaVersion", reportVersion), ("store", .string(path))],
      columns: ["check", "severity", "message", "command"].map { .init(nil, $0) }, hasTable: false
    ) { add in
      for finding in findings {
        add([
          .text(finding.check), .text(finding.severity.rawValue), .text(finding.message),
          .text(finding.command),
        ])
      }
      let isDamaged = findings.contains { $0.severity == .damage }
      return Report.Ending(outcome: isDamaged ? .damaged : .fine)
    }
  }
}

extension StoreFacts {
  /// Adds what lies in and around the store's directory, besides the snapshot.
  fileprivate mutating func addSurroundings(of path: String) throws(InspectionError) {
    self.path = Inspection.shellWord(path)
    do throws(StoreError) {
      notedDamage = try LevelDBEngine.notedDamage(at: path) ?? notedDamage
      availableBytes = try SystemFiles().availableBytes(in: path)
    } catch {
      throw InspectionError(error)
    }
    reserveBytes = FileAccess.bytes(of: "\(path)/\(Reserve.name)")
    fileSystem = try FileSystemKind(of: path)
    let owner = try StoreOwner(of: path)
    if let owner, !owner.isRunning { endedOwner = owner.pid }
    let aside = "\(path)/\(Recovery.asideName)"
    if FileAccess.isDirectory(aside) {
      asideBytes = try FileAccess.byteCount(ofFilesIn: aside)
    }
    if FileAccess.isDirectory("\(path).damaged") { damagedDirectory = "\(path).damaged" }
    if let statistics = try StatisticsRecord(of: path) {
      totals = statistics.live.map { StatisticsTotals($0.statistics) }
      if let found = statistics.live?.statistics.disk, let budget = found.budget {
        disk = (found.byteCount, budget)
      }
      hasStaleStatistics = !statistics.isLive
    }
  }
}
