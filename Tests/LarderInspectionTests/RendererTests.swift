import Testing

@testable import LarderInspection

/// Every format writes any report, and rows while they are produced.
@Suite struct RendererTests {
  static let texts: [(ReportFormat, text: String)] = [
    (
      .table,
      """
      T

      size     1 B

      KEY    SIZE  SHARE
      a,b  2.0 KB  5 %
      -         -  -

      end

      """
    ),
    (
      .json,
      """
      {
        "n": 1,
        "rows": [
          {
            "key": "a,b",
            "bytes": 2000,
            "place": "=1"
          },
          {
            "key": null,
            "bytes": null,
            "place": null,
            "fault": "torn"
          }
        ]
      }

      """
    ),
    (
      .jsonl,
      """
      {"key":"a,b","bytes":2000,"place":"=1"}
      {"key":null,"bytes":null,"place":null,"fault":"torn"}
      {"key":"all","bytes":2000,"place":null}

      """
    ),
    (
      .csv,
      """
      key,bytes,place
      "a,b",2000,'=1
      ,,
      all,2000,

      """
    ),
  ]

  @Test("Four formats write the same report.", arguments: texts)
  func formats(format: ReportFormat, text: String) throws {
    let report = Report(
      style: Style(format), title: "T", sections: [.facts([.init("size", "1 B")])],
      members: [("n", .integer(1))],
      columns: [
        .init("KEY", "key"), .init(.number("SIZE"), "bytes"), .init("SHARE", nil),
        .init(nil, "place"), .json("fault"),
      ]
    ) { add in
      add([.text("a,b"), .bytes(2000), .text("5 %"), .text("=1"), .absent])
      add([.none, .none, .none, .none, .text("torn")])
      add(Report.Row([.text("all"), .bytes(2000), .none, .none, .absent], isTotal: true))
      return Report.Ending(outcome: .damaged, sections: [.text("end\n")])
    }
    var written = ""
    #expect(try report.write(to: &written) == .damaged)
    #expect(written == text)
  }

  @Test("At most 200 rows wait to be written.", arguments: ReportFormat.allCases)
  func streaming(format: ReportFormat) throws {
    let lines = Lines()
    let report = Report(
      style: Style(format), columns: [.init("N", "n")], isOneLine: true
    ) { add in
      for number in 0..<1000 {
        add([.number(number)])
        #expect(number - lines.count <= 200)
      }
      return Report.Ending()
    }
    var output = CountingOutput(lines: lines)
    #expect(try report.write(to: &output) == .fine)
    #expect(lines.count >= 1000)
  }
}

private final class Lines {
  var count = 0
}

/// Counts lines and keeps no text.
private struct CountingOutput: TextOutputStream {
  let lines: Lines

  mutating func write(_ text: String) { lines.count += text.utf8.count { $0 == 0x0A } }
}
