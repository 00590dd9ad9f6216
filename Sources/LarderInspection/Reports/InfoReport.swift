import Foundation
import Larder

extension Inspection {
  /// The store's owner, files and caches.
  package func info(style: Style) throws(InspectionError) -> Report {
    let owner = try StoreOwner(of: path)
    let published = try StatisticsRecord(of: path)
    try style.expectNoCSV("info does")
    let version = try formatVersion()
    var sections: [Report.Section] = [.facts(facts(version, owner, published))]
    if !levels.isEmpty {
      sections.append(
        .table(
          [.number("LEVEL"), .number("TABLES"), .number("BYTES")],
          levels.map { ["\($0.level)", Amount.text($0.count), Amount.bytes($0.bytes)] }))
    }
    return Report(
      style: style, title: heading, sections: sections + [cacheTable],
      members: members(version, owner, published)
    ) { [damage] _ in
      Report.Ending(outcome: damage.isEmpty ? .fine : .damaged)
    }
  }

  private func facts(
    _ version: Int, _ owner: StoreOwner?, _ published: StatisticsRecord?
  ) -> [Report.Fact] {
    var facts: [Report.Fact] = [.init("format", "\(version)")]
    if let backup {
      facts.append(
        .init("backup", "made \(Moment.text(backup.date) ?? "at an unknown date")"))
    }
    facts += [
      .init("owner", owner.map { "\($0)" } ?? "none: the store is closed"),
      .init("log", Amount.bytes(snapshot.logBytes)), .init("tables", tableSummary),
    ]
    let segments = snapshot.segments
    if segments.count > 0 {
      let count = Amount.text(segments.count)
      facts.append(.init("segments", "\(count), \(Amount.bytes(segments.byteCount))"))
    }
    if catalog.isSealed {
      // The newest data key is the last one.
      let id = catalog.userKeys.last.flatMap { $0 }?.escapedForTerminal ?? "?"
      let count = catalog.userKeys.count
      let keys = count == 1 ? "1 data key" : "\(Amount.text(count)) data keys"
      facts.append(.init("sealed", "with key \(id), \(keys)"))
    }
    if !catalog.cleared.isEmpty {
      let count = catalog.cleared.count
      facts.append(.init("cleared", "\(count) caches, with rows still to be deleted"))
    }
    return facts + (published?.facts ?? []) + damage.map { Report.Fact("damaged", $0) }
  }

  private var cacheTable: Report.Section {
    let counts: [Table.Column] =
      catalog.counts.isEmpty ? [] : [.number("BYTES"), .number("BUDGET")]
    let columns: [Table.Column] = [
      .number("ID"), .name("CACHE"), "KEYS", "CODER", "SCHEMA", "LIFETIME",
    ]
    let rows = catalog.caches.compactMap { cache in
      cache.registration.map { registration in
        [
          "\(cache.id)", cache.label, "\(cache.keyKind)", coderName(registration.coder),
          schema(of: registration), "\(registration.lifetime)",
        ] + (counts.isEmpty ? [] : [count(of: cache), budget(of: registration)])
      }
    }
    return .table(columns + counts, rows)
  }

  private func count(of cache: KnownCache) -> String {
    (catalog.counts[cache.id] ?? nil).map(Amount.bytes) ?? "-"
  }

  private func schema(of cache: Registration) -> String {
    let newer = cache.newerSchemaVersion.map { " (newest \($0))" }
    return "\(cache.schemaVersion)" + (newer ?? "")
  }

  private func budget(of cache: Registration) -> String {
    cache.byteBudget.map(Amount.bytes) ?? "-"
  }

  private var tableSummary: String {
    let count = levels.reduce(0) { $0 + $1.count }
    return "\(Amount.text(count)), \(Amount.bytes(tableBytes))"
  }

  /// The size of all tables.
  var tableBytes: Int {
    snapshot.capture.manifest.tables.values.reduce(0) { $0 + $1.bytes }
  }

  private var levels: [(level: Int, count: Int, bytes: Int)] {
    Dictionary(grouping: snapshot.capture.manifest.tables.values, by: \.level).sorted {
      $0.key < $1.key
    }
    .map {
      ($0.key, $0.value.count, $0.value.reduce(0) { $0 + $1.bytes })
    }
  }

  /// The directory's format or the format of its rows, whichever is newer.
  private func formatVersion() throws(InspectionError) -> Int {
    let marker = try FileAccess.read(
      "\(path)/\(StoreMarker.fileName)", limit: StoreMarker.byteLimit)
    let version = marker.flatMap { StoreMarker.formatVersion(in: $0) }
    return max(version ?? 0, Int(clamping: catalog.formatVersion))
  }

  private func members(
    _ version: Int, _ owner: StoreOwner?, _ published: StatisticsRecord?
  ) -> Report.Members {
    let backup = backup.map { backup in
      [("backup", JSONValue.object([("madeAt", .optional(Moment.text(backup.date)))]))]
    }
    let keys = [("userKeys", JSONValue.array(catalog.userKeys.map { .optional($0) }))]
    return jsonHeading + (backup ?? []) + (catalog.isSealed ? keys : []) + [
      ("formatVersion", .integer(version)),
      (
        "owner",
        owner.map { .object([("pid", .integer($0.pid)), ("isRunning", .bool($0.isRunning))]) }
          ?? .null
      ),
      ("statistics", published?.document ?? .null),
      ("statisticsAreLive", .bool(published?.isLive == true)),
      ("logBytes", .integer(snapshot.logBytes)),
      (
        "levels",
        .array(
          levels.map {
            .object([
              ("level", .integer($0.level)), ("tables", .integer($0.count)),
              ("bytes", .integer($0.bytes)),
            ])
          })
      ),
      ("segments", .integer(snapshot.segments.count)),
      ("segmentBytes", .integer(snapshot.segments.byteCount)),
      ("caches", .array(catalog.caches.map(json))),
      ("clearedCaches", .integer(catalog.cleared.count)),
      ("damage", .array(damage.map(JSONValue.string))),
    ]
  }

  private func json(_ cache: KnownCache) -> JSONValue {
    .object([
      ("id", .integer(cache.id)), ("name", .string(cache.label)),
      ("keyKind", .string("\(cache.keyKind)")),
      ("coder", .optional(cache.registration.map { coderName($0.coder) })),
      ("schemaVersion", cache.registration.map { .integer($0.schemaVersion) } ?? .null),
      ("newestSchemaVersion", cache.registration.map { .integer($0.newestSchemaVersion) } ?? .null),
      ("lifetime", .optional(cache.registration.map { "\($0.lifetime)" })),
      ("bytes", (catalog.counts[cache.id] ?? nil).map { .integer($0) } ?? .null),
      ("byteBudget", (cache.registration?.byteBudget).map { .integer($0) } ?? .null),
    ])
  }
}

extension Backup {
  /// The date when the backup was made, by the clock of its store.
  fileprivate var date: Date { Date(timeIntervalSinceReferenceDate: manifest.date) }
}
