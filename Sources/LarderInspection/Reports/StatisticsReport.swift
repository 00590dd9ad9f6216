import Larder
import LarderEngine

extension Inspection {
  /// Writes the number and the sizes of the records of each cache, by schema version.
  ///
  /// - Complexity: One step for each record, and 8 bytes of memory.
  package func statistics(
    of selection: Selection, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    var groups: [SizeGroup] = []
    var classes = SizeClasses()
    var outcome = Outcome.fine
    try forEachItem(in: selection, keys: style.keys) { item throws(InspectionError) in
      outcome.add(item.state)
      guard case .record(let found) = item else { return true }
      classes.add(found)
      let version: UInt32? =
        if case .success(let record) = found.content { record.schemaVersion } else { nil }
      // The groups of a cache are the last ones.
      let index = groups.lastIndex { $0.cache == found.cache.label && $0.version == version }
      if index == nil { groups.append(SizeGroup(cache: found.cache.label, version: version)) }
      groups[index ?? groups.count - 1].add(found)
      return true
    }
    switch style.format {
    case .table: write(groups, classes, style: style, to: &output)
    case .json, .jsonl:
      let rows = groups.map { JSONValue.object($0.fields) }
      let heading =
        jsonHeading + [
          ("fileBytes", .integer(fileBytes)), ("entryBytes", .integer(groups.entryBytes)),
          ("sizes", .array(classes.rows.map { JSONValue.object($0.fields) })),
        ]
      rows.write(under: heading, style: style, to: &output)
    case .csv:
      if !style.isQuiet {
        output.write("cache,payloadSchemaVersion,records,keyBytes,recordBytes,p50,p99,max\n")
      }
      for group in groups {
        let numbers = [group.records, group.keyBytes, group.recordBytes] + group.quantiles
        let version = group.version.map { "\($0)" } ?? ""
        output.write("\(csvCell(group.cache)),\(version),")
        output.write(numbers.map { "\($0)" }.joined(separator: ",") + "\n")
      }
    }
    return outcome
  }

  /// The size of all files with data, as they were captured.
  private var fileBytes: Int {
    tableBytes + snapshot.logBytes + snapshot.segments.byteCount
  }

  private func write(
    _ groups: [SizeGroup], _ classes: SizeClasses, style: Style,
    to output: inout some TextOutputStream
  ) {
    let entryBytes = groups.entryBytes
    output.write(style.isQuiet ? "" : heading + "\n\n")
    output.write("files    \(Amount.bytes(fileBytes))\n")
    let share = entryBytes > 0 ? ", \(Amount.share(entryBytes, of: fileBytes)) of the files" : ""
    output.write("entries  \(Amount.bytes(entryBytes))\(share)\n\n")
    let numbers = ["RECORDS", "KEYS", "VALUES", "SHARE", "50 %", "99 %", "LARGEST"]
    var table = Table(
      ["CACHE", .number("SCHEMA")] + numbers.map(Table.Column.number), style: style.unlimited)
    for group in groups {
      let cells = [
        group.cache, group.version.map { "\($0)" } ?? "-", Amount.text(group.records),
        Amount.bytes(group.keyBytes), Amount.bytes(group.recordBytes),
        Amount.share(group.bytes, of: entryBytes),
      ]
      table.add(cells + group.quantiles.map(Amount.bytes), to: &output)
    }
    table.flush(to: &output)
    guard !classes.rows.isEmpty else { return }
    output.write("\n")
    var sizes = Table(
      [.number("SIZE BELOW"), .number("KEYS"), .number("VALUES"), ""], style: style.unlimited)
    let most = classes.rows.map(\.records).max() ?? 1
    for row in classes.rows {
      let bar = String(repeating: "#", count: (row.records * 30 + most - 1) / most)
      let cells = [Amount.text(row.end), Amount.text(row.keys), Amount.text(row.records), bar]
      sizes.add(cells, to: &output)
    }
    sizes.flush(to: &output)
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

  var fields: [(name: String, value: JSONValue)] {
    let quantiles = quantiles
    return [
      ("cache", .string(cache)), ("payloadSchemaVersion", version.map { .integer($0) } ?? .null),
      ("records", .integer(records)), ("keyBytes", .integer(keyBytes)),
      ("recordBytes", .integer(recordBytes)), ("p50", .integer(quantiles[0])),
      ("p99", .integer(quantiles[1])), ("max", .integer(quantiles[2])),
    ]
  }
}

extension [SizeGroup] {
  fileprivate var entryBytes: Int { reduce(0) { $0 + $1.bytes } }
}

/// The numbers of keys and records by size, in classes that end at powers of two.
private struct SizeClasses {
  struct Row {
    /// The first size above the class.
    let end: Int
    var keys = 0
    var records = 0

    var fields: [(name: String, value: JSONValue)] {
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

  mutating func add(_ found: FoundRecord) {
    all[Self.index(of: found.key.count)].keys += 1
    all[Self.index(of: found.storedBytes)].records += 1
  }

  private static func index(of size: Int) -> Int { size.bitWidth - size.leadingZeroBitCount }
}
