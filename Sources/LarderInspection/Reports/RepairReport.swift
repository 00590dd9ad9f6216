import Larder

/// The report of a repair: what was copied, and what was lost.
struct RepairReport {
  let source: String
  let target: String
  let report: SalvageReport

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
    case .json, .jsonl:
      JSONValue.object([
        ("schemaVersion", reportVersion), ("source", .string(source)), ("target", .string(target)),
        (
          "entries",
          .object(caches.map { (name: KeyForm.text(ofName: $0.key), value: .integer($0.value)) })
        ), ("isComplete", .bool(report.isComplete)),
        ("losses", .array(losses(style).map(JSONValue.string))),
      ]).write(to: &output)
      output.write("\n")
    case .csv: throw InspectionError(.usage, "repair does not support csv")
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
      sentences.append("\(count) entries of caches without a registration were not copied")
    }
    for tag in report.endedTags {
      sentences.append("all entries with the invalidated tag \(key(tag)) have ended")
    }
    if report.mayLackInvalidations {
      sentences.append("entries of invalidated tags may be there again")
    }
    return sentences
  }
}
