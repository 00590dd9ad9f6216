import Foundation
import Larder

extension Inspection {
  /// When records expire, how many bytes they have, and what a sweep would delete now.
  ///
  /// - Complexity: Two steps and one checksum for each record.
  package func timeToLive(
    ofCache cache: String?, style: Style
  ) throws(InspectionError) -> Report {
    var selection = Selection()
    selection.cache = cache
    var spans: [ExpirySpan] = []
    var scanned: UInt64?
    var outcome = damage.isEmpty ? Outcome.fine : .damaged
    try forEachItem(in: selection, keys: style.keys) { item throws(InspectionError) in
      outcome.add(item.state)
      guard case .record(let record) = item else { return true }
      if record.cache.id != scanned {
        scanned = record.cache.id
        spans += ExpirySpan.all(of: record.cache.label)
      }
      let first = spans.count - ExpirySpan.names.count
      spans[first + ExpirySpan.index(of: record, at: now)].add(record)
      return true
    }
    let backlog = try backlog()
    if !backlog.isComplete { outcome = .damaged }
    let (records, bytes) = (Amount.text(backlog.due.entries), Amount.bytes(backlog.due.bytes))
    return Report(
      style: style, title: heading,
      sections: [
        .facts([.init("backlog", "\(records) records, \(bytes)")])
      ],
      members: jsonHeading + [
        ("backlogRecords", .integer(backlog.due.entries)),
        ("backlogBytes", .integer(backlog.due.bytes)),
      ],
      columns: [
        .init(.name("CACHE"), "cache"), .init("EXPIRES", "expires"),
        .init(.number("RECORDS"), "records"), .init(.number("BYTES"), "bytes"),
      ], rowsMember: "spans", versionsLines: true
    ) { [spans, outcome] add in
      for span in spans where span.records > 0 {
        add([
          .text(span.cache), .text(span.name), .number(span.records), .bytes(span.bytes),
        ])
      }
      return Report.Ending(outcome: outcome)
    }
  }
}

/// The records of a cache that expire within one span of time.
struct ExpirySpan {
  /// The ends of the spans, in seconds from now; each span starts where the previous one ends.
  private static let ends: [(name: String, seconds: TimeInterval)] = [
    ("already", 0), ("within 1m", 60), ("within 1h", 3600), ("within 1d", 86_400),
    ("within 7d", 7 * 86_400), ("within 30d", 30 * 86_400), ("within 365d", 365 * 86_400),
    ("later", .infinity),
  ]
  static let names = ends.map(\.name) + ["never", "unknown"]

  let cache: String
  let name: String
  private(set) var records = 0
  /// Includes the keys.
  private(set) var bytes = 0

  static func all(of cache: String) -> [ExpirySpan] {
    names.map { ExpirySpan(cache: cache, name: $0) }
  }

  static func index(of found: FoundRecord, at now: Date) -> Int {
    guard case .success(let record) = found.content else { return names.count - 1 }
    guard found.state != .expired else { return 0 }
    guard let expiry = found.expiry(of: record) else { return names.count - 2 }
    let seconds = expiry.timeIntervalSince(now)
    return ends.firstIndex { seconds <= $0.seconds } ?? ends.count - 1
  }

  private init(cache: String, name: String) {
    self.cache = cache
    self.name = name
  }

  mutating func add(_ record: FoundRecord) {
    records += 1
    bytes += record.entryBytes
  }
}
