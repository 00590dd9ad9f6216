/// Creates a store from records whose fields are known and whose values are encoded.
///
/// The records get new sequences, in the order in which they are added. Byte counts are not
/// written: caches with a budget are counted when they are opened.
///
/// Before a record, in the same log, are the registration of its cache and the next free id. So if
/// the end of the log is lost, no record is left without them.
package struct StoreImport: ~Copyable {
  private static let options = Store.Options()

  /// Nil to check the records and to write nothing.
  private var store: NewStore?
  private var caches: [CacheName: Registration] = [:]
  private var rows = WriteBatch()
  /// The number of records that were added.
  package private(set) var recordCount = 0
  /// The size of their payloads, as their coders wrote them.
  package private(set) var payloadBytes = 0

  /// Begins an import into a new store, or one that only checks its records.
  ///
  /// - Parameters:
  ///   - directory: A missing or empty directory, whose parent exists; nil to write nothing.
  ///   - source: A directory that must not contain the new store; nil for none.
  /// - Throws: ``StoreError/invalidArgument(_:)`` and ``StoreError/locked(pid:)`` for `directory`;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``. Nothing is left behind.
  package init(to directory: String?, outside source: String? = nil) throws(StoreError) {
    store =
      if let directory {
        try NewStore(at: directory, outside: source, options: Self.options.engineOptions)
      } else {
        nil
      }
    guard store != nil else { return }
    rows.putMetadata(Metadata.formatVersion, under: Metadata.format)
    rows.putMetadata(1, under: Metadata.nextID)
  }

  /// The registration of a cache that was added; nil if there is none.
  ///
  /// Names are compared by their bytes.
  package func registration(ofCache name: String) -> Registration? { caches[CacheName(name)] }

  /// Adds a cache.
  ///
  /// - Parameters:
  ///   - registration: The cache's settings; the id is replaced.
  ///   - name: 1 to 255 bytes of UTF-8.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if a setting or the name is not allowed, or the
  ///   name is that of a cache that was added, in any spelling; ``StoreError/io(_:)``,
  ///   ``StoreError/diskFull``.
  package mutating func add(
    _ registration: Registration, named name: String
  ) throws(StoreError) {
    try Store.checkCacheName(name)
    if let other = caches.keys.first(where: { $0.text == name }) {
      throw .invalidArgument("cache \(CacheNames.spelled(other.text)) is there already")
    }
    if let fault = registration.fault {
      throw .invalidArgument("cache \"\(name)\" has \(fault)")
    }
    var registration = registration
    registration.id = UInt64(caches.count) + 1
    caches[CacheName(name)] = registration
    guard store != nil else { return }
    rows.putMetadata(registration.id + 1, under: Metadata.nextID)
    try put(registration, named: name)
    if rows.isFullSlice { try commit() }
  }

  private mutating func put(
    _ registration: Registration, named name: String
  ) throws(StoreError) {
    do {
      try rows.put(registration, ofCache: name)
    } catch {
      throw .encoding(key: name, underlying: error)
    }
  }

  /// Adds a record to a cache; of two records with the same key, the later one stays.
  ///
  /// - Parameters:
  ///   - record: At most 32 MiB of payload, 16 tags, and a validator of 1 to 4,096 bytes.
  ///   - key: At most 64 KiB.
  ///   - name: The name of a cache that was added.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if one of them is not allowed;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``.
  /// - Complexity: One append for 256 records or 1 MiB.
  package mutating func add(
    _ record: ImportedRecord, under key: [UInt8], in name: String
  ) throws(StoreError) {
    guard var registration = caches[CacheName(name)] else {
      throw .invalidArgument("there is no cache \"\(name)\" yet")
    }
    try Record.checkLimit(ofPayload: record.payload.count)
    guard PayloadFormat(rawValue: record.coder) != nil else {
      throw .invalidArgument("\(record.coder) is the number of no coder")
    }
    let fields = try record.fields
    let recordKey = RecordKey(cacheID: registration.id, userKey: key)
    try recordKey.checkLimit()
    recordCount += 1
    payloadBytes += record.payload.count
    guard store != nil else { return }
    if registration.note(fields, schemaVersion: Int(record.schemaVersion)) {
      caches[CacheName(name)] = registration
      try put(registration, named: name)
    }
    try rows.put(
      record, fields, under: recordKey, in: name,
      compressedFrom: Self.options.compressedFrom(isSealed: false), by: nil)
    if rows.isFullSlice { try commit() }
  }

  /// Syncs the store and gives it its name; a mere check does nothing.
  ///
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/diskFull``. Then there is no new store.
  /// - Complexity: One append and a few fsyncs.
  package mutating func finish() throws(StoreError) {
    guard store != nil else { return }
    if !rows.isEmpty { try commit() }
    try store?.finish()
  }

  private mutating func commit() throws(StoreError) {
    try store?.engine.write(&rows, synced: false)
    rows.reset()
  }
}

extension Registration {
  /// The setting that no cache can have, in words; nil if there is none.
  fileprivate var fault: String? {
    let versions = [schemaVersion, newerSchemaVersion ?? schemaVersion]
    if !(KeyKind.text.code...KeyKind.bytes.code).contains(keyKind) {
      return "keys of the unknown kind \(keyKind)"
    }
    if PayloadFormat(rawValue: coder) == nil { return "the unknown coder \(coder)" }
    if let version = versions.first(where: { UInt32(exactly: $0) == nil }) {
      return "schema version \(version), which is outside 0 to \(UInt32.max)"
    }
    if let byteBudget, byteBudget < 1 {
      return "a budget of \(byteBudget) bytes; at least 1 is allowed"
    }
    if let features, !features.isSubset(of: [.ownLifetimes, .tags]) {
      return "the unknown features \(features.rawValue)"
    }
    return nil
  }

  /// Notes the fields and the schema version of a record of the cache; returns whether they are
  /// new.
  mutating func note(_ fields: Record.Fields, schemaVersion version: Int) -> Bool {
    var noted = self
    var used = features ?? []
    if fields.lifetime != nil { used.insert(.ownLifetimes) }
    if fields.tags != nil { used.insert(.tags) }
    if !used.isEmpty { noted.features = used }
    if version > newestSchemaVersion { noted.newerSchemaVersion = version }
    guard noted != self else { return false }
    self = noted
    return true
  }
}
