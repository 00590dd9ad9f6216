import Foundation
import LarderEngine
import Synchronization

/// Which caches a store has open, and the numbers that caches get.
///
/// A number, once taken, is never used again: the next one is written, with an fsync, together with
/// whatever uses the number before it. All changes are made under the store's registry lock, which
/// is held across the write on purpose: numbers must reach the disk in the order they are taken.
/// It is needed for opening and clearing caches, never for reading or saving.
struct Registry: ~Copyable {
  /// How many rows of cleared caches are deleted at one time.
  private static let reclaimSlice = 10_000

  let open = OpenCaches()
  private var nextID: UInt64 = 1
  private var isFormatWritten = false
  /// Whether caches may be registered.
  private var access = Access.readWrite
  /// Numbers of cleared caches that may still have rows.
  private var reclaimable: [UInt64] = []
  /// The names of all caches; nil until they are read.
  private var names: CacheNames?

  init() {}

  /// Reads what the store in `engine` remembers.
  ///
  /// Changes nothing.
  init(readFrom engine: any StorageEngine, access: Access) throws(StoreError) {
    self.access = access
    do throws(EngineError) {
      if let format = try Self.number(under: Metadata.format, in: engine) {
        guard format <= Metadata.formatVersion else {
          throw EngineError.incompatible("store format \(format)")
        }
        isFormatWritten = true
      }
      nextID = try Self.number(under: Metadata.nextID, in: engine) ?? 1
      let marks = try engine.cursor(over: EngineRange(prefix: Metadata.reclaimPrefix))
      while try marks.next() {
        if let id = marks.withEntry({ key, _ in Metadata.reclaimedID(in: key) }) {
          reclaimable.append(id)
        }
      }
    } catch {
      throw StoreError(error)
    }
  }

  private static func number(
    under key: [UInt8], in engine: any StorageEngine
  ) throws(EngineError) -> UInt64? {
    guard let value = try engine.get(key.span.bytes) else { return nil }
    guard let number = Metadata.number(in: value, under: key) else {
      throw .corrupt("metadata \(String(decoding: key.dropFirst(), as: UTF8.self))")
    }
    return number
  }

  mutating func takeID() -> UInt64 {
    defer { nextID += 1 }
    return nextID
  }
}

/// The caches that are open, by name.
///
/// It has a lock of its own, below all others, so that it can be read while a write is under way.
final class OpenCaches: Sendable {
  private let caches = Mutex<[CacheName: any OpenCache]>([:])

  func cache(named name: String) -> (any OpenCache)? {
    caches.withLock { $0[CacheName(name)] }
  }

  /// All of them.
  var all: [CacheName: any OpenCache] { caches.withLock { $0 } }

  func add(_ cache: any OpenCache) { caches.withLock { $0[CacheName(cache.name)] = cache } }

  /// Gives every cache the number that it has on disk; answers whether they all had it.
  ///
  /// A clear whose write failed may have taken effect when the database was opened anew. What
  /// cannot be read leaves a cache as it is; the next opening of it says why.
  func readIDs(by read: LevelDBEngine.Reader) -> Bool {
    var areSame = true
    for (name, cache) in all {
      let key = Metadata.cache(name.text)
      do {
        guard let value = try read(key), let body = Metadata.body(of: value, under: key) else {
          continue
        }
        let id = try JSONDecoder().decode(Registration.self, from: Data(body)).id
        if id != cache.id { areSame = false }
        cache.id = id
      } catch {
        continue
      }
    }
    return areSame
  }
}

/// The names of a store's caches, those that are not open included.
struct CacheNames {
  /// The spellings of each name, by its text.
  private var spellings: [String: Set<CacheName>] = [:]

  /// - Complexity: One step for each cache.
  init(readFrom engine: any StorageEngine) throws(EngineError) {
    let cursor = try engine.cursor(over: EngineRange(prefix: Metadata.cachePrefix))
    while try cursor.next() {
      insert(
        cursor.withEntry { key, _ in Metadata.cacheName(in: key.withUnsafeBytes { Array($0) }) })
    }
  }

  mutating func insert(_ name: String) { spellings[name, default: []].insert(CacheName(name)) }

  /// A name that is canonically equivalent to `name` and differs in its bytes.
  func otherSpelling(of name: String) -> String? {
    spellings[name]?.first { $0 != CacheName(name) }?.text
  }

  /// A name with its bytes, which show what sets it apart.
  static func spelled(_ name: String) -> String {
    let bytes = name.utf8.map { byte in
      byte < 16 ? "0\(String(byte, radix: 16))" : String(byte, radix: 16)
    }
    return "\"\(name)\" (bytes \(bytes.joined(separator: " ")))"
  }
}

