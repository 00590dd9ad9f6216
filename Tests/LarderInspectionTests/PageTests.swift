import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import LarderInspection

/// What `kvinspect serve` answers, without the network: each view has the numbers of its command.
@Suite struct PageTests {
  static let token = "0123456789abcdef0123456789abcdef"

  private static func page(
    of path: String, comparedWith other: String? = nil, style: Style = Style(),
    now: Date = Specimen.now
  ) throws -> InspectionPage {
    try InspectionPage(of: path, comparedWith: other, token: token, style: style) {
      () throws(InspectionError) in now
    }
  }

  // MARK: - Who is answered

  @Test(
    "Only this machine by its own name, with the token, and no other origin is answered.",
    arguments: [
      ("GET", "/TOKEN/", "127.0.0.1:80", nil, 200), ("HEAD", "/TOKEN/", "localhost:9", nil, 200),
      ("GET", "/TOKEN/", "LOCALHOST", "http://LOCALHOST", 200),
      ("GET", "/TOKEN/entries?a=b", "127.0.0.1", nil, 200),
      ("GET", "/TOKEN", "127.0.0.1", nil, 308),
      ("GET", "/TOKEN/", "evil.example:80", nil, 403), ("GET", "/TOKEN/", "", nil, 403),
      ("GET", "/TOKEN/", "127.0.0.1.evil.example", nil, 403),
      ("GET", "/TOKEN/", "127.0.0.1:80", "http://evil.example", 403),
      ("GET", "/TOKEN/", "127.0.0.1:80", "null", 403),
      ("GET", "/TOKEN/", "127.0.0.1:80", "http://127.0.0.1:81", 403),
      ("POST", "/TOKEN/", "127.0.0.1:80", nil, 405), ("DELETE", "/TOKEN/", "localhost", nil, 405),
      ("GET", "/", "127.0.0.1:80", nil, 404), ("GET", "", "127.0.0.1:80", nil, 404),
      ("GET", "/TOKEN0/", "127.0.0.1:80", nil, 404), ("GET", "/token/", "127.0.0.1:80", nil, 404),
      ("GET", "TOKEN/", "127.0.0.1:80", nil, 404), ("GET", "//TOKEN/", "127.0.0.1:80", nil, 404),
      ("GET", "/../TOKEN/", "127.0.0.1:80", nil, 404), ("GET", "/?/TOKEN/", "localhost", nil, 404),
      ("GET", "http://127.0.0.1/TOKEN/", "127.0.0.1", nil, 404),
    ] as [(String, String, String, String?, Int)])
  func admission(
    method: String, target: String, host: String, origin: String?, status: Int
  ) throws {
    let specimen = try Specimen()
    let page = try Self.page(of: specimen.path)
    let arrival = InspectionPage.Arrival(
      method: method, target: target.replacing("TOKEN", with: Self.token), hosts: [host],
      origins: origin.map { [$0] } ?? [])
    do throws(InspectionPage.Refusal) {
      _ = try page.admit(arrival)
      #expect(status == 200)
    } catch {
      #expect(error.head.status == status)
    }
    for hosts in [[], [host, host]] {
      var other = arrival
      other.hosts = hosts
      #expect(throws: InspectionPage.Refusal.self) { _ = try page.admit(other) }
    }
  }

