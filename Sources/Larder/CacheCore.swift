import Foundation
import LarderBytes
import LarderCoding
import LarderEngine
import Synchronization

/// An open cache of any type, as the store keeps it.
protocol OpenCache: AnyObject, Sendable {
  var name: String { get }
  /// The number that the cache's keys carry on disk now.
  ///
  /// Clearing the cache gives it a new one.
  var id: UInt64 { get set }
  /// What the store remembers of the cache when its id is `id`.
  func registration(id: UInt64) -> Registration
  /// From when on something of it may be due to be swept.
  var nextDue: NextDue { get }
  var byteBudget: Int? { get }
  var marks: ReadMarks? { get }
  var settings: CacheSettings { get }
}

/// What is the same for all copies of a cache: its settings, and how it reads and writes records.
///
/// It does not hold the store, because the store holds it.
final class CacheCore<Value: Sendable>: OpenCache {
  let name: String
  private let keyType: any CacheKey.Type
  let keyKind: KeyKind
  let lifetime: Lifetime
  let schema: Schema<Value>
  let coder: Coder<Value>
  let byteBudget: Int?
  /// Where reads are noted, if the cache, or the store, has a budget: then it is counted, and each
  /// record has a row in the index.
  let marks: ReadMarks?
  private let readers: [UInt8: Coder<Value>]
  private let currentID: Atomic<UInt64>
  /// Whether saves replace entries that a newer program has written.
  private let overwritesNewer: Bool
  /// The number under which there may be such entries that are to be kept; 0 for none.
  private let idOfNewerEntries = Atomic<UInt64>(0)
  let nextDue = NextDue()
  /// Where reads of a key read to.
  let spareBuffer = SpareBuffer()
  let counts: CacheCounts

  init<Key: CacheKey>(
    name: String, keyedBy: Key.Type, lifetime: Lifetime, schema: Schema<Value>,
    coder: Coder<Value>, readers: [UInt8: Coder<Value>], counts: CacheCounts, byteBudget: Int?,
    marks: ReadMarks?, overwritesNewer: Bool
  ) {
    self.name = name
    self.keyType = keyedBy
    self.keyKind = Key.keyKind
    self.lifetime = lifetime
    self.schema = schema
    self.coder = coder
    self.readers = readers
    self.counts = counts
    self.byteBudget = byteBudget
    self.marks = marks
    self.currentID = Atomic(0)
    self.overwritesNewer = overwritesNewer
  }

  var id: UInt64 {
    get { currentID.load(ordering: .acquiring) }
    set { currentID.store(newValue, ordering: .releasing) }
  }

  func registration(id: UInt64) -> Registration {
    Registration(
      id: id, keyKind: keyKind.code, coder: coder.format.rawValue, schemaVersion: schema.version,
      lifetime: lifetime, byteBudget: byteBudget)
  }

  var settings: CacheSettings {
    CacheSettings(
      keyType: CacheSettings.Named(type: keyType), valueType: CacheSettings.Named(type: Value.self),
      lifetime: lifetime, schemaVersion: schema.version, readerVersions: Set(schema.readers.keys),
      coder: coder.format, byteBudget: byteBudget, overwritesNewer: overwritesNewer)
  }

  /// Begins to use the cache as it was registered.
  func open(as registration: Registration) {
    if registration.newerSchemaVersion != nil, !overwritesNewer {
      idOfNewerEntries.store(registration.id, ordering: .releasing)
    }
    id = registration.id
  }

  /// Whether there may be entries under `id` that a newer program has written and that are to be
  /// kept.
  ///
  /// A cache that is cleared has another id from then on, and no such entries.
  func mayHoldNewerEntries(_ id: UInt64) -> Bool {
    id == idOfNewerEntries.load(ordering: .acquiring)
  }
}

// MARK: - Keys

extension CacheCore {
  /// The physical key of `key`'s record in the cache as it was numbered `id`.
  func recordKey(of key: some CacheKey, id: UInt64) throws(StoreError) -> [UInt8] {
    let prefix = KeySpace.records.prefix(ofCache: id)
    let prefixCount = prefix.count
    let bytes = key.encoded(after: prefix)
    guard bytes.count - prefixCount <= maximumKeyBytes else {
      throw .invalidArgument(
        "a key of \(bytes.count - prefixCount) bytes; the limit is \(maximumKeyBytes)")
    }
    return bytes
  }

