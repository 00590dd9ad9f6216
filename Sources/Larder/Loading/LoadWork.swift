import LarderBytes
import LarderEngine

/// What a flight needs to do its work.
///
/// It holds the store until the flight has ended.
struct LoadWork<Value: Sendable>: Sendable {
  let store: Store
  let core: CacheCore<Value>
  /// Loads the keys of a call that are needed, and returns one reply for each.
  let load: @Sendable ([LoadNeed<Value>]) async throws -> [LoadReply<Value>]

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

/// A key of a call that is to be loaded, by its index, and what was there before.
struct LoadNeed<Value: Sendable>: Sendable {
  let index: Int
  let previous: Previous<Value>?

  init(index: Int, _ previous: Previous<Value>?) {
    (self.index, self.previous) = (index, previous)
  }
}

/// What a flight has found on disk.
struct LoadFound<Value: Sendable>: Sendable {
  /// The entry, in any state; nil if it is missing, invalidated or unreadable.
  var entry: Entry<Value>?
  var tags: [[UInt8]] = []
  /// Whether there is a record, readable or not.
  var hasRecord = false
  /// Why the record must not be overwritten: it is of a newer program.
  var refusal: StoreError?
  /// Why the disk could not be read.
  var failure: StoreError?
}

/// A reply that is to be saved.
struct LoadedPart<Value: Sendable>: Sendable {
  let key: RecordKey
  let ticket: WriteTicket
  let found: LoadFound<Value>
  let reply: LoadReply<Value>
}

extension LoadReply {
  func machineReply(to found: LoadFound<Value>) -> LoadMachine.Reply {
    switch content {
    case .value: return .save
    case .unsaved: return .unsaved
    case .absent: return .absent
    case .unchanged:
      guard found.entry == nil else { return .save }
      return .failed(
        StoreError.invalidArgument(
          """
          a load replied "unchanged" for a key without a previous entry; reply with a value if the \
          closure was passed nil
          """))
    }
  }
}

extension CacheCore {
  /// Reads an entry for a load, in any state.
  func find(_ key: RecordKey) -> LoadFound<Value> {
    var found = LoadFound<Value>()
    var outcome = ReadOutcome.failed
    defer { counts.reads.add(outcome) }
    do throws(StoreError) {
      let reading = memory?.beginReading(key)
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
          found.entry = entry
          if freshness != .expired { marks?.mark(keyBytes) }
          if freshness == .fresh {
            keep(entry.value, of: record, in: bytes, under: key, reading)
            slide(record, under: keyBytes, readAt: now)
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
  func save(_ parts: [LoadedPart<Value>], by store: Store) -> [LoadMachine.Saving] {
    var write = PendingWrite()
    var outcomes: [LoadMachine.Saving] = []
    for (index, part) in parts.enumerated() {
      // A requirement for each part, so that its index is that of the part.
      let requirement = write.rows.require(part.key.bytes, .valid(part.ticket))
      assert(requirement == index)
      do throws(StoreError) {
        if let refusal = part.found.refusal { throw refusal }
        let isPrepared = try add(part, by: store, if: requirement, to: &write)
        outcomes.append(isPrepared && !part.ticket.isRevoked ? .done : .overtaken)
      } catch {
        outcomes.append(.failed(error))
      }
    }
    do throws(StoreError) {
      for index in try context.commit(&write).failed {
        if outcomes[index].isDone { outcomes[index] = .overtaken }
      }
      for (part, outcome) in zip(parts, outcomes) where outcome.isDone { count(part) }
    } catch {
      for index in outcomes.indices where outcomes[index].isDone {
        outcomes[index] = .failed(error)
      }
    }
    return outcomes
  }

  /// Adds the rows of a reply to a write; returns false if the entry was changed meanwhile.
  private func add(
    _ part: LoadedPart<Value>, by store: Store, if requirement: Int, to write: inout PendingWrite
  ) throws(StoreError) -> Bool {
    let now = clock.now()
    switch part.reply.content {
    case .value(let value, let lifetime, let validator, let tags):
      let fields = try store.fields(
        of: self, lifetime: lifetime, validator: validator, tags: tags, savedAt: now)
      let tagBytes = fields.tags?.all.map(Array.init) ?? []
      context.loads.add(tags: tagBytes, to: part.key.bytes, part.ticket)
      try add(value, under: part.key, savedAt: now, fields: fields, if: requirement, to: &write)
    case .unchanged(let lifetime, let validator):
      let fields = try store.fields(
        of: self, lifetime: lifetime, validator: validator, tags: [], savedAt: now)
      var buffer = ValueBuffer(from: spareBuffer)
      guard let record = try record(under: part.key, into: &buffer), !record.isInvalidated,
        Version(record) == part.found.entry?.version
      else { return false }
      buffer.withBytes { bytes in
        addRestamped(
          record, in: bytes, under: part.key, savedAt: now, lifetime: fields.lifetime,
          validator: fields.validator, to: &write, if: requirement)
      }
    case .absent:
      if part.found.hasRecord {
        write.rows.remove(part.key.bytes.span.bytes, if: requirement)
      }
    case .unsaved: break
    }
    return true
  }

  private func count(_ part: LoadedPart<Value>) {
    switch part.reply.content {
    case .value: counts.saves.add()
    case .absent: if part.found.hasRecord { counts.removals.add() }
    case .unchanged, .unsaved: break
    }
  }
}