  @Test("Every response forbids to keep it, to run scripts, and to put it into a frame.")
  func headers() throws {
    let specimen = try Specimen()
    let page = try Self.page(of: specimen.path)
    let refused = InspectionPage.Refusal.busy.head.headers
    let heads = try ["", "entries", "style.css", "icon.svg", "nothing"].map { path in
      try #require(page.reply(path).head).headers
    }
    for headers in heads + [refused] {
      let values = Dictionary(headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
      #expect(values["Cache-Control"] == "no-store")
      #expect(values["Referrer-Policy"] == "no-referrer")
      #expect(values["X-Content-Type-Options"] == "nosniff")
      let policy = try #require(values["Content-Security-Policy"])
      #expect(policy.hasPrefix("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"))
      #expect(!policy.contains("script-src") && !policy.contains("unsafe"))
    }
  }

  // MARK: - Views

  @Test("Each view is whole, and has no script.", arguments: ["", "entries", "expiry", "space"])
  func views(path: String) throws {
    let specimen = try Specimen.withFaults()
    let reply = try Self.page(of: specimen.path).reply(path)
    #expect(reply.head?.status == 200 && reply.isEnded)
    #expect(reply.text.hasPrefix("<!doctype html>") && reply.text.hasSuffix("</html>\n"))
    for text in ["<script", "javascript:", " onload", " style="] {
      #expect(!reply.text.contains(text))
    }
  }

  @Test("The views have the numbers of the commands.")
  func numbers() throws {
    let specimen = try Specimen.withFaults()
    let page = try Self.page(of: specimen.path)
    let inspection = try Inspection(at: specimen.path, now: Specimen.now)
    let reports: [(String, Report)] = [
      ("expiry", try inspection.timeToLive(ofCache: nil, style: Style())),
      ("space", try inspection.statistics(of: Selection(), style: Style())),
      ("entries", inspection.list(Selection(), style: Style())),
      (
        "",
        try Inspection.summary(
          specimen.path, now: Specimen.now, progress: nil, style: Style())
      ),
    ]
    for (path, report) in reports {
      let text = try page.reply(path).text
      var rows = 0
      _ = try report.rows { row in
        rows += 1
        let cells = zip(report.columns, row.cells).compactMap { $0.title == nil ? nil : $1.shown }
        #expect(text.rows.contains(cells), "\(path): \(cells) is not in \(text.rows)")
      }
      #expect(rows > 3)
    }
    #expect(try page.reply("expiry").text.contains("<dt class=\"\">backlog</dt>"))
  }

  @Test(
    "A view of a damaged store says that something may be missing, and another one does not.",
    arguments: ["", "entries", "expiry", "space"])
  func incomplete(path: String) throws {
    let note = "Damage was found, so something may be missing here."
    let damaged = try Specimen.withFaults()
    #expect(try Self.page(of: damaged.path).reply(path).text.contains(note))
    let whole = try Specimen()
    #expect(try !Self.page(of: whole.path).reply(path).text.contains(note))
    // Damage that no listed entry shows: part of the files cannot be read.
    let torn = try Specimen()
    let log = try #require(
      try FileManager.default.contentsOfDirectory(atPath: torn.path).first { $0.hasSuffix(".log") })
    let file = "\(torn.path)/\(log)"
    try #require(try FileFacts(of: file).bytes > 100)
    try Damage.flipByte(at: 50, of: file)
    #expect(try Self.page(of: torn.path).reply(path).text.contains(note))
  }

