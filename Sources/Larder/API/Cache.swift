public import Foundation

/// A named, typed part of a store.
///
/// ```swift
/// let genres = try store.cache("genres", of: [Genre].self)   // fresh for 7 days, String keys
/// try genres.save(list, for: "all")                          // stamped with the date
/// let list = try genres.value(for: "all")                    // nil when missing or too old
/// ```
///
/// A cache is a small value: copy it, store it, use it from any thread. Each call is atomic; to
/// change several entries together, use ``Store/write(durability:_:)``. Reading changes no entry
/// and no lifetime, unless the cache was opened with ``Expiry/sliding``. The caches of a store are
/// separate.
///
/// Reads and writes block the caller for the disk. In `async` functions, make calls that may wait
/// through ``Store/run(_:)``; see <doc:Blocking>.
public struct Cache<Key: CacheKey, Value: Sendable>: Sendable {
  package let store: Store
  let core: CacheCore<Value>

  /// The name that the cache was opened with.
  public var name: String { core.name }

  /// The lifetime of entries without one of their own.
  public var lifetime: Lifetime { core.lifetime }

  /// The options of loads without their own, to be changed for one call.
  ///
  /// ```swift
  /// var loading = pages.loading
  /// loading.softTimeout = .seconds(1)
  /// let page = try await pages.value(for: url, loading: loading) { try await download(url) }
  /// ```
  public var loading: Loading { core.loading }

  /// The date from which on an entry is expired, by its own lifetime or the cache's.
  ///
  /// ```swift
  /// if let entry = try sessions.entry(for: token), let end = sessions.expiryDate(of: entry) {
  ///   response.headers["Expires"] = format(end)
  /// }
  /// ```
  ///
  /// It is computed when it is asked for: an entry has only what its record has, so that reads need
  /// no calendar. A later save, touch or invalidation, and in a cache with ``Expiry/sliding`` a
  /// read, may have changed it.
  ///
  /// - Parameter entry: An entry of this cache.
  /// - Returns: The end of its fresh and stale time; nil if it never expires.
  public func expiryDate(of entry: Entry<Value>) -> Date? {
    (entry.lifetime ?? core.lifetime).expiry(from: entry.savedAt)
  }

  /// The physical key of an entry.
  package func recordKey(of key: Key) throws(StoreError) -> RecordKey {
    try core.recordKey(of: key, id: core.id)
  }
}

// MARK: - Reading

extension Cache {
  /// Reads the value of a key while it is fresh; nil if it is missing, stale or expired.
  ///
  /// ```swift
  /// let list = try genres.value(for: "all") ?? []
  /// ```
  ///
  /// - Parameter key: Up to 64 KiB encoded.
  /// - Returns: The value, or nil; ``lookup(for:maxAge:)`` distinguishes the reasons for nil.
  /// - Throws: ``StoreError/undecodable(key:underlying:)``,
  ///   ``StoreError/newerSchema(found:known:)``, ``StoreError/corrupt(cache:key:file:)`` or
  ///   ``StoreError/incompatible(_:)`` if the entry cannot be read; it is kept.
  ///   ``StoreError/io(_:)``, ``StoreError/closed``, ``StoreError/invalidArgument(_:)`` for a key
  ///   over its limit.
  /// - Complexity: One lookup in memory. If the value is not there, one point lookup and one
  ///   decode.
  public func value(for key: Key) throws -> Value? {
    var outcome = ReadOutcome.failed
    defer { core.counts.reads.add(outcome) }
    defer { if core.isReporting { core.report(outcome, of: key) } }
    var missed = Missed()
    if let loan = try core.lend(key, &missed) {
      defer { loan.end() }
      outcome = .memory
      return core.entry(loan)._withUnsafeGuaranteedRef { $0.value }
    }
    let reading = core.memory?.beginReading(hash: missed.hash)
    var buffer = ValueBuffer(from: core.spareBuffer)
    guard let recordKey = missed.recordKey,
      let record = try core.record(under: recordKey, into: &buffer)
    else {
      outcome = .missing
      return nil
    }
    return try core.freshValue(
      of: record, in: buffer, under: recordKey, reading, outcome: &outcome)
  }

