import Foundation
import Larder

extension Inspection {
  /// What a read of a key would return, and why.
  ///
  /// A key that several caches have is answered for each of them, and a missing one for each cache
  /// that could have it.
  ///
  /// The outcome is `notFound` if no cache has the key, otherwise the record's outcome.
  ///
  /// - Throws: An ``InspectionError`` with the status `usage` if it is no key of the cache.
  package func why(
    _ key: String, cache name: String?, style: Style
  ) throws(InspectionError) -> Report {
    var selection = Selection()
    selection.cache = name
    let (candidates, hidden) = try caches(in: selection)
    var answers: [Answer] = []
    for cache in candidates {
      guard let bytes = style.keys.bytes(of: key, kind: cache.keyKind) else { continue }
      answers.append(try answer(for: bytes, in: cache, hiddenBy: damage + hidden, style: style))
    }
    if answers.isEmpty, let cache = candidates.first, candidates.count == 1 {
      throw InspectionError(notKey: key, of: cache)
    }
    let found = answers.filter { $0.state != nil }
    let shown = found.isEmpty ? answers : found
    try style.expectNoCSV("why does")
    let nothing = Report.Section.text("the store has no cache that could have the key\n")
    return Report(
      style: style, title: heading,
      sections: shown.isEmpty ? [nothing] : shown.map { .facts($0.facts, width: 11) },
      members: jsonHeading, columns: Answer.names.map { .init(nil, $0) }, hasTable: false
    ) { [damage] add in
      for answer in shown { add(Report.Row(answer.cells)) }
      guard !found.isEmpty else {
        let isDamaged = !damage.isEmpty || !hidden.isEmpty
        return Report.Ending(outcome: isDamaged ? .damaged : .notFound)
      }
      return Report.Ending(
        outcome: found.reduce(into: Outcome.fine) { $0.add($1.state ?? .fresh) })
    }
  }

  private func answer(
    for key: [UInt8], in cache: KnownCache, hiddenBy damage: [String], style: Style
  ) throws(InspectionError) -> Answer {
    let physicalKey = KeySpace.records.prefix(ofCache: cache.id) + key
    let bytes: [UInt8]?
    let place: PayloadPlace?
    do {
      bytes = try engine.get(physicalKey.span.bytes)
      place = try engine.payloadPlace(of: physicalKey)
    } catch {
      throw failure(error)
    }
    var answer = Answer()
    answer.facts = [
      .init("cache", "\(cache.label), keys: \(cache.keyKind)"),
      .init("key", style.text(of: key, in: cache), isWhole: true),
    ]
    guard let bytes else {
      let reasons = try reasonsForAbsence(of: key, damage).joined(separator: "; ")
      answer.facts += [
        .init("answer", "missing: no read finds an entry"), .init("because", reasons),
      ]
      return answer
    }
    let found = FoundRecord(
      whole: bytes, under: physicalKey, key: key, in: cache, endedBy: catalog.invalidatedTags,
      at: now)
    answer.state = found.state
    answer.facts.append(.init("state", found.state.rawValue))
    answer.explain(found, in: self, style: style)
    let size = Amount.bytes(found.storedBytes)
    let separate = place.map {
      "\($0.file) at byte \(Amount.text($0.offset)), \(Amount.bytes($0.byteCount)) of \(size)"
    }
    answer.facts.append(.init("place", separate ?? "LevelDB's logs and tables, \(size)"))
    return answer
  }

  /// What may have removed an entry, or hides it.
  private func reasonsForAbsence(
    of key: [UInt8], _ damage: [String]
  ) throws(InspectionError) -> [String] {
    var reasons: [String] = []
    for id in catalog.cleared.sorted() {
      let physicalKey = KeySpace.records.prefix(ofCache: id) + key
      do {
        guard try engine.get(physicalKey.span.bytes) != nil else { continue }
      } catch {
        throw failure(error)
      }
      reasons.append(
        "a cache that was cleared or dropped had it (number \(id)); a write deletes its rows"
      )
    }
    reasons += damage.map { "damage may hide it: \($0)" }
    return reasons.isEmpty ? ["it was never saved, or was removed, evicted or swept"] : reasons
  }
}

/// What is known of a key in a cache.
private struct Answer {
  /// The state of the record; nil if the cache has none.
  var state: RecordState?
  var facts: [Report.Fact] = []

