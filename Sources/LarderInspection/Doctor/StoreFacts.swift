import Larder

/// What a diagnosis knows of a store.
struct StoreFacts {
  /// The store's path, as it can be pasted into a shell.
  var path = ""
  /// Why the store cannot be opened; nil if it can.
  var openingFault: String?
  /// Damage, with the place of each.
  var damage: [String] = []
  /// The damage that a program met; nil for none.
  var notedDamage: String?
  /// What is wrong with the store's marker, although it can be read; nil for nothing.
  var markerFault: String?
  var records = 0
  /// Records of caches that are not registered, and the labels of these caches.
  var ownerless: (records: Int, caches: Set<String>) = (0, [])
  /// The size of the records with their keys, before LevelDB compresses them.
  var liveBytes = 0
  /// The part of it that lies in segments.
  var separatedBytes = 0
  /// Records that a later version wrote.
  var unsupported = 0
  /// Expired records that a sweep would delete.
  var due = (entries: 0, bytes: 0)
  var tableBytes = 0
  var levelZeroTables = 0
  var logBytes = 0
  var segmentBytes = 0
  var availableBytes: UInt64 = 1 << 40
  /// The room that the store keeps on a disk that is nearly full; nil for none.
  var reserveBytes: Int?
  var fileSystem = FileSystemKind.local
  /// A process that ended without closing the store.
  var endedOwner: Int32?
  /// The size of what was cut off after a power loss; nil for none.
  var asideBytes: Int?
  /// The directory of a damaged store that was set aside; nil for none.
  var damagedDirectory: String?
  /// The counts of the process that has the store open; nil for none.
  var totals: StatisticsTotals?
  var hasStaleStatistics = false
  /// The size of the store's files and their budget, as the program that has it open says.
  var disk: (byteCount: Int, budget: Int)?
  /// Caches that hold more than their budget.
  var overBudget: [(label: String, byteCount: Int, budget: Int)] = []
}

/// Something to be done, or to be known.
struct Finding {
  enum Severity: String {
    case damage, advice
  }

  /// A name for programs.
  let check: String
  let severity: Severity
  let message: String
  /// The command to run next.
  let command: String
}

extension StoreFacts {
  private enum Threshold {
    /// In per cent of the live bytes.
    static let backlogShare = 10
    /// Files may be this many times as large as the live bytes, besides `slackBytes`.
    static let filesFactor = 2
    static let slackBytes = 32 << 20
    static let logBytes = 32 << 20
    /// LevelDB slows writes down from here on.
    static let levelZeroTables = 8
    static let leastAvailable: UInt64 = 64 << 20
    /// Reads and saves from which on shares mean something.
    static let events = 1000
  }

  /// What is to be done, damage first.
  var findings: [Finding] {
    damageFindings + entryFindings + fileFindings + systemFindings + programFindings
  }

  private func advice(_ check: String, _ message: String, _ command: String) -> Finding {
    Finding(check: check, severity: .advice, message: message, command: command)
  }

  private var damageFindings: [Finding] {
    var findings: [Finding] = []
    if let openingFault {
      findings.append(
        Finding(
          check: "opening", severity: .damage,
          message:
            "The store cannot be opened: \(openingFault). A copy of what can be read makes a "
            + "new one.", command: "kvinspect repair \(path) --output \(path).repaired"))
    }
    if let first = damage.first {
      let more = damage.count > 1 ? ", and \(Amount.text(damage.count - 1)) more" : ""
      findings.append(
        Finding(
          check: "damage", severity: .damage, message: "The store is damaged: \(first)\(more).",
          command: "kvinspect verify \(path)"))
    }
    if let notedDamage {
      findings.append(
        Finding(
          check: "noted-damage", severity: .damage,
          message: "A program met damage in the store's files: \(notedDamage). A copy of what can "
            + "be read makes a store that is whole.",
          command: "kvinspect repair \(path) --output \(path).repaired"))
    }
    if ownerless.records > 0 {
      let caches = ownerless.caches.sorted().joined(separator: ", ")
      findings.append(
        Finding(
          check: "ownerless", severity: .damage,
          message: "No cache owns \(Amount.text(ownerless.records)) records: the registration of "
            + "\(caches) is lost. A copy has them in caches that are called recovered- and the "
            + "number.", command: "kvinspect repair \(path) --output \(path).repaired"))
    }
    if let markerFault {
      findings.append(
        Finding(
          check: "marker", severity: .damage,
          message: "The marker is wrong: \(markerFault). The next opening for writing corrects it.",
          command: "kvinspect compact \(path) --write"))
    }
    return findings
  }

  private var entryFindings: [Finding] {
    var findings: [Finding] = []
    if unsupported > 0 {
      findings.append(
        advice(
          "unsupported",
          "\(Amount.text(unsupported)) of \(Amount.text(records)) records were written by a later "
            + "version. A program of that version reads them.",
          "kvinspect ls \(path) --state unsupported"))
    }
    if due.entries > 0, due.bytes * 100 >= liveBytes * Threshold.backlogShare {
      findings.append(
        advice(
          "backlog",
          "\(Amount.text(due.entries)) expired records with \(Amount.bytes(due.bytes)), "
            + "\(Amount.share(due.bytes, of: liveBytes)) of the store, are not deleted. Let the "
            + "program sweep, or sweep while the store is closed.",
          "kvinspect sweep \(path) --write"))
    }
    return findings
  }