  /// Reads a value and its metadata while it is fresh; nil as in ``value(for:)``.
  ///
  /// ```swift
  /// if let entry = try genres.entry(for: "all") {
  ///   show(entry.value, savedAt: entry.savedAt)
  /// }
  /// ```
  ///
  /// - Parameter key: Up to 64 KiB encoded.
  /// - Returns: The entry, or nil.
  /// - Throws: As ``value(for:)``.
  /// - Complexity: As ``value(for:)``.
  public func entry(for key: Key) throws -> Entry<Value>? {
    switch try lookup(for: key) {
    case .fresh(let entry): entry
    case .stale, .expired, .missing: nil
    }
  }

  /// Reads the entry of a key, whether it is fresh, stale, expired or missing.
  ///
  /// ```swift
  /// switch try genres.lookup(for: "all") {
  /// case .fresh(let entry): show(entry.value, savedAt: entry.savedAt)
  /// case .stale(let entry): show(entry.value, savedAt: entry.savedAt)   // and refresh it
  /// case .expired, .missing: showNothing()
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - maxAge: The maximum age for this call; nil, the default, leaves it to the cache's
  ///     lifetime. It can only shorten the lifetime: an entry of that age or older is
  ///     ``Lookup/expired(_:)``.
  /// - Returns: One of the four cases.
  /// - Throws: As ``value(for:)``.
  /// - Complexity: One lookup in memory. If no fresh value is there, one point lookup, and one
  ///   decode if the entry is fresh or stale.
  public func lookup(for key: Key, maxAge: MaxAge? = nil) throws -> Lookup<Value> {
    try found(for: key, maxAge: maxAge)
  }

  private func found(for key: Key, maxAge: MaxAge?) throws(StoreError) -> Lookup<Value> {
    var outcome = ReadOutcome.failed
    defer { core.counts.reads.add(outcome) }
    defer { if core.isReporting { core.report(outcome, of: key) } }
    var missed = Missed()
    if let entry = try core.residentEntry(of: key, &missed) {
      guard let maxAge, !maxAge.admits(entry.savedAt, at: entry.readAt) else {
        outcome = .memory
        return .fresh(entry)
      }
      // The entry counts as expired for this call, and its metadata is on disk.
      core.memory?.takeBackHit(hash: missed.hash)
      missed.recordKey = try core.recordKey(of: key, id: core.id)
    }
    let reading = core.memory?.beginReading(hash: missed.hash)
    var buffer = ValueBuffer(from: core.spareBuffer)
    guard let recordKey = missed.recordKey,
      let record = try core.record(under: recordKey, into: &buffer)
    else {
      outcome = .missing
      return .missing
    }
    let now = core.clock.now()
    let found = try buffer.withBytes { bytes throws(StoreError) in
      core.recentReads?.add(recordKey.bytes.span.bytes)
      let found = try core.lookup(
        record, in: bytes, under: recordKey.bytes.span.bytes, at: now, maxAge: maxAge)
      if case .fresh(let entry) = found {
        try core.keep(
          entry.value, entry.validator, of: record, in: bytes, under: recordKey, reading)
      }
      return found
    }
    if case .fresh = found { core.slide(record, under: recordKey.bytes.span.bytes, readAt: now) }
    outcome = ReadOutcome(found)
    return found
  }

  /// Whether ``value(for:)`` would find a value; nothing is decoded.
  ///
  /// ```swift
  /// if try !genres.contains("all") { showNothing() }
  /// ```
  ///
  /// A payload in a segment is not read, see <doc:LargeValues>.
  ///
  /// - Parameter key: Up to 64 KiB encoded.
  /// - Returns: True if there is a fresh entry, also one whose value cannot be decoded, or whose
  ///   payload in a segment is damaged.
  /// - Throws: As ``value(for:)``, without decoding.
  /// - Complexity: One lookup in memory. If the value is not there, one point lookup and one
  ///   checksum over the record.
  public func contains(_ key: Key) throws -> Bool {
    var outcome = ReadOutcome.failed
    defer { core.counts.reads.add(outcome) }
    defer { if core.isReporting { core.report(outcome, of: key) } }
    var missed = Missed()
    if let loan = try core.lend(key, &missed) {
      loan.end()
      outcome = .memory
      return true
    }
    var buffer = ValueBuffer(from: core.spareBuffer)
    guard let recordKey = missed.recordKey,
      let record = try core.record(under: recordKey, into: &buffer, readsPayload: false)
    else {
      outcome = .missing
      return false
    }
    let freshness = core.lifetime.freshness(of: record, at: core.clock.now())
    outcome = ReadOutcome(freshness)
    return freshness == .fresh
  }

