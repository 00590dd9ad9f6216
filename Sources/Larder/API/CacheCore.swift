import Foundation
import Synchronization

/// An open cache of any type, as the store keeps it.
protocol OpenCache: AnyObject, Sendable {
  var name: String { get }
  /// The id in the cache's physical keys.
  ///
  /// Clearing the cache gives it a new one. A cache that was dropped has ``droppedCacheID``.
  var id: UInt64 { get set }
  /// The registration that the store keeps of the cache, with `id` as its id.
  func registration(id: UInt64) -> Registration
  var byteBudget: Int? { get }
  var recentReads: RecentReads? { get }
  var slides: Slides? { get }
  var memory: CacheMemory? { get }
  var settings: CacheSettings { get }
  var keyKind: KeyKind { get }
  /// The fields that entries of the cache may have, as it is registered.
  var features: EntryFeatures { get set }
}

/// The id of every open cache that was dropped, higher than all others.
///
/// No row is ever written under it.
let droppedCacheID = UInt64.max

extension OpenCache {
  var isDropped: Bool { id == droppedCacheID }
}

/// The part of a cache that all its copies share: its settings, and how it reads and writes
/// records.
///
/// It holds the store's context and not the store, because the store holds it.
final class CacheCore<Value: Sendable>: OpenCache {
  let name: String
  let context: StoreContext
  // The context's, kept here so that reads and saves need not retain the context.
  private let engine: any StorageEngine
  let clock: any WallClock
  let settings: CacheSettings
  // Two of the settings, which most calls read: from `settings` they cost 1 % of a read.
  let lifetime: Lifetime
  let loading: Loading
  let schema: Schema<Value>
  let coder: Coder<Value>
  /// The coders that the cache can read, by their number in a record.
  private let readers: [UInt8: Coder<Value>]
  /// The size in bytes from which on a payload is compressed; `Int.max` for none.
  private let compressedFrom: Int
  private let seal: StoreSeal?
  /// Whether a payload or validator that is not sealed is an error.
  private var isAllSealed: Bool { seal?.isAllSealed ?? false }
  /// How often its entries were read, if the cache is counted.
  let recentReads: RecentReads?
  /// The reads that restart lifetimes; nil if reads do not.
  let slides: Slides?
  /// How long after a save a sliding entry's fresh time ends at the latest; nil for no limit.
  let slideLimit: MaxAge?
  private let currentID = Atomic<UInt64>(0)
  /// The id under which there may be newer entries that are to be kept; 0 for none.
  private let idOfNewerEntries = Atomic<UInt64>(0)
  private let registeredFeatures = Atomic<UInt8>(0)
  let turns = Turns()
  /// Memory for the reads of single keys.
  let spareBuffer = SpareBuffer()
  /// Memory for the saves of single values.
  let spareWrite = SpareWrite()
  let counts: CacheCounts
  /// Whether the program has a handler of events; each read tests it.
  let isReporting: Bool
  /// The decoded values in memory; nil if the cache keeps none.
  let memory: CacheMemory?
  let loads: Loads
  /// The tier that other machines share; empty if the cache is this machine's alone.
  let sharing = AtomicLazyReference<CacheSharing>()
  let unshared = Unshared()

  init(
    _ name: String, _ settings: CacheSettings, schema: Schema<Value>, coder: Coder<Value>,
    readers: [UInt8: Coder<Value>], recentReads: RecentReads?, memory: CacheMemory?,
    in context: StoreContext
  ) {
    self.name = name
    self.settings = settings
    (lifetime, loading) = (settings.lifetime, settings.loading)
    (self.schema, self.coder, self.readers) = (schema, coder, readers)
    self.context = context
    engine = context.engine
    clock = context.clock
    self.recentReads = recentReads
    // Raw bytes have a format of their own, such as a picture's.
    compressedFrom = coder.format == .bytes ? .max : context.compressedFrom
    seal = context.seal
    slideLimit = settings.expiry.limit
    slides = slideLimit != nil && !context.isReadOnly ? Slides(context.activity) : nil
    counts = context.counts.ofCache(name)
    isReporting = counts.report != nil
    self.memory = memory
    loads = Loads(
      of: context, settings.lifetime, limit: settings.loading.concurrent, counts: counts)
    // Reads may give entries an end of their own.
    if slideLimit?.approximateSeconds != nil { features = .ownLifetimes }
  }