  @Test("A bar of states has a part for each, as wide as its share.")
  func stateBars() throws {
    let specimen = try Specimen.withFaults()
    let text = try Self.page(of: specimen.path).reply("").text
    // Of five genres one is fresh, one stale, one expired, one damaged, and one of a later format.
    let parts = ["good", "aging", "gone"].enumerated().map { number, style in
      "<rect class=\(style) x=\"\(number * 200)\" width=\"200\" height=\"10\"/>"
    }
    #expect(
      text.contains(parts.joined() + "<rect class=bad x=\"600\" width=\"400\" height=\"10\"/>"))
  }

  @Test("The sums of all caches are those of ttl.")
  func expirySums() throws {
    let specimen = try Specimen()
    let text = try Self.page(of: specimen.path).reply("expiry").text
    let inspection = try Inspection(at: specimen.path, now: Specimen.now)
    var sums: [String: Int] = [:]
    _ = try inspection.timeToLive(ofCache: nil, style: Style()).rows { row in
      guard case .text(let span) = row.cells[1], case .number(let count) = row.cells[2] else {
        return
      }
      sums[span, default: 0] += count
    }
    #expect(sums.count >= 3)
    for (span, count) in sums {
      #expect(text.rows.contains { $0.count == 3 && $0[0] == span && $0[1] == "\(count)" })
    }
  }

  @Test("Following the links of a list shows every entry once, in either direction.")
  func paging() throws {
    let specimen = try largeStore()
    let page = try Self.page(of: specimen.path)
    for start in ["keys=7000", "keys=7000&reverse=1"] {
      var (query, keys, pages) = (start, [String](), 0)
      while true {
        let text = try page.reply("entries", query).text
        keys += text.rows.compactMap { $0.count == 7 ? "\($0[5]) \($0[6])" : nil }
        pages += 1
        guard let next = text.link(named: "Continue") else {
          #expect(text.contains("These are the last. "))
          break
        }
        #expect(text.contains("keys were looked at, about "))
        query = String(next.dropFirst("entries?".count))
        try #require(pages < 300)
      }
      #expect(keys.count == 20_010 && Set(keys).count == keys.count)
      #expect(pages == 201)
    }
  }

  @Test("A filter that selects nothing among the first keys says so, and goes on.")
  func scanLimit() throws {
    let specimen = try largeStore()
    let page = try Self.page(of: specimen.path)
    let first = try page.reply("entries", "cache=large&match=key+9*9&keys=50").text
    #expect(first.contains("No entry is like that so far. 50 keys were looked at, about "))
    #expect(first.link(named: "Continue") != nil)
    let ranked = try page.reply("entries", "cache=large&sort=size&keys=500").text
    #expect(ranked.contains("by size of 500 keys"))
    let all = try #require(ranked.link(named: "Look at all"))
    let whole = try page.reply("entries", String(all.dropFirst("entries?".count))).text
    #expect(whole.contains("20,000 keys were looked at"))
  }

  @Test(
    "Filters select as those of ls do.",
    arguments: [
      ("cache=genres&state=stale", ["stale"]), ("cache=genres&state=fresh&state=expired", nil),
      ("cache=genres&match=*e*d", ["expired", "damaged"]), ("cache=genres&prefix=st", ["stale"]),
      ("cache=genres&age=9d", ["expired"]), ("cache=genres&bytes=1MB", []),
      ("cache=lists&bytes=1&sort=size", nil),
    ] as [(String, [String]?)])
  func filters(query: String, keys: [String]?) throws {
    let specimen = try Specimen()
    let text = try Self.page(of: specimen.path).reply("entries", query).text
    let found = text.rows.filter { $0.count == 7 }.map { $0[6] }
    if let keys { #expect(Set(found) == Set(keys)) } else { #expect(found.count >= 2) }
  }

  @Test(
    "A filter that cannot be read is an error that says what to write.",
    arguments: [
      "age=7", "bytes=much", "state=new", "sort=colour", "start=x", "keys=0", "match=[", "a=%",
    ])
  func badFilters(query: String) throws {
    let specimen = try Specimen()
    let reply = try Self.page(of: specimen.path).reply("entries", query)
    #expect(reply.head?.status == 400)
    #expect(reply.text.contains("role=alert") && reply.isEnded)
  }

  @Test("An entry has its answer, its payload, and a picture if it is one.")
  func entries() throws {
    let specimen = try Specimen.withFaults()
    let page = try Self.page(of: specimen.path)
    let fresh = try page.reply("entry", "cache=genres&key=fresh")
    #expect(fresh.head?.status == 200)
    #expect(fresh.text.contains("<code>value(for:)</code> returns the value"))
    #expect(fresh.text.contains("<span class=string>\"xyzzy\"</span>"))
    #expect(fresh.text.contains("<svg class=timeline"))
    #expect(try page.reply("entry", "cache=genres&key=damaged").text.contains("Stored bytes"))
    let user = "cache=users&key=\(Specimen.uuid.uuidString)"
    #expect(try page.reply("entry", user).text.contains("it never expires"))
    let missing = try page.reply("entry", "cache=genres&key=none")
    #expect(missing.head?.status == 404 && missing.text.contains("no read finds an entry"))
    let places = try page.reply("entry", "cache=genres&key=fresh&places=1").text
    #expect(places.contains("In the files now, newest first"))
    let saved = try page.reply("payload", "cache=genres&key=fresh")
    #expect(saved.header("Content-Type") == "application/octet-stream")
    #expect(saved.header("Content-Disposition")?.hasPrefix("attachment") == true)
    let inspection = try Inspection(at: specimen.path, now: Specimen.now)
    #expect(
      saved.bytes == (try inspection.payload(of: "fresh", cache: "genres", keys: .auto)).bytes)
    #expect(try page.reply("payload", "cache=genres&key=damaged").head?.status == 500)
  }

  @Test("Redacted, no view has a key, a value, or a link with one.")
  func redaction() throws {
    let specimen = try Specimen.withFaults()
    var style = Style()
    style.isRedacted = true
    let page = try Self.page(of: specimen.path, style: style)
    for (path, query) in [
      ("", ""), ("entries", ""), ("expiry", ""), ("space", ""),
      ("entry", "cache=genres&key=fresh"), ("entry", "cache=genres&key=damaged"),
    ] {
      let text = try page.reply(path, query).text
      // The address of a request has its key, and so has the link to a new snapshot.
      let body = text.components(separatedBy: "<main").last ?? ""
      #expect(!body.contains(Specimen.secret), "\(path)")
      #expect(path == "entry" || !body.contains(">damaged</a>"))
      #expect(!body.contains("href=\"entry?") || path == "entry")
    }
    #expect(try page.reply("payload", "cache=genres&key=fresh").head?.status == 404)
  }

  @Test("A second store can be compared with.")
  func comparison() throws {
    let (first, second) = (try Specimen(), try Specimen.withFaults())
    let page = try Self.page(of: first.path, comparedWith: second.path)
    let text = try page.reply("compare").text
    #expect(text.rows.contains { $0.suffix(2) == ["genres", "damaged"] })
    #expect(try page.reply("").text.contains("href=\"compare\""))
    #expect(try Self.page(of: first.path).reply("compare").head?.status == 404)
  }

  // MARK: - Stores that change

  @Test("All views show one snapshot, until a new one is asked for.")
  func refresh() throws {
    let specimen = try Specimen()
    let page = try Self.page(of: specimen.path)
    let store = try Specimen.open(specimen.path)
    let cache = try store.cache("later", of: Int.self)
    try cache.save(1, for: "new")
    let before = try page.reply("entries", "cache=later")
    #expect(before.head?.status == 404 && before.text.contains("later"))
    let reply = try page.reply("entries", "cache=later&refresh=1")
    #expect(reply.head?.status == 303 && reply.header("Location") == "entries?cache=later")
    #expect(try page.reply("entries", "cache=later").text.rows.count == 1)
    try store.close()
    try FileManager.default.removeItem(atPath: specimen.path)
    // The snapshot is still there; a new one is not possible.
    #expect(try page.reply("entries", "cache=later").text.rows.count == 1)
    let gone = try page.reply("", "refresh=1")
    #expect(gone.head?.status == 503 && gone.text.contains("role=alert"))
  }

  @Test("A store that cannot be opened has a page that says what to do.")
  func damaged() throws {
    let specimen = try Specimen()
    try FileManager.default.removeItem(atPath: specimen.path + "/CURRENT")
    let page = try Self.page(of: specimen.path)
    let text = try page.reply("").text
    #expect(text.contains("<dt class=\"bad\">damage</dt>") && text.contains("kvinspect repair"))
    #expect(try page.reply("entries").head?.status == 500)
    #expect(throws: InspectionError.self) { _ = try Self.page(of: specimen.path + "/none") }
  }

  @Test("A scan ends when the client leaves.")
  func leaving() throws {
    let specimen = try largeStore()
    let page = try Self.page(of: specimen.path)
    let client = Reply()
    client.leave()
    page.answer(PageRequest(path: "space", query: ""), to: client)
    #expect(client.isEnded && !client.text.contains("Sizes of keys"))
    #expect(client.text.contains("The reader of the result has left."))
  }
}

