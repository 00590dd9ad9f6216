import Larder
import LarderBytes
import LarderEngine

/// The report of a repair: what was copied, and what was lost.
struct RepairReport {
  let source: String
  let target: String
  let report: SalvageReport
  /// Nil if a MANIFEST listed the tables.
  let rebuild: Rebuild.Report?
  let keepsDoubtful: Bool
  /// Sentences about files that are missing or damaged.
  let faults: [String]
  /// The caches of the new store.
  let catalog: Catalog

  /// Whether nothing is lost, and nothing that was removed is there again.
  var isComplete: Bool { report.isComplete && faults.isEmpty && rebuild == nil }

  func write(
    style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) {
    let caches = report.entries.sorted { $0.key < $1.key }
    switch style.format {
    case .table:
      output.write(style.isQuiet ? "" : source.escapedForTerminal + "\n\n")
      output.write("output   \(target.escapedForTerminal)\n")
      output.write("lost     \(losses(style).isEmpty ? "nothing" : "see below")\n\n")
      var table = Table([.number("ENTRIES"), "CACHE"], style: style)
      for (name, count) in caches {
        table.add([Amount.text(count), KeyForm.text(ofName: name)], to: &output)
      }
      table.flush(to: &output)
      if !losses(style).isEmpty { output.write("\n") }
      for loss in losses(style) { output.write(loss.escapedForTerminal + "\n") }
      let doubtful = doubtful(style)
      guard !doubtful.isEmpty else { return }
      let fate = keepsDoubtful ? "copied" : "left out; --doubtful copies them"
      output.write("\n\(Amount.text(doubtful.count)) doubtful, \(fate):\n")
      for (cache, key) in doubtful { output.write("\(cache), \(key)".escapedForTerminal + "\n") }
    case .json, .jsonl:
      JSONValue.object([
        ("schemaVersion", reportVersion), ("source", .string(source)), ("target", .string(target)),
        (
          "entries",
          .object(caches.map { (name: KeyForm.text(ofName: $0.key), value: .integer($0.value)) })
        ), ("isComplete", .bool(isComplete)),
        ("losses", .array(losses(style).map(JSONValue.string))),
        ("isRebuilt", .bool(rebuild != nil)),
        (
          "doubtful",
          .array(
            doubtful(style).map {
              .object([("cache", .string($0.cache)), ("key", .string($0.key))])
            })
        ),
      ]).write(to: &output)
      output.write("\n")
    case .csv: throw InspectionError(.usage, "repair does not support csv")
    }
  }

  /// The doubtful entries, and the doubtful rows of the store's own as those of no cache.
  ///
  /// Rows of the index are not copied: they are made anew.
  private func doubtful(_ style: Style) -> [(cache: String, key: String)] {
    (rebuild?.doubtful ?? []).compactMap { key in
      switch key.first.flatMap(KeySpace.init) {
      case .expiry: return nil
      case .records:
        var at = 1
        guard let id = readVarint(key.span.bytes, at: &at) else { break }
        let cache = catalog.cache(numbered: id)
        return ("cache \(cache.label)", style.text(of: Array(key[at...]), in: cache))
      case .metadata, nil: break
      }
      return ("the store", style.text(ofDatabaseKey: key, inStore: true))
    }
  }

  /// A sentence for each part that is lost.
  private func losses(_ style: Style) -> [String] {
    func key(_ text: String) -> String { style.isRedacted ? "(redacted)" : text }
    var sentences = report.losses.map { loss in
      let cache = loss.cache.map { "cache \(KeyForm.text(ofName: $0))" } ?? "an unknown cache"
      if let after = loss.after, after == loss.before {
        return "the entry \(key(after)) of \(cache) is lost"
      }
      let after = loss.after.map { " after \(key($0))" } ?? ""
      let before = loss.before.map { " before \(key($0))" } ?? ""
      return "entries of \(cache)\(after)\(before) may be lost"
    }
    for name in report.lostCaches {
      sentences.append("the registration of cache \(KeyForm.text(ofName: name)) is lost")
    }
    if report.namelessEntries > 0 {
      let count = Amount.text(report.namelessEntries)
      sentences.append(
        "\(count) entries have no cache registration: they are in caches called recovered- and a "
          + "number, with keys of bytes")
    }
    for tag in report.endedTags {
      sentences.append("all entries with the invalidated tag \(key(tag)) have ended")
    }
    if report.mayLackInvalidations {
      sentences.append("entries of invalidated tags may be there again")
    }
    if rebuild != nil {
      sentences.append(
        "no intact MANIFEST lists the tables: the newest rows of all files were used")
    }
    return sentences + faults + (rebuild?.faults ?? [])
  }
}
