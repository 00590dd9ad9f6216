import Dispatch
import Foundation
import Larder

/// What ``Inspection/watch(_:_:style:to:pause:)`` follows.
package struct Watching: Sendable {
  /// Only this cache, by name or as `#` and its number.
  package var cache: String?
  /// Ends after this number of rows; nil for never.
  package var limit: Int?
  /// Begins with what the logs hold, and not with the next change.
  package var fromStart = false
  /// Lists rows of notes and of the metadata, too.
  package var listsAll = false

  /// Watches all entries from now on.
  package init() {}
}

/// An output that shows what was written to it when it is flushed.
package protocol FlushedOutput: TextOutputStream {
  mutating func flush()
}

extension Inspection {
  /// Writes the changes of a store's entries as they land in the write-ahead log.
  ///
  /// It reads the logs and nothing else of the store, except that a private snapshot is opened once
  /// at the start for the names of the caches.
  ///
  /// - Parameters:
  ///   - directory: A store's directory, by any path.
  ///   - watching: The changes to be listed.
  ///   - style: The style of the report; not `json`, whose document would never end.
  ///   - output: Receives the report, and is flushed before each pause.
  ///   - pause: Waits before the logs are read again; returns false to end.
  /// - Returns: `damaged` if a part of a log cannot be read.
  /// - Throws: An ``InspectionError`` with the status `unavailable` or `unsupported` if there is no
  ///   store, `usage`, `io`.
  /// - Complexity: A listing of the directory before each pause, and a read of what is new.
  package static func watch(
    _ directory: String, _ watching: Watching, style: Style, to output: inout some FlushedOutput,
    pause: () -> Bool
  ) throws(InspectionError) -> Outcome {
    try requireStreamed(style)
    return try watch(directory, watching, style: style, to: &output, pause: pause) { $0.renderer }
  }

  /// The same, with a renderer of another kind.
  static func watch(
    _ directory: String, _ watching: Watching, style: Style, to output: inout some FlushedOutput,
    pause: () -> Bool, renderer: (Report) -> any Renderer
  ) throws(InspectionError) -> Outcome {
    let path = try FileAccess.directory(directory)
    _ = try identify(path)
    var follower = try LogFollower(of: path, fromStart: watching.fromStart)
    // Read after the place in the log was found: later caches are registered in what follows.
    var changes = ChangeRows(watching, CacheNames(of: path), style: style)
    var renderer = renderer(
      Report(style: style, title: DatabaseFiles.title(of: path), columns: ChangeRows.columns))
    renderer.begin(to: &output)
    output.flush()
    repeat {
      let now = Moment.now()
      try follower.poll { event in
        changes.read(event, at: now) { renderer.add($0, to: &output) }
      }
      // A table begins with its first row, whose texts set the widths of the columns.
      if changes.count > 0 { renderer.flush(to: &output) }
      output.flush()
    } while !changes.isFull && pause()
    return changes.outcome
  }

  /// Waits for some milliseconds.
  package static func pause(milliseconds: Int) {
    _ = DispatchSemaphore(value: 0).wait(timeout: .monotonicNow + .milliseconds(milliseconds))
  }

  static func requireStreamed(_ style: Style) throws(InspectionError) {
    guard style.format != .json else {
      throw InspectionError(.usage, "watch does not support json, whose document ends; use jsonl")
    }
  }
}

/// The caches of a store by their numbers.
private struct CacheNames {
  private var caches: [UInt64: KnownCache] = [:]
  let invalidatedTags: InvalidatedTags

  /// Reads the names in a private snapshot; there are none if that cannot be opened.
  init(of path: String) {
    do {
      let catalog = try Inspection(at: path, now: Moment.now()).catalog
      for cache in catalog.caches { caches[cache.id] = cache }
      invalidatedTags = catalog.invalidatedTags
    } catch {
      // The changes are shown nevertheless, with the numbers of their caches.
      invalidatedTags = InvalidatedTags()
    }
  }

  subscript(id: UInt64) -> KnownCache {
    caches[id] ?? KnownCache(id: id, name: nil, registration: nil)
  }

  /// Notes a cache that a change registers, under a new number or with new settings.
  mutating func note(_ change: LogFollower.Change) {
    guard change.key.starts(with: Metadata.cachePrefix), let value = change.value,
      case .registration(let registration) = Registration.read(value, under: change.key)
    else { return }
    caches[registration.id] = KnownCache(
      id: registration.id, name: Metadata.cacheName(in: change.key), registration: registration)
  }
}