// MARK: - Opening caches

extension Registry {
  /// The open cache with the settings of `wanted`: one that is open already, or `wanted`.
  mutating func open<Value>(
    _ wanted: CacheCore<Value>, in engine: any StorageEngine, _ space: Space
  ) throws(StoreError) -> CacheCore<Value> {
    if let cache = open.cache(named: wanted.name) {
      let differences = cache.settings.differences(from: wanted.settings)
      guard let core = cache as? CacheCore<Value>, differences.isEmpty else {
        throw StoreError(cacheIsOpen: wanted.name, differingIn: differences)
      }
      return core
    }
    try checkName(wanted.name, in: engine)
    let known = try registration(of: wanted.name, in: engine)
    if let known {
      let kind = KeyKind(code: known.keyKind)
      guard kind == wanted.keyKind else {
        throw .invalidArgument(
          """
          cache "\(wanted.name)" has keys of kind \(kind) for good; this call asks for \
          \(wanted.keyKind). Open it with keys of the same kind, or use another name.
          """)
      }
    }
    let id = known?.id ?? takeID()
    guard access == .readWrite else {
      // A cache that the store does not have is empty: nothing has its number.
      wanted.id = id
      open.add(wanted)
      return wanted
    }
    var registration = wanted.registration(id: id)
    if let newest = known?.newestSchemaVersion, newest > registration.schemaVersion {
      registration.newerSchemaVersion = newest
    }
    if registration != known {
      let isCounted = space.counts(byteBudget: wanted.byteBudget)
      try write(
        registration, named: wanted.name, insteadOf: known, counted: isCounted, in: engine)
    }
    wanted.open(as: registration)
    do throws(EngineError) {
      try space.open(
        registration, wanted.name, isNew: known == nil, byteBudget: wanted.byteBudget,
        marks: wanted.marks)
    } catch {
      throw StoreError(error, cache: wanted.name)
    }
    names?.insert(wanted.name)
    open.add(wanted)
    return wanted
  }

  /// Refuses a name that another cache has in another spelling.
  ///
  /// Two such names are one `String`: a program could not tell the caches apart.
  private mutating func checkName(
    _ name: String, in engine: any StorageEngine
  ) throws(StoreError) {
    do throws(EngineError) {
      if names == nil { names = try CacheNames(readFrom: engine) }
      guard let other = names?.otherSpelling(of: name) else { return }
      throw .invalidArgument(
        "cache names \(CacheNames.spelled(name)) and \(CacheNames.spelled(other)) are equal as"
          + " text and differ in their bytes; open the cache by one of the two spellings only")
    } catch {
      throw StoreError(error, cache: name)
    }
  }

  /// The caches that are registered and not open, and the names of those that are damaged.
  ///
  /// What a later version has registered is left to it.
  func dormant(
    in engine: any StorageEngine
  ) throws(EngineError) -> (caches: [CacheName: Registration], damaged: [CacheName]) {
    var caches: [CacheName: Registration] = [:]
    var damaged: [CacheName] = []
    let cursor = try engine.cursor(over: EngineRange(prefix: Metadata.cachePrefix))
    while try cursor.next() {
      let (key, value) = cursor.withEntry { key, value in
        (key.withUnsafeBytes { Array($0) }, value.withUnsafeBytes { Array($0) })
      }
      let name = Metadata.cacheName(in: key)
      guard open.cache(named: name) == nil else { continue }
      guard let body = Metadata.body(of: value, under: key) else {
        damaged.append(CacheName(name))
        continue
      }
      do {
        caches[CacheName(name)] = try JSONDecoder().decode(Registration.self, from: Data(body))
      } catch {
        continue
      }
    }
    return (caches, damaged)
  }

  private func registration(
    of name: String, in engine: any StorageEngine
  ) throws(StoreError) -> Registration? {
    let key = Metadata.cache(name)
    let value: [UInt8]?
    do {
      value = try engine.get(key.span.bytes)
    } catch {
      throw StoreError(error, cache: name)
    }
    guard let value else { return nil }
    guard let body = Metadata.body(of: value, under: key) else {
      throw .corrupt(cache: name, key: "", file: nil)
    }
    do {
      return try JSONDecoder().decode(Registration.self, from: Data(body))
    } catch {
      throw .incompatible("what is remembered of cache \(name) cannot be read: \(error)")
    }
  }

