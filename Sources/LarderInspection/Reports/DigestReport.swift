import Larder

extension Inspection {
  /// A digest of the selected records, in total and for each cache.
  ///
  /// Stores with the same records have the same digest, whatever their files, cache ids and
  /// sequences are. A cache's digest is that of its records' lines in an export, in the order of
  /// their keys, each with a line feed. The total is the digest of the caches' digests in hex, in
  /// the order of their names. A cache without records counts nothing.
  ///
  /// Entries that an invalidated tag ended are left out; so is what cannot be read, and then the
  /// outcome is `damaged` or `unsupported`.
  ///
  /// - Throws: An ``InspectionError`` with the status `usage` if the store is sealed and was opened
  ///   without its key.
  /// - Complexity: One step and one checksum for each record. One record is in memory at a time.
  package func digest(
    of selection: Selection, style: Style
  ) throws(InspectionError) -> Report {
    try requireKey()
    // By the bytes of the names: two that are equal as text may differ in their bytes.
    var ofCaches: [[UInt8]: (name: String, digest: Digest, records: Int)] = [:]
    let (leftOut, outcome) = try forEachExportLine(in: selection, keys: style.keys) {
      cache, line in
      let name = Array(cache.label.utf8)
      var (_, digest, records) = ofCaches[name] ?? (cache.label, Digest(), 0)
      line.write(to: &digest)
      digest.write("\n")
      records += 1
      ofCaches[name] = (cache.label, digest, records)
    }
    let caches = ofCaches.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    var total = (digest: Digest(), records: 0)
    for cache in caches {
      total.digest.write(cache.digest.text)
      total.records += cache.records
    }
    var facts: [Report.Fact] = [
      .init("digest", total.digest.text), .init("records", Amount.text(total.records)),
    ]
    if leftOut > 0 {
      facts.append(.init("left out", "\(Amount.text(leftOut)), which cannot be read"))
    }
    return Report(
      style: style, title: heading,
      sections: style.isQuiet ? [.text(total.digest.text + "\n")] : [.facts(facts)],
      members: jsonHeading + [
        ("digest", .string(total.digest.text)), ("records", .integer(total.records)),
        ("leftOut", .integer(leftOut)),
      ],
      columns: [
        .init("DIGEST", "digest"), .init(.number("RECORDS"), "records"),
        .init(.name("CACHE"), "cache"),
      ], hasTable: !style.isQuiet
    ) { add in
      for cache in caches {
        add([.text(cache.digest.text), .number(cache.records), .text(cache.name)])
      }
      let cells: [Report.Cell] = [.text(total.digest.text), .number(total.records), .none]
      add(Report.Row(cells, isTotal: true))
      return Report.Ending(outcome: outcome)
    }
  }
}
