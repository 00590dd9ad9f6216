import Larder

extension Inspection {
  /// Writes a digest of the selected records, in total and for each cache.
  ///
  /// Stores with the same records have the same digest, whatever their files, cache ids and
  /// sequences are. A cache's digest is that of its records' lines in an export, in the order of
  /// their keys, each with a line feed. The total is the digest of the caches' digests in hex, in
  /// the order of their names. A cache without records counts nothing.
  ///
  /// Entries that an invalidated tag ended are left out; so is what cannot be read, and then the
  /// outcome is `damaged` or `unsupported`.
  ///
  /// - Complexity: One step and one checksum for each record. One record is in memory at a time.
  package func digest(
    of selection: Selection, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
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
    if style.format == .table {
      guard !style.isQuiet else {
        output.write(total.digest.text + "\n")
        return outcome
      }
      output.write("\(heading)\n\ndigest   \(total.digest.text)\n")
      output.write("records  \(Amount.text(total.records))\n")
      if leftOut > 0 { output.write("left out \(Amount.text(leftOut)), which cannot be read\n") }
      output.write("\n")
    }
    var rows = Rows(
      [
        Rows.Column("DIGEST", "digest"), Rows.Column(.number("RECORDS"), "records"),
        Rows.Column("CACHE", "cache"),
      ],
      under: jsonHeading + [
        ("digest", .string(total.digest.text)), ("records", .integer(total.records)),
        ("leftOut", .integer(leftOut)),
      ], style: style)
    for cache in caches {
      rows.add(
        [.text(cache.digest.text), .number(cache.records), .text(cache.name)], to: &output)
    }
    if style.format == .csv || style.format == .jsonl {
      rows.add([.text(total.digest.text), .number(total.records), .none], to: &output)
    }
    rows.end(to: &output)
    return outcome
  }
}
