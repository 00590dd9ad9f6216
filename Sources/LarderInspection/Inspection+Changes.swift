package import Foundation
import Larder

/// A value to be set in a store.
package struct NewValue: Sendable {
  /// A JSON document.
  package var json: [UInt8]
  /// The schema version of the value; nil for that of the record that is replaced, or for the one
  /// that the cache was last opened with.
  package var schemaVersion: Int?
  /// The date of the save; nil for now.
  package var savedAt: Date?
  /// Whether it is set although its shape differs from the old value's.
  package var isForced: Bool

  package init(json: [UInt8], schemaVersion: Int?, savedAt: Date?, isForced: Bool = false) {
    (self.json, self.schemaVersion, self.savedAt) = (json, schemaVersion, savedAt)
    self.isForced = isForced
  }

  /// Throws if no cache could read the value, or if its types and members differ from those of the
  /// record that it replaces.
  fileprivate func check(replacing old: FoundRecord?, _ style: Style) throws(InspectionError) {
    guard let value = JSONReader.read(json) else {
      throw InspectionError(.usage, "the value is not a JSON document")
    }
    do {
      try json.withUnsafeBytes { try DepthScan.checkJSON($0) }
    } catch {
      throw InspectionError(.usage, "the value is nested too deeply: 128 levels are allowed")
    }
    guard !isForced, let old, case .success(let record) = old.content else { return }
    guard let payload = old.payload, let shape = Shape(ofPayload: payload, coder: record.coder)
    else {
      throw InspectionError(
        .usage, "the types and members of the old value are not known; --force sets the new one")
    }
    let differences = shape.differences(of: value)
    guard !differences.isEmpty else { return }
    let shown = differences.prefix(5).joined(separator: "; ")
    let rest = differences.count > 5 ? "; and more" : ""
    throw InspectionError(
      .usage,
      "the value differs from the old one"
        + (style.isRedacted ? " in its types or members" : ": \(shown)\(rest)")
        + "; --force sets it nevertheless")
  }
}

extension Inspection {
  /// Removes the record under a key from the store in a directory, not a snapshot.
  ///
  /// - Throws: An ``InspectionError`` with the status `notFound` if there is no such record;
  ///   `usage` if several caches have the key; `unavailable` if the store is open, or if its
  ///   process is to change it and ``RunningStore`` cannot reach that; `unsupported`,
  ///   `damaged`, `io`. The record is still there then, unless its removal was written before an
  ///   error of the device.
  package static func remove(
    _ key: String, cache name: String?, from directory: String, in place: ChangePlace, now: Date,
    style: Style
  ) throws(InspectionError) -> Report {
    let inspection = try Inspection(at: directory, now: now)
    let found = try inspection.record(under: key, cache: name, keys: style.keys)
    try style.expectNoCSV("changes of a record do")
    switch place {
    case .dryRun: break
    case .files:
      try changeStore(at: directory, now: now) { store throws(StoreError) in
        try store.remove(RecordKey(cacheID: found.cache.id, userKey: found.key))
      }
    case .process:
      let reply = try RunningStore(path: inspection.path).ask(
        .remove(cache: found.cache.label, key: Data(found.key)))
      guard case .removed(let wasThere) = reply else { throw .strayReply }
      guard wasThere else {
        throw InspectionError(.notFound, "the record was removed by another command or call")
      }
    }
    let isDryRun = place == .dryRun
    return Report(
      of: isDryRun ? "would be removed" : "removed", isDryRun: isDryRun, path: inspection.path,
      cache: found.cache, key: found.key, bytes: found.entryBytes, style: style)
  }

