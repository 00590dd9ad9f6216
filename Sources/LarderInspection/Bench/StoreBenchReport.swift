extension Inspection {
  func report(
    of caches: [CacheTimes], _ settings: BenchSettings, _ outcome: Outcome, style: Style
  ) -> Report {
    Report(
      style: style,
      title: """
        \(heading)

        \(settings.heading)COLD: first reads after opening, with the files in the page cache
        HOT: repeated reads, from LevelDB's block cache; LDB: LevelDB alone
        DECODE, ENCODE: payloads as generic values, without the program's types
        """,
      members: jsonHeading + settings.members.dropFirst(),
      columns: [
        .init(.name("CACHE"), "cache"), .init("CODER", "coders"),
        .init(.number("RECORDS"), "records"),
        .init(.number("BYTES"), "bytes"), .init(.number("READ"), "recordsRead"),
        .init(.number("COLD"), "coldNanoseconds"),
        .init(.number("COLD LDB"), "coldLevelDBNanoseconds"),
        .init(.number("HOT"), "hotNanoseconds"), .init(.number("HOT LDB"), "hotLevelDBNanoseconds"),
        .init(.number("DECODE"), "decodeNanoseconds"),
        .init(.number("ENCODE"), "encodeNanoseconds"),
      ]
    ) { add in
      for cache in caches { add(Report.Row(cache.cells)) }
      return Report.Ending(outcome: outcome)
    }
  }
}

extension CacheTimes {
  fileprivate var cells: [Report.Cell] {
    let times = [cold?.a, cold?.b, hot?.a, hot?.b, decode, encode]
    let cells: [Report.Cell] = [
      .text(cache),
      .shown(coders.joined(separator: " "), .array(coders.map(JSONValue.string))),
      .number(records), .bytes(bytes), .number(sample),
    ]
    return cells + times.map(Report.Cell.nanoseconds)
  }
}
