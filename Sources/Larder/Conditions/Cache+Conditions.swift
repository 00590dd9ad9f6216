import Dispatch
import Foundation
import Synchronization

// A conditional change reads the record, judges it, and commits the change under the requirement
// that the record is still the one that was read. If it is not, all of that is done again.

extension Cache {
  /// Saves a value under a key if a condition holds.
  ///
  /// ```swift
  /// let isFirst = try genres.save(list, for: "all", if: .absent)
  /// ```
  ///
  /// - Parameters:
  ///   - value: At most 32 MiB encoded.
  ///   - key: Up to 64 KiB encoded.
  ///   - condition: What must hold for the entry that is there.
  ///   - lifetime: The entry's own lifetime; nil, the default, leaves it to the cache.
  ///   - validator: 1 to 4,096 bytes; nil, the default, for none.
  ///   - tags: Up to 16, of 1 to 64 bytes of UTF-8 each; none by default.
  ///   - durability: As in ``save(_:for:lifetime:validator:tags:durability:)``.
  /// - Returns: False if the condition did not hold; nothing was written then.
  /// - Throws: ``StoreError/corrupt(cache:key:file:)``, ``StoreError/newerSchema(found:known:)`` or
  ///   ``StoreError/incompatible(_:)`` if the entry that is there cannot be read: nothing was
  ///   written. ``StoreError/conflict(cache:key:tries:)`` if other writers changed the key during
  ///   each of 100 tries. Otherwise as ``save(_:for:lifetime:validator:tags:durability:)``.
  /// - Complexity: One point lookup, a second one if anything was written meanwhile, one encode and
  ///   one append; the same again for each try that another writer of the key wins.
  @discardableResult public func save(
    _ value: Value, for key: Key, if condition: Condition, lifetime: Lifetime? = nil,
    validator: Validator? = nil, tags: [String] = [], durability: Durability? = nil
  ) throws -> Bool {
    let isSaved = try change(key, durability) { found, write throws(StoreError) in
      let fields = try store.fields(
        of: core, lifetime: lifetime, validator: validator, tags: tags, savedAt: found.now)
      guard condition.holds(for: found.record, found.freshness) else { return .refused(false) }
      try core.add(
        value, for: key, id: found.key.cacheID, savedAt: found.now, fields: fields,
        if: found.requireUnchanged(&write), to: &write)
      return .made(true)
    }
    if isSaved { core.counts.saves.add() }
    return isSaved
  }

  /// Saves a value if its key has none, and returns the entry that was there first.
  ///
  /// ```swift
  /// if let earlier = try replies.saveIfAbsent(reply, for: requestID) {
  ///   return earlier.value   // the request was answered before
  /// }
  /// ```
  ///
  /// Of all writers that call this for a key, on any threads, one saves its value; the others get
  /// that one's entry.
  ///
  /// - Parameters:
  ///   - value: At most 32 MiB encoded.
  ///   - key: Up to 64 KiB encoded.
  ///   - lifetime: The entry's own lifetime; nil, the default, leaves it to the cache.
  ///   - validator: 1 to 4,096 bytes; nil, the default, for none.
  ///   - tags: Up to 16, of 1 to 64 bytes of UTF-8 each; none by default.
  ///   - durability: As in ``save(_:for:lifetime:validator:tags:durability:)``.
  /// - Returns: The entry that is there, fresh or stale, and stays; nil if `value` was saved.
  /// - Throws: As ``save(_:for:if:lifetime:validator:tags:durability:)``, and
  ///   ``StoreError/undecodable(key:underlying:)`` if the value that is there cannot be decoded:
  ///   nothing was written.
  /// - Complexity: As ``save(_:for:if:lifetime:validator:tags:durability:)``; one decode if there
  ///   is an entry.
  @discardableResult public func saveIfAbsent(
    _ value: Value, for key: Key, lifetime: Lifetime? = nil, validator: Validator? = nil,
    tags: [String] = [], durability: Durability? = nil
  ) throws -> Entry<Value>? {
    let earlier: Entry<Value>? = try change(key, durability) { found, write throws(StoreError) in
      if let entry = try found.presentEntry(of: core) { return .refused(entry) }
      let fields = try store.fields(
        of: core, lifetime: lifetime, validator: validator, tags: tags, savedAt: found.now)
      try core.add(
        value, for: key, id: found.key.cacheID, savedAt: found.now, fields: fields,
        if: found.requireUnchanged(&write), to: &write)
      return .made(nil)
    }
    if earlier == nil { core.counts.saves.add() }
    return earlier
  }