  /// Ends the records with a tag, in the store in a directory, not a snapshot.
  ///
  /// They stay until they are swept, but no read returns them. The report counts the records that
  /// had the tag just before.
  ///
  /// - Throws: An ``InspectionError`` with the status `usage` if the text cannot be a tag;
  ///   otherwise as ``remove(_:cache:from:in:now:style:)``.
  package static func invalidate(
    _ tag: String, in directory: String, in place: ChangePlace, now: Date, style: Style
  ) throws(InspectionError) -> Report {
    let inspection = try Inspection(at: directory, now: now)
    try style.expectNoCSV("invalidate does")
    var selection = Selection()
    (selection.tag, selection.states) = (tag, [.fresh, .stale])
    var total = (entries: 0, bytes: 0)
    var outcome = Outcome.fine
    try inspection.forEachItem(in: selection, keys: style.keys) { item throws(InspectionError) in
      outcome.add(item.state)
      if case .record(let found) = item {
        total.entries += 1
        total.bytes += found.entryBytes
      }
      return true
    }
    switch place {
    case .dryRun: break
    case .files: try changeStore(at: directory, now: now) { try $0.invalidate(tag: tag) }
    case .process:
      let reply = try RunningStore(path: inspection.path).ask(.invalidate(tag: tag))
      guard reply == .invalidated else { throw .strayReply }
    }
    let isDryRun = place == .dryRun
    return Report(
      style: style, title: inspection.path.escapedForTerminal,
      sections: [.total(total, "ended", isDryRun: isDryRun, style)],
      members: [
        ("schemaVersion", reportVersion), ("store", .string(inspection.path)),
        ("isDryRun", .bool(isDryRun)), ("tag", .string(tag)), ("records", .integer(total.entries)),
        ("bytes", .integer(total.bytes)),
      ], isOneLine: true
    ) { [outcome] _ in
      Report.Ending(outcome: outcome)
    }
  }

  /// Sets the value under a key in the store in a directory, not a snapshot.
  ///
  /// The record is encoded in JSON, which every cache reads, whatever its coder. It keeps the own
  /// lifetime and the tags of the record that it replaces, and not the validator. Whether the value
  /// decodes as the application's type is not known here, so its types and members must be those of
  /// the old value, unless it is forced.
  ///
  /// - Throws: An ``InspectionError`` with the status `usage` if the value is not JSON or differs
  ///   from the old one, the key or the schema version is not one of the cache, or several caches
  ///   have the key; `notFound` if the
  ///   cache is not named and none has the key; otherwise as
  ///   ``remove(_:cache:from:in:now:style:)``.
  package static func set(
    _ value: NewValue, for key: String, cache name: String?, in directory: String, now: Date,
    openedWith userKey: UserKey? = nil, style: Style
  ) throws(InspectionError) -> Report {
    let inspection = try Inspection(at: directory, now: now, key: userKey)
    let opener = inspection.catalog.opener
    try inspection.requireKey()
    let place = try inspection.place(of: key, cache: name, keys: style.keys)
    try value.check(replacing: place.found, style)
    let label = place.cache.label
    guard let registration = place.cache.registration, let name = place.cache.name else {
      throw InspectionError(.damaged, "the registration of cache \(label) cannot be read")
    }
    var old: Record?
    if case .success(let record)? = place.found?.content { old = record }
    let version =
      value.schemaVersion ?? old.map { Int($0.schemaVersion) } ?? registration.schemaVersion
    guard (0...registration.newestSchemaVersion).contains(version) else {
      throw InspectionError(
        .usage,
        "cache \(label) has schema versions up to \(registration.newestSchemaVersion), "
          + "and not \(version)")
    }
    try style.expectNoCSV("changes of a record do")
    let savedAt = value.savedAt ?? now
    let lifetime = old?.ownLifetime?.lifetime ?? registration.lifetime
    var record = ImportedRecord(
      coder: PayloadFormat.json.rawValue, schemaVersion: UInt32(version), savedAt: savedAt,
      expiresAt: lifetime.expiry(from: savedAt), payload: value.json)
    record.ownLifetime = old?.ownLifetime
    record.tags = place.found?.tags?.texts ?? []
    try changeStore(at: directory, now: now, opener) { [record] store throws(StoreError) in
      try store.put(
        record, under: RecordKey(cacheID: place.cache.id, userKey: place.key),
        in: name)
    }
    return Report(
      of: "set, encoded in JSON", isDryRun: false, path: inspection.path, cache: place.cache,
      key: place.key, bytes: value.json.count, style: style)
  }

  /// The cache and the bytes of a key, and the record under it if there is one.
  private func place(
    of key: String, cache name: String?, keys form: KeyForm
  ) throws(InspectionError) -> (cache: KnownCache, key: [UInt8], found: FoundRecord?) {
    guard let name else {
      let found = try record(under: key, cache: nil, keys: form)
      return (found.cache, found.key, found)
    }
    let cache = try catalog.cache(called: name)
    guard let bytes = form.bytes(of: key, kind: cache.keyKind) else {
      throw InspectionError(notKey: key, of: cache)
    }
    return (cache, bytes, try record(under: bytes, in: cache))
  }

