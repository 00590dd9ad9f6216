import Foundation
import Larder

extension PageAnswer {
  /// The most rows of a list.
  private static let pageRows = 100
  /// The keys that are looked at for one page, unless more are asked for.
  private static let scannedKeys = 100_000
  /// The caches that a menu offers; of more, the name is typed.
  private static let menuCaches = 200

  /// The entries of a selection, page by page.
  func writeEntries() throws(InspectionError) {
    let inspection = try self.inspection()
    let selection = try selection()
    begin()
    output.write(form(selection, in: inspection))
    let report = inspection.list(selection, style: style)
    let (rows, ending) = try write(
      report, HTMLRenderer(report, caption: "Entries"))
    if let scan = ending.scan {
      output.write(note(of: scan, rows: rows, selection))
    }
    end()
  }

  /// The selection that a query describes.
  private func selection() throws(InspectionError) -> Selection {
    var selection = Selection()
    (selection.cache, selection.prefix, selection.match) = (
      query["cache"], query["prefix"], query["match"]
    )
    selection.tag = query["tag"]
    func read<Value>(
      _ name: String, _ what: String, _ value: (String) -> Value?
    ) throws(InspectionError) -> Value? {
      guard let text = query[name] else { return nil }
      if let value = value(text) { return value }
      throw InspectionError(.usage, "\(text.shortened) is not \(what)")
    }
    let states = query.all("state").compactMap(RecordState.init)
    guard states.count == query.all("state").count else {
      throw InspectionError(.usage, "one of the states is not a state of an entry")
    }
    if !states.isEmpty { selection.states = Set(states) }
    selection.leastBytes = try read("bytes", "a size: write 500, 20KB or 1.5MB", Amount.bytes(of:))
    selection.leastAge = try read("age", "a span: write 90s, 12h or 7d", Moment.seconds(ofSpan:))
    selection.order = try read("sort", "an order", RecordOrder.init) ?? .key
    selection.isReversed = query["reverse"] != nil
    selection.start = try read("start", "a place in the store", RecordPlace.init)
    selection.limit = Self.pageRows
    if query["keys"] != "all" {
      selection.scanLimit =
        try read("keys", "a number of keys") { Int($0).flatMap { $0 > 0 ? $0 : nil } }
        ?? Self.scannedKeys
    }
    return selection
  }

  /// How many keys were looked at, with links to the next ones.
  private func note(of scan: ScanEnd, rows: Int, _ selection: Selection) -> Markup {
    let keys = Amount.text(scan.keys)
    let share = scan.share.map { ", about \(Int(100 * $0)) % of the way" } ?? ""
    func link(_ text: String, _ query: PageQuery) -> Markup {
      "<a href=\"\(PageView.entries.address(query))\">\(text)</a>\n"
    }
    let first =
      selection.start == nil ? "" as Markup : link("To the first page", query.with("start", nil))
    guard let next = scan.next else {
      let isFirst = selection.start == nil
      let what =
        rows == 0 ? "No entry is like that" : isFirst ? "These are all" : "These are the last"
      return "<p class=more><span>\(what). \(keys) keys were looked at.</span>\(first)</p>\n"
    }
    guard selection.order == .key else {
      let limit = selection.scanLimit ?? Self.scannedKeys
      let more = limit.multipliedReportingOverflow(by: 10)
      let moreKeys = more.overflow ? Int.max : more.partialValue
      return """
        <p class=more><span>The first \(rows) by \(selection.order.rawValue) of \(keys) keys, \
        and not of all\(share).</span>
        \(link("Look at \(Amount.text(moreKeys)) keys", query.with("keys", "\(moreKeys)")))\
        \(link("Look at all", query.with("keys", "all")))</p>

        """
    }
    let what = rows == 0 ? "No entry is like that so far" : "\(rows) entries"
    return """
      <p class=more><span>\(what). \(keys) keys were looked at\(share).</span>
      \(link("Continue", query.with("start", next.text)))\(first)</p>

      """
  }

  private func form(_ selection: Selection, in inspection: Inspection) -> Markup {
    func field(_ label: String, _ name: String, size: Int, hint: String = "") -> Markup {
      """
      <div class=field><label for="\(name)">\(label)</label>\
      <input id="\(name)" name="\(name)" size=\(size) value="\(query[name] ?? "")" \
      placeholder="\(hint)" autocomplete=off spellcheck=false></div>

      """
    }
    func option(_ value: String, _ text: String, isChosen: Bool) -> Markup {
      "<option value=\"\(value)\"\(isChosen ? " selected" as Markup : "")>\(text)</option>\n"
    }
    let caches = inspection.catalog.caches.map(\.label)
    let cache: Markup
    if caches.count > Self.menuCaches {
      cache = field("Cache", "cache", size: 16)
    } else {
      // A cache without a registration is not in the list, and may be selected.
      func isChosen(_ name: String) -> Bool {
        selection.cache?.utf8.elementsEqual(name.utf8) == true
      }
      let unlisted = caches.contains(where: isChosen) ? [] : selection.cache.map { [$0] } ?? []
      let names = (caches + unlisted).map { option($0, $0, isChosen: isChosen($0)) }
      cache = """
        <div class=field><label for=cache>Cache</label><select id=cache name=cache>
        \(option("", "all", isChosen: selection.cache == nil))\(names)</select></div>

        """
    }
    let states = RecordState.allCases.map { state -> Markup in
      let isChosen = query.all("state").contains(state.rawValue)
      return """
        <label><input type=checkbox name=state value="\(state.rawValue)"\
        \(isChosen ? " checked" as Markup : "")>\(state.rawValue)</label>

        """
    }
    let orders = RecordOrder.allCases.map { order in
      option(order.rawValue, order.words, isChosen: order == selection.order)
    }
    return """
      <form action="\(PageView.entry.rawValue)">
      <div class=field><label for=key>Key</label>\
      <input id=key name=key size=32 required autocomplete=off spellcheck=false></div>
      <button>Show the entry</button>
      </form>
      <form action="\(PageView.entries.rawValue)">
      \(cache)\(field("Keys begin with", "prefix", size: 16))\
      \(field("Keys match", "match", size: 16, hint: "*, ?, [a-z]"))\
      \(field("Tag", "tag", size: 8))\
      \(field("Bytes, at least", "bytes", size: 8, hint: "20KB"))\
      \(field("Age, at least", "age", size: 6, hint: "7d"))
      <div class=field><label for=sort>Order</label><select id=sort name=sort>
      \(orders)</select></div>
      <fieldset><legend>State</legend>\(states)</fieldset>
      <fieldset><legend>Direction</legend><label><input type=checkbox name=reverse value=1\
      \(selection.isReversed ? " checked" as Markup : "")>reversed</label></fieldset>
      <button>Filter</button> <a href="\(PageView.entries.rawValue)">Show all</a>
      </form>

      """
  }
}

extension RecordOrder {
  fileprivate var words: String {
    switch self {
    case .key: "by key"
    case .size: "largest first"
    case .age: "oldest first"
    case .ttl: "next to expire first"
    }
  }
}

extension RecordPlace {
  /// The place as a part of an address: the number of the cache, and the key in hex.
  var text: String { "\(cache)-\(KeyForm.hex(key))" }

  /// Reads ``text``; nil for anything else.
  init?(_ text: String) {
    let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let cache = UInt64(parts[0]),
      let key = KeyForm.bytes(ofHex: String(parts[1]))
    else { return nil }
    self.init(cache: cache, key: key)
  }
}
