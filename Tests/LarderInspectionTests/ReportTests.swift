import Foundation
import Larder
import LarderInspection
import LarderTestSupport
import Testing

/// Commands write the expected report in each format and for each state of a record.
@Suite struct ReportTests {
  let specimen: Specimen
  let inspection: Inspection

  init() throws {
    specimen = try Specimen.withFaults()
    inspection = try specimen.inspect()
  }

  private var masks: [(String, String)] { [(specimen.path, "STORE")] }

  @Test("`ls` shows every state, key type and coder.", arguments: ReportFormat.allCases)
  func list(format: ReportFormat) throws {
    let (text, status) = try inspection.listReport(Selection(), Style(format))

    #expect(status == .damaged)
    try expectSnapshot(text, named: "ls.\(format)", masking: masks)
  }

  @Test("`info` shows caches and files.", arguments: [ReportFormat.table, .json, .jsonl])
  func info(format: ReportFormat) throws {
    let fresh = try Specimen()
    let (text, status) = try fresh.inspect().infoReport(Style(format))

    #expect(status == .fine)
    try expectSnapshot(text, named: "info.\(format)", masking: [(fresh.path, "STORE")])
  }

  @Test("`info` shows the newest schema version of a cache that an older program opened last.")
  func newestSchemaVersion() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    _ = try store.cache(
      "users", of: Specimen.Title.self, keyedBy: UUID.self, schema: Schema(version: 2))
    try store.close()
    #expect(try specimen.inspect().infoReport(Style(.table)).0.contains("2 (newest 3)"))
    #expect(
      try specimen.inspect().infoReport(Style(.jsonl)).0
        .contains("\"schemaVersion\":2,\"newestSchemaVersion\":3"))
  }

  @Test("`ttl` shows when records expire.", arguments: ReportFormat.allCases)
  func ttl(format: ReportFormat) throws {
    var text = ""
    let status = try inspection.timeToLive(ofCache: nil, style: Style(format)).write(to: &text)

    #expect(status == .damaged)
    try expectSnapshot(text, named: "ttl.\(format)", masking: masks)
  }

  @Test("`ttl` uses the given time and cache.")
  func ttlOptions() throws {
    let specimen = try Specimen()
    let later = try Inspection(at: specimen.path, now: Specimen.now + 40 * 86_400)
    var text = ""
    #expect(try later.timeToLive(ofCache: "genres", style: Style(.csv)).write(to: &text) == .fine)
    #expect(text.hasPrefix("cache,expires,records,bytes\ngenres,already,5,"))
    #expect(!text.contains("lists"))
  }

  @Test("`get` shows the state of a record.", arguments: ["fresh", "stale", "expired", "damaged"])
  func states(key: String) throws {
    let (text, status) = try inspection.getReport(key)

    #expect(status == (key == "damaged" ? .damaged : .fine))
    try expectSnapshot(text, named: "get.\(key)", masking: masks)
  }

  @Test(
    "`get` decodes every coder's payloads without their types.",
    arguments: ["-7", "01020304-0506-0708-090A-0B0C0D0E0F10", "0x00ff", "0x"])
  func coders(key: String) throws {
    try expectSnapshot(
      try inspection.getReport(key).text, named: "get.coder.\(key)", masking: masks)
    try expectSnapshot(
      try inspection.getReport(key, Style(.json)).text, named: "get.coder.\(key).json",
      masking: masks)
  }

  @Test("Values are written in the given form.", arguments: ValueForm.allCases)
  func valueForms(form: ValueForm) throws {
    var style = Style()
    style.values = form
    style.isQuiet = true

    try expectSnapshot(try inspection.getReport("0x00ff", style).text, named: "values.\(form)")
  }

  @Test("`get` reports a record of a later format.")
  func laterFormat() throws {
    let key = "0x" + "two\nlines".utf8.map { String(format: "%02x", $0) }.joined()
    let (text, status) = try inspection.getReport(key)

    #expect(status == .unsupported)
    #expect(text.contains("record format 2"))
  }

  @Test("Missing keys and caches are not found.")
  func missing() {
    #expect { try inspection.getReport("nobody") } throws: { outcome(of: $0) == .notFound }
    #expect { try inspection.getReport("fresh", cache: "none") } throws: {
      outcome(of: $0) == .notFound
    }
    #expect { try inspection.getReport("fresh", cache: "lists") } throws: {
      outcome(of: $0) == .usage
    }
  }

  @Test("A key in several caches requires the cache's name.")
  func ambiguousKey() throws {
    let clash = try Specimen()
    let store = try Specimen.open(clash.path)
    try store.cache("other", of: Int.self).save(1, for: "fresh")
    try store.close()
    let inspection = try clash.inspect()

    #expect { try inspection.getReport("fresh") } throws: { outcome(of: $0) == .usage }
    #expect(try inspection.getReport("fresh", cache: "other").status == .fine)
  }

  @Test("`get --raw` writes the payload only.")
  func raw() throws {
    let (bytes, isExpired) = try inspection.payload(of: "0x00ff", cache: nil, keys: .auto)

    #expect(bytes == Array("xyzzy as text".utf8))
    #expect(!isExpired)
    #expect(try inspection.payload(of: "expired", cache: nil, keys: .auto).isExpired)
    #expect { try inspection.payload(of: "damaged", cache: nil, keys: .auto) } throws: {
      outcome(of: $0) == .damaged
    }
  }

  @Test(
    "Redacted reports show no key and no value.", arguments: ReportFormat.allCases,
    ValueForm.allCases)
  func redaction(format: ReportFormat, values: ValueForm) throws {
    var style = Style(format)
    style.isRedacted = true
    style.values = values
    var text = try inspection.listReport(Selection(), style).text
    if format != .csv {
      for key in ["fresh", "-7", "0x00ff", "0x", "damaged", "\(Specimen.uuid)"] {
        text += try inspection.getReport(key, cache: nil, style).text
      }
    }

    for word in [
      Specimen.secret, "key\":\"stale", "  stale\n", "two", "00ff", "78797a7a79", "01020304", " -7",
      "\"-7",
    ] {
      #expect(!text.contains(word), "\(word)")
    }
  }

  @Test("`get` shows the state at the given time.")
  func statesAtATime() throws {
    let later = try Inspection(at: specimen.path, now: Specimen.now + 8 * 86_400)
    let text = try later.getReport("fresh").text

    #expect(text.contains("state      stale"))
    #expect(try later.getReport("stale").text.contains("state      stale"))
    #expect(try later.getReport("0x00ff").text.contains("state      expired"))
  }
}

func outcome(of error: any Error) -> Outcome? { (error as? InspectionError)?.status }
