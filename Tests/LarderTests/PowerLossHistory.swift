import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk

@testable import Larder

/// The entries of a store by cache and key, without empty caches.
typealias CacheContents = [String: [String: SavedValue]]

struct SavedValue: Hashable, Sendable {
  /// The hash of the value.
  let hash: Int
  var savedAt: Date
  /// The schema version of the record.
  var schema: Int
  var lifetime: Lifetime?
  var tags: [String]
}

extension SavedValue {
  /// The lifetime that applies to the entry in a cache.
  func lifetime(in cache: Int) -> Lifetime { lifetime ?? OpenStore.lifetimes[cache] }

  /// Becomes the entry after an update to `value`.
  mutating func replace(_ value: String, savedAt: Date, schema: Int) {
    self = SavedValue(
      hash: value.hashValue, savedAt: savedAt, schema: schema, lifetime: lifetime, tags: tags)
  }
}

/// Runs a script on a store, and notes the caches' contents at each place in the disk's journal.
struct PowerLossHistory {
  let disk: SimulatedDisk
  private(set) var timeline = Timeline<CacheContents>([:])
  private(set) var syncsWithOlderLog = 0
  private(set) var swept = 0
  private(set) var sweptAtClosings = 0
  private(set) var evicted = 0

  private let clock = ManualClock()
  /// The date up to which the next closing may sweep; nil before the first closing.
  private var closingDate: Date?
  private var open: OpenStore
  private var contents: CacheContents = [:]
  private var values = 0
  private var background: HeldBackground
  private var isFillingLog = false
  private(set) var deletedSegments = 0
  private let threshold: Int?

  /// Payloads from `threshold` bytes on are in segments; none if it is nil.
  init(of script: PowerLossScript, seed: UInt64, threshold: Int? = nil) throws {
    self.threshold = threshold
    let disk = SimulatedDisk()
    self.disk = disk
    background = HeldBackground(of: disk, seed: seed)
    defer { disk.releaseBackground() }
    open = try OpenStore(on: disk, clock: clock, schema: 1, threshold: threshold)
    for operation in script.operations { try run(operation) }
    try close()
  }

  /// Opens the store that a crash left, and reads all of it.
  static func look(at image: SimulatedDisk) throws -> PowerLossSearch<CacheContents>.Opened {
    image.holdBackground()
    defer { image.releaseBackground() }
    // At the first date of the clock nothing has expired.
    let open = try OpenStore(on: image, clock: ManualClock(), schema: OpenStore.lastSchema)
    image.runBackground()
    let contents = try open.contents()
    try open.checkRows()
    try open.store.close()
    return PowerLossSearch.Opened(
      state: contents, hasSetAside: open.engine.recovery != nil)
  }

  // MARK: - Operations

  private mutating func run(_ operation: StoreOperation) throws {
    background.willWrite(operation.byteCount)
    let start = disk.journalCount
    var isDurable = false
    switch operation {
    case .change(let change, let synced): isDurable = try apply([change], synced: synced)
    case .batch(let changes, let synced): isDurable = try apply(changes, synced: synced)
    case .touch(let cache, let key): try touch(cache, Self.key(key))
    case .update(let cache, let key): try update(cache, Self.key(key))
    case .invalidate(let tag):
      try invalidate("t\(tag)")
      isDurable = true
    case .removeRange(let cache, let digit): try removeRange(cache, Self.key(digit))
    case .validate(let cache): try validate(cache)
    case .drop(let cache):
      try drop(cache, since: start)
      isDurable = true
    case .sweep:
      try sweep()
      try collect()
    case .saveWithinBudget(let bytes): try saveWithinBudget(bytes, since: start)
    case .migrate(let cache): isDurable = try migrate(cache)
    case .advance(let seconds): return clock.advance(by: .seconds(Double(seconds)))
    case .flush:
      try open.store.flush()
      isDurable = true
    case .reopen: try reopen(schema: open.schema)
    case .suspend:
      sweepAtClosing()
      try background.letRun { try open.store.suspend() }
      try open.store.resume()
    case .compact:
      try background.letRun { try open.engine.compact(EngineRange()) }
      try collect()
    case .fillLog: return try fillLog()
    }
    if isDurable, logNames.count > 1 { syncsWithOlderLog += 1 }
    timeline.add(
      contents, started: start, acknowledged: disk.journalCount, isDurable: isDurable)
    if !isFillingLog { background.advance() }
  }