  /// Reads the values of several keys while they are fresh.
  ///
  /// ```swift
  /// let found = try genres.values(for: ["rock", "jazz"])   // as many elements as keys
  /// ```
  ///
  /// Each value is read by itself: a change that is made meanwhile may be visible for some keys and
  /// not for others.
  ///
  /// - Parameter keys: Up to 64 KiB encoded each; a key may be repeated.
  /// - Returns: For each key, in their order, what ``value(for:)`` returns.
  /// - Throws: As ``value(for:)``, for the first key that it throws for.
  /// - Complexity: As ``value(for:)``, for each key.
  public func values(for keys: [Key]) throws -> [Value?] {
    try keys.map { try value(for: $0) }
  }

  /// Reads the entries of several keys, in any state.
  ///
  /// ```swift
  /// let keys = ["rock", "jazz"]
  /// for (key, result) in zip(keys, genres.lookups(for: keys)) {
  ///   if case .failure(let error) = result { report(error, key) }
  /// }
  /// ```
  ///
  /// Each entry is read by itself, as in ``values(for:)``.
  ///
  /// - Parameter keys: Up to 64 KiB encoded each; a key may be repeated.
  /// - Returns: For each key, in their order, what ``lookup(for:maxAge:)`` returns or throws.
  /// - Complexity: As ``lookup(for:maxAge:)``, for each key.
  public func lookups(for keys: [Key]) -> [Result<Lookup<Value>, StoreError>] {
    keys.map { key in
      Result { () throws(StoreError) in try found(for: key, maxAge: nil) }
    }
  }
}

// MARK: - Writing

extension Cache {
  /// Saves a value under a key with the current date, replacing the entry of the key.
  ///
  /// ```swift
  /// try sessions.save(session, for: id)
  /// try pages.save(page, for: url, lifetime: .minutes(5), validator: Validator(etag))
  /// try sessions.save(session, for: id, tags: ["user:42"])
  /// ```
  ///
  /// - Parameters:
  ///   - value: At most 32 MiB encoded.
  ///   - key: Up to 64 KiB encoded.
  ///   - lifetime: The entry's own lifetime, in place of the cache's, whatever lifetime the cache
  ///     is opened with later; nil, the default, leaves it to the cache. Limits in days of a
  ///     calendar become the seconds that they have from now on.
  ///   - validator: What the server calls this version of the value, 1 to 4,096 bytes; nil, the
  ///     default, for none.
  ///   - tags: Names by which ``Store/invalidate(tag:durability:)`` ends the entry: up to 16, of 1
  ///     to 64 bytes of UTF-8 each. None by default.
  ///   - durability: The failures that the value survives; the store's
  ///     ``Store/Options/durability`` by default. A later save of the key has its own durability.
  /// - Throws: ``StoreError/encoding(key:underlying:)`` or ``StoreError/invalidArgument(_:)``
  ///   before anything is written; ``StoreError/newerSchema(found:known:)`` or
  ///   ``StoreError/incompatible(_:)`` if the key has an entry of a newer program, which is kept
  ///   unless the cache was opened with `overwritesNewer: true`; ``StoreError/diskFull`` or
  ///   ``StoreError/io(_:)`` if the write failed: the key then holds the old value or the new one;
  ///   ``StoreError/writesDisabled(cause:)`` after an earlier failure that persists: nothing was
  ///   written; ``StoreError/closed``.
  /// - Complexity: One encode and one append, shared with concurrent writers; one fsync for
  ///   ``Durability/powerLoss``. One append more when the first entry of the cache gets its own
  ///   lifetime, or tags. One point lookup if the cache was opened with a newer schema
  ///   version before; otherwise nothing is read.
  public func save(
    _ value: Value, for key: Key, lifetime: Lifetime? = nil, validator: Validator? = nil,
    tags: [String] = [], durability: Durability? = nil
  ) throws {
    // Unsafe: this call alone has the write, until it leaves it. A closure would copy the value.
    let write = core.spareWrite.take()
    defer { core.spareWrite.leave(write) }
    let now = core.clock.now()
    var fields = Record.Fields()
    // Most saves have no such field: the call takes as long as a twentieth of a save.
    if lifetime != nil || validator != nil || !tags.isEmpty {
      fields = try store.fields(
        of: core, lifetime: lifetime, validator: validator, tags: tags, savedAt: now)
    }
    let id = core.id
    try core.refuseNewerEntry(of: key, id: id, after: write.pointee)
    try core.add(value, for: key, id: id, savedAt: now, fields: fields, to: &write.pointee)
    try core.context.commit(&write.pointee, durability)
    core.counts.saves.add()
  }