  /// The user's key in the physical key of a record, for messages.
  func describe(_ recordKey: RawSpan) -> String {
    let offset = KeySpace.userKeyOffset(in: recordKey)
    return keyKind.describe(recordKey.extracting(offset..<recordKey.byteCount))
  }
}

// MARK: - Records

extension CacheCore {
  /// Adds the record of `value`, and its row in the expiry index, to `rows`.
  ///
  /// It answers the bucket of that row, if there is one, to be noted in ``nextDue`` after the
  /// commit; so do the others that add records.
  func add(
    _ value: Value, for key: some CacheKey, id: UInt64, savedAt: Date, to rows: inout WriteBatch
  ) throws(StoreError) -> Int64? {
    let recordKey = try recordKey(of: key, id: id)
    let expiresAt = lifetime.expiry(from: savedAt)
    var payloadBytes = 0
    try rows.put(recordKey.span.bytes, stamped: true) { buffer throws(StoreError) in
      Record.appendHeader(
        coder: coder.format.rawValue, schemaVersion: UInt32(schema.version), savedAt: savedAt,
        expiresAt: expiresAt, to: &buffer)
      payloadBytes = try appendPayload(of: value, under: recordKey.span.bytes, to: &buffer)
    }
    let stored = recordKey.count + Record.headerBytes + payloadBytes
    return addExpiryRow(
      at: expiresAt, savedAt: savedAt, recordKey: recordKey, id: id, storedBytes: stored,
      to: &rows)
  }

  /// Appends the payload of a value; answers how long it is.
  private func appendPayload(
    of value: Value, under recordKey: RawSpan, to buffer: inout ByteBuffer
  ) throws(StoreError) -> Int {
    let start = buffer.count
    do {
      try coder.encode(value, &buffer)
    } catch {
      throw .encoding(key: describe(recordKey), underlying: error)
    }
    let count = buffer.count - start
    guard count <= Record.maximumPayloadBytes else {
      throw .invalidArgument(
        "a payload of \(count) bytes; the limit is \(Record.maximumPayloadBytes)")
    }
    return count
  }

  /// Whether a record is as ``add(_:for:id:savedAt:to:)`` would write it: schema version and coder.
  func isCurrent(_ record: Record) -> Bool {
    Int(record.schemaVersion) == schema.version && record.coder == coder.format.rawValue
  }

  /// Adds a record that was checked, with its value encoded anew and its dates as they are, to
  /// `rows`, if it is still the one that is there.
  ///
  /// `payload` is room for the value. When this throws, `rows` is as it was.
  func addMigrated(
    _ record: Record, in bytes: RawSpan, under recordKey: RawSpan, id: UInt64,
    encodingInto payload: inout ByteBuffer, to rows: inout WriteBatch
  ) throws(StoreError) -> Int64? {
    let value = try value(of: record, in: bytes, under: recordKey)
    payload.truncate(to: 0)
    _ = try appendPayload(of: value, under: recordKey, to: &payload)
    let same = rows.require(recordKey, .unchanged(since: record.sequence))
    rows.put(recordKey, stamped: true, if: same, note: CommittedChange.sameValue) { buffer in
      record.appendReencoded(
        bytes, coder: coder.format.rawValue, schemaVersion: UInt32(schema.version),
        payload: payload, to: &buffer)
    }
    let stored = recordKey.byteCount + record.payload.lowerBound + payload.count
    return addExpiryRow(
      at: record.expiresAt, savedAt: record.savedAt,
      recordKey: recordKey.withUnsafeBytes { Array($0) }, id: id, storedBytes: stored, if: same,
      to: &rows)
  }

  /// Adds the record `bytes`, found under `recordKey`, as saved at another date, to `rows`.
  func addRestamped(
    _ bytes: RawSpan, recordKey: [UInt8], id: UInt64, savedAt: Date, if requirement: Int,
    to rows: inout WriteBatch
  ) -> Int64? {
    let expiresAt = lifetime.expiry(from: savedAt)
    rows.put(recordKey.span.bytes, stamped: true, if: requirement) { buffer in
      Record.appendRestamped(bytes, savedAt: savedAt, expiresAt: expiresAt, to: &buffer)
    }
    return addExpiryRow(
      at: expiresAt, savedAt: savedAt, recordKey: recordKey, id: id,
      storedBytes: recordKey.count + bytes.byteCount, if: requirement, to: &rows)
  }