  /// Collects the segments, if there are any.
  private mutating func collect() throws {
    guard threshold != nil else { return }
    let before = segmentCount
    try background.letRun { try open.engine.collectSegments() }
    deletedSegments += max(0, before - segmentCount)
  }

  private var segmentCount: Int { disk.names.count { $0.hasSuffix(".segment") } }

  private mutating func fillLog() throws {
    isFillingLog = true
    defer { isFillingLog = false }
    let last = logNames.max() ?? ""
    for key in 8..<40 where logNames.max() ?? "" <= last {
      let change = CacheChange.save(cache: key % 3, key: 8 + key % 8, bytes: 9000 + key)
      try run(.change(change, synced: false))
    }
  }

  private var logNames: [String] { disk.names.filter { $0.hasSuffix(".log") } }

  private static func key(_ number: Int) -> String { "key \(number)" }

  /// A text that fills logs, which one that can be compressed does not.
  ///
  /// Logs of pointers would take too many of them, so with segments it can be compressed.
  private func text(_ count: Int) -> String {
    guard threshold == nil else { return String(repeating: "abcdefghij", count: count / 10) }
    var random = SplitMix64(seed: UInt64(values))
    return String(decoding: random.bytes(count).map { 32 + $0 % 95 }, as: UTF8.self)
  }

  /// Applies changes in one write, a single one by its own call; returns whether they are durable.
  private mutating func apply(_ changes: [CacheChange], synced: Bool) throws -> Bool {
    var model = contents
    var isDurable = synced
    let steps = changes.map { change -> (change: CacheChange, value: String) in
      values += 1
      guard case .save(_, _, let bytes) = change else { return (change, "") }
      return (change, "\(values) " + text(bytes))
    }
    for (change, value) in steps {
      switch change {
      case .save(let cache, let key, _):
        model[OpenStore.names[cache], default: [:]][Self.key(key)] = SavedValue(
          hash: value.hashValue, savedAt: clock.now(), schema: open.schema,
          lifetime: OpenStore.lifetime(in: cache, ofKey: key), tags: OpenStore.tags(ofKey: key))
      case .remove(let cache, let key): model[OpenStore.names[cache]]?[Self.key(key)] = nil
      case .removeAll(let cache):
        model[OpenStore.names[cache]] = nil
        isDurable = true
      }
    }
    let (store, caches) = (open.store, open.caches)
    let durability: Durability = synced ? .powerLoss : .processCrash
    if steps.count == 1 {
      try applyAlone(steps[0].change, steps[0].value, durability)
    } else {
      try store.write(durability: durability) { batch in
        for (change, value) in steps {
          switch change {
          case .save(let cache, let key, _):
            batch.save(
              value, for: Self.key(key), in: caches[cache],
              lifetime: OpenStore.lifetime(in: cache, ofKey: key), tags: OpenStore.tags(ofKey: key))
          case .remove(let cache, let key): batch.remove(Self.key(key), from: caches[cache])
          case .removeAll(let cache): batch.removeAll(from: caches[cache])
          }
        }
      }
    }
    contents = model.filter { !$0.value.isEmpty }
    return isDurable
  }