  private var fileFindings: [Finding] {
    var findings: [Finding] = []
    let inTables = liveBytes - separatedBytes
    if tableBytes > inTables * Threshold.filesFactor + Threshold.slackBytes {
      findings.append(
        advice(
          "overwritten",
          "The tables have \(Amount.bytes(tableBytes)) for \(Amount.bytes(inTables)) of entries. "
            + "The rest was removed or replaced. Compact the store while it is closed.",
          "kvinspect compact \(path) --write"))
    }
    if segmentBytes > separatedBytes * Threshold.filesFactor + Threshold.slackBytes {
      findings.append(
        advice(
          "segments",
          "The segments have \(Amount.bytes(segmentBytes)) for \(Amount.bytes(separatedBytes)) of "
            + "large values. The rest was removed or replaced. Compact the store while it is "
            + "closed.",
          "kvinspect compact \(path) --write"))
    }
    if let disk, disk.byteCount > disk.budget {
      findings.append(
        advice(
          "disk-budget",
          "The files take \(Amount.bytes(disk.byteCount)), more than their budget of "
            + "\(Amount.bytes(disk.budget)). What is left may be impossible to evict.",
          "kvinspect stats \(path)"))
    }
    for cache in overBudget {
      findings.append(
        advice(
          "budget",
          "Cache \(cache.label) holds \(Amount.bytes(cache.byteCount)), more than its budget of "
            + "\(Amount.bytes(cache.budget)). The next save that makes it larger evicts.",
          "kvinspect top \(path) --cache \(Inspection.shellWord(cache.label))"))
    }
    if levelZeroTables >= Threshold.levelZeroTables {
      findings.append(
        advice(
          "level-0",
          "\(levelZeroTables) tables wait at level 0: compactions do not keep up, and LevelDB "
            + "slows writes down. Compact the store while it is closed.",
          "kvinspect compact \(path) --write"))
    }
    if logBytes > Threshold.logBytes {
      findings.append(
        advice(
          "log",
          "The next opening reads \(Amount.bytes(logBytes)) of logs. A smaller writeBufferBytes "
            + "makes it faster.", "kvinspect wal \(path)"))
    }
    return findings
  }

  private var systemFindings: [Finding] {
    var findings: [Finding] = []
    let storeBytes = UInt64(clamping: tableBytes + segmentBytes + logBytes)
    if availableBytes < max(Threshold.leastAvailable, storeBytes / 10) || reserveBytes != nil {
      let free = Amount.bytes(Int(clamping: availableBytes))
      let reserve = reserveBytes.map { ", and the store keeps \(Amount.bytes($0)) for removals" }
      findings.append(
        advice(
          "disk",
          "The disk is nearly full: \(free) are free\(reserve ?? ""). Make room, or remove "
            + "entries.",
          "kvinspect stats \(path)"))
    }
    switch fileSystem {
    case .local: break
    case .network(let name):
      findings.append(
        advice(
          "file-system",
          "The store is on a network file system (\(name)), where locks and syncs may do nothing. "
            + "Move it to a local disk.", "kvinspect backup \(path) DIR"))
    case .memory(let name):
      findings.append(
        advice(
          "file-system", "The store is in memory (\(name)) and ends with the system.",
          "kvinspect backup \(path) DIR"))
    }
    return findings
  }

  private var programFindings: [Finding] {
    var findings: [Finding] = []
    if let endedOwner {
      findings.append(
        advice(
          "owner",
          "Process \(endedOwner) ended without closing the store. The next opening reads the logs; "
            + "no acknowledged save is lost, unless the power failed.", "kvinspect wal \(path)"))
    }
    if let asideBytes {
      findings.append(
        advice(
          "aside",
          "After a power loss \(Amount.bytes(asideBytes)) were cut off the logs. They can be "
            + "deleted if the last saves before the power loss are not needed.",
          "ls -l \(path)/\(Recovery.asideName)"))
    }
    if let damagedDirectory {
      findings.append(
        advice(
          "set-aside", "A damaged store was set aside when the program made a new one.",
          "kvinspect verify \(damagedDirectory)"))
    }
    if hasStaleStatistics {
      findings.append(
        advice(
          "statistics", "A killed process has left its statistics, which nothing reads.",
          "rm \(path)/\(StatisticsFile.name)"))
    }
    guard let totals else { return findings }
    if totals.reads >= Threshold.events, totals.fresh * 2 < totals.reads {
      findings.append(
        advice(
          "hits",
          "Only \(Amount.share(totals.fresh, of: totals.reads)) of "
            + "\(Amount.text(totals.reads)) reads found a fresh entry. Lifetimes may be too short.",
          "kvinspect ttl \(path)"))
    }
    if totals.saves >= Threshold.events, totals.evicted * 2 > totals.saves {
      findings.append(
        advice(
          "evictions",
          "\(Amount.text(totals.evicted)) entries were evicted while \(Amount.text(totals.saves)) "
            + "were saved. A byte budget is too small for what is saved.", "kvinspect info \(path)")
      )
    }
    return findings
  }
}
