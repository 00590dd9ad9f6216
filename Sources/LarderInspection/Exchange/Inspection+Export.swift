import Foundation
import Larder
import LarderEngine

extension Inspection {
  /// Writes the selected records as JSON lines, from which an import makes a store.
  ///
  /// Entries that an invalidated tag ended are left out; so is what cannot be read, and then the
  /// outcome is `damaged` or `unsupported`.
  ///
  /// - Complexity: One step and one checksum for each record. One record is in memory at a time.
  package func export(
    _ selection: Selection, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    guard !style.isRedacted else {
      throw InspectionError(.usage, "an export without keys and values cannot be imported")
    }
    guard style.format == .jsonl || style.format == .table else {
      throw InspectionError(.usage, "an export has the format jsonl")
    }
    write(
      .object([
        ("larderExport", .integer(exportVersion)), ("store", .string(path)),
        ("exportedAt", .optional(Moment.text(now))),
      ]), to: &output)
    var outcome = Outcome.fine
    for cache in try caches(in: selection).caches {
      if let line = registrationLine(of: cache) { write(line, to: &output) }
    }
    var (records, leftOut) = (0, 0)
    try forEachItem(in: selection, keys: style.keys, payloads: .kept) {
      item throws(InspectionError) in
      outcome.add(item.state)
      guard case .record(let found) = item else { return true }
      if case .success(let record) = found.content, record.isInvalidated { return true }
      guard found.cache.registration != nil, let line = found.exportLine else {
        leftOut += 1
        outcome.add(.damaged)
        return true
      }
      records += 1
      write(line, to: &output)
      return true
    }
    write(
      .object([("records", .integer(records)), ("leftOut", .integer(leftOut))]), to: &output)
    return outcome
  }

  private func write(_ line: JSONValue, to output: inout some TextOutputStream) {
    line.write(to: &output)
    output.write("\n")
  }

  /// Nil if the cache has no readable registration: its records are left out.
  private func registrationLine(of cache: KnownCache) -> JSONValue? {
    guard let name = cache.name, let registration = cache.registration else { return nil }
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