  /// Removes the entry of a key.
  ///
  /// ```swift
  /// try genres.remove("all")
  /// ```
  ///
  /// - Parameter key: Up to 64 KiB encoded.
  /// - Returns: Whether there was an entry, in any state.
  /// - Throws: As ``save(_:for:lifetime:validator:tags:durability:)``, without encoding.
  /// - Complexity: One point lookup and, if there was an entry, one append.
  @discardableResult public func remove(_ key: Key) throws -> Bool {
    let recordKey = try core.recordKey(of: key, id: core.id).bytes
    var write = WriteBatch()
    write.remove(recordKey.span.bytes, if: write.require(recordKey, .present))
    let isRemoved = try core.context.commit(&write).failed.isEmpty
    core.counts.removals.add()
    return isRemoved
  }

  /// Removes every entry of the cache.
  ///
  /// ```swift
  /// try genres.removeAll()   // when the user signs out
  /// ```
  ///
  /// The cache gets a new id on disk, so the time does not depend on the number of entries. The old
  /// rows are deleted in slices, now and each time the store is opened. A save that runs on another
  /// thread at the same time counts as earlier.
  ///
  /// - Throws: As ``save(_:for:lifetime:validator:tags:durability:)``, without encoding.
  /// - Complexity: One append and one fsync; then at most 10,000 deletions.
  public func removeAll() throws {
    try store.write { $0.removeAll(from: self) }
  }

  /// Sets the save date of an entry to now.
  ///
  /// ```swift
  /// // The server says that the list has not changed.
  /// try genres.touch("all")
  /// ```
  ///
  /// Use it when a server confirms that a cached value is still current, as HTTP does with status
  /// 304. An expired entry becomes fresh again. The payload is neither decoded nor encoded, and the
  /// entry keeps its version and its tags.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - lifetime: The entry's own lifetime from now on; nil, the default, keeps what it has: its
  ///     own, which begins anew, or the cache's.
  ///   - validator: 1 to 4,096 bytes in place of the entry's; nil, the default, keeps what it has.
  /// - Returns: False if there is no entry, if one of its tags was invalidated, or if it was
  ///   changed by another call meanwhile. Nothing was written then.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)``, ``StoreError/newerSchema(found:known:)`` or
  ///   ``StoreError/incompatible(_:)`` if the entry cannot be read; otherwise as
  ///   ``save(_:for:lifetime:validator:tags:durability:)``.
  /// - Complexity: One point lookup, a second one if anything was written meanwhile, and one
  ///   append.
  @discardableResult public func touch(
    _ key: Key, lifetime: Lifetime? = nil, validator: Validator? = nil
  ) throws -> Bool {
    let now = core.clock.now()
    let fields = try store.fields(
      of: core, lifetime: lifetime, validator: validator, tags: [], savedAt: now)
    let recordKey = try core.recordKey(of: key, id: core.id)
    var buffer = ValueBuffer()
    var write = WriteBatch()
    write.writeCountBeforeReading = core.context.engine.writeCount
    guard let record = try core.record(under: recordKey, into: &buffer), !record.isInvalidated
    else { return false }
    let same = write.require(
      recordKey.bytes, .unchanged(since: record.sequence, in: Record.stamp))
    try buffer.withBytes { bytes in
      try core.addRestamped(
        record, in: bytes, under: recordKey, savedAt: now, lifetime: fields.lifetime,
        validator: fields.validator, to: &write, if: same)
    }
    return try core.context.commit(&write).failed.isEmpty
  }
}
