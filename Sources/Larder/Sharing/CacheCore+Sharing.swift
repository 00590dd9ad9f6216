import Foundation
import Synchronization

/// The part of a shared cache that its tier notifies of changes by other machines.
package protocol SharedPart: AnyObject, Sendable {
  /// The entry of a key was changed or removed on another machine, or by the tier.
  func changedElsewhere(_ userKey: [UInt8])
  /// Any entry may have been changed or removed.
  func allChangedElsewhere()
  /// The tier can be asked again.
  func connected()
}

/// The tier of a shared cache, in an object so that reads get it without a lock.
final class CacheSharing: Sendable {
  let tier: any RecordTier

  init(in tier: any RecordTier) { self.tier = tier }
}

extension CacheCore: SharedPart {
  package func connected() {
    guard let tier, !unshared.isEmpty, let store = unshared.store else { return }
    context.activity.begin()
    Task(executorPreference: store.executor) { [self] in
      await settleAll(in: tier)
      for waiter in context.activity.end() { waiter.resume() }
    }
  }

  var tier: (any RecordTier)? { sharing.load()?.tier }
  var isShared: Bool { sharing.load() != nil }

  func changedElsewhere(_ userKey: [UInt8]) {
    let id = id
    guard id != droppedCacheID else { return }
    let key = RecordKey(cacheID: id, userKey: userKey)
    memory?.changedElsewhere(key)
    context.loads.changedElsewhere(key, ofCache: id)
  }

  func allChangedElsewhere() { context.loads.changedElsewhere(nil, ofCache: id) }
}

/// The state of memory at the time when a reply of a tier arrived.
private final class ArrivalMark: Sendable {
  private let state = Lock<StoreMemory.Reading?>(nil)

  var reading: StoreMemory.Reading? { state.withLock { $0 } }

  func note(_ reading: StoreMemory.Reading?) { state.withLock { $0 = reading } }
}

// MARK: - Reading

extension CacheCore {
  /// Returns the fresh entry of a key from the disk or a tier, without loading it.
  func sharedEntry(
    under key: RecordKey, in tier: any RecordTier
  ) async throws -> LoadedEntry<any Sendable>? {
    let part = LoadPart(key: key, index: 0, ticket: WriteTicket())
    // A change by this machine must win over the value that the tier had before.
    guard context.loads.add(key, part.ticket, of: loads) else { throw StoreError.closed }
    defer { context.loads.remove(key, part.ticket) }
    return try loads.freshEntry(await look(for: part, in: tier), loading)
  }

  /// Finds the entry of a part on disk, and asks a tier about it.
  func look(for part: LoadPart, in tier: any RecordTier) async -> LoadFound {
    context.activity.begin()
    let found = await ask(tier, part, find(part))
    for waiter in context.activity.end() { waiter.resume() }
    return found
  }

  /// Asks a tier for what the parts of a flight have found on disk, all at once.
  func ask(
    _ tier: any RecordTier, _ parts: [LoadPart], _ found: [LoadFound]
  ) async -> [LoadFound] {
    await each(parts.indices) { await self.ask(tier, parts[$0], found[$0]) }
  }

  /// Waits until a load of this machine may begin, if the tier does not have the key.
  ///
  /// After the load of another machine it asks the tier once more. If that load has failed, this
  /// machine loads the key without a further wait.
  ///
  /// - Returns: What was found at last, and the tier's key if it is to be released after the load.
  func claimLoad(
    of part: LoadPart, _ found: LoadFound, in tier: any RecordTier,
    _ timer: LoadTimer
  ) async -> (found: LoadFound, claimed: [UInt8]?) {
    guard let key = found.sharing?.absentKey, found.refusal == nil else { return (found, nil) }
    var tombstone: UInt64?
    if case .version(let version)? = found.sharing?.seen { tombstone = version }
    switch await tier.claimLoad(of: key, seen: tombstone, timer: timer) {
    case .granted: return (found, key)
    case .unclaimed: return (found, nil)
    case .changed: return (await ask(tier, part, found), nil)
    }
  }