  private func addExpiryRow(
    at expiresAt: Date?, savedAt: Date, recordKey: [UInt8], id: UInt64, storedBytes: Int,
    if requirement: Int? = nil, to rows: inout WriteBatch
  ) -> Int64? {
    guard expiresAt != nil || marks != nil else { return nil }
    let bucket = expiresAt.map(lifetime.bucket) ?? lifetime.evictionBucket(of: savedAt)
    rows.put(if: requirement) { buffer in
      KeySpace.appendExpiryKey(cache: id, bucket: bucket, recordKey: recordKey, to: &buffer)
    } value: { buffer in
      buffer.append(varint: UInt64(storedBytes))
    }
    return expiresAt == nil ? nil : bucket
  }

  /// Checks the record `bytes` that was found under `recordKey`.
  func record(_ bytes: RawSpan, under recordKey: RawSpan) throws(StoreError) -> Record {
    let record: Record
    do throws(RecordFault) {
      record = try Record(bytes, under: recordKey)
    } catch {
      switch error {
      case .damaged: throw .corrupt(cache: name, key: describe(recordKey), file: nil)
      case .unsupported(let what):
        throw .incompatible("\(what), under key \(describe(recordKey)) of cache \(name)")
      }
    }
    let version = Int(record.schemaVersion)
    guard version <= schema.version else {
      throw .newerSchema(found: version, known: schema.version)
    }
    return record
  }

  /// The value of a record that was checked.
  func value(
    of record: Record, in bytes: RawSpan, under recordKey: RawSpan
  ) throws(StoreError) -> Value {
    do {
      let payload = bytes.extracting(record.payload)
      let version = Int(record.schemaVersion)
      if version != schema.version {
        guard let reader = schema.readers[version] else { throw UnreadablePayload.schema(version) }
        return try reader(record.coder, payload)
      }
      if record.coder == coder.format.rawValue { return try coder.decode(payload) }
      guard let reader = readers[record.coder] else { throw UnreadablePayload.coder(record.coder) }
      return try reader.decode(payload)
    } catch {
      throw .undecodable(key: describe(recordKey), underlying: error)
    }
  }

  /// The value of the record in `buffer` if it is fresh at the clock's time.
  ///
  /// The same as ``lookup(_:in:under:at:maxAge:origin:)`` for those who want only that. Each
  /// generic type that is named on the way, such as an optional value in a variable, is looked up
  /// at run time: an eighth of a read from memory.
  func freshValue(
    in buffer: borrowing ValueBuffer, under recordKey: [UInt8], by clock: any WallClock,
    outcome: inout ReadOutcome
  ) throws(StoreError) -> Value? {
    let record = try buffer.withBytes { bytes throws(StoreError) in
      try self.record(bytes, under: recordKey.span.bytes)
    }
    let freshness = lifetime.freshness(of: record.savedAt, at: clock.now())
    guard freshness == .fresh else {
      outcome = ReadOutcome(freshness)
      return nil
    }
    marks?.mark(recordKey.span.bytes)
    let value = try buffer.withBytes { bytes throws(StoreError) in
      try self.value(of: record, in: bytes, under: recordKey.span.bytes)
    }
    outcome = .fresh
    return value
  }

  /// What a record that was checked means at `now`.
  func lookup(
    _ record: Record, in bytes: RawSpan, under recordKey: RawSpan, at now: Date,
    maxAge: MaxAge? = nil, origin: Origin
  ) throws(StoreError) -> Lookup<Value> {
    let age = now.timeIntervalSince(record.savedAt)
    let freshness = lifetime.freshness(of: record.savedAt, at: now, maxAge: maxAge)
    if freshness == .expired {
      return .expired(
        EntryMetadata(savedAt: record.savedAt, age: age, payloadBytes: record.payload.count))
    }
    let entry = Entry(
      value: try value(of: record, in: bytes, under: recordKey), savedAt: record.savedAt, age: age,
      origin: origin)
    return freshness == .fresh ? .fresh(entry) : .stale(entry)
  }
}
