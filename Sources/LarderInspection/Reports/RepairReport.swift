import Larder

/// The result of a repair: what was copied, and what was lost.
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

  func report(in style: Style) -> Report {
    let caches = report.entries.sorted { $0.key < $1.key }.map {
      (name: KeyForm.text(ofName: $0.key), count: $0.value)
    }
    let (losses, doubtful) = (losses(style), doubtful(style))
    func lines(_ texts: [String]) -> Report.Section {
      .text(texts.map { $0.escapedForTerminal + "\n" }.joined())
    }
    var sections: [Report.Section] = [
      .facts([
        .init("output", target), .init("lost", losses.isEmpty ? "nothing" : "see below"),
      ]),
      .table(
        [.number("ENTRIES"), .name("CACHE")], caches.map { [Amount.text($0.count), $0.name] }),
    ]
    if !losses.isEmpty { sections.append(lines(losses)) }
    if !doubtful.isEmpty {
      let fate = keepsDoubtful ? "copied" : "left out; --doubtful copies them"
      let heading = "\(Amount.text(doubtful.count)) doubtful, \(fate):"
      sections.append(lines([heading] + doubtful.map { "\($0.cache), \($0.key)" }))
    }
    return Report(
      style: style, title: source.escapedForTerminal, sections: sections,
      members: [
        ("schemaVersion", reportVersion), ("source", .string(source)), ("target", .string(target)),
        ("entries", .object(caches.map { ($0.name, .integer($0.count)) })),
        ("isComplete", .bool(isComplete)), ("losses", .array(losses.map(JSONValue.string))),
        ("isRebuilt", .bool(rebuild != nil)),
        (
          "doubtful",
          .array(
            doubtful.map { .object([("cache", .string($0.cache)), ("key", .string($0.key))]) })
        ),
      ], isOneLine: true
    ) { _ in
      Report.Ending(outcome: isComplete ? .fine : .damaged)
    }
  }

  /// The doubtful entries, and the doubtful rows of the store's own as those of no cache.
  ///
  /// Notes are not copied: they are made anew.
  private func doubtful(_ style: Style) -> [(cache: String, key: String)] {
    (rebuild?.doubtful ?? []).compactMap { key in
      switch key.first.flatMap(KeySpace.init) {
      case .expiry, .notes: return nil
      case .records:
        var at = 1
        guard let id = readVarint(key.span.bytes, at: &at) else { break }
        let cache = catalog.cache(numbered: id)
        return ("cache \(cache.label)", style.text(of: Array(key[at...]), in: cache))
      case .metadata, .unshared, nil: break
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