  /// Calls `body` for each index at the same time, and returns the results in their order.
  private func each<Result: Sendable>(
    _ indices: Range<Int>, _ body: @escaping @Sendable (Int) async -> Result
  ) async -> [Result] {
    if indices.count == 1 { return [await body(indices.lowerBound)] }
    return await withTaskGroup(of: (Int, Result).self) { group in
      for index in indices { group.addTask { (index, await body(index)) } }
      var results: [(Int, Result)] = []
      for await result in group { results.append(result) }
      return results.sorted { $0.0 < $1.0 }.map(\.1)
    }
  }

  private func ask(
    _ tier: any RecordTier, _ part: LoadPart, _ found: LoadFound
  ) async -> LoadFound {
    guard found.failure == nil else { return found }
    var found = found
    var sharing = found.sharing ?? LoadSharing(validUntil: 0, weight: 0)
    (sharing.seen, sharing.absentKey) = (nil, nil)
    sharing.servesLocal = tier.servesLocal
    let key: [UInt8]
    do {
      key = try tier.key(for: part.key.userKey)
    } catch {
      found.failure = error
      return found
    }
    guard await settle(part.key, in: tier) == nil else {
      found.sharing = sharing
      return found
    }
    let mark = ArrivalMark()
    let copy = found.entry == nil ? nil : sharing.version
    let content = await tier.read(key, unless: copy) { [memory, context] in
      mark.note(memory?.beginReading(part.key))
      context.loads.tierReplied(part.key, part.ticket)
    }
    sharing.trust = .outdated
    switch content {
    case .unavailable: sharing.trust = .unconfirmed
    case .absent(let tombstone):
      sharing.seen = tombstone.map { .version($0) } ?? .absent
      sharing.absentKey = key
    // A load does not replace it, because the key is not absent.
    case .unusable: sharing.seen = .absent
    case .same(let lease):
      sharing.trust = .confirmed(lease)
      sharing.seen = copy.map { .version($0) }
      sharing.tierHasValue = true
      if let entry = found.entry {
        keep(entry.with(value: value(entry.value)), sharing, lease, under: part.key, mark.reading)
      }
    case .value(let record, let lease):
      sharing.seen = .version(record.version)
      sharing.tierHasValue = true
      take(record, lease, part, mark.reading, &found, &sharing)
    }
    found.sharing = sharing
    return found
  }

  /// Uses a value of a tier in place of what was found on disk, and saves it there.
  private func take(
    _ shared: SharedRecord, _ lease: Lease, _ part: LoadPart,
    _ reading: StoreMemory.Reading?, _ found: inout LoadFound, _ sharing: inout LoadSharing
  ) {
    // It may be of a program that has tags or slides; then it is loaded, and replaced.
    guard let record = shared.record, record.tags == nil, record.slidesUntil == nil else { return }
    guard record.schemaVersion <= UInt32(schema.version) else {
      if !settings.overwritesNewer {
        found.refusal = .newerSchema(
          found: Int(record.schemaVersion), known: schema.version)
      }
      return
    }
    let (bytes, now) = (shared.bytes.span.bytes, clock.now())
    var entry: Entry<Value>
    do throws(StoreError) {
      entry = try self.entry(
        of: record, in: bytes, under: part.key.bytes.span.bytes, at: now)
    } catch {
      return
    }
    let sequence = found.refusal == nil ? install(shared, under: part.key, if: part.ticket) : nil
    entry = entry.fromTier(savedIn: sequence)
    found.entry = entry.with(value: entry.value)
    found.hasRecord = found.hasRecord || sequence != nil
    sharing = LoadSharing(
      version: shared.version, validUntil: validUntil(of: record),
      weight: weight(of: record, in: bytes, under: part.key), trust: .confirmed(lease),
      seen: sharing.seen, tierHasValue: true, servesLocal: sharing.servesLocal)
    if sequence != nil { keep(entry, sharing, lease, under: part.key, reading?.afterOneWrite) }
  }

  /// Keeps the value of a fresh entry in memory, where it is confirmed while the lease runs.
  private func keep(
    _ entry: Entry<Value>, _ sharing: LoadSharing, _ lease: Lease, under key: RecordKey,
    _ reading: StoreMemory.Reading?
  ) {
    guard let reading, let memory,
      clock.now().timeIntervalSinceReferenceDate < sharing.validUntil
    else { return }
    let resident = ResidentEntry(entry, validUntil: sharing.validUntil, lease: lease)
    memory.add(resident, weight: sharing.weight, under: key, reading)
  }