  private func applyAlone(
    _ change: CacheChange, _ value: String, _ durability: Durability
  ) throws {
    switch change {
    case .save(let cache, let key, _):
      try open.caches[cache].save(
        value, for: Self.key(key), lifetime: OpenStore.lifetime(in: cache, ofKey: key),
        tags: OpenStore.tags(ofKey: key), durability: durability)
    case .remove(let cache, let key): try open.caches[cache].remove(Self.key(key))
    case .removeAll(let cache): try open.caches[cache].removeAll()
    }
  }

  private mutating func touch(_ cache: Int, _ key: String) throws {
    guard try open.caches[cache].touch(key) else { return }
    contents[OpenStore.names[cache]]?[key]?.savedAt = clock.now()
  }

  /// Appends to a fresh value; the entry keeps its lifetime and tags.
  private mutating func update(_ cache: Int, _ key: String) throws {
    let new = try open.caches[cache].update(key) { value in
      value = value.map { $0 + "!" }
      return value
    }
    guard let new else { return }
    contents[OpenStore.names[cache]]?[key]?.replace(new, savedAt: clock.now(), schema: open.schema)
  }

  private mutating func invalidate(_ tag: String) throws {
    try open.store.invalidate(tag: tag)
    for (name, entries) in contents {
      let left = entries.filter { !$0.value.tags.contains(tag) }
      contents[name] = left.isEmpty ? nil : left
    }
  }

  /// Removes few keys, in one batch.
  private mutating func removeRange(_ cache: Int, _ prefix: String) throws {
    let name = OpenStore.names[cache]
    try open.caches[cache].remove(in: .prefix(prefix))
    contents[name] = contents[name]?.filter { !$0.key.hasPrefix(prefix) }
    if contents[name]?.isEmpty == true { contents[name] = nil }
  }

  /// Closes the store, whose last write may fill a log.
  private mutating func close() throws {
    sweepAtClosing()
    try background.letRun { try open.store.close() }
  }

  /// Notes a closing, which sweeps what had expired at the one before, if that was long ago.
  private mutating func sweepAtClosing() {
    let now = clock.now()
    if let closingDate {
      guard now.timeIntervalSince(closingDate) >= OpenStore.sweepSeconds else { return }
      let before = contents.values.reduce(0) { $0 + $1.count }
      removeDue(at: closingDate)
      sweptAtClosings += before - contents.values.reduce(0) { $0 + $1.count }
    }
    closingDate = now
  }

  private mutating func reopen(schema: Int) throws {
    try close()
    open = try OpenStore(on: disk, clock: clock, schema: schema, threshold: threshold)
  }

  /// Migrates a cache, in one slice; returns whether there was anything to migrate.
  private mutating func migrate(_ cache: Int) throws -> Bool {
    try reopen(schema: min(open.schema + 1, OpenStore.lastSchema))
    let (store, opened) = (open.store, open.caches[cache])
    let report = try background.letRun { try store.migrate(opened) }
    let now = clock.now()
    for (key, value) in contents[opened.name] ?? [:]
    where value.lifetime(in: cache).freshness(of: value.savedAt, at: now) != .expired {
      contents[opened.name]?[key]?.schema = open.schema
    }
    return report.migrated > 0
  }

  /// Drops a cache, and opens it again, which also writes.
  private mutating func drop(_ cache: Int, since start: Int) throws {
    contents[OpenStore.names[cache]] = nil
    try open.store.drop(cache: OpenStore.names[cache])
    timeline.add(contents, started: start, acknowledged: disk.journalCount, isDurable: true)
    try open.openCache(cache)
  }

  private mutating func validate(_ cache: Int) throws {
    let now = clock.now()
    let name = OpenStore.names[cache]
    try open.caches[cache].validate()
    contents[name] = contents[name]?.filter { _, value in
      value.lifetime(in: cache).freshness(of: value.savedAt, at: now) != .expired
    }
    if contents[name]?.isEmpty == true { contents[name] = nil }
  }
}

extension PowerLossHistory {
  /// Sweeps the store, whose due entries are all in one cache and fit into one slice.
  private mutating func sweep() throws {
    let now = clock.now()
    swept += try open.store.sweep()
    removeDue(at: now)
  }