  /// Removes the entry of a key if a condition holds.
  ///
  /// ```swift
  /// if let entry = try genres.entry(for: "all"), entry.value.isEmpty {
  ///   try genres.remove("all", if: .unchanged(since: entry))   // keeps a newer entry
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - condition: What must hold for the entry that is there. With ``Condition/absent`` nothing
  ///     is removed, or an expired entry.
  /// - Returns: Whether an entry was removed.
  /// - Throws: As ``save(_:for:if:lifetime:validator:tags:durability:)``, without encoding.
  /// - Complexity: One point lookup, a second one if anything was written meanwhile, and one
  ///   append.
  @discardableResult public func remove(_ key: Key, if condition: Condition) throws -> Bool {
    let isRemoved = try change(key) { found, write throws(StoreError) in
      guard found.record != nil, condition.holds(for: found.record, found.freshness) else {
        return .refused(false)
      }
      write.remove(found.key.bytes.span.bytes, if: found.requireUnchanged(&write))
      return .made(true)
    }
    core.counts.removals.add()
    return isRemoved
  }

  /// Changes the value of a key as one step: reads it, lets `body` change it, and saves it.
  ///
  /// ```swift
  /// let count = try counters.update("visits") { value in
  ///   value = (value ?? 0) + 1
  ///   return value
  /// }
  /// ```
  ///
  /// If another writer changes the key meanwhile, nothing is written, and `body` runs again with
  /// the new value. So `body` should have no effect besides its result. It must not call the
  /// store.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded.
  ///   - lifetime: How long the changed entry lasts: its lifetime begins anew by default.
  ///   - keepsValidator: Whether the entry keeps its validator; false by default, because that is
  ///     what a server calls the value.
  ///   - tries: How often `body` may run, at least once; 100 by default.
  ///   - durability: As in ``save(_:for:lifetime:validator:tags:durability:)``.
  ///   - body: Is passed what ``value(for:)`` returns, nil if there is no fresh value. The value
  ///     that it leaves is saved, and the entry keeps its tags. If it sets a value to nil, the
  ///     entry is removed. If it was passed nil and leaves nil, nothing is written.
  /// - Returns: What the last run of `body` returned.
  /// - Throws: What `body` throws: nothing was written then.
  ///   ``StoreError/conflict(cache:key:tries:)`` if other writers changed the key during each try.
  ///   ``StoreError/invalidArgument(_:)`` if `tries` is less than 1. As ``value(for:)`` if the
  ///   entry cannot be read; otherwise as ``save(_:for:lifetime:validator:tags:durability:)``.
  /// - Complexity: For each try one point lookup, a second one if anything was written meanwhile,
  ///   one decode, one encode, and one append.
  public func update<R>(
    _ key: Key, lifetime: LifetimeUpdate = .restart, keepsValidator: Bool = false,
    tries: Int = 100, durability: Durability? = nil, _ body: (inout Value?) throws -> R
  ) throws -> R {
    guard tries >= 1 else {
      throw StoreError.invalidArgument("\(tries) tries of an update; it needs at least 1")
    }
    return try change(key, durability, tries: tries) { found, write in
      var value = found.freshness == .fresh ? try found.value(of: core) : nil
      let hadValue = value != nil
      let result = try body(&value)
      if let value {
        var (fields, savedAt) = (Record.Fields(), core.clock.now())
        if hadValue, let record = found.record {
          fields = found.keptFields(withValidator: keepsValidator)
          fields.slidesUntil = core.slideEnd(of: record)
          if lifetime == .keep { savedAt = record.savedAt }
        }
        if case .set(let own) = lifetime {
          fields.lifetime = try store.fields(
            of: core, lifetime: own, validator: nil, tags: [], savedAt: savedAt
          ).lifetime
        }
        try core.add(
          value, for: key, id: found.key.cacheID, savedAt: savedAt, fields: fields,
          if: found.requireUnchanged(&write), to: &write)
        return .made(result)
      }
      guard hadValue else { return .refused(result) }
      write.remove(found.key.bytes.span.bytes, if: found.requireUnchanged(&write))
      return .made(result)
    }
  }

