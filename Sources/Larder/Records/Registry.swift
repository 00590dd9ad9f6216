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
  let context: StoreContext
  private var nextID: UInt64 = 1
  private var isFormatWritten = false
  /// Whether caches may be registered.
  private let access: Access
  /// Numbers of cleared caches that may still have rows.
  private var reclaimable: [UInt64] = []
  /// The names of all caches; nil until they are read.
  private var names: CacheNames?

  /// Reads the registry of the store. Writes nothing.
  init(of context: StoreContext, access: Access) throws(StoreError) {
    self.init(ofNewStore: context, access: access)
    if let format = try number(under: Metadata.format) {
      guard format <= Metadata.formatVersion else {
        throw .incompatible("store format \(format)")
      }
      isFormatWritten = true
    }
    nextID = try number(under: Metadata.nextID) ?? 1
    let cleared = try context.cursor(over: EngineRange(prefix: Metadata.reclaimPrefix))
    while try cleared.next() {
      if let id = cleared.withEntry({ key, _ in Metadata.reclaimedID(in: key) }) {
        reclaimable.append(id)
      }
    }
  }

  init(ofNewStore context: StoreContext, access: Access = .readWrite) {
    self.context = context
    self.access = access
  }

  private func number(under key: [UInt8]) throws(StoreError) -> UInt64? {
    guard let value = try context.get(key) else { return nil }
    guard let number = Metadata.number(in: value, under: key) else {
      throw .corrupt(
        cache: "", key: "", file: "metadata \(String(decoding: key.dropFirst(), as: UTF8.self))")
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
      let value: [UInt8]?
      do throws(EngineError) {
        value = try read(key)
      } catch {
        continue
      }
      guard let value, case .registration(let found) = Registration.read(value, under: key) else {
        continue
      }
      if found.id != cache.id { areSame = false }
      cache.id = found.id
    }
    return areSame
  }
}

/// The names of a store's caches, those that are not open included.
struct CacheNames {
  /// The spellings of each name, by its text.
  private var spellings: [String: Set<CacheName>] = [:]