  /// Removes the entries from the contents that a sweep at a date deletes.
  private mutating func removeDue(at date: Date) {
    for (cache, name) in OpenStore.names.enumerated() {
      contents[name] = contents[name]?.filter { _, value in
        let lifetime = value.lifetime(in: cache)
        guard let expiry = lifetime.expiry(from: value.savedAt) else { return true }
        return Double(ExpiryNotes.bucket(savedAt: value.savedAt, expiresAt: expiry))
          > date.timeIntervalSinceReferenceDate
      }
      if contents[name]?.isEmpty == true { contents[name] = nil }
    }
  }
}

extension PowerLossHistory {
  /// Saves a new key in the cache with the budget.
  ///
  /// The store chooses the entries to evict. They are evicted together, before the save.
  private mutating func saveWithinBudget(_ bytes: Int, since start: Int) throws {
    let name = OpenStore.names[3]
    values += 1
    let value = "\(values) " + String(repeating: "abcdefghij", count: bytes / 10)
    try open.caches[3].save(value, for: Self.key(values))
    let left = try open.contents()[name] ?? [:]
    let before = contents[name] ?? [:]
    contents[name] = before.filter { left[$0.key] != nil }
    if contents[name]?.isEmpty == true { contents[name] = nil }
    evicted += before.count - (contents[name]?.count ?? 0)
    timeline.add(contents, started: start, acknowledged: disk.journalCount, isDurable: false)
    contents[name] = left
  }
}

/// A store with four caches: with a short lifetime, a long one, no limit, and a byte budget.
struct OpenStore {
  static let names = ["short", "long", "endless", "few"]
  static let lifetimes: [Lifetime] = [
    .fresh(for: .seconds(100), thenStaleFor: .seconds(50)), .days(7), .unlimited, .unlimited,
  ]
  /// The tags that a key is saved with; none for every other one.
  static func tags(ofKey key: Int) -> [String] { key % 2 == 0 ? [] : ["all", "t\(key % 4)"] }

  /// The lifetime that a key is saved with; nil but for some keys of the first cache.
  ///
  /// In other caches it would make a sweep delete from two caches, in two writes.
  static func lifetime(in cache: Int, ofKey key: Int) -> Lifetime? {
    cache == 0 && key % 3 == 0 ? .fresh(for: .seconds(60), thenStaleFor: .seconds(30)) : nil
  }

  private static let budget = 8000
  /// The least time between two closings that sweep.
  static let sweepSeconds = 600.0
  static let lastSchema = 20
  /// Each schema reads all versions before it.
  private static let schemas = (0...lastSchema).map { version in
    (0..<version).reduce(Schema<String>(version: version)) { schema, older in
      schema.reading(older, as: String.self) { $0 }
    }
  }

  let schema: Int
  let engine: LevelDBEngine
  let store: Store
  private(set) var caches: [Cache<String, String>] = []

  init(
    on disk: SimulatedDisk, clock: ManualClock, schema: Int, threshold: Int? = nil
  ) throws {
    self.schema = schema
    var engineOptions = LevelDBOptions()
    engineOptions.files = SimulatedFiles(disk)
    engineOptions.writeBufferBytes = HeldBackground.writeBufferBytes
    engineOptions.maxFileBytes = 1 << 20
    engineOptions.separation = Record.separation(from: threshold)
    engineOptions.segmentBytes = 16 << 10
    engineOptions.collectsInBackground = false
    engine = try LevelDBEngine(at: "/store", options: engineOptions)
    var options = Store.Options()
    options.clock = clock
    options.sweepInterval = .seconds(Self.sweepSeconds)
    // No sweep in the background.
    options.sweepTrigger = { _, _ in {} }
    let store = try Store(engine: engine, options: options, origin: .disk)
    self.store = store
    caches = try Self.names.indices.map { try Self.cache($0, of: store, schema: schema) }
  }

