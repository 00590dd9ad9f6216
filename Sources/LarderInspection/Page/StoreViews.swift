import Foundation
import Larder

// The views that show the whole store.

extension PageAnswer {
  /// What is in the store, and what to do.
  func writeOverview() throws(InspectionError) {
    begin()
    let findings: [Finding]
    let inspection: Inspection?
    switch snapshot.inspection {
    case .success:
      let opened = try self.inspection()
      let info = try opened.info(style: style)
      for case .facts(let facts, let width) in info.sections {
        output.write(Markup(.facts(facts, width: width)))
      }
      output.write(budgets(in: opened))
      output.flush()
      findings = try opened.findings(isDeep: false, style: style)
      inspection = opened
    case .failure(let error):
      findings = try Inspection.findings(in: page.directory, notOpenedBy: error)
      inspection = nil
    }
    let todo =
      findings.isEmpty
      ? Report.Section.text("Nothing is to be done.") : .facts(Inspection.facts(of: findings))
    output.write("<h2>What to do</h2>\n\(Markup(todo))" as Markup)
    // Without what it says below the table.
    var quiet = style
    quiet.isQuiet = true
    var summary = try Inspection.summary(of: inspection, findings, in: page.directory, style: quiet)
    summary.sections = []
    if summary.hasTable { output.write("<h2>Caches</h2>\n" as Markup) }
    let states = HTMLRenderer.Bar.shares([
      ("fresh", .good), ("stale", .aging), ("expired", .gone), ("others", .bad),
    ])
    try write(summary, HTMLRenderer(summary, caption: "Caches", bar: states))
    end()
  }

  /// Sends what is above a view, before a scan of the store that may take long.
  private func beginScan() throws(InspectionError) -> Inspection {
    let inspection = try self.inspection()
    if let name = query["cache"] { _ = try inspection.catalog.cache(called: name) }
    begin()
    output.flush()
    return inspection
  }

  /// What the caches with a budget use of it.
  private func budgets(in inspection: Inspection) -> Markup {
    var rows: [[String]] = []
    var bars: [Double] = []
    for cache in inspection.catalog.caches {
      guard let budget = cache.registration?.byteBudget, budget > 0,
        let bytes = inspection.catalog.counts[cache.id] ?? nil
      else { continue }
      rows.append([
        cache.label, Amount.bytes(bytes), Amount.bytes(budget), Amount.share(bytes, of: budget),
      ])
      bars.append(min(Double(bytes) / Double(budget), 1))
    }
    guard !rows.isEmpty else { return "" }
    let columns: [Table.Column] = [
      .name("CACHE"), .number("BYTES"), .number("BUDGET"), .number("USED"),
    ]
    return "<h2>Budgets</h2>\n\(Markup.table(columns, rows, bars: bars, caption: "Budgets"))"
  }

  /// When entries expire.
  func writeExpiry() throws(InspectionError) {
    let inspection = try beginScan()
    let report = try inspection.timeToLive(ofCache: query["cache"], style: style)
    var totals: [String: (records: Int, bytes: Int)] = [:]
    _ = try report.rows { row in
      guard row.cells.count == 4, case .text(let span) = row.cells[1],
        case .number(let records) = row.cells[2], case .bytes(let bytes) = row.cells[3]
      else { return }
      let total = totals[span] ?? (0, 0)
      totals[span] = (total.records + records, total.bytes + bytes)
    }
    let spans = ExpirySpan.names.filter { totals[$0] != nil }
    let most = max(totals.values.map(\.bytes).max() ?? 0, 1)
    for section in report.sections { output.write(Markup(section)) }
    output.write("<p class=note>\(Self.expiryNote)</p>\n\(expiryLinks)" as Markup)
    output.write("<h2>All caches</h2>\n" as Markup)
    let columns: [Table.Column] = ["EXPIRES", .number("RECORDS"), .number("BYTES")]
    let rows = spans.map { span in
      [span, Amount.text(totals[span]?.records ?? 0), Amount.bytes(totals[span]?.bytes ?? 0)]
    }
    let bars = spans.map { Double(totals[$0]?.bytes ?? 0) / Double(most) }
    output.write(Markup.table(columns, rows, bars: bars, caption: "Expiry of all caches"))
    output.write("<h2>Each cache</h2>\n" as Markup)
    var rest = report
    rest.sections = []
    let renderer = HTMLRenderer(rest, caption: "Expiry of each cache", bar: .length("bytes"))
    try write(rest, renderer)
    end()
  }

  /// The entries behind the numbers, in the orders that belong to them.
  private var expiryLinks: Markup {
    let entries = PageQuery().with("cache", query["cache"])
    let links = [("ttl", "The next to expire"), ("age", "The oldest")].map {
      order, text -> Markup in
      "<a href=\"\(PageView.entries.address(entries.with("sort", order)))\">\(text)</a>\n"
    }
    return "<p class=more>\(links)</p>\n"
  }

