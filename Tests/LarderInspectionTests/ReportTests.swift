import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import Testing

/// What commands write, in each format and for each state of a record.
@Suite struct ReportTests {
  let specimen: Specimen
  let inspection: Inspection

  init() throws {
    specimen = try Specimen()
    try specimen.withEngine { engine in
      try engine.flipByte(from: [0x10], ending: "damaged")
      try engine.makeUnsupported(from: [0x10], ending: "two\nlines")
    }
    inspection = try specimen.inspect()
  }

  private var masks: [(String, String)] { [(specimen.path, "STORE")] }

  @Test(arguments: ReportFormat.allCases)
  func listShowsEveryStateKeyKindAndCoder(format: ReportFormat) throws {
    let (text, status) = try inspection.listed(Selection(), Style(format))

    #expect(status == .damaged)
    try expectSnapshot(text, named: "ls.\(format)", masking: masks)
  }

  @Test(arguments: [ReportFormat.table, .json, .jsonl])
  func infoTellsCachesAndFiles(format: ReportFormat) throws {
    let fresh = try Specimen()
    let (text, status) = try fresh.inspect().told(Style(format))

    #expect(status == .fine)
    try expectSnapshot(text, named: "info.\(format)", masking: [(fresh.path, "STORE")])
  }

  @Test("Info shows the newest schema version of a cache that an older program has opened.")
  func infoTellsTheNewestSchemaVersion() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    _ = try store.cache(
      "users", of: Specimen.Title.self, keyedBy: UUID.self, schema: Schema(version: 2))
    try store.close()
    #expect(try specimen.inspect().told(Style(.table)).0.contains("2 (newest 3)"))
    #expect(
      try specimen.inspect().told(Style(.jsonl)).0
        .contains("\"schemaVersion\":2,\"newestSchemaVersion\":3"))
  }

  @Test(arguments: ReportFormat.allCases)
  func ttlTellsWhenRecordsExpire(format: ReportFormat) throws {
    var text = ""
    let status = try inspection.timeToLive(ofCache: nil, style: Style(format), to: &text)

    #expect(status == .damaged)
    try expectSnapshot(text, named: "ttl.\(format)", masking: masks)
  }

  @Test func ttlIsOfTheMomentAndTheCacheAskedFor() throws {
    let specimen = try Specimen()
    let later = try Inspection(at: specimen.path, now: Specimen.now + 40 * 86_400)
    var text = ""
    #expect(try later.timeToLive(ofCache: "genres", style: Style(.csv), to: &text) == .fine)
    #expect(text.hasPrefix("cache,expires,records,bytes\ngenres,already,5,"))
    #expect(!text.contains("lists"))
  }

  @Test(arguments: ["fresh", "stale", "expired", "damaged"])
  func getTellsTheStatesOfARecordApart(key: String) throws {
    let (text, status) = try inspection.gotten(key)

    #expect(status == (key == "damaged" ? .damaged : .fine))
    try expectSnapshot(text, named: "get.\(key)", masking: masks)
  }

  @Test(arguments: ["-7", "01020304-0506-0708-090A-0B0C0D0E0F10", "0x00ff", "0x"])
  func getDecodesEveryCoderWithoutTheTypes(key: String) throws {
    try expectSnapshot(
      try inspection.gotten(key).text, named: "get.coder.\(key)", masking: masks)
    try expectSnapshot(
      try inspection.gotten(key, Style(.json)).text, named: "get.coder.\(key).json",
      masking: masks)
  }

  @Test(arguments: ValueForm.allCases)
  func valuesAreWrittenAsAskedFor(form: ValueForm) throws {
    var style = Style()
    style.values = form
    style.isQuiet = true

    try expectSnapshot(try inspection.gotten("0x00ff", style).text, named: "values.\(form)")
  }

  @Test func getOfALaterFormatSaysSo() throws {
    let key = "0x" + "two\nlines".utf8.map { String(format: "%02x", $0) }.joined()
    let (text, status) = try inspection.gotten(key)

    #expect(status == .unsupported)
    #expect(text.contains("record format 2"))
  }

  @Test func missingKeysAndCachesAreNotFound() {
    #expect { try inspection.gotten("nobody") } throws: { outcome(of: $0) == .notFound }
    #expect { try inspection.gotten("fresh", cache: "none") } throws: {
      outcome(of: $0) == .notFound
    }
    #expect { try inspection.gotten("fresh", cache: "lists") } throws: { outcome(of: $0) == .usage }
  }

  @Test func aKeyOfSeveralCachesAsksForTheCache() throws {
    let clash = try Specimen()
    let store = try Specimen.open(clash.path)
    try store.cache("other", of: Int.self).save(1, for: "fresh")
    try store.close()
    let inspection = try clash.inspect()

    #expect { try inspection.gotten("fresh") } throws: { outcome(of: $0) == .usage }
    #expect(try inspection.gotten("fresh", cache: "other").status == .fine)
  }

  @Test func rawIsThePayloadAndNothingElse() throws {
    let (bytes, isExpired) = try inspection.payload(of: "0x00ff", cache: nil, keys: .auto)

    #expect(bytes == Array("xyzzy as text".utf8))
    #expect(!isExpired)
    #expect(try inspection.payload(of: "expired", cache: nil, keys: .auto).isExpired)
    #expect { try inspection.payload(of: "damaged", cache: nil, keys: .auto) } throws: {
      outcome(of: $0) == .damaged
    }
  }

  @Test(arguments: ReportFormat.allCases, ValueForm.allCases)
  func redactedReportsShowNoKeyAndNoValue(format: ReportFormat, values: ValueForm) throws {
    var style = Style(format)
    style.isRedacted = true
    style.values = values
    var text = try inspection.listed(Selection(), style).text
    if format != .csv {
      for key in ["fresh", "-7", "0x00ff", "0x", "damaged", "\(Specimen.uuid)"] {
        text += try inspection.gotten(key, cache: nil, style).text
      }
    }

    for word in [
      Specimen.secret, "key\":\"stale", "  stale\n", "two", "00ff", "78797a7a79", "01020304", " -7",
      "\"-7",
    ] {
      #expect(!text.contains(word), "\(word)")
    }
  }

  @Test func statesAreThoseOfTheMomentAskedFor() throws {
    let later = try Inspection(at: specimen.path, now: Specimen.now + 8 * 86_400)
    let text = try later.gotten("fresh").text

    #expect(text.contains("state      stale"))
    #expect(try later.gotten("stale").text.contains("state      stale"))
    #expect(try later.gotten("0x00ff").text.contains("state      expired"))
  }
}

func outcome(of error: any Error) -> Outcome? { (error as? InspectionError)?.status }
