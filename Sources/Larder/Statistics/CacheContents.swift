package import Foundation

/// The entries in a cache by state, and the entries that a sweep would delete now.
public struct CacheContents: Sendable, Hashable {
  /// Fresh entries.
  public var fresh = EntryTotal()
  /// Stale entries.
  public var stale = EntryTotal()
  /// Entries that have expired or were invalidated, and have not been deleted.
  public var expired = EntryTotal()
  /// Entries whose bytes are damaged.
  ///
  /// Intact entries are not decoded, so entries that would not decode are not counted here.
  public var unreadable = EntryTotal()
  /// Entries of a newer program: their schema version or record format is newer.
  public var newer = EntryTotal()

  /// Rows in the expiry index.
  ///
  /// Each save of an entry may add a row: up to 65 that are not due for each lifetime that one
  /// entry is saved with. Due rows stay until a sweep.
  public var indexRows = 0
  /// Index rows whose bucket has passed; the next sweep visits them.
  public var dueRows = 0
  /// Entries that the next sweep deletes: the expired entries with a due index row.
  ///
  /// The next sweep also deletes invalidated entries. They are only counted here if they have a due
  /// index row.
  public var due = EntryTotal()

  /// Whether everything could be read.
  ///
  /// False if part of a file is damaged; its entries are not counted. Also false, with all counts
  /// 0, if the cache's registration is damaged, or if another cache's name is a different spelling
  /// of the same text.
  public var isComplete = true

  /// Creates empty contents.
  package init() {}

  /// The contents of a cache that cannot be counted.
  static var unknown: CacheContents {
    var contents = CacheContents()
    contents.isComplete = false
    return contents
  }
}

extension Store {
  /// Scans the store and counts the entries of each cache by state.
  ///
  /// The counts include the bytes of the entries, and what a sweep would delete. Caches that are
  /// not open are included, with the lifetime and schema version they were last opened with. Caches
  /// whose registration only a later version can read are left out. Entries may be written during
  /// the scan; each one is counted as the scan finds it. A damaged entry is counted, and the scan
  /// continues. Payloads in segments are not read, so damage to them is not noticed.
  ///
  /// For counts that need no scan, see ``statistics``.
  ///
  /// - Returns: The contents of each cache, by its name.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)`` with an empty key if the list of caches
  ///   cannot be read; ``StoreError/io(_:)``, ``StoreError/closed``. Nothing is changed.
  /// - Complexity: One scan of all records, with a checksum for each, and one scan of the index,
  ///   with a lookup and a checksum for each due row. Memory for the keys that a sweep would delete
  ///   from one cache.
  public func contents() throws -> [String: CacheContents] {
    let now = context.clock.now()
    var contents: [String: CacheContents] = [:]
    var registrations: [CacheName: Registration]
    try context.engine.checkOpen()
    let dormant = try withRegistry { registry throws(StoreError) in try registry.dormant() }
    registrations = dormant.caches
    for name in dormant.damaged { contents[name.text] = .unknown }
    for (name, cache) in allOpenCaches { registrations[name] = cache.registration(id: cache.id) }
    for (name, registration) in registrations {
      var cache = CacheContents()
      do throws(StoreError) {
        let tags = context.invalidatedTags
        try cache.addRecords(of: registration, endedBy: tags, in: context.engine, at: now)
        try cache.addIndex(of: registration, endedBy: tags, in: context.engine, at: now)
      } catch {
        throw error.naming(cache: name.text)
      }
      contents[name.text] = contents[name.text] == nil ? cache : .unknown
    }
    return contents
  }