  private static let expiryNote =
    "Each span begins where the one before it ends. Bars show bytes. The backlog is what a sweep "
    + "would delete now."

  /// What takes the room.
  func writeSpace() throws(InspectionError) {
    let inspection = try beginScan()
    var selection = Selection()
    selection.cache = query["cache"]
    let statistics = try inspection.statistics(of: selection, style: style)
    if style.isRedacted {
      output.write("<p class=note>Prefixes are parts of keys, and not shown.</p>\n" as Markup)
    } else {
      let prefixes = try inspection.prefixes(
        of: selection, delimiters: ["/", ":"], depth: 1, limit: 12, style: style)
      output.write(try treemap(of: prefixes))
    }
    let renderer = HTMLRenderer(
      statistics, caption: "Sizes of caches",
      headingBelow: "Sizes of keys and values (bars: values)")
    try write(statistics, renderer)
    for case .table(let columns, let rows, _) in try inspection.info(style: style).sections
    where columns.first?.title == "LEVEL" {
      let table = Markup.table(columns, rows, caption: "LevelDB's tables")
      output.write("<h2>LevelDB's tables</h2>\n\(table)" as Markup)
    }
    end()
  }

  /// The most rectangles of a drawing.
  private static let mostParts = 150

  private func treemap(of prefixes: Report) throws(InspectionError) -> Markup {
    var parts: [Treemap.Part] = []
    var group = -1
    // What the cache has outside of the prefixes that follow it.
    var rest: (cache: String, bytes: Int) = ("", 0)
    func addRest() {
      guard rest.bytes > 0 else { return }
      parts.append(
        Treemap.Part(
          label: rest.cache, text: Amount.bytes(rest.bytes), bytes: rest.bytes,
          address: PageView.entries(ofCache: rest.cache), group: group))
    }
    _ = try prefixes.rows { row in
      guard case .text(let cache) = row.cells[0], case .text(let prefix) = row.cells[1],
        case .bytes(let bytes) = row.cells[4], case .text(let label) = row.cells[6]
      else { return }
      if case .none = row.cells[2], prefix.isEmpty {
        addRest()
        (group, rest) = (group + 1, (cache, bytes))
      } else {
        rest.bytes -= bytes
        parts.append(
          Treemap.Part(
            label: "\(cache) \(label)", text: Amount.bytes(bytes), bytes: bytes,
            address: PageView.entries(ofCache: cache, prefix: prefix.isEmpty ? nil : prefix),
            group: group))
      }
    }
    addRest()
    parts.sort { $0.bytes > $1.bytes }
    let others = parts.dropFirst(Self.mostParts)
    if !others.isEmpty {
      let bytes = others.reduce(0) { $0 + $1.bytes }
      parts.removeLast(others.count)
      parts.append(
        Treemap.Part(
          label: "others", text: Amount.bytes(bytes), bytes: bytes, address: nil, group: 0))
    }
    let caption = "Bytes of entries by cache and prefix"
    return """
      <h2>\(caption)</h2>
      <div class=scroll role=region aria-label="\(caption)" tabindex=0>
      \(Treemap(parts).markup(caption: caption))</div>

      """
  }

  /// The changes of the store as they land.
  func writeWatch() throws(InspectionError) {
    begin()
    output.write(
      """
      <p class=note>Each change of an entry from now on, the newest at the end. Changes of one \
      batch have the same number. AGE and LEFT are those of the entry that was put.</p>
      <div class=follow role=region aria-label="Changes" tabindex=0><div>

      """ as Markup)
    var watching = Watching()
    (watching.cache, watching.limit) = (query["cache"], Self.mostChanges)
    var stream = output
    let outcome = try Inspection.watch(
      page.directory, watching, style: style, to: &stream,
      pause: {
        Inspection.pause(milliseconds: 200)
        return output.isWanted
      },
      renderer: { HTMLRenderer($0, caption: "Table of changes", isLive: true) })
    guard outcome == .fine else {
      throw InspectionError(.damaged, "a part of a log could not be read")
    }
    let count = Amount.text(Self.mostChanges)
    output.write(
      """
      \(Markup.tableEnd)</div></div>
      <p>These are \(count) changes. <a href="\(PageView.watch.address(query))">Watch on</a></p>

      """ as Markup)
    end()
  }

  /// A browser keeps every row that it was sent.
  private static let mostChanges = 10_000

  /// The entries that this store and another one do not have in common.
  func writeComparison() throws(InspectionError) {
    guard let other = page.other else {
      throw InspectionError(.notFound, "no other store was named with --compare")
    }
    let inspection = try self.inspection()
    let second = try inspection.another(at: other, key: page.key)
    let report = try inspection.differences(from: second, inCache: nil, style: style)
    begin()
    output.write("<p>The first is this store, the second is <code>\(other)</code>.</p>\n" as Markup)
    output.flush()
    try write(report, HTMLRenderer(report, caption: "Differences"))
    end()
  }
}
