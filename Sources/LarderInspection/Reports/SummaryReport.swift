package import Foundation
import Larder

extension Inspection {
  /// What is in a store, and what to do next.
  ///
  /// - Parameters:
  ///   - directory: The directory of a store or a backup.
  ///   - now: The moment at which lifetimes are evaluated.
  ///   - progress: Shows how far it is; nil, the default, to show nothing.
  ///   - style: The style of the report.
  /// - Returns: A report with a row for each cache. Its outcome is `damaged` if damage was found.
  /// - Throws: As ``doctor(_:now:isDeep:progress:style:)``.
  /// - Complexity: Three steps for each record.
  package static func summary(
    _ directory: String, now: Date, progress: ProgressLine? = nil, style: Style
  ) throws(InspectionError) -> Report {
    let path = try FileAccess.directory(directory)
    let (inspection, findings) = try examine(
      path, now: now, isDeep: false, progress: progress, style: style)
    return try summary(of: inspection, findings, in: path, style: style)
  }

  /// What is in a store; no inspection if damage prevents one.
  static func summary(
    of inspection: Inspection?, _ findings: [Finding], in path: String, style: Style
  ) throws(InspectionError) -> Report {
    let caches = try inspection?.cacheSummaries(style) ?? []
    var head: [Report.Fact] = []
    if let inspection {
      let owner = try StoreOwner(of: path)
      head = [
        .init("owner", owner.map { "\($0)" } ?? "none: the store is closed"),
        .init("files", Amount.bytes(inspection.fileBytes)),
      ]
    }
    let word = shellWord(path)
    let next = [
      ("its records", "ls \(word)"), ("a key", "why \(word) KEY"), ("its size", "stats \(word)"),
      ("more", "help"),
    ].map { Report.Fact($0, "kvinspect \($1)", isWhole: true) }
    let todo = findings.isEmpty ? [Report.Fact("", "Nothing is to be done.")] : facts(of: findings)
    return Report(
      style: style, title: path.escapedForTerminal,
      sections: head.isEmpty ? [] : [.facts(head)],
      members: [("schemaVersion", reportVersion), ("store", .string(path))] + [
        ("findings", .array(findings.map(\.document)))
      ],
      columns: [
        .init(.name("CACHE"), "cache"), .init(.number("RECORDS"), "records"),
        .init(.number("BYTES"), "bytes"), .init(.number("FRESH"), "fresh"),
        .init(.number("STALE"), "stale"), .init(.number("EXPIRED"), "expired"),
        .init(.number("OTHERS"), "others"), .init("LIFETIME", "lifetime"),
      ], hasTable: !caches.isEmpty, rowsMember: "caches"
    ) { add in
      for cache in caches { add(Report.Row(cache.cells)) }
      let isDamaged = findings.contains { $0.severity == .damage }
      return Report.Ending(
        outcome: isDamaged ? .damaged : .fine,
        sections: style.isQuiet
          ? []
          : [
            .facts(todo, width: findings.isEmpty ? 0 : 9),
            .commands(next, width: 13),
          ])
    }
  }

  /// The records of each cache by state.
  private func cacheSummaries(_ style: Style) throws(InspectionError) -> [CacheSummary] {
    var summaries: [UInt64: CacheSummary] = [:]
    for cache in catalog.caches { summaries[cache.id] = CacheSummary(of: cache) }
    try forEachItem(in: Selection(), keys: style.keys) { item throws(InspectionError) in
      if case .record(let found) = item {
        summaries[found.cache.id, default: CacheSummary(of: found.cache)].add(found)
      }
      return true
    }
    return summaries.values.sorted { $0.label < $1.label }
  }
}

/// The records of a cache by state.
private struct CacheSummary {
  let label: String
  private let lifetime: String?
  private var records = 0
  private var bytes = 0
  private var counts: [RecordState: Int] = [:]

  init(of cache: KnownCache) {
    label = cache.label
    lifetime = cache.registration.map { "\($0.lifetime)" }
  }

  mutating func add(_ found: FoundRecord) {
    records += 1
    bytes += found.entryBytes
    counts[found.state, default: 0] += 1
  }

  var cells: [Report.Cell] {
    let states: [RecordState] = [.fresh, .stale, .expired]
    let known = states.map { counts[$0] ?? 0 }
    return [.text(label), .number(records), .bytes(bytes)] + known.map { Report.Cell.number($0) }
      + [.number(records - known.reduce(0, +)), lifetime.map(Report.Cell.text) ?? .none]
  }
}

extension Finding {
  /// The finding in JSON.
  fileprivate var document: JSONValue {
    .object([
      ("check", .string(check)), ("severity", .string(severity.rawValue)),
      ("message", .string(message)), ("command", .string(command)),
    ])
  }
}
