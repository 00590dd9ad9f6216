import Foundation
import Larder

extension Inspection {
  /// The record under a key: its fields and its payload.
  ///
  /// Expired records are shown too; so are damaged ones, without the fields that cannot be read.
  ///
  /// - Throws: An ``InspectionError`` with the status `notFound` if the record is missing, `usage`
  ///   if several caches have the key.
  package func get(
    _ key: String, cache name: String?, style: Style
  ) throws(InspectionError) -> Report {
    let found = try record(
      under: key, cache: name, keys: style.keys, suggestsKeys: !style.isRedacted)
    try style.expectNoCSV("get does")
    let view = style.isRedacted ? nil : view(of: found, as: style.values)
    var sections: [Report.Section] = [.facts(facts(of: found, style: style), width: 11)]
    if let view { sections.append(.payload(view)) }
    return Report(
      style: style, title: heading, sections: sections,
      members: members(of: found, view, style: style)
    ) { _ in
      Report.Ending(outcome: found.state.outcome)
    }
  }

  /// The payload under a key as its coder wrote it, and whether the record is expired.
  ///
  /// - Throws: As ``get(_:cache:style:)``, and if the record cannot be read.
  package func payload(
    of key: String, cache name: String?, keys form: KeyForm
  ) throws(InspectionError) -> (bytes: [UInt8], isExpired: Bool) {
    let found = try record(under: key, cache: name, keys: form)
    guard let payload = found.payload else {
      throw InspectionError(
        found.state.outcome, "the record under \(key.shortened): \(found.problem ?? "")")
    }
    return (payload, found.state == .expired)
  }

  /// The record under a key.
  ///
  /// - Throws: As ``get(_:cache:style:)``.
  func record(
    under key: String, cache name: String?, keys form: KeyForm, suggestsKeys: Bool = false
  ) throws(InspectionError) -> FoundRecord {
    var selection = Selection()
    selection.cache = name
    let (candidates, hidden) = try caches(in: selection)
    var found: [FoundRecord] = []
    var isKey = false
    for cache in candidates {
      guard let bytes = form.bytes(of: key, kind: cache.keyKind) else { continue }
      isKey = true
      if let record = try record(under: bytes, in: cache) { found.append(record) }
    }
    if !isKey, let cache = candidates.first, candidates.count == 1 {
      throw InspectionError(notKey: key, of: cache)
    }
    guard let record = found.first else {
      let damage = damage + hidden
      guard name == nil, !damage.isEmpty else {
        let near = suggestsKeys ? keyLike(key, in: candidates, form) : nil
        let suggestion = near.map { "; there is \($0.shortened)" } ?? ""
        throw InspectionError(.notFound, "\(key.shortened) is missing\(suggestion)")
      }
      throw InspectionError(
        .damaged,
        "\(key.shortened) was not found, but damage may hide it: \(damage.joined(separator: "; "))")
    }
    guard found.count == 1 else {
      let names = found.map(\.cache.label).joined(separator: ", ")
      throw InspectionError(
        .usage, "several caches have \(key.shortened): \(names); choose one with --cache")
    }
    return record
  }

  /// The record under a key of a cache; nil if there is none.
  func record(
    under key: [UInt8], in cache: KnownCache
  ) throws(InspectionError) -> FoundRecord? {
    let physicalKey = KeySpace.records.prefix(ofCache: cache.id) + key
    let bytes: [UInt8]?
    do {
      bytes = try engine.get(physicalKey.span.bytes)
    } catch {
      throw failure(error)
    }
    guard let bytes else { return nil }
    return FoundRecord(
      whole: bytes, under: physicalKey, key: key, in: cache, endedBy: catalog.invalidatedTags,
      at: now)
  }
}

// MARK: - Fields