  var id: UInt64 {
    get { currentID.load(ordering: .acquiring) }
    set {
      // Before the id is used: a write removes the values that are in memory under its id.
      memory?.follow(from: id, to: newValue)
      context.observations.follow(self, to: newValue) {
        currentID.store(newValue, ordering: .releasing)
      }
    }
  }

  var features: EntryFeatures {
    get { EntryFeatures(rawValue: registeredFeatures.load(ordering: .acquiring)) }
    set { registeredFeatures.bitwiseOr(newValue.rawValue, ordering: .releasing) }
  }

  var keyKind: KeyKind { settings.keyType.keyKind }
  var byteBudget: Int? { settings.byteBudget }

  func registration(id: UInt64) -> Registration {
    Registration(
      id: id, keyKind: keyKind.code, coder: coder.format.rawValue, schemaVersion: schema.version,
      lifetime: lifetime, byteBudget: byteBudget, features: features.isEmpty ? nil : features)
  }

  /// Starts to use the cache as it was registered.
  func open(as registration: Registration) {
    if registration.newerSchemaVersion != nil, !settings.overwritesNewer {
      idOfNewerEntries.store(registration.id, ordering: .releasing)
    }
    if let features = registration.features { self.features = features }
    id = registration.id
  }

  /// Whether there may be entries of newer schema versions under `id` that are to be kept.
  ///
  /// A cache that is cleared gets another id, and has no such entries.
  func mayHoldNewerEntries(_ id: UInt64) -> Bool {
    id == idOfNewerEntries.load(ordering: .acquiring)
  }
}

// MARK: - Keys

extension CacheCore {
  /// The id; throws if the cache was dropped.
  func usableID() throws(StoreError) -> UInt64 {
    let id = id
    guard id != droppedCacheID else { throw StoreError(cacheWasDropped: name) }
    return id
  }

  /// The physical key of `key`'s record, with `id` as the id of the cache.
  ///
  /// Throws if the cache was dropped before `id` was read.
  func recordKey(of key: some CacheKey, id: UInt64) throws(StoreError) -> RecordKey {
    guard id != droppedCacheID else { throw StoreError(cacheWasDropped: name) }
    let key = key.recordKey(in: id)
    try key.checkLimit()
    return key
  }

  /// The user's key in a record's physical key, for messages.
  func describe(_ recordKey: RawSpan) -> String {
    keyKind.describe(recordKey.extracting(RecordKey.prefixCount(of: recordKey)...))
  }
}

// MARK: - Reading records

extension CacheCore {
  /// Reads the record under `key` into `buffer`, without a payload in a segment if `readsPayload`
  /// is false.
  ///
  /// - Returns: The size of the whole record; nil if there is none.
  @inline(__always) private func get(
    _ key: RecordKey, into buffer: inout ValueBuffer, readsPayload: Bool
  ) throws(StoreError) -> Int? {
    do throws(StoreError) {
      guard readsPayload else { return try engine.getHead(key.bytes.span.bytes, into: &buffer) }
      return try engine.get(key.bytes.span.bytes, into: &buffer) ? buffer.count : nil
    } catch {
      let error = error.naming(cache: name, key: describe(key.bytes.span.bytes))
      context.log.found(error)
      throw error
    }
  }

  /// Reads the record under `key` into `buffer`, and checks it; nil if there is none.
  ///
  /// With `readsPayload` false, a payload in a segment is not read, and its record not checked.
  // Inlined, because copying the result takes longer than a call.
  @inline(__always) func record(
    under key: RecordKey, into buffer: inout ValueBuffer, readsPayload: Bool = true
  ) throws(StoreError) -> Record? {
    while true {
      let generation = context.invalidatedTags.generation
      guard let count = try get(key, into: &buffer, readsPayload: readsPayload) else { return nil }
      let record = try buffer.withBytes { bytes throws(StoreError) in
        try self.record(head: bytes, of: count, under: key.bytes.span.bytes)
      }
      guard record.tags != nil, context.invalidatedTags.generation != generation else {
        return record
      }
    }
  }

  /// Checks and reads the header of the record `bytes` that was found under `key`, and notes
  /// whether it was invalidated.
  @inline(__always) func record(
    _ bytes: RawSpan, under key: RawSpan
  ) throws(StoreError) -> Record {
    try record(head: bytes, of: bytes.byteCount, under: key)
  }