/// The rows of changes.
private struct ChangeRows {
  static let columns: [Report.Column] = [
    .init("CHANGE", "change"), .init(.number("BATCH"), "batch"),
    .init(.number("SIZE"), "storedBytes"), .init("AGE", "savedAt"), .init("LEFT", "expiresAt"),
    .init(.name("CACHE"), "cache"), .init(.name("KEY"), "key"),
  ]

  private let watching: Watching
  private let style: Style
  private var caches: CacheNames
  private(set) var count = 0
  private(set) var outcome = Outcome.fine

  init(_ watching: Watching, _ caches: CacheNames, style: Style) {
    (self.watching, self.caches, self.style) = (watching, caches, style)
  }

  var isFull: Bool { watching.limit.map { count >= $0 } ?? false }

  /// Calls `body` with the rows of an event, up to the limit.
  mutating func read(_ event: LogFollower.Event, at now: Date, _ body: (Report.Row) -> Void) {
    func add(_ cells: [Report.Cell], _ tint: Tint) {
      guard !isFull else { return }
      count += 1
      body(Report.Row(cells, tint: tint))
    }
    switch event {
    case .batch(let sequence, let changes):
      for change in changes {
        caches.note(change)
        guard let cells = cells(of: change, at: now) else { continue }
        let kind = Report.Cell.text(change.value == nil ? "removal" : "put")
        add([kind, .sequence(sequence)] + cells, change.value == nil ? .gone : .good)
      }
    case .missed(let sequence, let changes):
      let text = Report.Cell.text("\(changes) changes were missed")
      add([text, .sequence(sequence), .none, .none, .none, .none, .none], .bad)
    case .damaged(let message):
      outcome = .damaged
      add([.text(message), .none, .none, .none, .none, .none, .none], .bad)
    }
  }

  /// Size, dates, cache and key; nil for a change that is not to be listed.
  private func cells(of change: LogFollower.Change, at now: Date) -> [Report.Cell]? {
    var at = 1
    guard change.key.first == KeySpace.records.rawValue,
      let id = readVarint(change.key.span.bytes, at: &at)
    else {
      guard watching.listsAll, watching.cache == nil else { return nil }
      let size = change.value.map { Report.Cell.bytes($0.count) } ?? .none
      let key = style.text(ofDatabaseKey: change.key, inStore: true)
      return [size, .none, .none, .none, .text(key)]
    }
    let cache = caches[id]
    // By its bytes: two names that are equal as texts are two caches.
    let isWatched = watching.cache.map { name in
      [cache.label, "#\(id)"].contains { name.utf8.elementsEqual($0.utf8) }
    }
    guard isWatched ?? true else { return nil }
    let key = Array(change.key[at...])
    let found = change.value.map { value in
      FoundRecord(
        inRow: value, under: change.key, key: key, in: cache, endedBy: caches.invalidatedTags,
        at: now)
    }
    let size = found.map { Report.Cell.bytes($0.storedBytes) } ?? .none
    var dates: [Report.Cell] = [.none, .none]
    if let found, case .success(let record) = found.content {
      dates = [
        .moment(record.savedAt, relativeTo: now),
        .moment(found.expiry(of: record), relativeTo: now),
      ]
    }
    return [size] + dates + [.text(cache.label), .text(style.text(of: key, in: cache))]
  }
}

extension FoundRecord {
  /// Reads the record in a row of LevelDB; a payload in a segment is not read.
  fileprivate init(
    inRow row: [UInt8], under physicalKey: [UInt8], key: [UInt8], in cache: KnownCache,
    endedBy tags: InvalidatedTags, at now: Date
  ) {
    let separation = Record.separation(from: nil)
    let place = row.withUnsafeBytes { row in
      physicalKey.withUnsafeBytes { PayloadPlace(ofRow: row, under: $0, by: separation) }
    }
    var head = row
    if let place {
      head.removeLast(row.count - place.headCount)
      head[separation.flagOffset] &= ~separation.flag
    }
    self.init(
      head.span.bytes, of: head.count + (place?.byteCount ?? 0), under: physicalKey.span.bytes,
      key: key, in: cache, endedBy: tags, at: now, isKept: false)
  }
}
