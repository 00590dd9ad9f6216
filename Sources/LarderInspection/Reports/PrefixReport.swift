import Larder

extension Inspection {
  /// How many records and bytes have keys that begin alike: a tree of prefixes.
  ///
  /// A part of a key ends after one of the `delimiters`, or after several in a row. A prefix has at
  /// most `depth` parts, and below one prefix only the largest `limit` are listed. A redacted style
  /// is refused: prefixes are parts of keys.
  ///
  /// - Complexity: One step for each record. Memory for each prefix.
  package func prefixes(
    of selection: Selection, delimiters: [String], depth: Int, limit: Int, style: Style
  ) throws(InspectionError) -> Report {
    guard !style.isRedacted else {
      throw InspectionError(.usage, "prefixes are parts of keys, which --redact hides")
    }
    var trees: [PrefixTree] = []
    var scanned: UInt64?
    var outcome = Outcome.fine
    try forEachItem(in: selection, keys: style.keys) { item throws(InspectionError) in
      outcome.add(item.state)
      guard case .record(let found) = item else { return true }
      if found.cache.id != scanned {
        scanned = found.cache.id
        trees.append(PrefixTree(found.cache.label))
      }
      let key = style.keys.text(of: found.key, kind: found.cache.keyKind)
      trees[trees.count - 1].add(
        found.entryBytes, under: parts(of: key, delimiters, atMost: depth)[...])
      return true
    }
    return Report(
      style: style, title: heading, members: jsonHeading,
      columns: [
        .init(.name("CACHE"), "cache"), .init(nil, "prefix"), .init(nil, "others"),
        .init(.number("RECORDS"), "records"), .init(.number("BYTES"), "bytes"),
        .init(.number("SHARE"), nil), .init(.name("PREFIX"), nil),
      ]
    ) { [trees, outcome] add in
      let total = trees.reduce(0) { $0 + $1.bytes }
      for row in trees.flatMap({ $0.rows(below: "", of: $0.name, limit: limit) }) {
        add([
          .text(row.cache), .text(row.prefix), row.others.map(Report.Cell.number) ?? .none,
          .number(row.records), .bytes(row.bytes), .text(Amount.share(row.bytes, of: total)),
          .text(row.label),
        ])
      }
      return Report.Ending(outcome: outcome)
    }
  }

  private func parts(of key: String, _ delimiters: [String], atMost count: Int) -> [String] {
    var parts: [String] = []
    var rest = key[...]
    while parts.count < count {
      let ends = delimiters.compactMap { rest.firstRange(of: $0)?.upperBound }
      guard var end = ends.min() else { break }
      // Several of them, as in `http://`, end one part.
      while let next = delimiters.first(where: { rest[end...].hasPrefix($0) }) {
        end = rest.index(end, offsetBy: next.count)
      }
      parts.append(String(rest[..<end]))
      rest = rest[end...]
    }
    return parts
  }
}

/// The records whose keys begin with a prefix.
private struct PrefixTree {
  /// The name of the cache, or the last part of the prefix.
  let name: String
  private(set) var records = 0
  private(set) var bytes = 0
  /// By the bytes of their names: two texts that are equal may differ in their bytes.
  private var children: [[UInt8]: PrefixTree] = [:]

  init(_ name: String) { self.name = name }

  mutating func add(_ bytes: Int, under parts: ArraySlice<String>) {
    records += 1
    self.bytes += bytes
    guard let first = parts.first else { return }
    children[Array(first.utf8), default: PrefixTree(first)].add(bytes, under: parts.dropFirst())
  }

  /// This prefix, and those below it.
  func rows(below prefix: String, of cache: String, limit: Int) -> [PrefixRow] {
    let largest = children.sorted {
      $0.value.bytes != $1.value.bytes
        ? $0.value.bytes > $1.value.bytes : $0.key.lexicographicallyPrecedes($1.key)
    }
    var rows = [PrefixRow(cache: cache, prefix: prefix, records: records, bytes: bytes)]
    for (_, child) in largest.prefix(limit) {
      rows += child.rows(below: prefix + child.name, of: cache, limit: limit)
    }
    let others = largest.dropFirst(limit).map(\.value)
    if !others.isEmpty {
      rows.append(
        PrefixRow(
          cache: cache, prefix: prefix, others: others.count,
          records: others.reduce(0) { $0 + $1.records },
          bytes: others.reduce(0) { $0 + $1.bytes }))
    }
    return rows
  }
}

private struct PrefixRow {
  let cache: String
  let prefix: String
  /// The number of prefixes below ``prefix`` that the row sums up; nil for the prefix itself.
  var others: Int?
  let records: Int
  let bytes: Int

  var label: String {
    if let others { return "\(prefix)(\(Amount.text(others)) others)" }
    return prefix.isEmpty ? "(all)" : prefix
  }
}
