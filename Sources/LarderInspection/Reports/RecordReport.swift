import Foundation
import Larder
import LarderBytes
import LarderEngine

/// A record with its stored bytes.
private struct StoredRecord {
  let found: FoundRecord
  let bytes: [UInt8]

  /// The payload as its coder wrote it; nil if the record cannot be read.
  var payload: [UInt8]? {
    guard case .success(let record) = found.content else { return nil }
    var payload = ByteBuffer()
    guard record.appendPayload(in: bytes.span.bytes, to: &payload) else { return nil }
    return Array(payload)
  }
}

extension Inspection {
  /// Writes the record under a key: its fields and its payload.
  ///
  /// Expired records are shown too; so are damaged ones, without the fields that cannot be read.
  ///
  /// - Throws: An ``InspectionError`` with the status `notFound` if the record is missing, `usage`
  ///   if several caches have the key.
  package func get(
    _ key: String, cache name: String?, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    let stored = try record(under: key, cache: name, keys: style.keys)
    switch style.format {
    case .table: write(stored, style: style, to: &output)
    case .json:
      JSONValue.object(jsonFields(of: stored, style: style)).writePretty(to: &output)
      output.write("\n")
    case .jsonl:
      JSONValue.object(jsonFields(of: stored, style: style)).write(to: &output)
      output.write("\n")
    case .csv: throw InspectionError(.usage, "get does not support csv")
    }
    return stored.found.state.outcome
  }

  /// The payload under a key as its coder wrote it, and whether the record is expired.
  ///
  /// - Throws: As ``get(_:cache:style:to:)``, and if the record cannot be read.
  package func payload(
    of key: String, cache name: String?, keys form: KeyForm
  ) throws(InspectionError) -> (bytes: [UInt8], isExpired: Bool) {
    let stored = try record(under: key, cache: name, keys: form)
    guard let payload = stored.payload else {
      throw InspectionError(
        stored.found.state.outcome, "the record under \(key): \(stored.found.problem ?? "")")
    }
    return (payload, stored.found.state == .expired)
  }

  private func record(
    under key: String, cache name: String?, keys form: KeyForm
  ) throws(InspectionError) -> StoredRecord {
    var selection = Selection()
    selection.cache = name
    let (candidates, hidden) = try caches(in: selection)
    var found: [StoredRecord] = []
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
        throw InspectionError(.notFound, "\(key) is missing")
      }
      throw InspectionError(
        .damaged, "\(key) was not found, but damage may hide it: \(damage.joined(separator: "; "))")
    }
    guard found.count == 1 else {
      let names = found.map(\.found.cache.label).joined(separator: ", ")
      throw InspectionError(.usage, "several caches have \(key): \(names); choose one with --cache")
    }
    return record
  }

  private func record(
    under key: [UInt8], in cache: KnownCache
  ) throws(InspectionError) -> StoredRecord? {
    let physicalKey = KeySpace.records.prefix(ofCache: cache.id) + key
    let bytes: [UInt8]?
    do {
      bytes = try engine.get(physicalKey.span.bytes)
    } catch {
      throw failure(error)
    }
    guard let bytes else { return nil }
    let found = FoundRecord(
      bytes.span.bytes, of: bytes.count, under: physicalKey.span.bytes, key: key, in: cache,
      endedBy: catalog.invalidatedTags, at: now)
    return StoredRecord(found: found, bytes: bytes)
  }
}

// MARK: - Writing

extension Inspection {
  private func write(
    _ stored: StoredRecord, style: Style, to output: inout some TextOutputStream
  ) {
    if !style.isQuiet { output.write(heading + "\n\n") }
    for (name, text) in lines(of: stored, style: style) {
      output.write(
        name + String(repeating: " ", count: 11 - name.count) + text.escapedForTerminal + "\n")
    }
    guard !style.isRedacted, let view = view(of: stored, as: style.values) else { return }
    if case .nothing = view { return }
    if case .size = view { return }
    output.write("\n")
    view.write(to: &output)
  }

