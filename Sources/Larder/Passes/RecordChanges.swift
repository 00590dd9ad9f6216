/// Changes to records that were read before, written in batches: each change is applied only if its
/// record has not changed since.
///
/// Sweep, eviction, migration, validation and the removal of a range read records, decide what
/// becomes of each, and add the changes here. These rules hold for all of them:
///
/// 1. All rows of a change share one condition, on the record: a change is applied whole or not at
///    all.
/// 2. A condition need not be checked if nothing was written since the record was read. That can be
///    known only for records that were looked up here; a cursor may read an older state.
/// 3. A change whose condition failed is returned to the caller, which looks the record up again or
///    leaves it.
struct RecordChanges: ~Copyable {
  /// A change of one record.
  struct Change {
    let key: [UInt8]
    /// The size of the record and its key before the change.
    let bytes: Int
    /// Why the record is removed; nil if it is rewritten.
    let cause: RemovalCause?
  }

  private static let maximumChanges = 256
  private static let maximumBytes = 1 << 20

  private let context: StoreContext
  private let freesRoom: Bool
  private var write = WriteBatch()
  private var changes: [Change] = []
  private var buffer = ValueBuffer()
  private var following = FollowingCursor()
  /// The engine's write count before the first lookup for this batch.
  private var countBeforeLookups: Int?
  /// Whether a cursor, which may show an older state, has read a record for this batch.
  var hasReadByCursor = false

  /// Changes that delete more than they add (`freesRoom`) are written however full a budget is, and
  /// without an fsync.
  init(in context: StoreContext, freesRoom: Bool) {
    self.context = context
    self.freesRoom = freesRoom
  }

  var isEmpty: Bool { write.isEmpty }

  /// Whether there are enough changes for a batch.
  var isFull: Bool {
    changes.count >= Self.maximumChanges || write.bytes.count >= Self.maximumBytes
  }
}

// MARK: - Reading

/// The state of a record that was looked up.
enum FoundRecord {
  case missing
  /// The record, and its size with its key.
  case intact(Record, bytes: Int)
  /// The checksum does not match, or the record is shorter than its header.
  case damaged(bytes: Int)
  /// The record was written by a later version of this library.
  case unsupported
  /// The record lies in a damaged block of a file.
  case unreadable
}

extension RecordChanges {
  /// Looks a record up, to add a change for it.
  ///
  /// A payload in a segment is not read, nor is its record checked then.
  mutating func find(_ key: RecordKey) throws(StoreError) -> FoundRecord {
    let count: Int
    do throws(StoreError) {
      beginLookups()
      let head = try context.engine.getHead(key.bytes.span.bytes, into: &buffer)
      guard let found = head else { return .missing }
      count = found
    } catch .corrupt {
      return .unreadable
    }
    return buffer.withBytes { judge($0, of: count, under: key) }
  }

  /// Looks a record up whose key is greater than all that were looked up before for this batch.
  ///
  /// Where the keys are close together, this reads the entries from one key to the next, which
  /// takes a fifth of the time of a lookup by itself.
  mutating func findNext(_ key: RecordKey) throws(StoreError) -> FoundRecord {
    beginLookups()
    switch try following.move(to: key.bytes, in: context.engine) {
    case .found: return following.withEntry { bytes, count in judge(bytes, of: count, under: key) }
    case .missing: return .missing
    case .unknown: return try find(key)
    }
  }

  private func judge(_ bytes: RawSpan, of count: Int, under key: RecordKey) -> FoundRecord {
    let size = key.bytes.count + count
    do throws(RecordFault) {
      var record = try Record(head: bytes, of: count, under: key.bytes.span.bytes)
      context.invalidatedTags.judge(&record, in: bytes)
      return .intact(record, bytes: size)
    } catch {
      return error == .damaged ? .damaged(bytes: size) : .unsupported
    }
  }

  /// Reads the record under a key into `buffer`; returns its size, nil if there is none.
  mutating func get(
    _ key: [UInt8], into buffer: inout ValueBuffer
  ) throws(StoreError) -> Int? {
    beginLookups()
    guard try context.engine.get(key.span.bytes, into: &buffer) else { return nil }
    return buffer.withBytes { $0.byteCount }
  }

  /// Reads the record under a key into `buffer`, without a payload that is in a segment.
  ///
  /// - Returns: The size of the whole record; nil if there is none.
  mutating func getHead(
    _ key: [UInt8], into buffer: inout ValueBuffer
  ) throws(StoreError) -> Int? {
    beginLookups()
    return try context.engine.getHead(key.span.bytes, into: &buffer)
  }

  private mutating func beginLookups() {
    if countBeforeLookups == nil { countBeforeLookups = context.engine.writeCount }
  }
}

// MARK: - Writing

extension RecordChanges {
  /// Adds a change of a record.
  ///
  /// `body` adds rows under the condition whose index it is given. If it throws, the changes cannot
  /// be committed any more.
  mutating func add<E: Error>(
    _ change: Change, if condition: WriteBatch.Condition,
    _ body: (inout WriteBatch, _ requirement: Int) throws(E) -> Void
  ) throws(E) {
    changes.append(change)
    try body(&write, write.require(change.key, condition))
  }

  /// Adds the removal of the record under `key`; `bytes` is the size of both.
  mutating func remove(
    _ key: [UInt8], bytes: Int, if condition: WriteBatch.Condition, _ cause: RemovalCause
  ) {
    add(Change(key: key, bytes: bytes, cause: cause), if: condition) { write, requirement in
      write.remove(key.span.bytes, if: requirement, note: cause.rawValue)
    }
  }

  /// Adds a row of the store's own to the batch, without a condition.
  mutating func putMetadata(_ body: [UInt8], under key: [UInt8]) {
    write.putMetadata(body, under: key)
  }

  /// Commits the changes, so that there are none left to commit.
  ///
  /// - Returns: The changes that were applied, and those that were not because their record has
  ///   changed.
  mutating func commit() throws(StoreError) -> (applied: [Change], changed: [Change]) {
    following = FollowingCursor()
    write.isAlwaysAdmitted = freesRoom
    write.writeCountBeforeReading = hasReadByCursor ? nil : countBeforeLookups
    let failed = try context.commit(&write, freesRoom ? .processCrash : nil).failed
    var (applied, changed): ([Change], [Change]) = ([], [])
    for (index, change) in changes.enumerated() {
      if failed.contains(index) { changed.append(change) } else { applied.append(change) }
    }
    write.reset()
    changes.removeAll(keepingCapacity: true)
    countBeforeLookups = nil
    hasReadByCursor = false
    return (applied, changed)
  }
}
