import Larder

extension Inspection {
  /// The number and the sizes of the records of each cache, by schema version.
  ///
  /// - Complexity: One step for each record, and 8 bytes of memory.
  package func statistics(
    of selection: Selection, style: Style
  ) throws(InspectionError) -> Report {
    var groups: [SizeGroup] = []
    // The cache whose records are being scanned, and its first group.
    var (cache, first): (UInt64?, Int) = (nil, 0)
    var classes = SizeClasses()
    var separatedBytes = 0
    var outcome = Outcome.fine
    try forEachItem(in: selection, keys: style.keys) { item throws(InspectionError) in
      outcome.add(item.state)
      guard case .record(let found) = item else { return true }
      classes.add(found)
      separatedBytes += found.separatedBytes
      let version: UInt32? =
        if case .success(let record) = found.content { record.schemaVersion } else { nil }
      if found.cache.id != cache {
        (cache, first) = (found.cache.id, groups.count)
      }
      let index = groups[first...].firstIndex { $0.version == version }
      if index == nil { groups.append(SizeGroup(cache: found.cache.label, version: version)) }
      groups[index ?? groups.count - 1].add(found)
      return true
    }
    let entryBytes = groups.reduce(0) { $0 + $1.bytes }
    let share = entryBytes > 0 ? ", \(Amount.share(entryBytes, of: fileBytes)) of the files" : ""
    var facts: [Report.Fact] = [
      .init("files", Amount.bytes(fileBytes)), .init("entries", Amount.bytes(entryBytes) + share),
    ]
    let segmentBytes = snapshot.segments.byteCount
    if segmentBytes > 0 {
      let live = Amount.share(separatedBytes, of: segmentBytes)
      facts.append(
        .init("segments", "\(Amount.bytes(segmentBytes)), \(live) of them values of these entries"))
    }
    return Report(
      style: style, title: heading, sections: [.facts(facts)],
      members: jsonHeading + [
        ("fileBytes", .integer(fileBytes)), ("entryBytes", .integer(entryBytes)),
        ("segmentBytes", .integer(segmentBytes)), ("separatedBytes", .integer(separatedBytes)),
        ("sizes", .array(classes.rows.map { JSONValue.object($0.fields) })),
      ],
      columns: [
        .init(.name("CACHE"), "cache"), .init(.number("SCHEMA"), "payloadSchemaVersion"),
        .init(.number("RECORDS"), "records"), .init(.number("KEYS"), "keyBytes"),
        .init(.number("VALUES"), "recordBytes"), .init(.number("SHARE"), nil),
        .init(.number("50 %"), "p50"), .init(.number("99 %"), "p99"),
        .init(.number("LARGEST"), "max"),
      ]
    ) { [groups, classes, outcome] add in
      for group in groups { add(Report.Row(group.cells(ofBytes: entryBytes))) }
      return Report.Ending(
        outcome: outcome, sections: classes.rows.isEmpty ? [] : [classes.table])
    }
  }

  /// The size of all files with data, as they were captured.
  var fileBytes: Int {
    tableBytes + snapshot.logBytes + snapshot.segments.byteCount
  }
}

/// The records of a cache with one schema version.
private struct SizeGroup {
  let cache: String
  /// Nil for records that cannot be read.
  let version: UInt32?
  private(set) var records = 0
  /// Of the stored keys, with their prefix.
  private(set) var keyBytes = 0
  /// Of the stored records, with their headers.
  private(set) var recordBytes = 0
  private var sizes: [Int] = []

  var bytes: Int { keyBytes + recordBytes }

  init(cache: String, version: UInt32?) { (self.cache, self.version) = (cache, version) }

  mutating func add(_ found: FoundRecord) {
    records += 1
    keyBytes += found.entryBytes - found.storedBytes
    recordBytes += found.storedBytes
    sizes.append(found.storedBytes)
  }

  /// The size that half of the records do not exceed, that 99 % do not exceed, and the largest.
  var quantiles: [Int] {
    let sorted = sizes.sorted()
    guard let largest = sorted.last else { return [0, 0, 0] }
    return [sorted[(sorted.count - 1) / 2], sorted[(sorted.count - 1) * 99 / 100], largest]
  }

  /// The cells of a row, with the share of the bytes of all entries.
  func cells(ofBytes all: Int) -> [Report.Cell] {
    let version = version.map { Report.Cell.sequence(UInt64($0)) }
    let cells: [Report.Cell] = [
      .text(cache), version ?? .none, .number(records), .bytes(keyBytes), .bytes(recordBytes),
      .text(Amount.share(bytes, of: all)),
    ]
    return cells + quantiles.map(Report.Cell.bytes)
  }
}

/// The numbers of keys and records by size, in classes that end at powers of two.
private struct SizeClasses {
  struct Row {
    /// The first size above the class.
    let end: Int
    var keys = 0
    var records = 0

    var fields: Report.Members {
      [("below", .integer(end)), ("keys", .integer(keys)), ("records", .integer(records))]
    }
  }

  private var all = (0..<63).map { Row(end: 1 << $0) }

  /// The classes from the smallest to the largest that have a key or a record.
  var rows: ArraySlice<Row> {
    let isUsed: (Row) -> Bool = { $0.keys + $0.records > 0 }
    guard let first = all.firstIndex(where: isUsed), let last = all.lastIndex(where: isUsed) else {
      return []
    }
    return all[first...last]
  }

  var table: Report.Section {
    let most = rows.map(\.records).max() ?? 1
    return .table(
      [.number("SIZE BELOW"), .number("KEYS"), .number("VALUES")],
      rows.map { row in
        [Amount.text(row.end), Amount.text(row.keys), Amount.text(row.records)]
      },
      bars: rows.map { Double($0.records) / Double(most) })
  }

  mutating func add(_ found: FoundRecord) {
    all[Self.index(of: found.key.count)].keys += 1
    all[Self.index(of: found.storedBytes)].records += 1
  }

  private static func index(of size: Int) -> Int { size.bitWidth - size.leadingZeroBitCount }
}