  private static func cache(
    _ index: Int, of store: Store, schema: Int
  ) throws -> Cache<String, String> {
    try store.cache(
      names[index], of: String.self, lifetime: lifetimes[index], schema: schemas[schema],
      byteBudget: index == 3 ? budget : nil)
  }

  /// Opens a cache again that was dropped.
  mutating func openCache(_ index: Int) throws {
    caches[index] = try Self.cache(index, of: store, schema: schema)
  }

  func contents() throws -> CacheContents {
    var contents: CacheContents = [:]
    for cache in caches {
      let cursor = try cache.entries()
      while let item = try cursor.next() {
        let entry = try item.entry.get()
        let recordKey = try cache.core.recordKey(of: item.key, id: cache.core.id).bytes
        let bytes = try engine.get(recordKey.span.bytes) ?? []
        let record = try Record(bytes.span.bytes, under: recordKey.span.bytes)
        contents[cache.name, default: [:]][item.key] = SavedValue(
          hash: entry.value.hashValue, savedAt: entry.savedAt, schema: Int(record.schemaVersion),
          lifetime: entry.lifetime, tags: entry.tags)
      }
    }
    return contents
  }

  /// Throws unless every record is noted once those that are missing were searched for, every note
  /// belongs to a cache, and the byte count is right and within the budget.
  func checkRows() throws {
    var lifetimes: [UInt64: Lifetime] = [:]
    for (cache, lifetime) in zip(caches, Self.lifetimes) { lifetimes[cache.core.id] = lifetime }
    var steps = Int.max
    try store.context.noteMissing(steps: &steps)
    try store.context.writeNotes()
    let notes = try FoundNote.all(in: engine)
    for (key, value) in try self.rows(in: .records) {
      let record = try Record(value.span.bytes, under: key.span.bytes)
      let (id, userKey) = try Self.parts(of: key)
      guard let lifetime = lifetimes[id]?.applied(to: record) else {
        throw WrongRow("a record of no cache")
      }
      guard record.expiresAt == lifetime.expiry(from: record.savedAt) else {
        throw WrongRow("a record that expires at another date")
      }
      guard let expiresAt = record.expiresAt else { continue }
      let bucket = ExpiryNotes.bucket(savedAt: record.savedAt, expiresAt: expiresAt)
      guard
        notes.contains(FoundNote(cacheID: id, bucket: bucket, userKey: Array(userKey)))
      else { throw WrongRow("a record without its note") }
    }
    try checkCount()
    for note in notes where lifetimes[note.cacheID] == nil { throw WrongRow("a note of no cache") }
  }

  private func checkCount() throws {
    let id = caches[3].core.id
    var bytes = 0
    for (key, value) in try rows(in: .records) where try Self.parts(of: key).id == id {
      bytes += key.count + value.count
    }
    guard let account = store.context.budgets.accounting.count(id), account.isExact,
      account.bytes == bytes, bytes <= Self.budget
    else { throw WrongRow("\(bytes) bytes are not counted right") }
  }

  private func rows(in space: KeySpace) throws -> [[UInt8]: [UInt8]] {
    var rows: [[UInt8]: [UInt8]] = [:]
    let cursor = try engine.cursor(over: EngineRange(prefix: [space.rawValue]))
    while try cursor.next() {
      cursor.withEntry { key, value in
        rows[key.withUnsafeBytes { Array($0) }] = value.withUnsafeBytes { Array($0) }
      }
    }
    return rows
  }

  /// The id of the cache, and the rest of the key.
  private static func parts(of key: [UInt8]) throws -> (id: UInt64, rest: ArraySlice<UInt8>) {
    var offset = 1
    guard let id = readVarint(key.span.bytes, at: &offset) else { throw WrongRow("a row's key") }
    return (id, key[offset...])
  }
}

private struct WrongRow: Error {
  let what: String

  init(_ what: String) { self.what = what }
}