  private mutating func write(
    _ registration: Registration, named name: String, insteadOf known: Registration?,
    counted: Bool, in engine: any StorageEngine
  ) throws(StoreError) {
    var rows = WriteBatch()
    if !isFormatWritten { rows.putMetadata(Metadata.formatVersion, under: Metadata.format) }
    if known == nil {
      rows.putMetadata(nextID, under: Metadata.nextID)
      if counted { rows.putMetadata(0, under: Metadata.bytes(registration.id)) }
    }
    // A cache must be open to be read and cleared, on a full disk too.
    rows.mayUseReserve = known != nil
    // What is saved from here on may lie before the key that a migration has reached.
    if let known, !known.writesAs(registration) {
      rows.remove(Metadata.migration(known.id).span.bytes)
    }
    try Self.add(registration, named: name, to: &rows)
    do {
      try engine.write(&rows, synced: known == nil)
    } catch {
      throw StoreError(error, cache: name)
    }
    isFormatWritten = true
  }

  private static func add(
    _ registration: Registration, named name: String, to rows: inout WriteBatch
  ) throws(StoreError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    do {
      rows.putMetadata(Array(try encoder.encode(registration)), under: Metadata.cache(name))
    } catch {
      throw .encoding(key: name, underlying: error)
    }
  }
}

// MARK: - Clearing caches

extension Registry {
  /// Commits `rows` together with new numbers for the caches that are cleared.
  mutating func commit(
    _ rows: inout WriteBatch, clearing clearings: [Batch.Clearing], to space: Space,
    at now: Date, telling observations: Observations
  ) throws(StoreError) {
    var retired: [UInt64] = []
    var renumbered: [(from: [UInt64], to: UInt64)] = []
    for clearing in clearings {
      let ids = [clearing.cache.id] + clearing.ids.dropLast()
      retired += ids
      for id in clearing.ids { space.accounting.open(id, inPlaceOf: clearing.cache.id) }
      guard let id = clearing.ids.last else { continue }
      renumbered.append((ids, id))
      let registration = clearing.cache.registration(id: id)
      try Self.add(registration, named: clearing.cache.name, to: &rows)
    }
    rows.putMetadata(nextID, under: Metadata.nextID)
    rows.isClearing = true
    if !observations.isEmpty {
      rows.observer = ClearAnnouncement(to: observations, renumbered: renumbered)
    }
    for id in retired { rows.putMetadata([], under: Metadata.reclaim(id)) }
    _ = try space.write(&rows, synced: true, at: now)
    for clearing in clearings {
      if let id = clearing.ids.last { clearing.cache.id = id }
    }
    space.accounting.close(retired)
    reclaimable += retired
  }

  /// Deletes a slice of the rows that cleared caches left, and gives their room back.
  ///
  /// A number's marks go only when a store is opened: until then a save or a migration that was
  /// under way when its cache was cleared may still put a row there.
  mutating func reclaim(in engine: any StorageEngine, atOpen: Bool) throws(EngineError) {
    var budget = Self.reclaimSlice
    while let id = reclaimable.last {
      for space in [KeySpace.records, .expiry] {
        let range = EngineRange(prefix: space.prefix(ofCache: id))
        guard try Self.empty(range, in: engine, budget: &budget) else { return }
      }
      if atOpen {
        var marks = WriteBatch()
        marks.remove(Metadata.reclaim(id).span.bytes)
        marks.remove(Metadata.migration(id).span.bytes)
        marks.remove(Metadata.bytes(id).span.bytes)
        try engine.write(&marks, synced: false)
      }
      reclaimable.removeLast()
    }
  }

  /// Deletes up to `budget` rows of `range`.
  ///
  /// True when the range is empty.
  private static func empty(
    _ range: EngineRange, in engine: any StorageEngine, budget: inout Int
  ) throws(EngineError) -> Bool {
    var rows = WriteBatch()
    var deleted = 0
    let cursor = try engine.cursor(over: range)
    var isEmpty = true
    while try cursor.next() {
      guard budget > 0 else {
        isEmpty = false
        break
      }
      cursor.withEntry { key, _ in rows.remove(key) }
      budget -= 1
      deleted += 1
      if rows.rows.count == 256 {
        try engine.write(&rows, synced: false)
        rows.reset()
      }
    }
    if !rows.isEmpty { try engine.write(&rows, synced: false) }
    // Deleted rows stay in the files, and scans step over them, until they are compacted away.
    let bytes = try engine.approximateBytes(in: range)
    if deleted >= 1000 || bytes >= 1 << 20 { try engine.compact(range) }
    return isEmpty
  }
}
