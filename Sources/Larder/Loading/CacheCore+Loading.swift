/// A call for one or more keys, with what it needs to load them.
///
/// It holds the store until the flight that it starts has ended. It is a class because the machine
/// of the loads copies flights and waiters.
final class LoadCall: Sendable {
  /// Loads the keys that are needed, by their indices, and returns one reply for each.
  typealias Load =
    @Sendable ([(index: Int, previous: Previous<any Sendable>?)]) async throws
    -> [LoadReply<any Sendable>]

  let keys: [RecordKey]
  let loading: Loading
  /// Whether it loads whatever is there.
  let isForced: Bool
  let store: Store
  let core: any LoadingCache
  let load: Load

  init(
    keys: [RecordKey], loading: Loading, isForced: Bool = false, store: Store,
    core: any LoadingCache, load: @escaping Load
  ) {
    (self.keys, self.loading, self.isForced) = (keys, loading, isForced)
    (self.store, self.core, self.load) = (store, core, load)
  }

  /// The error of a load that would wait for itself.
  func circle(at key: RecordKey) -> StoreError {
    .invalidArgument(
      """
      the load of key "\(core.describe(key.bytes.span.bytes))" of cache "\(core.name)" would wait \
      for itself: its closure asks for the key, directly or through another load. Read what it \
      needs before the load, or with value(for:), which does not load
      """)
  }
}

extension StoreError {
  static var unchangedWithoutEntry: StoreError {
    .invalidArgument(
      """
      a load replied "unchanged" for a key without a previous entry; reply with a value if the \
      closure was passed nil
      """)
  }
}

/// What a flight, or a call before it, has found on disk.
struct LoadFound: Sendable {
  /// The entry, in any state; nil if it is missing, invalidated or unreadable.
  var entry: Entry<any Sendable>?
  var tags: [[UInt8]] = []
  /// Whether there is a record, readable or not.
  var hasRecord = false
  /// Why the record must not be overwritten: it is of a newer program.
  var refusal: StoreError?
  /// Why the disk could not be read.
  var failure: StoreError?
  /// What the tier says about the entry; nil if the cache is not shared.
  var sharing: LoadSharing?
}

/// A key of a flight: what was there before, and the last reply.
struct LoadPart: Sendable {
  let key: RecordKey
  /// The place of the key in the call.
  let index: Int
  let ticket: WriteTicket
  var found = LoadFound()
  var reply: LoadReply<any Sendable>?

  /// Whether it can be saved although its record is no longer the one that was read for it.
  fileprivate var mayBeTriedAgain: Bool {
    if case .unchanged? = reply?.content { !ticket.isRevoked } else { false }
  }
}

/// What has become of a reply.
enum LoadSaving: Sendable {
  /// On disk.
  case done
  /// On disk, and confirmed by the shared tier.
  case shared
  /// Not to be saved.
  case unwanted
  /// A change of the key during the load has won.
  case overtaken
  case failed(StoreError)

  var isDone: Bool {
    switch self {
    case .done, .shared: true
    case .unwanted, .overtaken, .failed: false
    }
  }
}

/// A cache as its loads see it, which do not know the type of its values.
///
/// Generic code looks up its types while it runs. Under the lock of the loads, other callers would
/// wait for that.
protocol LoadingCache: OpenCache {
  var context: StoreContext { get }
  var tier: (any RecordTier)? { get }
  var isReporting: Bool { get }

  func find(_ key: RecordKey) -> LoadFound
  func save(_ parts: [LoadPart], by store: Store) -> [LoadSaving]
  func report(_ event: CacheEvent.Kind, of key: RecordKey)
  func describe(_ recordKey: RawSpan) -> String

  func look(for part: LoadPart, in tier: any RecordTier) async -> LoadFound
  func ask(
    _ tier: any RecordTier, _ parts: [LoadPart], _ found: [LoadFound]
  ) async -> [LoadFound]
  func claimLoad(
    of part: LoadPart, _ found: LoadFound, in tier: any RecordTier, _ timer: LoadTimer
  ) async -> (found: LoadFound, claimed: [UInt8]?)
  func save(
    _ parts: [LoadPart], by store: Store, in tier: any RecordTier
  ) async -> [LoadSaving]
}

extension LoadingCache {
  /// Reads the entry of a part, in any state.
  ///
  /// If the entry was changed or invalidated during the read, it is read once more.
  func find(_ part: LoadPart) -> LoadFound {
    let found = find(part.key)
    context.loads.add(tags: found.tags, to: part.key, part.ticket)
    return part.ticket.isRevoked ? find(part.key) : found
  }
}

extension CacheCore: LoadingCache {
  /// The value of an entry or a reply of the cache's loads.
  func value(_ value: any Sendable) -> Value {
    guard let value = value as? Value else { preconditionFailure("a value of another cache") }
    return value
  }