// MARK: - A client in memory

/// Keeps a response.
private final class Reply: PageClient {
  private struct State {
    var head: PageHead?
    var bytes: [UInt8] = []
    var isEnded = false
    var isThere = true
  }

  private let state = Mutex(State())

  var isThere: Bool { state.withLock { $0.isThere } }
  var head: PageHead? { state.withLock { $0.head } }
  var bytes: [UInt8] { state.withLock { $0.bytes } }
  var isEnded: Bool { state.withLock { $0.isEnded } }
  var text: String { String(decoding: bytes, as: UTF8.self) }

  func header(_ name: String) -> String? { head?.headers.first { $0.name == name }?.value }
  func leave() { state.withLock { $0.isThere = false } }
  func begin(_ head: PageHead) { state.withLock { $0.head = head } }
  func send(_ bytes: [UInt8]) { state.withLock { $0.bytes += bytes } }
  func end() { state.withLock { $0.isEnded = true } }
}

extension InspectionPage {
  fileprivate func reply(_ path: String, _ query: String = "") throws -> Reply {
    let reply = Reply()
    answer(PageRequest(path: path, query: query), to: reply)
    return reply
  }
}

extension String {
  /// The texts of the cells of all rows of tables, without those of bars.
  fileprivate var rows: [[String]] {
    components(separatedBy: "<tr>").dropFirst().map { row in
      row.components(separatedBy: "<td class=").dropFirst().filter { !$0.hasPrefix("barcell") }.map
      { cell in
        let text = cell.drop { $0 != ">" }.dropFirst()
        let end = text.range(of: "</td>")?.lowerBound ?? text.endIndex
        return String(text[..<end]).replacing(/<[^>]*>/, with: "")
          .replacing("&lt;", with: "<").replacing("&gt;", with: ">")
          .replacing("&quot;", with: "\"").replacing("&#39;", with: "'")
          .replacing("&amp;", with: "&")
      }
    }.filter { !$0.isEmpty }
  }

  /// The address of a link with this text; nil if there is none.
  fileprivate func link(named name: String) -> String? {
    guard let end = range(of: "\">\(name)</a>") else { return nil }
    let start = self[..<end.lowerBound].range(of: "<a href=\"", options: .backwards)
    return start.map { String(self[$0.upperBound..<end.lowerBound]).replacing("&amp;", with: "&") }
  }
}
