import Foundation
import Synchronization

/// The open caches of a store, and the allocation of cache ids.
///
/// An id is never reused: the batch that first uses an id also writes the next free one, with an
/// fsync. An id under which the store has rows is not free, whatever the stored counter says: rows
/// that outlive the counter, through damage, do not get into another cache.
///
/// All changes are made under the store's registry lock. The lock is held during the write on
/// purpose, because ids must reach the disk in the order in which they are allocated. Opening and
/// clearing caches need the lock; reads and saves do not.
struct Registry: ~Copyable {
  /// The number of rows under retired ids that one call of ``reclaim(in:atOpen:)`` deletes.
  private static let reclaimSlice = 10_000

  let open = OpenCaches()
  let context: StoreContext
  private var nextID: UInt64 = 1
  private var isFormatWritten = false
  /// Whether caches may be registered.
  private let access: Access
  /// Retired ids, of cleared and dropped caches, that may still have rows.
  private var reclaimable: [UInt64] = []
  /// The names of all caches; nil until they are loaded.
  private var names: CacheNames?

  /// Reads the registry of the store, without writing.
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
        noteUse(of: id)
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

  /// The next free id.
  ///
  /// - Complexity: Two seeks. Rows that cannot be read count as none.
  mutating func takeID() throws(StoreError) -> UInt64 {
    while nextID < droppedCacheID, try context.hasRows(ofCache: nextID) { nextID += 1 }
    guard nextID < droppedCacheID else {
      throw .corrupt(cache: "", key: "", file: "metadata next-id, which has the last number")
    }
    defer { nextID += 1 }
    return nextID
  }

  /// Notes an id that is found in the store's own rows.
  private mutating func noteUse(of id: UInt64) {
    if id >= nextID { nextID = id < droppedCacheID ? id + 1 : id }
  }
}

extension StoreContext {
  /// Whether the store has a record or notes under this id.
  fileprivate func hasRows(ofCache id: UInt64) throws(StoreError) -> Bool {
    for space in [KeySpace.records, .notes] {
      do throws(StoreError) {
        let rows = try cursor(
          over: EngineRange(prefix: space.prefix(ofCache: id)), readsPayloads: false)
        if try rows.next() { return true }
      } catch .corrupt {
        // The damaged part may belong to any cache.
      }
    }
    return false
  }
}

/// The open caches, by name.
///
/// It has its own lock, which is the last in the locking order, so it can be read during a write.
final class OpenCaches: Sendable {
  private let caches = Lock<[CacheName: any OpenCache]>([:])
  /// Whether a drop has failed since the database was opened or reopened.
  private let hasFailedDrop = Atomic<Bool>(false)

  func cache(named name: String) -> (any OpenCache)? {
    guard let cache = caches.withLock({ $0[CacheName(name)] }), !cache.isDropped else { return nil }
    return cache
  }

  /// All open caches, by name.
  var all: [CacheName: any OpenCache] {
    caches.withLock { $0 }.filter { !$0.value.isDropped }
  }

  func add(_ cache: any OpenCache) { caches.withLock { $0[CacheName(cache.name)] = cache } }

  func remove(named name: String) { caches.withLock { $0[CacheName(name)] = nil } }

  /// Notes that the write of a drop has failed: it may take effect when the database is reopened.
  func noteFailedDrop() { hasFailedDrop.store(true, ordering: .sequentiallyConsistent) }