  /// Opens the store in a directory, changes it, and closes it.
  ///
  /// Without an opener its sealed values stay sealed, and none may be saved.
  private static func changeStore(
    at directory: String, now: Date, _ opener: RecordOpener? = nil, _ body: (Store) throws -> Void
  ) throws(InspectionError) {
    var options = Store.Options()
    #if Encryption
      (options.encryption, options.leavesSealed) = (opener?.encryption, opener == nil)
    #endif
    options.createIfMissing = false
    options.clock = StandingClock(date: now)
    options.sweepInterval = nil
    do {
      let path = try FileAccess.directory(directory)
      let store = try Store(at: URL(filePath: path, directoryHint: .isDirectory), options: options)
      try body(store)
      try store.close()
    } catch {
      throw InspectionError(error)
    }
  }
}

extension Report {
  /// The report of a change of one record; `words` say what has happened to it.
  fileprivate init(
    of words: String, isDryRun: Bool, path: String, cache: KnownCache, key: [UInt8], bytes: Int,
    style: Style
  ) {
    let key = style.text(of: key, in: cache)
    let text =
      "\(key.escapedForTerminal) of cache \(cache.label.escapedForTerminal): "
      + "\(words), \(Amount.bytes(bytes))\n"
    self.init(
      style: style, title: path.escapedForTerminal, sections: style.isQuiet ? [] : [.text(text)],
      members: [
        ("schemaVersion", reportVersion), ("store", .string(path)), ("isDryRun", .bool(isDryRun)),
        ("cache", .string(cache.label)), ("key", .string(key)), ("bytes", .integer(bytes)),
      ], isOneLine: true)
  }
}

extension Inspection {
  /// Compacts the store in a directory, not a snapshot, and gives back the room of segments.
  ///
  /// - Throws: As ``sweep(_:in:now:style:)``. The store holds the same entries then.
  package static func compact(
    _ directory: String, in place: ChangePlace = .files, style: Style
  ) throws(InspectionError) -> Report {
    let path = try FileAccess.directory(directory)
    _ = try identify(path)
    try style.expectNoCSV("compact does")
    if place == .process {
      guard case .compacted(let sizes) = try RunningStore(path: path).ask(.compact) else {
        throw .strayReply
      }
      return Report(
        ofSizesIn: path, before: sizes.bytesBefore, after: sizes.bytesAfter, style: style)
    }
    let before = try FileAccess.byteCount(ofFilesIn: path)
    var options = Store.Options().engineOptions
    options.createIfMissing = false
    // So that a collection in the background does not begin first.
    options.collectsInBackground = false
    do {
      let engine = try LevelDBEngine(at: path, options: options)
      try engine.compact(EngineRange())
      try engine.collectSegments(.complete)
      try engine.close()
    } catch {
      throw InspectionError(error)
    }
    let after = try FileAccess.byteCount(ofFilesIn: path)
    return Report(ofSizesIn: path, before: before, after: after, style: style)
  }
}

extension Report {
  /// The report of a command that made something smaller.
  init(ofSizesIn path: String, before: Int, after: Int, style: Style) {
    self.init(
      style: style, title: path.escapedForTerminal,
      sections: [
        .facts([
          .init("before", Amount.bytes(before)), .init("after", Amount.bytes(after)),
        ])
      ],
      members: [
        ("schemaVersion", reportVersion), ("store", .string(path)),
        ("bytesBefore", .integer(before)), ("bytesAfter", .integer(after)),
      ], isOneLine: true)
  }
}

extension Inspection {
  /// The records of all caches by state, and those that a sweep at ``now`` would delete.
  ///
  /// - Complexity: One step for each record.
  func backlog() throws(InspectionError) -> CacheContents {
    var backlog = CacheContents()
    do throws(StoreError) {
      for case let registration? in catalog.caches.map(\.registration) {
        try backlog.addRecords(
          of: registration, endedBy: catalog.invalidatedTags, in: engine, at: now)
      }
    } catch {
      throw failure(error)
    }
    return backlog
  }
}