  /// The same for a record of `count` bytes, of which `bytes` may lack the payload.
  func record(
    head bytes: RawSpan, of count: Int, under key: RawSpan
  ) throws(StoreError) -> Record {
    var record: Record
    do throws(RecordFault) {
      record = try Record(head: bytes, of: count, under: key)
    } catch {
      switch error {
      case .damaged:
        let error = StoreError.corrupt(cache: name, key: describe(key), file: nil)
        context.log.found(error)
        throw error
      case .unsupported(let what):
        throw .incompatible("\(what), under key \(describe(key)) of cache \(name)")
      }
    }
    let version = Int(record.schemaVersion)
    guard version <= schema.version else {
      throw .newerSchema(found: version, known: schema.version)
    }
    if record.tags != nil { context.invalidatedTags.judge(&record, in: bytes) }
    return record
  }

  /// Decodes the value of a record that was checked.
  func value(of record: Record, in bytes: RawSpan, under key: RawSpan) throws(StoreError) -> Value {
    do {
      guard !record.isPlain || isAllSealed else {
        return try decode(bytes.extracting(record.payload), of: record)
      }
      return try withPlainPayload(of: record, in: bytes, under: key) { try decode($0, of: record) }
    } catch {
      throw .undecodable(key: describe(key), underlying: error)
    }
  }

  /// Calls `body` with the payload of a record as its coder wrote it, which is sealed or compressed
  /// in `bytes`, or should be.
  private func withPlainPayload<R>(
    of record: Record, in bytes: RawSpan, under key: RawSpan, _ body: (RawSpan) throws -> R
  ) throws -> R {
    let stored = bytes.extracting(record.payload)
    guard record.isSealed else {
      guard !isAllSealed else { throw UnreadablePayload.seal }
      return try withDecompressed(stored, of: record, body)
    }
    guard let seal else { throw UnreadablePayload.seal }
    let opened = try seal.payload(of: record, in: bytes, under: key, in: name)
    return try opened.withUnsafeBytes {
      try record.isCompressed ? withDecompressed($0.bytes, of: record, body) : body($0.bytes)
    }
  }

  private func withDecompressed<R>(
    _ payload: RawSpan, of record: Record, _ body: (RawSpan) throws -> R
  ) throws -> R {
    var buffer = ByteBuffer()
    guard record.appendDecompressed(payload, to: &buffer) else {
      throw UnreadablePayload.compression
    }
    return try buffer.withBytes { try body($0.bytes) }
  }

  /// The validator of a record that was checked; nil if it has none.
  func validator(
    of record: Record, in bytes: RawSpan, under key: RawSpan
  ) throws(StoreError) -> Validator? {
    guard let stored = Validator(of: record, in: bytes) else { return nil }
    guard record.isValidatorSealed || isAllSealed else { return stored }
    do throws(UnreadablePayload) {
      guard let seal, record.isValidatorSealed else { throw .seal }
      return try seal.validator(in: stored.bytes.span.bytes, under: key, in: name)
    } catch {
      throw .undecodable(key: describe(key), underlying: error)
    }
  }

  /// Decodes the payload of a record, as its coder wrote it.
  @inline(__always) private func decode(
    _ payload: RawSpan, of record: Record
  ) throws -> Value {
    let version = Int(record.schemaVersion)
    if version != schema.version {
      guard let reader = schema.readers[version] else { throw UnreadablePayload.schema(version) }
      return try reader(record.coder, payload)
    }
    if record.coder == coder.format.rawValue { return try coder.decode(payload) }
    guard let reader = readers[record.coder] else {
      throw UnreadablePayload.coder(record.coder)
    }
    return try reader.decode(payload)
  }

  /// The value of the record in `buffer`, which was checked, if it is fresh at the clock's time.
  ///
  /// The same as ``lookup(_:in:under:at:maxAge:)`` for callers that need only that. Each generic
  /// type that is named on the way, such as an optional value in a variable, is looked up at run
  /// time: an eighth of a read from memory.
  func freshValue(
    of record: Record, in buffer: borrowing ValueBuffer, under key: RecordKey,
    _ reading: StoreMemory.Reading?, outcome: inout ReadOutcome
  ) throws(StoreError) -> Value? {
    let now = clock.now()
    let freshness = lifetime.freshness(of: record, at: now)
    guard freshness == .fresh else {
      outcome = ReadOutcome(freshness)
      return nil
    }
    recentReads?.add(key.bytes.span.bytes)
    if slides != nil { slide(record, under: key.bytes.span.bytes, readAt: now) }
    let value = try buffer.withBytes { bytes throws(StoreError) in
      let value = try self.value(of: record, in: bytes, under: key.bytes.span.bytes)
      try keep(
        value, try validator(of: record, in: bytes, under: key.bytes.span.bytes), of: record,
        in: bytes, under: key, reading)
      return value
    }
    outcome = .fresh
    return value
  }

