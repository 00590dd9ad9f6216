import Foundation
import Larder

extension Inspection {
  /// The entries that this store and another one do not have in common.
  ///
  /// The outcome is `different`, `damaged` if a record of either store cannot be compared, or
  /// `fine`. With `name`, only the caches of this name are compared.
  ///
  /// Entries are equal if the values, as they were encoded, are, and their dates, schema versions,
  /// coders, lifetimes, validators and tags, to the last bit. Sequences may differ, and how a value
  /// is compressed.
  ///
  /// - Throws: An ``InspectionError`` with the status `usage` if one is sealed and was opened
  ///   without its key.
  /// - Complexity: One step in each store for each record. Two records are in memory at a time.
  package func differences(
    from other: Inspection, inCache name: String?, style: Style
  ) throws(InspectionError) -> Report {
    try requireKey()
    try other.requireKey()
    return Report(
      style: style,
      title: "first   \(path.escapedForTerminal)\nsecond  \(other.path.escapedForTerminal)",
      members: [
        ("schemaVersion", reportVersion), ("first", .string(path)), ("second", .string(other.path)),
      ],
      columns: [
        .init("DIFFERENCE", "difference"), .init(.name("CACHE"), "cache"),
        .init(.name("KEY"), "key"),
      ]
    ) { [self] add throws(InspectionError) in
      var count = 0
      let outcome = try compare(with: other, inCache: name, style: style) { row in
        count += 1
        add(row)
      }
      let isEqual = count == 0 && outcome == .fine && !style.isQuiet
      return Report.Ending(
        outcome: outcome,
        sections: isEqual ? [.text("The entries of the two stores are equal.\n")] : [])
    }
  }

  /// Calls `add` with a row for each difference.
  private func compare(
    with other: Inspection, inCache name: String?, style: Style, _ add: (Report.Row) -> Void
  ) throws(InspectionError) -> Outcome {
    var outcome = damage.isEmpty && other.damage.isEmpty ? Outcome.fine : .damaged
    for name in try cacheNames(name, with: other) {
      var (here, there) = (try RecordReader(self, name), try RecordReader(other, name))
      while let key = [here.record?.key, there.record?.key].compactMap({ $0 }).min(by: {
        $0.lexicographicallyPrecedes($1)
      }) {
        let pair = (
          here.record?.key == key ? here.record : nil, there.record?.key == key ? there.record : nil
        )
        if let difference = Difference(pair.0, pair.1) {
          if difference == .unreadable { outcome = .damaged }
          if outcome == .fine { outcome = .different }
          let text = (here.cache ?? there.cache).map { style.text(of: key, in: $0) }
          add([
            .text(difference.rawValue), .text(name), .text(text ?? KeyForm.hex(key)),
          ])
        }
        if pair.0 != nil { try here.advance() }
        if pair.1 != nil { try there.advance() }
      }
    }
    return outcome
  }

  /// The labels of the caches of both stores, in order, or only `name`.
  private func cacheNames(
    _ name: String?, with other: Inspection
  ) throws(InspectionError) -> [String] {
    if let name {
      guard catalog.hasCache(called: name) || other.catalog.hasCache(called: name) else {
        throw InspectionError(.notFound, "neither store has a cache \(name)")
      }
      return [name]
    }
    let caches = try caches(in: Selection()).caches + other.caches(in: Selection()).caches
    // By their bytes: two names that are equal as texts are two caches.
    return Set(caches.map { Array($0.label.utf8) }).sorted { $0.lexicographicallyPrecedes($1) }
      .map { String(decoding: $0, as: UTF8.self) }
  }
}

/// What two stores do not have in common under a key.
private enum Difference: String {
  case onlyHere = "only in the first"
  case onlyThere = "only in the second"
  case changed = "different"
  case unreadable = "damaged"

  /// Nil if the entries are equal.
  init?(_ here: ReadRecord?, _ there: ReadRecord?) {
    switch (here, there) {
    case (let here?, let there?):
      guard let (a, b) = here.content.flatMap({ a in there.content.map { (a, $0) } }) else {
        self = .unreadable
        return
      }
      if a == b { return nil }
      self = .changed
    case (nil, _): self = .onlyThere
    case (_, nil): self = .onlyHere
    }
  }
}

/// A record as it is compared.
private struct ReadRecord {
  struct Content: Equatable {
    var fields: [UInt64]
    var coder: UInt8
    var ownLifetime: OwnLifetime?
    var isInvalidated: Bool
    var validator: [UInt8]?
    var tags: Tags?
    var payload: [UInt8]
  }

  let key: [UInt8]
  /// Nil if it cannot be read.
  let content: Content?
}

/// The records of a cache, one after another.
private struct RecordReader {
  private(set) var record: ReadRecord?
  /// Nil if the store has no such cache.
  let cache: KnownCache?
  private let inspection: Inspection
  private let cursor: (any EngineCursor)?
  private let prefixCount: Int

  init(_ inspection: Inspection, _ name: String) throws(InspectionError) {
    self.inspection = inspection
    // A cache without a registration is called by its number.
    guard inspection.catalog.hasCache(called: name) || name.hasPrefix("#") else {
      (cache, cursor, prefixCount) = (nil, nil, 0)
      return
    }
    let cache = try inspection.catalog.cache(called: name)
    let prefix = KeySpace.records.prefix(ofCache: cache.id)
    (self.cache, prefixCount) = (cache, prefix.count)
    do {
      cursor = try inspection.engine.cursor(over: EngineRange(prefix: prefix))
    } catch {
      throw inspection.failure(error)
    }
    try advance()
  }

  mutating func advance() throws(InspectionError) {
    guard let cursor, let cache else { return }
    do throws(StoreError) {
      guard try cursor.next() else {
        record = nil
        return
      }
    } catch {
      throw inspection.failure(error)
    }
    record = cursor.withEntry { key, value in
      let userKey = [UInt8](key.extracting(prefixCount..<key.byteCount))
      let found = FoundRecord(
        value, of: value.byteCount, under: key, key: userKey, in: cache,
        endedBy: inspection.catalog.invalidatedTags, at: inspection.now, isKept: true)
      return ReadRecord(key: userKey, content: Self.content(of: found))
    }
  }

  private static func content(of found: FoundRecord) -> ReadRecord.Content? {
    guard case .success(let record) = found.content, let payload = found.payload else {
      return nil
    }
    let dates = [record.savedAt, record.expiresAt ?? .distantPast]
    return ReadRecord.Content(
      fields: dates.map(\.timeIntervalSinceReferenceDate.bitPattern)
        + [UInt64(record.schemaVersion)],
      coder: record.coder, ownLifetime: record.ownLifetime, isInvalidated: record.isInvalidated,
      validator: found.validator, tags: found.tags, payload: payload)
  }
}
