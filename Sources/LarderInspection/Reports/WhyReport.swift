import Foundation
import Larder
import LarderEngine

extension Inspection {
  /// Writes what a read of a key would return, and why.
  ///
  /// A key that several caches have is answered for each of them, and a missing one for each cache
  /// that could have it.
  ///
  /// - Returns: `notFound` if no cache has the key, the outcome of the record otherwise.
  /// - Throws: An ``InspectionError`` with the status `usage` if it is no key of the cache.
  package func why(
    _ key: String, cache name: String?, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
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
    let found = answers.filter { $0.found != nil }
    let shown = found.isEmpty ? answers : found
    try write(shown, style: style, to: &output)
    guard !found.isEmpty else { return damage.isEmpty && hidden.isEmpty ? .notFound : .damaged }
    return found.reduce(into: Outcome.fine) { $0.add($1.found?.state ?? .fresh) }
  }

  private func write(
    _ answers: [Answer], style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) {
    switch style.format {
    case .table:
      output.write(style.isQuiet ? "" : heading + "\n")
      if answers.isEmpty { output.write("\nthe store has no cache that could have the key\n") }
      for (index, answer) in answers.enumerated() {
        output.write(index == 0 && style.isQuiet ? "" : "\n")
        for (name, text) in answer.lines {
          let padding = String(repeating: " ", count: 11 - name.count)
          output.write(name + padding + text.escapedForTerminal + "\n")
        }
      }
    case .json, .jsonl:
      answers.map { answer in
        JSONValue.object(
          answer.lines.map { (name: $0.name, value: JSONValue.string($0.text)) })
      }.write(under: jsonHeading, style: style, to: &output)
    case .csv: throw InspectionError(.usage, "why does not support csv")
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
    answer.lines = [
      ("cache", "\(cache.label), keys: \(cache.keyKind)"), ("key", style.text(of: key, in: cache)),
    ]
    guard let bytes else {
      let reasons = try reasonsForAbsence(of: key, damage).joined(separator: "; ")
      answer.lines += [("answer", "missing: no read finds an entry"), ("because", reasons)]
      return answer
    }
    let found = FoundRecord(
      bytes.span.bytes, of: bytes.count, under: physicalKey.span.bytes, key: key, in: cache,
      endedBy: catalog.invalidatedTags, at: now, isKept: true)
    answer.found = found
    answer.lines.append(("state", found.state.rawValue))
    answer.explain(found, in: self, style: style)
    let size = Amount.bytes(found.storedBytes)
    answer.lines.append(
      (
        "place",
        place.map {
          "\($0.file) at byte \(Amount.text($0.offset)), \(Amount.bytes($0.byteCount)) of \(size)"
        } ?? "LevelDB's logs and tables, \(size)"
      ))
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
  var found: FoundRecord?
  var lines: [(name: String, text: String)] = []

  mutating func explain(
    _ found: FoundRecord, in inspection: Inspection, style: Style
  ) {
    guard case .success(let record) = found.content else {
      let damaged = found.state == .damaged
      lines.append(
        (
          "answer",
          damaged ? "every read throws `corrupt`" : "every read throws `incompatible`"
        ))
      return lines.append(("because", found.problem ?? "it cannot be read"))
    }
    let now = inspection.now
    let lifetime = (found.cache.registration?.lifetime).map { $0.applied(to: record) }
    lines.append(("answer", Self.answer(to: found.state)))
    lines.append(("because", reason(found, record, lifetime, in: inspection, style)))
    if let newest = found.cache.registration?.schemaVersion, record.schemaVersion > newest {
      lines.append(("but", "a program of schema version \(newest) gets `newerSchema`"))
    }
    lines.append(("saved", Moment.text(record.savedAt, relativeTo: now)))
    if let lifetime {
      let end = lifetime.freshEnd(from: record.savedAt)
      lines.append(("fresh", end.map { "until " + Moment.text($0, relativeTo: now) } ?? "forever"))
      let last = lifetime.expiry(from: record.savedAt)
      if end != nil, last != end {
        lines.append(
          ("stale", last.map { "until " + Moment.text($0, relativeTo: now) } ?? "forever"))
      }
      let owner = record.ownLifetime == nil ? "of the cache" : "its own"
      lines.append(("lifetime", "\(lifetime), \(owner)"))
    } else if let end = record.expiresAt {
      lines.append(("expires", Moment.text(end, relativeTo: now)))
    }
    lines.append(
      ("schema", "version \(record.schemaVersion), coder \(coderName(record.coder))"))
    lines.append(("sequence", "\(record.sequence), saved as \(record.originalSequence)"))
    if record.isCompressed {
      let stored = Amount.bytes(record.payload.count)
      lines.append(("compressed", "to \(stored)"))
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