  /// Saves a value of a tier on disk, unless the key was changed on this machine.
  ///
  /// - Returns: The sequence of its commit; nil if it was not saved. A failure of the disk is not
  ///   reported, because the tier has the value.
  private func install(
    _ record: SharedRecord, under key: RecordKey, if ticket: WriteTicket
  ) -> UInt64? {
    do throws(StoreError) {
      return try commit(record, under: key, if: ticket)
    } catch {
      return nil
    }
  }

  /// Commits a value, or the removal that a tombstone says; without a ticket, in any case.
  ///
  /// - Returns: The sequence of the commit; nil if the ticket was revoked.
  private func commit(
    _ record: SharedRecord, under key: RecordKey, if ticket: WriteTicket? = nil,
    after writing: TierWriting? = nil
  ) throws(StoreError) -> UInt64? {
    var write = WriteBatch()
    write.isOfTier = true
    switch writing {
    case .unavailable?: unshared.add(key, to: &write)
    case .written?, .removed?: unshared.remove(key, from: &write)
    case .refused?, nil: break
    }
    let valid = ticket.map { write.require(key.bytes, .valid($0)) }
    if record.record == nil {
      write.remove(key.bytes.span.bytes, if: valid)
    } else {
      write.putSeparable(key.bytes.span.bytes, stamp: Record.stamp, if: valid) { buffer in
        record.append(to: &buffer) ?? 0
      }
    }
    let commit = try context.commit(&write)
    if case .unavailable? = writing {
      unshared.noteRows()
      // The tier may have been reached again before the row was there.
      connected()
    }
    return commit.failed.isEmpty ? commit.sequence : nil
  }
}

extension Entry {
  /// The same entry as one of a tier, with the commit that has saved it on disk.
  fileprivate func fromTier(savedIn sequence: UInt64?) -> Entry {
    Entry(
      value: value, savedAt: savedAt, readAt: readAt, origin: .shared,
      version: sequence.map(Version.init) ?? .unsaved, validator: validator, tags: [],
      ownLifetime: ownLifetime)
  }
}

// MARK: - Saving

extension CacheCore {
  /// Saves replies in a tier, and then on disk.
  func save(
    _ parts: [LoadPart], by store: Store, in tier: any RecordTier
  ) async -> [LoadSaving] {
    await each(parts.indices) { await self.save(parts[$0], by: store, in: tier) }
  }

  private func save(
    _ part: LoadPart, by store: Store, in tier: any RecordTier
  ) async -> LoadSaving {
    do throws(StoreError) {
      if let refusal = part.found.refusal { throw refusal }
      if case .value(_, _, _, let tags)? = part.reply?.content, !tags.isEmpty {
        throw .tagsInSharedCache(name)
      }
      let key = try tier.key(for: part.key.userKey)
      guard let seen = part.found.sharing?.seen,
        let record = try sharedRecord(of: part, by: store, under: key)
      else { return save([part], by: store)[0] }
      // The change may be gone by now, from a server that has lost what it had.
      if seen == .absent, context.loads.isChangedElsewhere(part.key, part.ticket) {
        return .overtaken
      }
      let mark = ArrivalMark()
      let writing = await write(record, under: key, of: part.key, to: tier, if: seen, mark)
      switch writing {
      case .refused: return .overtaken
      case .removed, .unavailable: return save([part], by: store)[0]
      case .written(let lease):
        guard let sequence = try commit(record, under: part.key, if: part.ticket) else {
          return .overtaken
        }
        count(part)
        guard let lease else { return .done }
        keep(part, record, sequence, lease, mark.reading?.afterOneWrite)
        return .shared
      }
    } catch {
      return .failed(error)
    }
  }

  /// The record of a reply with a new version; nil if the tier need not be told.
  private func sharedRecord(
    of part: LoadPart, by store: Store, under key: [UInt8]
  ) throws(StoreError) -> SharedRecord? {
    let version = UInt64.random(in: 1...(.max))
    switch part.reply?.content {
    case .absent?:
      // A tombstone is there, or nothing, or something else that a load does not replace.
      guard part.found.sharing?.tierHasValue == true else { return nil }
      return SharedRecord.tombstone(version: version, under: key)
    case .value?, .unchanged?:
      var write = WriteBatch()
      guard try add(part, by: store, to: &write) != nil else { return nil }
      return SharedRecord(only: write, version: version, under: key)
    case .unsaved?, .notShared?, nil: return nil
    }
  }

