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

  /// Entries that the next sweep deletes: the expired ones, but for those whose note has a later
  /// date, and those that an invalidated tag has ended.
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
  /// - Complexity: One scan of all records, with a checksum for each.
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
  package mutating func addRecords(
    of cache: Registration, endedBy tags: InvalidatedTags, in engine: any StorageEngine,
    at now: Date
  ) throws(StoreError) {
    let prefix = KeySpace.records.prefix(ofCache: cache.id)
    do throws(StoreError) {
      let cursor = try engine.headCursor(over: EngineRange(prefix: prefix))
      while try cursor.next() {
        let count = cursor.valueCount
        cursor.withEntry { key, bytes in
          let (state, isDue) = Self.state(
            of: bytes, count, under: key, in: cache, endedBy: tags, at: now)
          self[keyPath: state].add(bytes: key.byteCount + count)
          if isDue { due.add(bytes: key.byteCount + count) }
        }
      }
    } catch .corrupt {
      isComplete = false
    } catch {
      throw error
    }
  }

  /// The state of a record of `count` bytes, of which `bytes` may lack the payload, and whether the
  /// next sweep deletes it.
  private static func state(
    of bytes: RawSpan, _ count: Int, under recordKey: RawSpan, in cache: Registration,
    endedBy tags: InvalidatedTags, at now: Date
  ) -> (WritableKeyPath<CacheContents, EntryTotal>, isDue: Bool) {
    do throws(RecordFault) {
      var record = try Record(head: bytes, of: count, under: recordKey)
      tags.judge(&record, in: bytes)
      guard Int(record.schemaVersion) <= cache.schemaVersion else { return (\.newer, false) }
      switch cache.lifetime.freshness(of: record, at: now) {
      case .fresh: return (\.fresh, false)
      case .stale: return (\.stale, false)
      case .expired: return (\.expired, record.isInvalidated || record.isDue(at: now))
      }
    } catch {
      return (error == .damaged ? \.unreadable : \.newer, false)
    }
  }
}
