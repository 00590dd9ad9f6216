import LarderEngine

/// Creates a store from records whose fields are known and whose values are encoded.
///
/// The records get new sequences, in the order in which they are added. Byte counts are not
/// written: caches with a budget are counted when they are opened.
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
    do throws(EngineError) {
      store =
        if let directory {
          try NewStore(at: directory, outside: source, options: Self.options.engineOptions)
        } else {
          nil
        }
    } catch {
      throw StoreError(error)
    }
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
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the name is not allowed, or is that of a cache
  ///   that was added, in any spelling.
  package mutating func add(
    _ registration: Registration, named name: String
  ) throws(StoreError) {
    try Store.checkCacheName(name)
    if let other = caches.keys.first(where: { $0.text == name }) {
      throw .invalidArgument("cache \(CacheNames.spelled(other.text)) is there already")
    }
    guard (KeyKind.text.code...KeyKind.bytes.code).contains(registration.keyKind) else {
      throw .invalidArgument(
        "cache \"\(name)\" has keys of the unknown kind \(registration.keyKind)")
    }
    var registration = registration
    registration.id = UInt64(caches.count) + 1
    caches[CacheName(name)] = registration
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
    guard record.coder != 0 else { throw .invalidArgument("0 is the number of no coder") }
    let fields = try record.fields
    let recordKey = RecordKey(cacheID: registration.id, userKey: key)
    try recordKey.checkLimit()
    registration.note(fields, schemaVersion: Int(record.schemaVersion))
    caches[CacheName(name)] = registration
    recordCount += 1
    payloadBytes += record.payload.count
    guard store != nil else { return }
    rows.put(
      record, fields, under: recordKey, lifetime: registration.lifetime, isCounted: false,
      compressedFrom: Self.options.compressedFrom)
    if rows.isFullSlice { try commit(synced: false) }
  }

  /// Writes the registrations, syncs the store and gives it its name; a mere check does nothing.
  ///
  /// - Throws: ``StoreError/io(_:)``, ``StoreError/diskFull``. Then there is no new store.
  /// - Complexity: One append and a few fsyncs.
  package mutating func finish() throws(StoreError) {
    guard store != nil else { return }
    rows.putMetadata(Metadata.formatVersion, under: Metadata.format)
    rows.putMetadata(UInt64(caches.count) + 1, under: Metadata.nextID)
    for (name, registration) in caches {
      do {
        try rows.put(registration, ofCache: name.text)
      } catch {
        throw .encoding(key: name.text, underlying: error)
      }
    }
    try commit(synced: true)
    do throws(EngineError) {
      try store?.finish()
    } catch {
      throw StoreError(error)
    }
  }

  private mutating func commit(synced: Bool) throws(StoreError) {
    do throws(EngineError) {
      try store?.engine.write(&rows, synced: synced)
    } catch {
      throw StoreError(error)
    }
    rows.reset()
  }
}

extension Registration {
  /// Notes the fields and the schema version of a record of the cache.
  fileprivate mutating func note(_ fields: Record.Fields, schemaVersion version: Int) {
    var used = features ?? []
    if fields.lifetime != nil { used.insert(.ownLifetimes) }
    if fields.tags != nil { used.insert(.tags) }
    if !used.isEmpty { features = used }
    if version > newestSchemaVersion { newerSchemaVersion = version }
  }
}