  /// Reads the entry of a key.
  func find(_ key: RecordKey) -> LoadFound {
    var found = LoadFound()
    var outcome = ReadOutcome.failed
    defer {
      counts.reads.add(outcome)
      if isReporting { report(.read(outcome), of: key) }
    }
    do throws(StoreError) {
      let isShared = isShared
      let reading = isShared ? nil : memory?.beginReading(key)
      var buffer = ValueBuffer(from: spareBuffer)
      guard let record = try record(under: key, into: &buffer) else {
        outcome = .missing
        return found
      }
      found.hasRecord = true
      let now = clock.now()
      let freshness = lifetime.freshness(of: record, at: now)
      if !record.isInvalidated {
        try buffer.withBytes { bytes throws(StoreError) in
          let keyBytes = key.bytes.span.bytes
          found.tags = Tags(of: record, in: bytes)?.all.map(Array.init) ?? []
          let entry = try entry(of: record, in: bytes, under: keyBytes, at: now)
          found.entry = entry.with(value: entry.value)
          if freshness != .expired { recentReads?.add(keyBytes) }
          if freshness == .fresh {
            try keep(
              entry.value, entry.validator, of: record, in: bytes, under: key, reading)
            slide(record, under: keyBytes, readAt: now)
          }
          if isShared {
            found.sharing = LoadSharing(
              version: record.sharedVersion, validUntil: validUntil(of: record),
              weight: weight(of: record, in: bytes, under: key))
          }
        }
      }
      outcome = ReadOutcome(freshness)
    } catch {
      switch error {
      case .corrupt, .undecodable: found.hasRecord = true
      case .newerSchema, .incompatible:
        found.hasRecord = true
        if !settings.overwritesNewer { found.refusal = error }
      default: found.failure = error
      }
    }
    return found
  }

  /// Saves replies, each if its ticket is valid when the commit has its turn.
  func save(_ parts: [LoadPart], by store: Store) -> [LoadSaving] {
    var outcomes = parts.map { _ in LoadSaving.overtaken }
    var open = Array(parts.indices)
    while !open.isEmpty {
      let tried = trySave(open.map { parts[$0] }, by: store)
      for (index, outcome) in zip(open, tried) { outcomes[index] = outcome }
      // A migration or a restart of a lifetime has rewritten a record, which overtakes nothing.
      open = open.filter { index in
        if case .overtaken = outcomes[index] { parts[index].mayBeTriedAgain } else { false }
      }
    }
    for (part, outcome) in zip(parts, outcomes) where outcome.isDone { count(part) }
    return outcomes
  }

  private func trySave(_ parts: [LoadPart], by store: Store) -> [LoadSaving] {
    var write = WriteBatch()
    write.isOfTier = isShared
    var outcomes: [LoadSaving] = []
    /// The requirement of each part; nil if it has no rows.
    var requirements: [Int?] = []
    for part in parts {
      do throws(StoreError) {
        if let refusal = part.found.refusal { throw refusal }
        requirements.append(try add(part, by: store, to: &write))
        outcomes.append(part.ticket.isRevoked ? .overtaken : .done)
      } catch {
        requirements.append(nil)
        outcomes.append(.failed(error))
      }
    }
    do throws(StoreError) {
      let failed = try context.commit(&write).failed
      for (index, requirement) in requirements.enumerated() where outcomes[index].isDone {
        if requirement.map(failed.contains) ?? true { outcomes[index] = .overtaken }
      }
    } catch {
      for index in outcomes.indices where outcomes[index].isDone {
        outcomes[index] = .failed(error)
      }
    }
    return outcomes
  }

  /// Adds the rows of a reply to a write.
  ///
  /// - Returns: The requirement of the rows; nil if the entry was changed since.
  func add(
    _ part: LoadPart, by store: Store, to write: inout WriteBatch
  ) throws(StoreError) -> Int? {
    let now = clock.now()
    switch part.reply?.content {
    case .value(let value, let lifetime, let validator, let tags)?:
      let fields = try store.fields(
        of: self, lifetime: lifetime, validator: validator, tags: tags, savedAt: now)
      let tagBytes = fields.tags?.all.map(Array.init) ?? []
      context.loads.add(tags: tagBytes, to: part.key, part.ticket)
      let valid = write.require(part.key.bytes, .valid(part.ticket))
      try add(
        self.value(value), under: part.key, savedAt: now, fields: fields, if: valid, to: &write)
      return valid
    case .unchanged(let lifetime, let validator)?:
      let fields = try store.fields(
        of: self, lifetime: lifetime, validator: validator, tags: [], savedAt: now)
      var buffer = ValueBuffer(from: spareBuffer)
      guard let record = try record(under: part.key, into: &buffer), !record.isInvalidated,
        Version(record) == part.found.entry?.version
      else {
        part.ticket.revoke()
        return nil
      }
      let same = write.require(
        part.key.bytes, .validUnchanged(part.ticket, since: record.sequence, in: Record.stamp))
      try buffer.withBytes { bytes throws(StoreError) in
        try addRestamped(
          record, in: bytes, under: part.key, savedAt: now, lifetime: fields.lifetime,
          validator: fields.validator, to: &write, if: same)
      }
      return same
    case .absent?:
      let valid = write.require(part.key.bytes, .valid(part.ticket))
      // Another load may have saved an entry, or be about to.
      if part.found.hasRecord || !context.loads.isAlone(part.key) {
        write.remove(part.key.bytes.span.bytes, if: valid)
      }
      return valid
    case .unsaved?, .notShared?, nil: return nil
    }
  }

  func count(_ part: LoadPart) {
    switch part.reply?.content {
    case .value?: counts.saves.add()
    case .absent?: if part.found.hasRecord { counts.removals.add() }
    case .unchanged?, .unsaved?, .notShared?, nil: break
    }
  }
}
