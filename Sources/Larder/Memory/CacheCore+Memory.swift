import Foundation

/// What a read from disk needs after its value was not found in memory.
struct Missed {
  /// The key of the record; nil if the value was found.
  var recordKey: RecordKey?
  /// The hash of the record's key in memory.
  var hash: UInt64 = 0
}

extension CacheCore {
  /// Finds the entry of a key's fresh value in memory; nil if it is not there, and `missed` is set.
  ///
  /// The caller ends the loan.
  func lend(_ key: some CacheKey, _ missed: inout Missed) throws(StoreError) -> MemoryCache.Loan? {
    let id = try usableID()
    var loan: MemoryCache.Loan?
    key.withEncoded { bytes in
      loan = memory?.lend(bytes, in: id, &missed.hash)
      if loan == nil { missed.recordKey = RecordKey(cacheID: id, userKey: bytes) }
    }
    if let key = missed.recordKey { try key.checkLimit() }
    return loan
  }

  /// The entry with a value of this cache that was found in memory.
  @inline(__always)
  func entry(_ loan: MemoryCache.Loan) -> Unmanaged<ResidentEntry<Value>> {
    // The key has the id of the cache, and an open cache has one type of values.
    Unmanaged.fromOpaque(loan.object.toOpaque())
  }

  /// The entry of a key's fresh value in memory; nil if it is not there, and `missed` is set.
  func residentEntry(
    of key: some CacheKey, _ missed: inout Missed
  ) throws(StoreError) -> Entry<Value>? {
    try resident(of: key, &missed).map { Entry($0, readAt: clock.now()) }
  }

  /// The object of a key's fresh value in memory; nil if it is not there, and `missed` is set.
  func resident(
    of key: some CacheKey, _ missed: inout Missed
  ) throws(StoreError) -> ResidentEntry<Value>? {
    guard let loan = try lend(key, &missed) else { return nil }
    let resident = entry(loan).takeUnretainedValue()
    loan.end()
    return resident
  }

  /// Keeps the value of a fresh record that was read from disk in memory.
  ///
  /// Opening a sealed validator takes time, and may fail, so it is made only if it is kept.
  func keep(
    _ value: Value, _ validator: @autoclosure () throws(StoreError) -> Validator?,
    of record: Record, in bytes: RawSpan, under key: RecordKey, _ reading: StoreMemory.Reading?
  ) throws(StoreError) {
    guard let reading, let memory else { return }
    let entry = ResidentEntry(
      value, of: record, in: bytes, validator: try validator(),
      ownLifetime: lifetime.own(of: record),
      validUntil: validUntil(of: record),
      tagEpoch: record.tags == nil ? nil : reading.tagEpoch)
    memory.add(entry, weight: weight(of: record, in: bytes, under: key), under: key, reading)
  }

  /// The date up to which an entry is returned from memory, in seconds since the reference date.
  ///
  /// In a sliding cache, that is the date from which on a read restarts its lifetime.
  func validUntil(of record: Record) -> Double {
    let fresh = lifetime.own(of: record).map { $0.lifetime.fresh } ?? lifetime.fresh
    let end = fresh.end(from: record.savedAt)?.timeIntervalSinceReferenceDate ?? .infinity
    guard slides != nil else { return end }
    return min(end, slideDate(of: record)?.timeIntervalSinceReferenceDate ?? .infinity)
  }

  /// Roughly the bytes that an entry takes in memory.
  func weight(of record: Record, in bytes: RawSpan, under key: RecordKey) -> Int {
    let count = record.encodedBytes(in: bytes)
    // Bytes as they are take a quarter more than their number.
    let payload = coder.format == .bytes ? count + count / 4 : count * MemoryWeight.perPayloadByte
    return MemoryWeight.entry + MemoryLayout<Value>.stride + payload + key.bytes.count
  }
}

/// The bytes of entries in memory, besides the values themselves.
enum MemoryWeight {
  /// A slot of a ``MemoryShard``, its part of the table, and a ``ResidentEntry``.
  static let entry = 300
  /// The decoded bytes for each byte of a payload.
  ///
  /// Measured by the growth of a process: 1.1 for numbers and bytes, 1.6 for a few strings, 2.5 for
  /// arrays of such structs, 3.2 for short words and for a struct with a URL, and 4.5 for arrays of
  /// structs with URLs.
  static let perPayloadByte = 3
}
