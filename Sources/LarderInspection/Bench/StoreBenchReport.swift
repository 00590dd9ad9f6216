extension Inspection {
  func write(
    _ caches: [CacheTimes], _ settings: BenchSettings, style: Style,
    to output: inout some TextOutputStream
  ) {
    guard style.format == .table else {
      let rows = caches.map { JSONValue.object($0.fields) }
      return rows.write(
        under: jsonHeading + settings.fields.dropFirst(), style: style, to: &output)
    }
    if !style.isQuiet {
      output.write(
        """
        \(heading)

        \(settings.heading)COLD: first reads after opening, with the files in the page cache
        HOT: repeated reads, from LevelDB's block cache; LDB: LevelDB alone
        DECODE, ENCODE: payloads as generic values, without the program's types

        """ + "\n")
    }
    let numbers = [
      "RECORDS", "BYTES", "READ", "COLD", "COLD LDB", "HOT", "HOT LDB", "DECODE", "ENCODE",
    ]
    var table = Table(["CACHE", "CODER"] + numbers.map(Table.Column.number), style: style)
    for cache in caches { table.add(cache.cells, to: &output) }
    table.flush(to: &output)
  }
}

extension CacheTimes {
  fileprivate var cells: [String] {
    let times = [cold?.a, cold?.b, hot?.a, hot?.b, decode, encode].map { $0.map(whole) ?? "-" }
    let counts = [Amount.text(records), Amount.bytes(bytes), Amount.text(sample)]
    return [cache, coders.joined(separator: " ")] + counts + times
  }

  fileprivate var fields: [(name: String, value: JSONValue)] {
    func optional(_ time: Double?) -> JSONValue { time.map(JSONValue.real) ?? .null }
    return [
      ("cache", .string(cache)), ("coders", .array(coders.map(JSONValue.string))),
      ("records", .integer(records)), ("bytes", .integer(bytes)),
      ("recordsRead", .integer(sample)), ("coldNanoseconds", optional(cold?.a)),
      ("coldLevelDBNanoseconds", optional(cold?.b)), ("hotNanoseconds", optional(hot?.a)),
      ("hotLevelDBNanoseconds", optional(hot?.b)), ("decodeNanoseconds", optional(decode)),
      ("encodeNanoseconds", optional(encode)),
    ]
  }
}
