import Foundation
import Larder

/// What is around every view: the store, the views, and the age of the snapshot.
struct PageFrame {
  private let page: InspectionPage
  private let snapshot: InspectionPage.Snapshot
  private let view: PageView
  private let query: PageQuery
  private let title: String

  init(
    _ page: InspectionPage, _ snapshot: InspectionPage.Snapshot, _ view: PageView = .overview,
    _ query: PageQuery = PageQuery(), title: String? = nil
  ) {
    (self.page, self.snapshot, self.view, self.query) = (page, snapshot, view, query)
    self.title = title ?? view.title
  }

  /// What is before the view.
  var begin: Markup {
    let name = page.directory.split(separator: "/").last.map(String.init) ?? page.directory
    return """
      <!doctype html>
      <html lang=en>
      <head>
      <meta charset=utf-8>
      <title>\(title) - \(name) - kvinspect</title>
      <meta name=viewport content="width=device-width, initial-scale=1">
      <meta name=color-scheme content="light dark">
      <link rel=stylesheet href="\(PageView.style.rawValue)">
      <link rel=icon href="\(PageView.icon.rawValue)" type="image/svg+xml">
      </head>
      <body>
      <a class=skip href="#main">Skip to the view</a>
      <header>
      <p class=store title="\(page.directory)"><b>\(name)</b> <span>\(page.directory)</span></p>
      <nav aria-label="Views"><ul>\(tabs)</ul></nav>
      \(moment)</header>
      <main id=main>
      <h1>\(title)</h1>

      """
  }

  /// What is behind the view.
  static let end: Markup = "</main>\n</body>\n</html>\n"

  private var tabs: [Markup] {
    var views: [PageView] = [.overview, .entries, .expiry, .space, .watch]
    if page.other != nil { views.append(.compare) }
    return views.map { tab in
      // An entry is one of the entries.
      let isCurrent = tab == view || tab == .entries && view == .entry
      let mark: Markup = isCurrent ? " aria-current=page" : ""
      return "<li><a href=\"\(tab.address())\"\(mark)>\(tab.title)</a></li>\n"
    }
  }

  /// When the snapshot was taken, and how to get a new one.
  private var moment: Markup {
    let address = view.address(query.with("refresh", "1"))
    let link: Markup = "<a href=\"\(address)\">Take a new one</a>"
    guard case .success(let inspection) = snapshot.inspection else {
      return "<p class=moment>There is no snapshot. \(link)</p>\n"
    }
    let (taken, now) = (snapshot.takenAt, inspection.now)
    let age = Moment.text(ofSpan: max(0, Moment.now().timeIntervalSince(taken)))
    let time = (Moment.text(taken) ?? "").prefix(19).replacing("T", with: " ")
    let isOther = abs(now.timeIntervalSince(taken)) > 1
    let judged = isOther ? ", judged as of \(Moment.anyText(now))" : ""
    return """
      <p class=moment>Snapshot of \(String(time)) UTC, \(age) ago\(judged). \(link)</p>

      """
  }
}
