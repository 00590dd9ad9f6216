import Foundation
import Larder

extension Inspection {
  /// Writes the selected records as JSON lines, from which an import makes a store.
  ///
  /// Entries that an invalidated tag ended are left out. So is what cannot be read or belongs to no
  /// registered cache: then the outcome is `damaged` or `unsupported`, and `note` gets a message.
  ///
  /// Values of a sealed store are written only with its key, and only if `isPlaintext` says so.
  ///
  /// - Complexity: One step and one checksum for each record. One record is in memory at a time.
  package func export(
    _ selection: Selection, isPlaintext: Bool = false, style: Style,
    to output: inout some TextOutputStream, noting note: (String) -> Void = { _ in }
  ) throws(InspectionError) -> Outcome {
    guard !style.isRedacted else {
      throw InspectionError(.usage, "an export without keys and values cannot be imported")
    }
    guard !catalog.isSealed || isPlaintext && catalog.opener != nil else {
      throw InspectionError(
        .usage,
        "the values of the store are sealed, and an export has them in plaintext: it needs "
          + "--key-file and --plaintext")
    }
    guard style.format == .jsonl || style.format == .table else {
      throw InspectionError(.usage, "an export has the format jsonl")
    }
    write(
      .object([
        (ExportMember.version, .integer(exportVersion)), ("store", .string(path)),
        ("exportedAt", .optional(Moment.text(now))),
      ]), to: &output)
    for cache in try caches(in: selection).caches {
      if let line = registrationLine(of: cache) { write(line, to: &output) }
    }
    var records = 0
    let (leftOut, outcome) = try forEachExportLine(in: selection, keys: style.keys) { _, line in
      records += 1
      write(line, to: &output)
    }
    if leftOut > 0 {
      note(
        "\(Amount.text(leftOut)) records are left out: they cannot be read, or no cache owns them; "
          + "`kvinspect verify` names them")
    }
    write(
      .object([
        (ExportMember.records, .integer(records)), (ExportMember.leftOut, .integer(leftOut)),
      ]), to: &output)
    return outcome
  }

  /// Calls `body` with the line of each selected record that an export has, by cache and key.
  ///
  /// - Returns: The number of records that cannot be read or belong to no registered cache, and the
  ///   outcome of the export.
  func forEachExportLine(
    in selection: Selection, keys form: KeyForm, _ body: (KnownCache, JSONValue) -> Void
  ) throws(InspectionError) -> (leftOut: Int, outcome: Outcome) {
    var (leftOut, outcome) = (0, Outcome.fine)
    try forEachItem(in: selection, keys: form, payloads: .kept) {
      item throws(InspectionError) in
      outcome.add(item.state)
      guard case .record(let found) = item else { return true }
      if case .success(let record) = found.content, record.isInvalidated { return true }
      if let line = found.exportLine {
        body(found.cache, line)
      } else {
        leftOut += 1
        outcome.add(found.isOfLaterVersion ? .unsupported : .damaged)
      }
      return true
    }
    return (leftOut, outcome)
  }

  private func write(_ line: JSONValue, to output: inout some TextOutputStream) {
    line.write(to: &output)
    output.write("\n")
  }

  /// Nil if the cache has no registration that this version can read: its records are left out.
  private func registrationLine(of cache: KnownCache) -> JSONValue? {
    guard let name = cache.name, let registration = cache.registration,
      PayloadFormat(rawValue: registration.coder) != nil
    else { return nil }
    do {
      guard let json = JSONReader.read(Array(try registration.json)) else { return nil }
      return .object([
        (ExportMember.cache, .string(name)), (ExportMember.registration, json),
      ])
    } catch {
      return nil
    }
  }
}