  /// Sets the id of each open cache to its id on disk; returns whether no id has changed.
  ///
  /// Called after the database was reopened, when a clear or a drop whose write failed may have
  /// taken effect. A cache whose registration is unreadable keeps its id; the next opening of it
  /// throws the error. `endedIDs` are given those that have changed.
  func readIDs(by read: EngineReader, noting endedIDs: EndedIDs) -> Bool {
    endedIDs.reopened()
    // The dropped cache need not be open: then a call that opens it may be based on an old id.
    var areSame = !hasFailedDrop.exchange(false, ordering: .sequentiallyConsistent)
    for (name, cache) in all {
      let key = Metadata.cache(name.text)
      let value: [UInt8]?
      do throws(StoreError) {
        value = try read(key)
      } catch {
        continue
      }
      guard let value else {
        // Only a drop removes a registration.
        endedIDs.insert(cache.id)
        cache.id = droppedCacheID
        areSame = false
        continue
      }
      guard case .registration(let found) = Registration.read(value, under: key) else { continue }
      guard found.id != cache.id else { continue }
      endedIDs.insert(cache.id)
      cache.id = found.id
      areSame = false
    }
    return areSame
  }
}

/// The names of all caches of a store, open or not.
struct CacheNames {
  /// The spellings of each name, by text.
  private var spellings: [String: Set<CacheName>] = [:]

  /// - Complexity: One step for each cache.
  init(readFrom context: StoreContext) throws(StoreError) {
    let cursor = try context.cursor(over: EngineRange(prefix: Metadata.cachePrefix))
    while try cursor.next() {
      insert(
        cursor.withEntry { key, _ in Metadata.cacheName(in: [UInt8](key)) })
    }
  }

  mutating func insert(_ name: String) { spellings[name, default: []].insert(CacheName(name)) }

  mutating func remove(_ name: String) {
    spellings[name]?.remove(CacheName(name))
    if spellings[name]?.isEmpty == true { spellings[name] = nil }
  }

  /// A name that is canonically equivalent to `name` but has other bytes; nil if there is none.
  func otherSpelling(of name: String) -> String? {
    spellings[name]?.first { $0 != CacheName(name) }?.text
  }

  /// The name followed by its bytes in hexadecimal, to tell equal-looking names apart.
  static func spelled(_ name: String) -> String {
    let bytes = name.utf8.map { byte in
      byte < 16 ? "0\(String(byte, radix: 16))" : String(byte, radix: 16)
    }
    return "\"\(name)\" (bytes \(bytes.joined(separator: " ")))"
  }
}

// MARK: - Opening caches