  /// The result of reading a record that was checked.
  func lookup(
    _ record: Record, in bytes: RawSpan, under key: RawSpan, at now: Date, maxAge: MaxAge? = nil
  ) throws(StoreError) -> Lookup<Value> {
    let freshness = lifetime.freshness(of: record, at: now, maxAge: maxAge)
    return try lookup(record, freshness, in: bytes, under: key, at: now)
  }

  /// The result of reading a record that was checked, and whose state at `now` is known.
  func lookup(
    _ record: Record, _ freshness: Freshness, in bytes: RawSpan, under key: RawSpan, at now: Date
  ) throws(StoreError) -> Lookup<Value> {
    switch freshness {
    case .fresh: return .fresh(try entry(of: record, in: bytes, under: key, at: now))
    case .stale: return .stale(try entry(of: record, in: bytes, under: key, at: now))
    case .expired:
      return .expired(
        EntryMetadata(
          savedAt: record.savedAt, readAt: now,
          payloadBytes: record.payload.count, version: Version(record),
          validator: record.isInvalidated
            ? nil : try validator(of: record, in: bytes, under: key),
          isInvalidated: record.isInvalidated))
    }
  }

  /// The entry of a record that was checked, with its value.
  func entry(
    of record: Record, in bytes: RawSpan, under key: RawSpan, at now: Date
  ) throws(StoreError) -> Entry<Value> {
    Entry(
      value: try value(of: record, in: bytes, under: key), savedAt: record.savedAt,
      readAt: now, origin: context.origin,
      version: Version(record), validator: try validator(of: record, in: bytes, under: key),
      tags: record.tags == nil ? [] : Tags(of: record, in: bytes)?.texts ?? [],
      ownLifetime: lifetime.own(of: record))
  }
}

// MARK: - Writing records

extension CacheCore {
  /// Adds the record of `value` to `write`.
  func add(
    _ value: Value, for key: some CacheKey, id: UInt64, savedAt: Date,
    fields: Record.Fields = Record.Fields(), if requirement: Int? = nil,
    to write: inout WriteBatch
  ) throws(StoreError) {
    try add(
      value, under: try recordKey(of: key, id: id), savedAt: savedAt, fields: fields,
      if: requirement, to: &write)
  }

  /// Adds the record of `value` under its physical key to `write`.
  func add(
    _ value: Value, under recordKey: RecordKey, savedAt: Date, fields: Record.Fields,
    if requirement: Int?, to write: inout WriteBatch
  ) throws(StoreError) {
    let expiresAt = expiry(from: savedAt, fields.lifetime, slidingUntil: fields.slidesUntil)
    if let seal { write.hold(seal) }
    let fields = try sealed(fields, under: recordKey)
    try write.putSeparable(recordKey.bytes.span.bytes, stamp: Record.stamp, if: requirement) {
      buffer throws(StoreError) -> Int in
      let start = buffer.count
      Record.appendHeader(
        coder: coder.format.rawValue, schemaVersion: UInt32(schema.version), savedAt: savedAt,
        expiresAt: expiresAt, fields: fields, to: &buffer)
      let payload = buffer.count
      try appendPayload(of: value, under: recordKey.bytes.span.bytes, to: &buffer)
      return try finish(&buffer, from: start, payload: payload, under: recordKey)
    }
  }

  /// The fields of a record for the disk: in a sealed store, its validator is sealed.
  // Inlined: a call costs a save that seals nothing 300 instructions.
  @inline(__always) private func sealed(
    _ fields: Record.Fields, under key: RecordKey
  ) throws(StoreError) -> Record.Fields {
    guard let seal, fields.validator != nil else { return fields }
    return try seal.sealed(fields, under: key.bytes.span.bytes, in: name)
  }

