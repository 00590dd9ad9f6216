import Foundation
import LarderTestSupport
import Testing

@testable import LarderInspection

/// Payloads are decoded completely without the program's types.
@Suite struct PayloadTests {
  private func rewritten(_ json: String) -> String? {
    guard let value = JSONReader.read(Array(json.utf8)) else { return nil }
    var text = ""
    value.write(to: &text)
    return text
  }

  @Test(
    "JSON keeps its digits, members and characters.",
    arguments: [
      ("null", "null"), (" [ ] ", "[]"), ("{}", "{}"),
      ("{\"b\":1,\"a\":[true,false]}", "{\"a\":[true,false],\"b\":1}"),
      ("12345678901234567890123", "12345678901234567890123"), ("-1.50E+3", "-1.50E+3"),
      ("\"\\u00e9\\ud83d\\ude00\\/\\n\"", "\"\u{E9}\u{1F600}/\\n\""),
      ("\"\\u0000\\u009b\\u202e\"", "\"\\u0000\\u009b\\u202e\""),
      ("{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"),
    ])
  func json(json: String, expected: String) {
    #expect(rewritten(json) == expected)
  }

  @Test(
    "Invalid JSON is refused.",
    arguments: [
      "", "[", "[1,]", "{\"a\"}", "01", "1.", "-", "nul", "\"a", "\"\\ud83d\"", "\"\\x\"", "[1]x",
      "\"\n\"", "+1", "\"\\u+123\"", "{1:2}",
    ])
  func invalidJSON(text: String) {
    #expect(rewritten(text) == nil)
  }

  @Test("Deep nesting is refused without a trap.")
  func deepNesting() {
    let depth = 100_000
    #expect(rewritten(String(repeating: "[", count: depth)) == nil)
    #expect(
      rewritten(String(repeating: "[", count: 500) + String(repeating: "]", count: 500)) != nil)
  }

  @Test("Random bytes are read without a trap.", arguments: [1, 2, 3] as [UInt64])
  func randomBytes(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    for count in 0..<300 {
      let bytes = random.bytes(count)
      for coder in 0...5 as ClosedRange<UInt8> {
        for form in ValueForm.allCases {
          var text = ""
          PayloadView(bytes, coder: coder, as: form).write(to: &text)
          #expect(form == .size || form == .none || count == 0 || !text.isEmpty)
        }
      }
    }
  }

  @Test("Property lists with every kind of value are shown.")
  func propertyLists() throws {
    struct Everything: Encodable {
      var text = "a"
      var truth = true
      var one = 1
      var real = 1.5
      var big = UInt64.max
      var date = Date(timeIntervalSinceReferenceDate: 0)
      var data = Data([1, 0xFF])
      var list = [[1], []]
    }
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    let bytes = Array(try encoder.encode(Everything()))
    var text = ""
    try #require(PropertyListTree.read(bytes)).write(to: &text)

    #expect(
      text == """
        {"big":18446744073709551615,"data":"0x01ff","date":"2001-01-01T00:00:00.000Z",\
        "list":[[1],[]],"one":1,"real":1.5,"text":"a","truth":true}
        """)
  }
}

/// Times and spans of time are parsed and printed exactly.
@Suite struct MomentTests {
  private let now = Specimen.now

  @Test(
    "A span is relative to the current time.",
    arguments: [
      ("+8d", 691_200.0), ("-90s", -90), ("+1w", 604_800), ("+0m", 0), ("-2h", -7200),
    ])
  func spans(text: String, seconds: Double) throws {
    #expect(try Moment.parse(text, from: now) == now + seconds)
  }

  @Test("ISO 8601 dates and times are parsed.")
  func dates() throws {
    let newYear = Date(timeIntervalSinceReferenceDate: 788_918_400)
    #expect(try Moment.parse("2026-01-01", from: now) == newYear)
    #expect(try Moment.parse("2026-01-01T00:00:00Z", from: now) == newYear)
    #expect(try Moment.parse("2026-01-01T00:00:00.5Z", from: now) == newYear + 0.5)
    #expect(try Moment.parse("2026-01-01T02:00:00+02:00", from: now) == newYear)
    #expect(try Moment.parse(try #require(Moment.text(newYear)), from: now) == newYear)
  }

  @Test(
    "Invalid times are refused.",
    arguments: ["", "d", "+d", "+-1d", "8d", "tomorrow", "+1y", "+99999999999d"])
  func invalidTimes(text: String) {
    #expect { try Moment.parse(text, from: now) } throws: { outcome(of: $0) == .usage }
  }

  @Test("A span is printed in its two largest units.")
  func spanTexts() {
    let rows: [(Double, String)] = [
      (0, "0s"), (0.9, "0s"), (59, "59s"), (61, "1m 1s"), (3600, "1h"), (86_400 * 7 - 1, "6d 23h"),
      (-61, "-1m 1s"), (.infinity, "-"), (.nan, "-"), (1e300, "-"), (86_401, "1d"),
    ]
    for (seconds, text) in rows { #expect(Moment.text(ofSpan: seconds) == text) }
  }

  @Test("Dates outside of the calendar have no text.")
  func datesOutOfRange() {
    for seconds in [Double.nan, .infinity, 1e300, -1e300] {
      #expect(Moment.text(Date(timeIntervalSinceReferenceDate: seconds)) == nil)
    }
    #expect(Moment.bits(Date(timeIntervalSinceReferenceDate: 0)) == "0x0000000000000000")
  }
}