extension Inspection {
  private func facts(of found: FoundRecord, style: Style) -> [Report.Fact] {
    let kind = found.cache.keyKind
    var facts: [Report.Fact] = [
      .init("cache", "\(found.cache.label), keys: \(kind)"),
      .init("key", style.text(of: found.key, in: found.cache), isWhole: true),
      .init("state", found.state.rawValue),
    ]
    guard case .success(let record) = found.content else {
      return facts + [
        .init("problem", found.problem ?? ""), .init("stored", "\(found.storedBytes) bytes"),
      ]
    }
    facts.append(.init("saved", Moment.text(record.savedAt, relativeTo: now)))
    if let expiry = found.expiry(of: record) {
      let left = found.state == .expired ? "" : ", in \(found.timeLeft(of: record, at: now).shown)"
      facts.append(.init("expires", Moment.anyText(expiry) + left))
    } else {
      facts.append(.init("expires", "never"))
    }
    facts += [
      .init("schema", "version \(record.schemaVersion)"), .init("coder", coderName(record.coder)),
      .init("sequence", "\(record.sequence)"),
    ]
    if record.originalSequence != record.sequence {
      facts.append(.init("saved as", "sequence \(record.originalSequence)"))
    }
    if let version = Self.sharedVersion(of: record) {
      facts.append(.init("shared", "version \(version)"))
    }
    if let lifetime = record.ownLifetime?.lifetime {
      facts.append(.init("lifetime", "\(lifetime)"))
    }
    if let end = record.slidesUntil {
      facts.append(.init("slides", "until \(Moment.anyText(end))"))
    }
    if let tags = found.tags?.texts {
      let text = style.isRedacted ? "(redacted)" : tags.joined(separator: ", ")
      facts.append(.init("tags", text + (record.isInvalidated ? " (invalidated)" : "")))
    }
    if let validator = validator(of: found) {
      facts.append(.init("validator", style.isRedacted ? "(redacted)" : validator))
    }
    if record.isSealed || record.isValidatorSealed {
      let what = [("payload", record.isSealed), ("validator", record.isValidatorSealed)]
      facts.append(.init("sealed", what.filter(\.1).map(\.0).joined(separator: ", ")))
    }
    guard style.values != .none, let payload = found.payload else { return facts }
    let stored = record.isCompressed ? ", \(record.payload.count) compressed" : ""
    return facts + [.init("payload", "\(payload.count) bytes" + stored)]
  }

  /// The shared version of a record in hexadecimal; nil if it has none.
  private static func sharedVersion(of record: Record) -> String? {
    record.sharedVersion.map { version in
      withUnsafeBytes(of: version.bigEndian) { KeyForm.hex($0) }
    }
  }

  private func members(
    of found: FoundRecord, _ view: PayloadView?, style: Style
  ) -> Report.Members {
    let cells = found.cells(at: now, style: style)
    var fields = jsonHeading + Report.members(of: cells, in: FoundRecord.columns)
    guard !style.isRedacted else { return fields }
    if case .success(let record) = found.content {
      fields.append(("isCompressed", .bool(record.isCompressed)))
      if record.isSealed { fields.append(("isSealed", .bool(true))) }
      fields.append(("originalSequence", .integer(record.originalSequence)))
      // As text: many readers of JSON have no integers of 64 bits.
      fields.append(("sharedVersion", .optional(Self.sharedVersion(of: record))))
      fields.append(("validator", .optional(validator(of: found))))
      let tags = found.tags?.texts ?? []
      fields.append(("tags", .array(tags.map(JSONValue.string))))
      fields.append(("isInvalidated", .bool(record.isInvalidated)))
      fields.append(("ownLifetime", .optional(record.ownLifetime.map { "\($0.lifetime)" })))
      fields.append(("slidesUntil", .optional(record.slidesUntil.map { Moment.anyText($0) })))
    }
    switch view {
    case .json(let value): fields += [("payloadForm", .string("json")), ("payload", value)]
    case .text(let text): fields += [("payloadForm", .string("text")), ("payload", .string(text))]
    case .hex(let bytes, _):
      fields += [("payloadForm", .string("hex")), ("payload", .string(KeyForm.hex(bytes)))]
    case .size, .nothing, nil: break
    }
    return fields
  }

  /// The bytes of an unreadable record are shown only in the form `hex`.
  private func view(of found: FoundRecord, as form: ValueForm) -> PayloadView? {
    guard case .success(let record) = found.content, let payload = found.payload else {
      return form == .hex ? .hex(found.bytes) : nil
    }
    return PayloadView(payload, coder: record.coder, as: form)
  }

  private func validator(of found: FoundRecord) -> String? {
    found.validator.map { KeyForm.utf8.text(of: $0, kind: .bytes) }
  }
}