  /// The labels of all facts, in order.
  static let names = [
    "cache", "key", "state", "answer", "because", "but", "saved", "fresh", "stale", "lifetime",
    "expires", "schema", "sequence", "compressed", "place",
  ]

  /// The facts as cells of a row, in the order of the names.
  var cells: [Report.Cell] {
    Self.names.map { name in
      facts.first { $0.label == name }.map { .text($0.text) } ?? .absent
    }
  }

  mutating func explain(
    _ found: FoundRecord, in inspection: Inspection, style: Style
  ) {
    guard case .success(let record) = found.content else {
      let damaged = found.state == .damaged
      let name = damaged ? "corrupt" : "incompatible"
      facts.append(.init("answer", "every read throws `\(name)`"))
      return facts.append(.init("because", found.problem ?? "it cannot be read"))
    }
    let now = inspection.now
    let lifetime = (found.cache.registration?.lifetime).map { $0.applied(to: record) }
    facts.append(.init("answer", Self.answer(to: found.state)))
    facts.append(.init("because", reason(found, record, lifetime, in: inspection, style)))
    if let newest = found.cache.registration?.schemaVersion, record.schemaVersion > newest {
      facts.append(.init("but", "a program of schema version \(newest) gets `newerSchema`"))
    }
    facts.append(.init("saved", Moment.text(record.savedAt, relativeTo: now)))
    if let lifetime {
      let end = lifetime.freshEnd(from: record.savedAt)
      func until(_ end: Date?) -> String {
        end.map { "until " + Moment.text($0, relativeTo: now) } ?? "forever"
      }
      facts.append(.init("fresh", until(end)))
      let last = lifetime.expiry(from: record.savedAt)
      if end != nil, last != end { facts.append(.init("stale", until(last))) }
      let owner = record.ownLifetime == nil ? "of the cache" : "its own"
      facts.append(.init("lifetime", "\(lifetime), \(owner)"))
      if let end = record.slidesUntil {
        facts.append(.init("slides", "until " + Moment.text(end, relativeTo: now)))
      }
    } else if let end = record.expiresAt {
      facts.append(.init("expires", Moment.text(end, relativeTo: now)))
    }
    facts.append(
      .init("schema", "version \(record.schemaVersion), coder \(coderName(record.coder))"))
    facts.append(.init("sequence", "\(record.sequence), saved as \(record.originalSequence)"))
    if record.isCompressed {
      let stored = Amount.bytes(record.payload.count)
      facts.append(.init("compressed", "to \(stored)"))
    }
  }

  private static func answer(to state: RecordState) -> String {
    switch state {
    // Only the application knows its type.
    case .fresh: "`value(for:)` returns the value, if it decodes as the app's type"
    case .stale:
      "`value(for:)` returns nil; `lookup(for:)` returns the value as stale, if it decodes as the "
        + "app's type"
    default: "`value(for:)` returns nil; `lookup(for:)` returns that it has expired"
    }
  }

  private func reason(
    _ found: FoundRecord, _ record: Record, _ lifetime: Lifetime?,
    in inspection: Inspection, _ style: Style
  ) -> String {
    let now = inspection.now
    if record.isInvalidated {
      let ended = (found.tags?.all ?? []).compactMap { tag -> String? in
        let sequence = inspection.catalog.invalidatedTags.sequence(of: Array(tag)) ?? 0
        guard sequence > record.originalSequence else { return nil }
        let name = style.isRedacted ? "(redacted)" : String(decoding: tag, as: UTF8.self)
        return "\(name) (sequence \(sequence))"
      }
      return "a tag was invalidated after the save: \(ended.joined(separator: ", "))"
    }
    guard record.savedAt.timeIntervalSinceReferenceDate.isFinite else {
      return "its date is not a number"
    }
    guard let lifetime else {
      return "the cache is not registered, so only the date in the record tells when it expires"
    }
    let (end, last) = (
      lifetime.freshEnd(from: record.savedAt), lifetime.expiry(from: record.savedAt)
    )
    func distance(_ date: Date?) -> String {
      date.map { Moment.text(ofSpan: abs($0.timeIntervalSince(now))) } ?? "-"
    }
    return switch found.state {
    case .fresh: end.map { "it is fresh for another \(distance($0))" } ?? "it never expires"
    case .stale: "its fresh time ended \(distance(end)) ago"
    default: "it expired \(distance(last)) ago; a sweep deletes it"
    }
  }
}