extension Registry {
  /// Returns the open cache with this name and settings, or opens `wanted` and returns it.
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
    let ticket = context.endedIDs.ticket
    let known = try registration(of: wanted.name)
    if let known {
      let kind = KeyKind(code: known.keyKind)
      guard kind == wanted.keyKind else {
        throw .invalidArgument(
          """
          cache "\(wanted.name)" was created with keys of kind \(kind), which cannot change; this \
          call asks for \(wanted.keyKind). Open it with keys of kind \(kind), use another name, or \
          drop the cache with Store.drop(cache:).
          """)
      }
    }
    let id: UInt64
    if let known {
      id = known.id
      noteUse(of: id)
    } else {
      id = try takeID()
    }
    guard access == .readWrite else {
      // A cache that is not in the store gets an unused id, so it is empty.
      wanted.id = id
      open.add(wanted)
      return wanted
    }
    var registration = wanted.registration(id: id)
    if let newest = known?.newestSchemaVersion, newest > registration.schemaVersion {
      registration.newerSchemaVersion = newest
    }
    let features = wanted.features.union(known?.features ?? [])
    registration.features = features.isEmpty ? nil : features
    if registration != known {
      let isWritten = try write(registration, of: wanted, insteadOf: known, with: ticket)
      guard isWritten else { return try open(wanted) }
    }
    wanted.open(as: registration)
    try context.budgets.open(wanted, as: registration, isNew: known == nil, in: context)
    names?.insert(wanted.name)
    open.add(wanted)
    return wanted
  }

  /// Throws if another cache's name is a different spelling of `name`.
  ///
  /// Two such names are one `String`: a program could not tell the caches apart.
  private mutating func checkName(_ name: String) throws(StoreError) {
    if names == nil { names = try CacheNames(readFrom: context) }
    guard let other = names?.otherSpelling(of: name) else { return }
    throw .invalidArgument(
      "cache names \(CacheNames.spelled(name)) and \(CacheNames.spelled(other)) are equal as"
        + " text and differ in their bytes; open the cache by one of the two spellings only")
  }

  /// The registered caches that are not open, and the names of those with damaged registrations.
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
        ([UInt8](key), [UInt8](value))
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

  /// The names of all registered caches.
  func registeredNames() throws(StoreError) -> [String] {
    var names: [String] = []
    let cursor = try context.cursor(over: EngineRange(prefix: Metadata.cachePrefix))
    while try cursor.next() {
      names.append(cursor.withEntry { key, _ in Metadata.cacheName(in: [UInt8](key)) })
    }
    return names
  }

  /// The registration of a cache, open or not; nil if there is none.
  func registration(of name: String) throws(StoreError) -> Registration? {
    let key = Metadata.cache(name)
    guard let value = try context.get(key, cache: name) else { return nil }
    switch Registration.read(value, under: key) {
    case .registration(let registration): return registration
    case .damaged: throw .corrupt(cache: name, key: "", file: nil)
    case .unsupported(let error):
      throw .incompatible("what is remembered of cache \(name) cannot be read: \(error)")
    }
  }

  /// Registers a cache with fields that its entries may have from now on.
  mutating func add(
    _ features: EntryFeatures, to cache: any OpenCache
  ) throws(StoreError) {
    let ticket = context.endedIDs.ticket
    // Without a registration the store is read-only, and the write of the entry throws that.
    guard !features.isSubset(of: cache.features),
      var registration = try registration(of: cache.name)
    else { return }
    registration.features = (registration.features ?? []).union(features)
    var rows = WriteBatch()
    try Self.add(registration, named: cache.name, to: &rows)
    // Without an fsync: after a power loss an entry is not there without the writes before it.
    guard try context.writeRegistration(&rows, of: cache.name, with: ticket) else {
      return try add(features, to: cache)
    }
    cache.features = features
  }

  /// Writes the registration of a cache; false, and nothing was written, if it must be read again.
  private mutating func write(
    _ registration: Registration, of cache: any OpenCache, insteadOf known: Registration?,
    with ticket: WriteTicket
  ) throws(StoreError) -> Bool {
    var rows = WriteBatch()
    if !isFormatWritten { rows.putMetadata(Metadata.formatVersion, under: Metadata.format) }
    if known == nil {
      rows.putMetadata(nextID, under: Metadata.nextID)
      if context.budgets.counts(byteBudget: cache.byteBudget) {
        rows.putCount(0, under: Metadata.bytes(registration.id))
      }
    }
    // A cache must be opened before it can be read or cleared, even on a full disk.
    rows.mayUseReserve = known != nil
    // New entries may have keys below the last migrated key, so the migration must restart.
    if let known, !known.writesAs(registration) {
      rows.remove(Metadata.migration(known.id).span.bytes)
    }
    try Self.add(registration, named: cache.name, to: &rows)
    let isSynced = known == nil
    guard
      try context.writeRegistration(&rows, of: cache.name, synced: isSynced, with: ticket)
    else { return false }
    isFormatWritten = true
    return true
  }

  private static func add(
    _ registration: Registration, named name: String, to rows: inout WriteBatch
  ) throws(StoreError) {
    do {
      try rows.put(registration, ofCache: name)
    } catch {
      throw .encoding(key: name, underlying: error)
    }
  }
}

// MARK: - Clearing and dropping caches