  /// - Complexity: One step for each cache.
  init(readFrom context: StoreContext) throws(StoreError) {
    let cursor = try context.cursor(over: EngineRange(prefix: Metadata.cachePrefix))
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
    _ wanted: CacheCore<Value>
  ) throws(StoreError) -> CacheCore<Value> {
    if let cache = open.cache(named: wanted.name) {
      let differences = cache.settings.differences(from: wanted.settings)
      guard let core = cache as? CacheCore<Value>, differences.isEmpty else {
        throw StoreError(cacheIsOpen: wanted.name, differingIn: differences)
      }
      return core
    }
    try checkName(wanted.name)
    let known = try registration(of: wanted.name)
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
      try write(registration, of: wanted, insteadOf: known)
    }
    wanted.open(as: registration)
    try context.budgets.open(wanted, as: registration, isNew: known == nil, in: context)
    names?.insert(wanted.name)
    open.add(wanted)
    return wanted
  }

  /// Refuses a name that another cache has in another spelling.
  ///
  /// Two such names are one `String`: a program could not tell the caches apart.
  private mutating func checkName(_ name: String) throws(StoreError) {
    if names == nil { names = try CacheNames(readFrom: context) }
    guard let other = names?.otherSpelling(of: name) else { return }
    throw .invalidArgument(
      "cache names \(CacheNames.spelled(name)) and \(CacheNames.spelled(other)) are equal as"
        + " text and differ in their bytes; open the cache by one of the two spellings only")
  }

  /// The caches that are registered and not open, and the names of those that are damaged.
  ///
  /// What a later version has registered is left to it.
  func dormant() throws(StoreError) -> (
    caches: [CacheName: Registration], damaged: [CacheName]
  ) {
    var caches: [CacheName: Registration] = [:]
    var damaged: [CacheName] = []
    let cursor = try context.cursor(over: EngineRange(prefix: Metadata.cachePrefix))
    while try cursor.next() {
      let (key, value) = cursor.withEntry { key, value in
        (key.withUnsafeBytes { Array($0) }, value.withUnsafeBytes { Array($0) })
      }
      let name = Metadata.cacheName(in: key)
      guard open.cache(named: name) == nil else { continue }
      switch Registration.read(value, under: key) {
      case .registration(let registration): caches[CacheName(name)] = registration
      case .damaged: damaged.append(CacheName(name))
      case .unsupported: continue
      }
    }
    return (caches, damaged)
  }

  private func registration(of name: String) throws(StoreError) -> Registration? {
    let key = Metadata.cache(name)
    guard let value = try context.get(key, cache: name) else { return nil }
    switch Registration.read(value, under: key) {
    case .registration(let registration): return registration
    case .damaged: throw .corrupt(cache: name, key: "", file: nil)
    case .unsupported(let error):
      throw .incompatible("what is remembered of cache \(name) cannot be read: \(error)")
    }
  }

  private mutating func write(
    _ registration: Registration, of cache: any OpenCache, insteadOf known: Registration?
  ) throws(StoreError) {
    var rows = WriteBatch()
    if !isFormatWritten { rows.putMetadata(Metadata.formatVersion, under: Metadata.format) }
    if known == nil {
      rows.putMetadata(nextID, under: Metadata.nextID)
      if context.budgets.counts(byteBudget: cache.byteBudget) {
        rows.putMetadata(0, under: Metadata.bytes(registration.id))
      }
    }
    // A cache must be open to be read and cleared, on a full disk too.
    rows.mayUseReserve = known != nil
    // What is saved from here on may lie before the key that a migration has reached.
    if let known, !known.writesAs(registration) {
      rows.remove(Metadata.migration(known.id).span.bytes)
    }
    try Self.add(registration, named: cache.name, to: &rows)
    try context.writeMetadata(&rows, synced: known == nil, cache: cache.name)
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
    _ write: inout PendingWrite, clearing clearings: [Batch.Clearing], at now: Date
  ) throws(StoreError) {
    var retired: [UInt64] = []
    var renumbered: [(from: [UInt64], to: UInt64)] = []
    let accounting = context.budgets.accounting
    for clearing in clearings {
      let ids = [clearing.cache.id] + clearing.ids.dropLast()
      retired += ids
      for id in clearing.ids { accounting.open(id, inPlaceOf: clearing.cache.id) }
      guard let id = clearing.ids.last else { continue }
      renumbered.append((ids, id))
      let registration = clearing.cache.registration(id: id)
      try Self.add(registration, named: clearing.cache.name, to: &write.rows)
    }
    write.rows.putMetadata(nextID, under: Metadata.nextID)
    write.rows.isClearing = true
    if !context.observations.isEmpty {
      write.rows.observer = ClearAnnouncement(to: context.observations, renumbered: renumbered)
    }
    for id in retired { write.rows.putMetadata([], under: Metadata.reclaim(id)) }
    try context.commit(&write, .powerLoss, at: now)
    for clearing in clearings {
      if let id = clearing.ids.last { clearing.cache.id = id }
    }
    accounting.close(retired)
    reclaimable += retired
  }

  /// Deletes a slice of the rows that cleared caches left, and gives their room back.
  ///
  /// A number's marks go only when a store is opened: until then a save or a migration that was
  /// under way when its cache was cleared may still put a row there.
  mutating func reclaim(atOpen: Bool) throws(StoreError) {
    var budget = Self.reclaimSlice
    while let id = reclaimable.last {
      for space in [KeySpace.records, .expiry] {
        let range = EngineRange(prefix: space.prefix(ofCache: id))
        guard try empty(range, budget: &budget) else { return }
      }
      if atOpen {
        var marks = WriteBatch()
        marks.remove(Metadata.reclaim(id).span.bytes)
        marks.remove(Metadata.migration(id).span.bytes)
        marks.remove(Metadata.bytes(id).span.bytes)
        try context.writeMetadata(&marks)
      }
      reclaimable.removeLast()
    }
  }

  /// Deletes up to `budget` rows of `range`.
  ///
  /// True when the range is empty.
  private func empty(_ range: EngineRange, budget: inout Int) throws(StoreError) -> Bool {
    var rows = WriteBatch()
    var deleted = 0
    let cursor = try context.cursor(over: range)
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
        try context.writeMetadata(&rows)
        rows.reset()
      }
    }
    if !rows.isEmpty { try context.writeMetadata(&rows) }
    // Deleted rows stay in the files, and scans step over them, until they are compacted away.
    let bytes = try context.approximateBytes(in: range)
    if deleted >= 1000 || bytes >= 1 << 20 { try context.compact(range) }
    return isEmpty
  }
}

extension Registration {
  /// The result of reading a registration's row.
  package enum Reading {
    case registration(Registration)
    case damaged
    /// A later version wrote it.
    case unsupported(any Error)
  }

  /// Reads the registration in a metadata value.
  package static func read(_ value: [UInt8], under key: [UInt8]) -> Reading {
    guard let body = Metadata.body(of: value, under: key) else { return .damaged }
    do {
      return .registration(try JSONDecoder().decode(Registration.self, from: Data(body)))
    } catch {
      return .unsupported(error)
    }
  }
}
