package import Foundation
package import LarderEngine

/// What is in a cache, and what a sweep would delete of it now.
public struct CacheContents: Sendable, Hashable {
  /// Entries that are fresh.
  public var fresh = EntryTotal()
  /// Entries that are stale.
  public var stale = EntryTotal()
  /// Entries that have expired and are still there.
  public var expired = EntryTotal()
  /// Entries whose bytes are damaged.
  ///
  /// Whether intact ones decode is not tried.
  public var unreadable = EntryTotal()
  /// Entries that are for a newer program: of a newer schema or record format.
  public var newer = EntryTotal()

  /// Rows of the index of what expires when.
  ///
  /// An entry has one for each time it was overwritten, 65 at most.
  public var indexRows = 0
  /// Those of the rows that the next sweep looks at: the moment that they name is over.
  public var dueRows = 0
  /// Entries that the next sweep deletes: those of the expired ones that have a row that is due.
  public var due = EntryTotal()

  /// Whether everything could be read.
  ///
  /// False when a part of a file is damaged, and what is in that part is not counted. False, and
  /// nothing is counted, when the cache's registration is damaged, or when another cache has this
  /// name in another spelling.
  public var isComplete = true

  /// Nothing.
  package init() {}

  /// The contents of a cache that cannot be counted.
  static var unknown: CacheContents {
    var contents = CacheContents()
    contents.isComplete = false
    return contents
  }
}

extension Store {
  /// Looks through the store and tells, by the name of its cache, how many entries there are in
  /// each state, what they take up, and what a sweep would delete.
  ///
  /// All caches are there, those that are not open included; these are judged by the lifetime and
  /// schema version they were last opened with. What a later version has registered is left out.
  /// Others may write meanwhile; each entry is counted as it is met.
  ///
  /// A damaged entry is counted and does not end it. For what can be had without looking, see
  /// ``statistics``.
  ///
  /// - Returns: What is in each cache.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)`` with an empty key when the list of caches
  ///   cannot be read; ``StoreError/io(_:)``, ``StoreError/closed``. Nothing is changed.
  /// - Complexity: One scan of all records, with a checksum for each, and one of the index, with a
  ///   lookup and a checksum for each row that is due. Memory for the keys of what would be
  ///   deleted of one cache.
  public func contents() throws -> [String: CacheContents] {
    let now = context.clock.now()
    var contents: [String: CacheContents] = [:]
    var registrations: [CacheName: Registration]
    try context.checkOpen()
    let dormant = try withRegistry { registry throws(StoreError) in try registry.dormant() }
    registrations = dormant.caches
    for name in dormant.damaged { contents[name.text] = .unknown }
    for (name, cache) in allOpenCaches { registrations[name] = cache.registration(id: cache.id) }
    for (name, registration) in registrations {
      var cache = CacheContents()
      do throws(EngineError) {
        try cache.addRecords(of: registration, in: context.engine, at: now)
        try cache.addIndex(of: registration, in: context.engine, at: now)
      } catch {
        throw StoreError(error, cache: name.text)
      }
      contents[name.text] = contents[name.text] == nil ? cache : .unknown
    }
    return contents
  }
}

// MARK: - Counting

extension CacheContents {
  /// Counts the records of a cache.
  mutating func addRecords(
    of cache: Registration, in engine: any StorageEngine, at now: Date
  ) throws(EngineError) {
    let prefix = KeySpace.records.prefix(ofCache: cache.id)
    do throws(EngineError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: prefix))
      while try cursor.next() {
        cursor.withEntry { key, bytes in
          let state = Self.state(of: bytes, under: key, in: cache, at: now)
          self[keyPath: state].add(bytes: key.byteCount + bytes.byteCount)
        }
      }
    } catch .corrupt {
      isComplete = false
    } catch {
      throw error
    }
  }

  private static func state(
    of bytes: RawSpan, under recordKey: RawSpan, in cache: Registration, at now: Date
  ) -> WritableKeyPath<CacheContents, EntryTotal> {
    do throws(RecordFault) {
      let record = try Record(bytes, under: recordKey)
      guard Int(record.schemaVersion) <= cache.schemaVersion else { return \.newer }
      return switch cache.lifetime.freshness(of: record.savedAt, at: now) {
      case .fresh: \.fresh
      case .stale: \.stale
      case .expired: \.expired
      }
    } catch {
      return error == .damaged ? \.unreadable : \.newer
    }
  }

  /// Counts the rows of a cache's index, and what a sweep would delete by them.
  ///
  /// - Complexity: One step for each row, one lookup and one checksum for each that is due. Memory
  ///   for the keys of what would be deleted.
  package mutating func addIndex(
    of cache: Registration, in engine: any StorageEngine, at now: Date
  ) throws(EngineError) {
    let indexPrefix = KeySpace.expiry.prefix(ofCache: cache.id)
    let last = SweepDate(now)?.lastBucket ?? .min
    let mayExpire = cache.lifetime.expiry(from: now) != nil
    var deleted: Set<[UInt8]> = []
    var buffer = ValueBuffer()
    do throws(EngineError) {
      let cursor = try engine.cursor(over: EngineRange(prefix: indexPrefix))
      while try cursor.next() {
        indexRows += 1
        guard mayExpire, let row = cursor.withEntry({ key, _ in IndexRow(key: key) }),
          row.bucket <= last
        else { continue }
        dueRows += 1
        let key = row.recordKey.bytes
        guard !deleted.contains(key), try Self.read(key, in: engine, into: &buffer) else {
          continue
        }
        let isExpired = buffer.withBytes { bytes in
          Self.state(of: bytes, under: key.span.bytes, in: cache, at: now) == \.expired
        }
        guard isExpired else { continue }
        deleted.insert(key)
        due.add(bytes: key.count + buffer.count)
      }
    } catch .corrupt {
      isComplete = false
    } catch {
      throw error
    }
  }

  /// Reads a record; false when it is not there, or cannot be read: a sweep leaves that.
  private static func read(
    _ recordKey: [UInt8], in engine: any StorageEngine, into buffer: inout ValueBuffer
  ) throws(EngineError) -> Bool {
    do throws(EngineError) {
      return try engine.get(recordKey.span.bytes, into: &buffer)
    } catch .corrupt {
      return false
    } catch {
      throw error
    }
  }
}
