import Foundation
import Larder

extension PageAnswer {
  /// A document of JSON takes some hundred times its size while it is shown.
  private static let mostReadBytes = 512 << 10
  /// Of bytes that are shown in hex, so many.
  private static let mostStoredBytes = 2048

  /// An entry: what a read would return and why, its times, its payload and where it is on disk.
  func writeEntry() throws(InspectionError) {
    let inspection = try self.inspection()
    guard let key = query["key"] else { throw InspectionError(.usage, "the address has no key") }
    let cache = query["cache"]
    let why = try inspection.why(key, cache: cache, style: style)
    var answer: Markup = ""
    for section in why.sections { answer += Markup(section) }
    let outcome = try why.rows { _ in }.outcome
    if outcome == .notFound { output.replace(by: PageHead(404)) }
    begin()
    output.write(answer)
    if outcome != .notFound {
      let found: FoundRecord
      do throws(InspectionError) {
        found = try inspection.record(under: key, cache: cache, keys: style.keys)
      } catch {
        // Several caches have the key, and each of them was answered for.
        output.write(Markup(error))
        return end()
      }
      output.write(Timeline(of: found, at: inspection.now)?.markup ?? "")
      if !style.isRedacted {
        let payload = PageView.payload.address(
          PageQuery().with("cache", found.cache.label).with("key", key))
        output.write(view(of: found, at: payload))
      }
      output.write(try places(of: key, in: found.cache))
    }
    end()
  }

  private func view(of found: FoundRecord, at address: String) -> Markup {
    guard case .success(let record) = found.content, let payload = found.payload else {
      // Nothing in it can be trusted, so it is shown as it is.
      return "<h2>Stored bytes</h2>\n\(Markup(.hex(found.bytes, shown: Self.mostStoredBytes)))"
    }
    let size = Amount.bytes(payload.count)
    let view: Markup =
      if ImageKind(payload) != nil {
        "<img class=picture src=\"\(address)\" alt=\"The payload as a picture\">\n"
      } else if payload.count > Self.mostReadBytes {
        Markup(.hex(payload, shown: Self.mostStoredBytes))
      } else {
        Markup(PayloadView(payload, coder: record.coder, as: .auto))
      }
    return """
      <h2>Payload</h2>
      <p class=more><span>\(size), \(coderName(record.coder))</span> \
      <a href="\(address)&amp;save=1">Save it</a></p>
      \(view)
      """
  }

  /// The traces of the key in the store's files, or a link to them: all files are read.
  private func places(
    of key: String, in cache: KnownCache
  ) throws(InspectionError) -> Markup {
    guard query["places"] != nil else {
      let address = PageView.entry.address(query.with("places", "1"))
      return "<p><a href=\"\(address)\">Find it in the files</a></p>\n"
    }
    let report = try Inspection.find(
      key, cache: cache.label, isDatabaseKey: false, in: page.directory, style: style)
    var (renderer, text) = (HTMLRenderer(report, caption: "Places in the files"), "")
    _ = try report.write(with: &renderer, to: &text)
    return "<h2>In the files now, newest first</h2>\n\(Markup(markup: text))"
  }

  /// The bytes of a payload: an image as a picture, anything else to be saved.
  func writePayload() throws(InspectionError) {
    guard !style.isRedacted else {
      throw InspectionError(.notFound, "payloads are not shown with --redact")
    }
    guard let key = query["key"] else { throw InspectionError(.usage, "the address has no key") }
    let bytes = try inspection().payload(
      of: key, cache: query["cache"], keys: style.keys
    ).bytes
    let image = query["save"] == nil ? ImageKind(bytes) : nil
    let type = image?.rawValue ?? "application/octet-stream"
    let saving = ("Content-Disposition", "attachment; filename=\"payload\"")
    output.replace(by: PageHead(200, type: type, more: image == nil ? [saving] : []))
    // Piece by piece: a value may have 32 MiB.
    for start in stride(from: 0, to: bytes.count, by: 1 << 16) {
      output.write(bytes: bytes[start..<min(start + (1 << 16), bytes.count)])
    }
  }
}

/// A drawing of when an entry is fresh, stale and expired.
private struct Timeline {
  private static let width = 1000.0

  private let saved: Date
  private let freshEnd: Date?
  private let expiry: Date?
  private let now: Date
  private let start: Date
  private let end: Date

  /// Nil if the record cannot be read, or its dates are no dates.
  init?(of found: FoundRecord, at now: Date) {
    guard case .success(let record) = found.content,
      record.savedAt.timeIntervalSinceReferenceDate.isFinite
    else { return nil }
    self.now = now
    saved = record.savedAt
    let lifetime = (found.cache.registration?.lifetime).map { $0.applied(to: record) }
    expiry = found.expiry(of: record)
    freshEnd = lifetime.map { $0.freshEnd(from: record.savedAt) } ?? record.expiresAt
    let dates = [saved, freshEnd, expiry, now].compactMap { $0 }
    let (first, last) = (dates.min() ?? now, dates.max() ?? now)
    let margin = max(last.timeIntervalSince(first) * 0.05, 1)
    (start, end) = (first - margin, last + margin)
    guard end.timeIntervalSince(start).isFinite else { return nil }
  }

  private func place(_ date: Date) -> Double {
    Self.width * date.timeIntervalSince(start) / end.timeIntervalSince(start)
  }

  var markup: Markup {
    let fresh = freshEnd.map(place) ?? Self.width
    let gone = expiry.map(place) ?? Self.width
    var spans = span("freshspan", from: place(saved), to: min(fresh, gone))
    spans += span("stalespan", from: fresh, to: gone)
    spans += span("gonespan", from: gone, to: Self.width)
    var labels: Markup = ""
    var y = 66
    for (name, date) in [("saved", saved), ("fresh until", freshEnd), ("expires", expiry)] {
      guard let date, name != "fresh until" || date != expiry else { continue }
      labels += label(name, date, y: y)
      y += 18
    }
    let x = place(now)
    let caption = "When the entry is fresh, stale and expired"
    return """
      <h2>Time</h2>
      <div class=scroll role=region aria-label="\(caption)" tabindex=0>
      <svg class=timeline viewBox="0 0 1000 \(y)" role=img aria-label="\(caption)">
      \(spans)\(labels)\
      <line class=now x1="\(x)" x2="\(x)" y1="16" y2="52"/>
      <text class=nowtext x="\(x)" y="12" text-anchor="\(anchor(x))">now</text>
      </svg></div>

      """
  }

  private func span(_ style: String, from: Double, to: Double) -> Markup {
    guard to > from else { return "" }
    return """
      <rect class="\(style)" x="\(from)" y="24" width="\(to - from)" height="20"/>

      """
  }

  private func label(_ name: String, _ date: Date, y: Int) -> Markup {
    let x = place(date)
    return """
      <text x="\(x)" y="\(y)" text-anchor="\(anchor(x))">\(name) \(Moment.anyText(date))</text>

      """
  }

  /// A label is on the side of its place where there is room.
  private func anchor(_ x: Double) -> String { x < Self.width / 2 ? "start" : "end" }
}