  private func lines(of stored: StoredRecord, style: Style) -> [(name: String, text: String)] {
    let found = stored.found
    let kind = found.cache.keyKind
    var lines = [
      ("cache", "\(found.cache.label), keys: \(kind)"),
      ("key", style.text(of: found.key, in: found.cache)), ("state", found.state.rawValue),
    ]
    guard case .success(let record) = found.content else {
      return lines + [("problem", found.problem ?? ""), ("stored", "\(found.storedBytes) bytes")]
    }
    lines.append(("saved", Moment.text(record.savedAt, relativeTo: now)))
    if let expiry = found.expiry(of: record) {
      let left = found.state == .expired ? "" : ", in \(found.timeLeft(of: record, at: now))"
      lines.append(("expires", Moment.anyText(expiry) + left))
    } else {
      lines.append(("expires", "never"))
    }
    lines += [
      ("schema", "version \(record.schemaVersion)"), ("coder", coderName(record.coder)),
      ("sequence", "\(record.sequence)"),
    ]
    if record.originalSequence != record.sequence {
      lines.append(("saved as", "sequence \(record.originalSequence)"))
    }
    if let lifetime = record.ownLifetime?.lifetime { lines.append(("lifetime", "\(lifetime)")) }
    if let tags = tags(of: record, in: stored) {
      let text = style.isRedacted ? "(redacted)" : tags.joined(separator: ", ")
      lines.append(("tags", text + (record.isInvalidated ? " (invalidated)" : "")))
    }
    if let validator = validator(of: record, in: stored) {
      lines.append(("validator", style.isRedacted ? "(redacted)" : validator))
    }
    guard style.values != .none, let payload = stored.payload else { return lines }
    let stored = record.isCompressed ? ", \(record.payload.count) compressed" : ""
    return lines + [("payload", "\(payload.count) bytes" + stored)]
  }

  private func jsonFields(
    of stored: StoredRecord, style: Style
  ) -> [(name: String, value: JSONValue)] {
    var fields = jsonHeading + stored.found.jsonFields(at: now, style: style)
    guard !style.isRedacted else { return fields }
    if case .success(let record) = stored.found.content {
      fields.append(("isCompressed", .bool(record.isCompressed)))
      fields.append(("originalSequence", .integer(record.originalSequence)))
      fields.append(("validator", .optional(validator(of: record, in: stored))))
      let tags = tags(of: record, in: stored) ?? []
      fields.append(("tags", .array(tags.map(JSONValue.string))))
      fields.append(("isInvalidated", .bool(record.isInvalidated)))
      fields.append(("ownLifetime", .optional(record.ownLifetime.map { "\($0.lifetime)" })))
    }
    switch view(of: stored, as: style.values) {
    case .json(let value): fields += [("payloadForm", .string("json")), ("payload", value)]
    case .text(let text): fields += [("payloadForm", .string("text")), ("payload", .string(text))]
    case .hex(let bytes):
      fields += [("payloadForm", .string("hex")), ("payload", .string(KeyForm.hex(bytes)))]
    case .size, .nothing, nil: break
    }
    return fields
  }

  /// The bytes of an unreadable record are shown only in the form `hex`.
  private func view(of stored: StoredRecord, as form: ValueForm) -> PayloadView? {
    guard case .success(let record) = stored.found.content, let payload = stored.payload else {
      return form == .hex ? .hex(stored.bytes) : nil
    }
    return PayloadView(payload, coder: record.coder, as: form)
  }

  private func validator(of record: Record, in stored: StoredRecord) -> String? {
    record.validator.map { KeyForm.utf8.text(of: Array(stored.bytes[$0]), kind: .bytes) }
  }

  private func tags(of record: Record, in stored: StoredRecord) -> [String]? {
    Tags(of: record, in: stored.bytes.span.bytes)?.texts
  }
}