  /// The date at which an entry expires, by its own lifetime if it has one.
  private func expiry(
    from savedAt: Date, _ own: OwnLifetime?, slidingUntil end: Date?
  ) -> Date? {
    guard own != nil || end != nil,
      let own = lifetime.own(own, from: savedAt, slidingUntil: end)
    else { return lifetime.expiry(from: savedAt) }
    return own.lifetime.expiry(from: savedAt)
  }

  /// Compresses the payload of the record from `start` on, if it would be kept in a segment, and
  /// seals it in a sealed store.
  ///
  /// LevelDB compresses the blocks of smaller ones.
  ///
  /// - Returns: The size of the payload.
  // Inlined, as `sealed` is.
  @inline(__always) private func finish(
    _ buffer: inout ByteBuffer, from start: Int, payload: Int, under key: RecordKey
  ) throws(StoreError) -> Int {
    if buffer.count - payload >= compressedFrom {
      Record.compress(&buffer, from: start, payload: payload)
    }
    if let seal {
      try seal.sealPayload(
        of: &buffer, from: start, payload: payload, under: key.bytes.span.bytes, in: name)
    }
    return buffer.count - payload
  }

  /// Appends the payload of a value, not compressed.
  private func appendPayload(
    of value: Value, under recordKey: RawSpan, to buffer: inout ByteBuffer
  ) throws(StoreError) {
    let start = buffer.count
    do {
      try coder.encode(value, &buffer)
    } catch {
      throw .encoding(key: describe(recordKey), underlying: error)
    }
    let count = buffer.count - start
    try Record.checkLimit(ofPayload: count)
  }

  /// Whether a record has the schema version and coder that this cache writes.
  func isCurrent(_ record: Record) -> Bool {
    Int(record.schemaVersion) == schema.version && record.coder == coder.format.rawValue
  }

  /// Encodes the value of a record that was checked into `payload`, in place of what that held.
  func reencode(
    _ record: Record, in bytes: RawSpan, under key: RawSpan, into payload: inout ByteBuffer
  ) throws(StoreError) {
    let value = try value(of: record, in: bytes, under: key)
    payload.truncate(to: 0)
    try appendPayload(of: value, under: key, to: &payload)
  }

  /// Adds a record with another payload and its own dates to `write`.
  func addReencoded(
    _ record: Record, in bytes: RawSpan, under key: RecordKey, _ payload: borrowing ByteBuffer,
    to write: inout WriteBatch, if requirement: Int
  ) throws(StoreError) {
    if let seal { write.hold(seal) }
    try write.putSeparable(
      key.bytes.span.bytes, stamp: Record.stamp, if: requirement, note: CommittedChange.sameValue
    ) { buffer throws(StoreError) -> Int in
      let start = buffer.count
      record.appendReencoded(
        bytes, coder: coder.format.rawValue, schemaVersion: UInt32(schema.version),
        payload: payload, to: &buffer)
      return try finish(
        &buffer, from: start, payload: buffer.count - payload.count, under: key)
    }
  }

  /// Adds a record, which is `bytes`, as saved at another date to `write`.
  ///
  /// It slides until `slidesUntil`; nil lets that begin anew.
  func addRestamped(
    _ record: Record, in bytes: RawSpan, under key: RecordKey, savedAt: Date,
    lifetime: OwnLifetime?, slidesUntil: Date? = nil, validator: Validator?, note: UInt8 = 0,
    to write: inout WriteBatch, if requirement: Int
  ) throws(StoreError) {
    if let seal { write.hold(seal) }
    let lifetime = lifetime ?? record.ownLifetime
    let expiresAt = expiry(from: savedAt, lifetime, slidingUntil: slidesUntil)
    let fields = try sealed(
      Record.Fields(lifetime: lifetime, slidesUntil: slidesUntil, validator: validator),
      under: key)
    write.putSeparable(
      key.bytes.span.bytes, stamp: Record.stamp, if: requirement, keepsPayload: true, note: note
    ) { buffer in
      record.appendRestamped(
        bytes, savedAt: savedAt, expiresAt: expiresAt, fields: fields, to: &buffer)
      return record.payload.count
    }
  }
}

extension StoreError {
  /// The error for a call on a cache that was dropped.
  init(cacheWasDropped name: String) {
    self = .invalidArgument(
      """
      cache "\(name)" was dropped, so nothing can be read from it or written to it. Open it again \
      with Store.cache(_:of:), which creates an empty cache.
      """)
  }
}
