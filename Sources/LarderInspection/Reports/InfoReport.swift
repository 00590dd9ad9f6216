import Foundation
import Larder
import LarderEngine

extension Inspection {
  /// Writes the store's owner, files and caches.
  package func info(
    style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let owner = try StoreOwner(of: path)
    let published = try StatisticsRecord(of: path)
    switch style.format {
    case .table: try writeInfo(owner: owner, published, style: style, to: &output)
    case .json:
      JSONValue.object(try infoFields(owner: owner, published)).writePretty(to: &output)
      output.write("\n")
    case .jsonl:
      JSONValue.object(try infoFields(owner: owner, published)).write(to: &output)
      output.write("\n")
    case .csv: throw InspectionError(.usage, "info does not support csv")
    }
    return damage.isEmpty ? .fine : .damaged
  }

  private func writeInfo(
    owner: StoreOwner?, _ published: StatisticsRecord?, style: Style,
    to output: inout some TextOutputStream
  ) throws(InspectionError) {
    output.write(style.isQuiet ? "" : heading + "\n\n")
    output.write("format   \(try formatVersion())\n")
    if let backup {
      output.write("backup   made \(Moment.text(backup.date) ?? "at an unknown date")\n")
    }
    output.write("owner    \(owner.map { "\($0)" } ?? "none: the store is closed")\n")
    output.write("log      \(Amount.bytes(snapshot.logBytes))\n")
    output.write("tables   \(tableSummary)\n")
    if snapshot.segments.count > 0 {
      let segments = snapshot.segments
      let count = Amount.text(segments.count)
      output.write("segments \(count), \(Amount.bytes(segments.byteCount))\n")
    }
    if !catalog.cleared.isEmpty {
      output.write("cleared  \(catalog.cleared.count) caches, with rows still to be deleted\n")
    }
    published?.write(to: &output)
    for message in damage { output.write("damaged  \(message.escapedForTerminal)\n") }
    if !levels.isEmpty {
      output.write("\n")
      var table = Table([.number("LEVEL"), .number("TABLES"), .number("BYTES")], style: style)
      for row in levels {
        let cells = ["\(row.level)", Amount.text(row.count), Amount.bytes(row.bytes)]
        table.add(cells, to: &output)
      }
      table.flush(to: &output)
    }
    output.write("\n")
    let counts: [Table.Column] =
      catalog.counts.isEmpty ? [] : [.number("BYTES"), .number("BUDGET")]
    var table = Table(
      [.number("ID"), "CACHE", "KEYS", "CODER", "SCHEMA", "LIFETIME"] + counts, style: style)
    for cache in catalog.caches {
      guard let registration = cache.registration else { continue }
      let kind = "\(cache.keyKind)"
      table.add(
        [
          "\(cache.id)", cache.label, kind, coderName(registration.coder),
          schema(of: registration), "\(registration.lifetime)",
        ] + (counts.isEmpty ? [] : [count(of: cache), budget(of: registration)]), to: &output)
    }
    table.flush(to: &output)
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

  /// The newer one of the directory's format and that of the rows in it.
  private func formatVersion() throws(InspectionError) -> Int {
    let marker = try FileAccess.read(
      "\(path)/\(StoreMarker.fileName)", limit: StoreMarker.byteLimit)
    let version = marker.flatMap { StoreMarker.formatVersion(in: $0) }
    return max(version ?? 0, Int(clamping: catalog.formatVersion))
  }

  private func infoFields(
    owner: StoreOwner?, _ published: StatisticsRecord?
  ) throws(InspectionError) -> [(name: String, value: JSONValue)] {
    let backup = backup.map { backup in
      [("backup", JSONValue.object([("madeAt", .optional(Moment.text(backup.date)))]))]
    }
    return jsonHeading + (backup ?? []) + [
      ("formatVersion", .integer(try formatVersion())),
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