  /// The names of all caches that the store has, open or not, in the order of their UTF-8 bytes.
  ///
  /// Caches whose registration is damaged, or was written by a newer program, are included.
  ///
  /// - Throws: ``StoreError/corrupt(cache:key:file:)`` with an empty key if the list of caches
  ///   cannot be read; ``StoreError/io(_:)``, ``StoreError/closed``.
  /// - Complexity: One scan of the registrations.
  public var cacheNames: [String] {
    get throws {
      try context.engine.checkOpen()
      var names = try withRegistry { registry throws(StoreError) in try registry.registeredNames() }
      for name in allOpenCaches.keys where !names.contains(name.text) { names.append(name.text) }
      return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
  }
}

// MARK: - Counting

extension CacheContents {
  /// Counts the records of a cache.
  mutating func addRecords(
    of cache: Registration, endedBy tags: InvalidatedTags, in engine: any StorageEngine,
    at now: Date
  ) throws(StoreError) {
    let prefix = KeySpace.records.prefix(ofCache: cache.id)
    do throws(StoreError) {
      let cursor = try engine.headCursor(over: EngineRange(prefix: prefix))
      while try cursor.next() {
        let count = cursor.valueCount
        cursor.withEntry { key, bytes in
          let state = Self.state(
            of: bytes, count, under: key, in: cache, endedBy: tags, at: now)
          self[keyPath: state].add(bytes: key.byteCount + count)
        }
      }
    } catch .corrupt {
      isComplete = false
    } catch {
      throw error
    }
  }

  /// The state of a record of `count` bytes, of which `bytes` may lack the payload.
  private static func state(
    of bytes: RawSpan, _ count: Int, under recordKey: RawSpan, in cache: Registration,
    endedBy tags: InvalidatedTags, at now: Date
  ) -> WritableKeyPath<CacheContents, EntryTotal> {
    do throws(RecordFault) {
      var record = try Record(head: bytes, of: count, under: recordKey)
      tags.judge(&record, in: bytes)
      guard Int(record.schemaVersion) <= cache.schemaVersion else { return \.newer }
      return switch cache.lifetime.freshness(of: record, at: now) {
      case .fresh: \.fresh
      case .stale: \.stale
      case .expired: \.expired
      }
    } catch {
      return error == .damaged ? \.unreadable : \.newer
    }
  }

  /// Counts the index rows of a cache, and the entries that a sweep would delete.
  ///
  /// - Complexity: One step for each row, and a lookup and a checksum for each due row. Memory for
  ///   the keys of the entries that would be deleted.
  package mutating func addIndex(
    of cache: Registration, endedBy tags: InvalidatedTags, in engine: any StorageEngine,
    at now: Date
  ) throws(StoreError) {
    let indexPrefix = KeySpace.expiry.prefix(ofCache: cache.id)
    let last = SweepDate(now)?.lastBucket ?? .min
    var deleted: Set<[UInt8]> = []
    var buffer = ValueBuffer()
    do throws(StoreError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: indexPrefix))
      while try cursor.next() {
        indexRows += 1
        guard cache.mayExpire, let row = cursor.withEntry({ key, _ in IndexRow(key: key) }),
          row.bucket <= last
        else { continue }
        dueRows += 1
        let key = row.recordKey.bytes
        guard !deleted.contains(key), let count = try Self.read(key, in: engine, into: &buffer)
        else { continue }
        let isExpired = buffer.withBytes { bytes in
          Self.state(of: bytes, count, under: key.span.bytes, in: cache, endedBy: tags, at: now)
            == \.expired
        }
        guard isExpired else { continue }
        deleted.insert(key)
        due.add(bytes: key.count + count)
      }
    } catch .corrupt {
      isComplete = false
    } catch {
      throw error
    }
  }

  /// Reads the head of a record, and returns the size of the record; nil if it is missing or
  /// damaged, which a sweep does not delete.
  private static func read(
    _ recordKey: [UInt8], in engine: any StorageEngine, into buffer: inout ValueBuffer
  ) throws(StoreError) -> Int? {
    do throws(StoreError) {
      return try engine.getHead(recordKey.span.bytes, into: &buffer)
    } catch .corrupt {
      return nil
    } catch {
      throw error
    }
  }
}