  /// What a try of a change has prepared.
  private enum Attempt<R> {
    /// The change is in the write; the result counts if its commit succeeds.
    case made(R)
    /// Nothing is to be written.
    case refused(R)
  }

  /// Prepares and commits a change until the record is still the one that was read.
  private func change<R, E: Error>(
    _ key: Key, _ durability: Durability? = nil, tries: Int = 100,
    _ prepare: (borrowing FoundEntry, inout WriteBatch) throws(E) -> Attempt<R>
  ) throws -> R {
    var hasTurn = false
    defer { if hasTurn { core.turns.end() } }
    for attempt in 0..<tries {
      if !hasTurn, attempt >= 8 || core.turns.areTaken { hasTurn = core.turns.wait() }
      var write = WriteBatch()
      write.writeCountBeforeReading = core.context.engine.writeCount
      let found = try FoundEntry(try core.recordKey(of: key, id: core.id), in: core)
      switch try prepare(found, &write) {
      case .refused(let result): return result
      case .made(let result):
        if try core.context.commit(&write, durability).failed.isEmpty { return result }
      }
    }
    let recordKey = try core.recordKey(of: key, id: core.id)
    throw StoreError.conflict(
      cache: name, key: core.describe(recordKey.bytes.span.bytes), tries: tries)
  }
}

/// How long an entry lasts after ``Cache/update(_:lifetime:keepsValidator:tries:durability:_:)``
/// has changed its value.
public enum LifetimeUpdate: Sendable, Hashable {
  /// Its own lifetime, or the cache's, begins anew.
  case restart
  /// It ends when it would have ended, and keeps the date it was saved, as the count of a time
  /// window does. A key without a fresh value begins anew.
  case keep
  /// Another lifetime of its own begins.
  case set(Lifetime)
}

extension Cache where Value: FixedWidthInteger {
  /// Adds to the number of a key as one step, and returns the sum.
  ///
  /// ```swift
  /// let requests = try counts.increment(client)   // in a cache with a lifetime of a minute
  /// if requests > 100 { throw TooManyRequests() }
  /// ```
  ///
  /// By default the entry ends when it would have ended, so a count lasts one lifetime from its
  /// first increment.
  ///
  /// - Parameters:
  ///   - key: Up to 64 KiB encoded. Without a fresh value, the number is 0.
  ///   - amount: What is added; 1 by default.
  ///   - lifetime: How long the changed entry lasts; ``LifetimeUpdate/keep`` by default.
  ///   - durability: As in ``save(_:for:lifetime:validator:tags:durability:)``.
  /// - Returns: The sum.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the sum is out of the range of `Value`:
  ///   nothing was written. Otherwise as
  ///   ``update(_:lifetime:keepsValidator:tries:durability:_:)``.
  /// - Complexity: As ``update(_:lifetime:keepsValidator:tries:durability:_:)``.
  @discardableResult public func increment(
    _ key: Key, by amount: Value = 1, lifetime: LifetimeUpdate = .keep,
    durability: Durability? = nil
  ) throws -> Value {
    try update(key, lifetime: lifetime, durability: durability) { value in
      let (sum, isOver) = (value ?? 0).addingReportingOverflow(amount)
      guard !isOver else {
        throw StoreError.invalidArgument(
          "\(value ?? 0) and \(amount) are more than \(Value.self) can hold")
      }
      value = sum
      return sum
    }
  }
}