  private func keep(
    _ part: LoadPart, _ record: SharedRecord, _ sequence: UInt64, _ lease: Lease,
    _ reading: StoreMemory.Reading?
  ) {
    guard let fields = record.record else { return }
    let value: Value
    switch part.reply?.content {
    case .value(let loaded, _, _, _)?: value = self.value(loaded)
    case .unchanged?:
      guard let entry = part.found.entry else { return }
      value = self.value(entry.value)
    case .unsaved?, .notShared?, .absent?, nil: return
    }
    keep(value, of: record, fields, sequence, lease, under: part.key, reading)
  }

  private func keep(
    _ value: Value, of record: SharedRecord, _ fields: Record, _ sequence: UInt64, _ lease: Lease,
    under key: RecordKey, _ reading: StoreMemory.Reading?
  ) {
    let bytes = record.bytes.span.bytes
    let entry = Entry(
      value: value, savedAt: fields.savedAt, readAt: fields.savedAt, origin: .shared,
      version: Version(sequence: sequence), validator: Validator(of: fields, in: bytes), tags: [],
      ownLifetime: lifetime.own(of: fields))
    let sharing = LoadSharing(
      validUntil: validUntil(of: fields), weight: weight(of: fields, in: bytes, under: key))
    keep(entry, sharing, lease, under: key, reading)
  }

  /// How long a tier keeps a record; nil for as long as it keeps anything.
  private func stay(of record: SharedRecord) -> Duration? {
    guard let fields = record.record else { return SharedRecord.tombstoneStay }
    return fields.expiresAt.map { Duration(from: clock.now(), to: $0) }
  }

  /// Saves a value in a tier, and then on disk.
  ///
  /// - Returns: Why the tier does not have it; nil if it does.
  func saveShared(
    _ value: Value, under key: RecordKey, _ fields: Record.Fields, in tier: any RecordTier
  ) async throws(StoreError) -> (any Error)? {
    let shared = try tier.key(for: key.userKey)
    var write = WriteBatch()
    if mayHoldNewerEntries(key.cacheID) { try refuseNewerEntry(under: key, after: write) }
    try add(value, under: key, savedAt: clock.now(), fields: fields, if: nil, to: &write)
    let record = SharedRecord(only: write, version: .random(in: 1...(.max)), under: shared)
    await unshared.begin(.change, of: key)
    defer { unshared.end(.change, of: key) }
    let mark = ArrivalMark()
    let writing = await self.write(record, under: shared, of: key, to: tier, mark)
    let sequence = try commit(record, under: key, after: writing)
    counts.saves.add()
    if case .written(let lease?) = writing, let sequence, let fields = record.record {
      keep(
        value, of: record, fields, sequence, lease, under: key, mark.reading?.afterOneWrite)
    }
    return writing.failure
  }

  /// Removes an entry from a tier, and then from the disk.
  ///
  /// - Returns: Why the tier may still have it; nil if it does not.
  func removeShared(
    _ key: RecordKey, in tier: any RecordTier
  ) async throws(StoreError) -> (any Error)? {
    let shared = try tier.key(for: key.userKey)
    let record = SharedRecord.tombstone(version: .random(in: 1...(.max)), under: shared)
    await unshared.begin(.change, of: key)
    defer { unshared.end(.change, of: key) }
    let writing = await self.write(record, under: shared, of: key, to: tier, ArrivalMark())
    _ = try commit(record, under: key, after: writing)
    counts.removals.add()
    return writing.failure
  }

  private func write(
    _ record: SharedRecord, under shared: [UInt8], of key: RecordKey, to tier: any RecordTier,
    if condition: TierCondition = .always, _ mark: ArrivalMark
  ) async -> TierWriting {
    await tier.write(record, under: shared, if: condition, for: stay(of: record)) { [memory] in
      mark.note(memory?.beginReading(key))
    }
  }
}

extension TierWriting {
  /// Why the tier does not have the record.
  var failure: (any Error)? {
    switch self {
    case .removed(let failure), .unavailable(let failure): failure
    case .written, .refused: nil
    }
  }
}