extension Registry {
  /// Commits `write` together with new ids for the caches that are cleared.
  ///
  /// Returns false if a condition of the write did not hold: nothing was written or cleared.
  mutating func commit(
    _ write: inout WriteBatch, clearing clearings: [Batch.Clearing], at now: Date
  ) throws(StoreError) -> Bool {
    var retired: [UInt64] = []
    var renumbered: [Observations.Renumbering] = []
    let accounting = context.budgets.accounting
    for clearing in clearings where clearing.cache.isDropped {
      throw StoreError(cacheWasDropped: clearing.cache.name)
    }
    for clearing in clearings {
      let ids = [clearing.cache.id] + clearing.ids.dropLast()
      retired += ids
      for id in clearing.ids { accounting.open(id, inPlaceOf: clearing.cache.id) }
      guard let id = clearing.ids.last else { continue }
      renumbered.append(Observations.Renumbering(from: ids, to: id))
      let registration = clearing.cache.registration(id: id)
      try Self.add(registration, named: clearing.cache.name, to: &write)
    }
    write.putMetadata(nextID, under: Metadata.nextID)
    write.isClearing = true
    context.observations.expectClear(of: renumbered)
    defer { context.observations.expectClear(of: []) }
    for id in retired { write.putMetadata([], under: Metadata.reclaim(id)) }
    guard try context.commit(&write, .powerLoss, at: now).failed.isEmpty else {
      accounting.close(clearings.flatMap(\.ids))
      return false
    }
    for clearing in clearings {
      guard let id = clearing.ids.last else { continue }
      // The cache has another id by now if a clear that had failed took effect during this one.
      if !retired.contains(clearing.cache.id) { retired.append(clearing.cache.id) }
      clearing.cache.id = id
    }
    accounting.close(retired)
    reclaimable += retired
    return true
  }

  /// Removes the registration of a cache, open or not, and retires its id.
  ///
  /// - Returns: Whether there was such a cache, and the open cache, which the caller releases
  ///   without the registry lock: that may run any code.
  mutating func drop(
    _ name: String
  ) throws(StoreError) -> (isDropped: Bool, cache: (any OpenCache)?) {
    guard let id = try registration(of: name)?.id else { return (false, nil) }
    let cache = open.cache(named: name)
    var rows = WriteBatch()
    rows.mayUseReserve = true
    rows.remove(Metadata.cache(name).span.bytes)
    rows.remove(Metadata.migration(id).span.bytes)
    rows.remove(Metadata.bytes(id).span.bytes)
    rows.putMetadata([], under: Metadata.reclaim(id))
    do throws(StoreError) {
      try context.writeMetadata(&rows, synced: true, cache: name)
    } catch {
      open.noteFailedDrop()
      // Loaded again when the next cache is opened.
      names = nil
      throw error
    }
    names?.remove(name)
    cache?.id = droppedCacheID
    open.remove(named: name)
    context.budgets.accounting.close([id])
    reclaimable.append(id)
    return (true, cache)
  }

  /// Whether rows of cleared or dropped caches are left.
  var hasReclaimable: Bool { !reclaimable.isEmpty }

  /// Deletes up to 10,000 rows of cleared and dropped caches, and compacts their ranges.
  ///
  /// A number's marks go only when a store is opened: until then a save or a migration that was
  /// under way when its cache was cleared or dropped may still put a row there.
  mutating func reclaim(atOpen: Bool) throws(StoreError) {
    var budget = Self.reclaimSlice
    while let id = reclaimable.last {
      for space in [KeySpace.records, .notes, .unshared] {
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
      context.notes.forget(id)
      reclaimable.removeLast()
    }
  }

  /// Deletes up to `budget` rows of `range`.
  ///
  /// True when the range is empty.
  private func empty(_ range: EngineRange, budget: inout Int) throws(StoreError) -> Bool {
    var rows = WriteBatch()
    rows.isAlwaysAdmitted = true
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
        rows.isAlwaysAdmitted = true
      }
    }
    if !rows.isEmpty { try context.writeMetadata(&rows) }
    // Deleted rows stay in the files, and scans step over them, until they are compacted away.
    let bytes = try context.engine.approximateBytes(in: range)
    if deleted >= 1000 || bytes >= 1 << 20 { try context.engine.compact(range) }
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