/// The record that a conditional change has found.
struct FoundEntry: ~Copyable {
  let key: RecordKey
  /// The date by which the record is judged.
  let now: Date
  let record: Record?
  /// Whether the record is fresh, stale or expired; a missing record counts as expired.
  let freshness: Freshness
  /// What must hold for the rows of the record's tags, so that none was invalidated since.
  private var tagConditions: [(key: [UInt8], condition: WriteBatch.Condition)] = []
  private let buffer: ValueBuffer

  init<Value>(_ key: RecordKey, in core: CacheCore<Value>) throws(StoreError) {
    var buffer = ValueBuffer()
    var record = try core.record(under: key, into: &buffer)
    let now = core.clock.now()
    if let found = record, found.tags != nil {
      let tags = buffer.withBytes { Tags(of: found, in: $0) }
      for tag in tags?.all.map(Array.init) ?? [] {
        let sequence = core.context.invalidatedTags.sequence(of: tag)
        if let sequence, sequence > found.originalSequence { record?.isInvalidated = true }
        let condition =
          sequence.map { WriteBatch.Condition.unchanged(since: $0, in: InvalidatedTags.stamp) }
        tagConditions.append((Metadata.tag(tag), condition ?? .absent))
      }
    }
    freshness = record.map { core.lifetime.freshness(of: $0, at: now) } ?? .expired
    (self.key, self.now, self.record) = (key, now, record)
    self.buffer = buffer
  }

  func value<Value>(of core: CacheCore<Value>) throws(StoreError) -> Value? {
    guard let record else { return nil }
    return try buffer.withBytes { bytes throws(StoreError) in
      try core.value(of: record, in: bytes, under: key.bytes.span.bytes)
    }
  }

  /// The entry if it is fresh or stale; nil otherwise.
  func presentEntry<Value>(of core: CacheCore<Value>) throws(StoreError) -> Entry<Value>? {
    guard let record, freshness != .expired else { return nil }
    return try buffer.withBytes { bytes throws(StoreError) in
      try core.entry(of: record, in: bytes, under: key.bytes.span.bytes, at: now)
    }
  }

  /// The fields that an update keeps.
  func keptFields(withValidator: Bool) -> Record.Fields {
    guard let record else { return Record.Fields() }
    return buffer.withBytes { bytes in
      Record.Fields(
        lifetime: record.ownLifetime,
        validator: withValidator ? Validator(of: record, in: bytes) : nil,
        isValidatorSealed: withValidator && record.isValidatorSealed,
        tags: Tags(of: record, in: bytes))
    }
  }

  /// Makes `write` depend on the record and the rows of its tags being as they were found; returns
  /// the requirement on the record.
  ///
  /// Without the tags, a session that was read before its tag was invalidated could be saved again
  /// after it, and be fresh.
  func requireUnchanged(_ write: inout WriteBatch) -> Int {
    write.isWhole = true
    for (key, condition) in tagConditions { _ = write.require(key, condition) }
    return write.require(
      key.bytes, record.map { .unchanged(since: $0.sequence, in: Record.stamp) } ?? .absent)
  }
}

/// Lets the conditional changes of a cache take turns once they get in each other's way.
///
/// Without turns, eight threads that updated one key lost up to 100 tries in a row: a thread that
/// has won tries again while the others still read.
final class Turns: Sendable {
  /// The changes that have or await a turn.
  private let count = Atomic<Int>(0)
  private let turn = DispatchSemaphore(value: 1)

  /// Whether a change should wait for a turn before its first try.
  var areTaken: Bool { count.load(ordering: .relaxed) > 0 }

  /// Waits for a turn, which ``end()`` ends; false if it did not come within 20 ms.
  ///
  /// The wait has a limit for a closure of an update that updates the same cache, in spite of its
  /// documentation: its own caller has the turn.
  func wait() -> Bool {
    count.add(1, ordering: .relaxed)
    if turn.wait(timeout: .monotonicNow + .milliseconds(20)) == .success { return true }
    count.subtract(1, ordering: .relaxed)
    return false
  }

  func end() {
    count.subtract(1, ordering: .relaxed)
    turn.signal()
  }
}
