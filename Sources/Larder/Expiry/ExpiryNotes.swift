import Foundation
import Synchronization

/// The notes of a store: which records expire when.
///
/// A sweep finds the expired records by them. They are derived: no read depends on them, and a scan
/// of the records makes all of them anew. A note that is lost would make a deletion late, so a row
/// of the store, the *mark*, says which notes are there:
///
/// 1. While a store is open, the thread that writes notes each record once its write has ended.
///    Such notes are in memory. When they are many, the next write puts them into rows,
///    ``NotePack``s, and the mark beside them: all records up to a commit sequence are in packs.
/// 2. The last write of a closing puts all notes into packs, and the mark says that no record
///    follows them. The first write after an opening takes that back.
/// 3. So after any other end, the records behind the sequence of the mark are to be noted by a scan
///    (``NoteScan``). Without a mark, or after damage, these are all records.
///
/// Notes of records that were overwritten or removed remain until they are due. Then a sweep looks
/// at the record, and drops the note. If there are many of them, all notes are made anew by the
/// same scan, a part of it whenever packs are written, and the older packs are removed.
package final class ExpiryNotes: Sendable {
  /// The notes in memory from which on they are put into packs, and the bytes of their keys.
  static let mostPending = 1024
  static let mostPendingBytes = 64 << 10
  /// Fewer different notes than this stay in memory, so that keys that are saved again and again
  /// make no packs.
  fileprivate static let leastPacked = mostPending / 2
  /// Packs of so many bytes are never too many.
  static let leastExcess = 16 << 20

  /// What the mark says.
  fileprivate struct Mark: Equatable {
    /// The records up to this commit sequence are in packs.
    var noted: UInt64 = 0
    /// The number of the next pack.
    var nextNumber: UInt64 = 0
    /// Whether no record has a greater sequence.
    var isClosed = false
    /// The date up to which entries may be swept at a closing, in seconds since the reference date:
    /// one at which the store was closed; nil before the first.
    var closingDate: Int64?
  }

  fileprivate struct Bucket: Hashable, Comparable {
    let cacheID: UInt64
    let end: Int64

    static func < (a: Bucket, b: Bucket) -> Bool { (a.cacheID, a.end) < (b.cacheID, b.end) }
  }

  /// The task of the next write.
  fileprivate enum Task: Int {
    /// Nothing, or as the numbers say.
    case none, mark, packs, closing
  }

  fileprivate struct State {
    var pending: [Bucket: KeyList] = [:]
    var pendingCount = 0
    var pendingBytes = 0
    /// The notes in the packs of a write that has not ended.
    ///
    /// A scan may note further records before it ends.
    var packing: [Bucket: KeyList] = [:]
    var mark = Mark()
    /// Nil if there is none, or the one that is there must be replaced.
    var markOnDisk: Mark?
    /// Whether all records are noted, in packs or in memory.
    var isComplete = true
    /// A scan notes the records behind this commit sequence, and before ``first``.
    var scanAbove: UInt64 = 0
    /// The least commit sequence of records that were noted since the opening, or since a scan of
    /// all records began.
    var first = UInt64.max
    /// The greatest one.
    var last: UInt64 = 0
    /// Packs with a lower number are removed after a scan.
    var endOfOldPacks: UInt64 = 0
    /// Whether all notes are being made anew although they are complete.
    var isRemaking = false
    /// Whether packs in a damaged block were met since the opening.
    var hasMetUnreadable = false
    /// How often a scan of all records began.
    var scanNumber = 0
    /// The bytes of the packs that were written since all notes were last made.
    var packedBytes = 0
    /// The earliest bucket of each cache that may have packs; `Int64.min` for caches without one.
    var earliest: [UInt64: Int64] = [:]
    var task = Task.mark
    /// Whether a batch of the write puts records.
    var hasRecords = false
    var contributed: Contribution?
  }

  /// What a write puts.
  fileprivate struct Contribution {
    let mark: Mark
    let packs: [NotePack]
    let bytes: Int
    let task: Task
  }

  private let state = Lock(State())
  private let isDue = Atomic<Bool>(true)
  private let isScanDue = Atomic<Bool>(false)

  /// Whether the next write is to put packs or the mark.
  var needsWrite: Bool { isDue.load(ordering: .relaxed) }
}

// MARK: - Opening

extension ExpiryNotes {
  /// Reads the mark of a store that is being opened.
  ///
  /// If the store was not intact, packs may be lost.
  func read(from engine: any StorageEngine, isIntact: Bool) throws(StoreError) {
    var mark: Mark?
    do throws(StoreError) {
      let key = Metadata.notes
      mark = try engine.get(key.span.bytes).flatMap { Mark($0) }
    } catch .corrupt {
      // As if it were missing.
    }
    let packs = EngineRange(prefix: [KeySpace.notes.rawValue])
    let packedBytes = Int(clamping: try engine.approximateBytes(in: packs))
    let isEmpty = mark == nil ? try Self.hasNoRecords(engine) : false
    state.withLock { state in
      state.mark = mark ?? Mark()
      if !isIntact { state.mark.noted = 0 }
      state.scanAbove = state.mark.noted
      state.packedBytes = packedBytes
      state.isComplete = isEmpty || (mark?.isClosed == true && isIntact)
      state.mark.isClosed = false
    }
  }

  private static func hasNoRecords(_ engine: any StorageEngine) throws(StoreError) -> Bool {
    do throws(StoreError) {
      let range = EngineRange(prefix: [KeySpace.records.rawValue])
      return try !engine.headCursor(over: range).next()
    } catch .corrupt {
      return false
    }
  }
}

extension ExpiryNotes {
  /// The commit sequence up to which all records are in packs, by the row of the mark; nil if that
  /// is damaged.
  package static func notedSequence(in value: [UInt8]) -> UInt64? { Mark(value)?.noted }
}

extension ExpiryNotes.Mark {
  init?(_ value: [UInt8]) {
    guard let body = Metadata.body(of: value, under: Metadata.notes),
      body.count == 17 || body.count == 25
    else { return nil }
    noted = body.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
    nextNumber = body.withUnsafeBytes {
      UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    isClosed = body[16] == 1
    guard body.count == 25 else { return }
    closingDate = body.withUnsafeBytes {
      Int64(littleEndian: $0.loadUnaligned(fromByteOffset: 17, as: Int64.self))
    }
  }

  func put(in rows: inout WriteBatch) {
    var body = withUnsafeBytes(of: noted.littleEndian, Array.init)
    body += withUnsafeBytes(of: nextNumber.littleEndian, Array.init)
    body.append(isClosed ? 1 : 0)
    if let closingDate { body += withUnsafeBytes(of: closingDate.littleEndian, Array.init) }
    rows.putMetadata(body, under: Metadata.notes)
  }
}

extension Record {
  /// Whether the bucket of the record's note has ended.
  func isDue(at now: Date) -> Bool {
    guard let expiresAt, let date = SweepDate(now) else { return false }
    return ExpiryNotes.bucket(savedAt: savedAt, expiresAt: expiresAt) <= date.lastBucket
  }
}

// MARK: - Noting

extension ExpiryNotes {
  /// The end of the bucket of a record: the first one at or after its expiry.
  ///
  /// Buckets are as wide as the largest power of two that is at most a 64th of the lifetime, so
  /// that entries of many lifetimes share them. A sweep deletes an entry at most that late.
  static func bucket(savedAt: Date, expiresAt: Date) -> Int64 {
    let share = expiresAt.timeIntervalSince(savedAt) / 64
    let width =
      share >= 2 ? Double(sign: .plus, exponent: min(share.exponent, 40), significand: 1) : 1
    let end = (expiresAt.timeIntervalSinceReferenceDate / width).rounded(.up) * width
    return Int64(exactly: end) ?? (end < 0 ? .min : .max)
  }

  /// Notes the records of a batch whose write has ended.
  ///
  /// Also if the write failed: it may have taken effect.
  func note(_ batch: borrowing WriteBatch, without failed: Set<Int>) {
    state.withLock { state in
      batch.bytes.withBytes { bytes in
        for row in batch.rows where row.stamp != nil && row.isKept(without: failed) {
          let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
          let value = UnsafeRawBufferPointer(rebasing: bytes[row.value])
          guard let dates = Record.dates(in: value.bytes, under: key.bytes) else { continue }
          state.first = min(state.first, dates.sequence)
          state.last = max(state.last, dates.sequence)
          state.add(key, dates)
        }
      }
      if state.isFull { isDue.store(true, ordering: .relaxed) }
    }
  }

  /// Notes a record that a scan has found, unless it is noted already.
  ///
  /// - Returns: Whether there are so many notes in memory that they should be written.
  func note(found head: RawSpan, under key: RawSpan) -> Bool {
    state.withLock { state in
      guard let dates = Record.dates(in: head, under: key), dates.sequence > state.scanAbove,
        dates.sequence < state.first
      else { return false }
      key.withUnsafeBytes { state.add($0, dates) }
      return state.isFull
    }
  }

  /// Ends a scan that has noted all records, if it is the last one that began.
  func didScan(_ number: Int) {
    state.withLock { state in
      guard number == state.scanNumber else { return }
      if number > 0 { state.packedBytes = 0 }
      (state.isComplete, state.isRemaking) = (true, false)
    }
  }

  /// The number of the scan that is needed; nil if none is.
  var neededScan: Int? {
    state.withLock { $0.isComplete && !$0.isRemaking ? nil : $0.scanNumber }
  }

  /// The number below which packs are to be removed at the end of a scan.
  var endOfOldPacks: UInt64 { state.withLock { $0.endOfOldPacks } }

  /// Whether all records are noted.
  var isComplete: Bool { state.withLock { $0.isComplete } }

  /// Begins anew: notes may be lost, so that a scan of all records is needed.
  ///
  /// Notes in a block that cannot be read are met by each sweep, but made anew only once.
  func restart(isUnreadable: Bool) {
    state.withLock { state in
      if isUnreadable, state.hasMetUnreadable { return }
      state.hasMetUnreadable = state.hasMetUnreadable || isUnreadable
      state.isComplete = false
      state.mark.noted = 0
      state.beginScanOfAll()
      state.require(.mark)
    }
    isDue.store(true, ordering: .relaxed)
  }
}

// MARK: - Making all notes anew

extension ExpiryNotes {
  /// Takes the request to look whether there are too many packs, or to go on with the scan.
  func takeScanRequest() -> Bool {
    isScanDue.load(ordering: .relaxed) && isScanDue.exchange(false, ordering: .relaxed)
  }

  /// Begins a scan of all records if the packs have more than half of the bytes of the records.
  ///
  /// A scan that is needed for another reason comes first.
  ///
  /// - Returns: Whether a scan is to go on.
  func beginScanIfMany(recordBytes: UInt64) -> Bool {
    state.withLock { state in
      if state.isRemaking { return true }
      guard state.packedBytes >= Self.leastExcess, UInt64(state.packedBytes) > recordBytes / 2
      else { return false }
      if state.isComplete {
        state.beginScanOfAll()
        state.isRemaking = true
      }
      return true
    }
  }
}

extension ExpiryNotes.State {
  fileprivate var isFull: Bool {
    pendingCount >= ExpiryNotes.mostPending || pendingBytes >= ExpiryNotes.mostPendingBytes
  }

  fileprivate mutating func require(_ task: ExpiryNotes.Task) {
    if task.rawValue > self.task.rawValue { self.task = task }
  }

  fileprivate mutating func beginScanOfAll() {
    scanAbove = 0
    first = .max
    endOfOldPacks = mark.nextNumber
    scanNumber += 1
  }

  /// Adds the note of the record under a physical key.
  fileprivate mutating func add(_ key: UnsafeRawBufferPointer, _ dates: Record.Dates) {
    var prefix = 1
    guard let expiresAt = dates.expiresAt, let id = readVarint(key.bytes, at: &prefix) else {
      return
    }
    let end = ExpiryNotes.bucket(savedAt: dates.savedAt, expiresAt: expiresAt)
    let userKey = UnsafeRawBufferPointer(rebasing: key[prefix...])
    pending[ExpiryNotes.Bucket(cacheID: id, end: end), default: KeyList()].append(userKey)
    pendingCount += 1
    pendingBytes += userKey.count
  }

  /// The packs of all notes in memory; none if there are so few that they can stay there.
  fileprivate mutating func packs(
    for task: ExpiryNotes.Task
  ) -> [(pack: NotePack, keys: KeyList)] {
    sortPending()
    guard pendingCount >= ExpiryNotes.leastPacked || isFull || task != .none && task != .mark else {
      return []
    }
    return pending.sorted { $0.key < $1.key }.flatMap { bucket, keys in
      keys.packs().map { keys in
        defer { mark.nextNumber += 1 }
        let pack = NotePack(cacheID: bucket.cacheID, bucket: bucket.end, number: mark.nextNumber)
        return (pack, keys)
      }
    }
  }

  /// Takes the notes out of memory that a write puts into packs.
  fileprivate mutating func beginPacking() {
    swap(&packing, &pending)
    (pendingCount, pendingBytes) = (0, 0)
  }

  /// Puts the notes back into memory whose write has failed.
  fileprivate mutating func takeBackPacking() {
    for (bucket, keys) in packing {
      for index in 0..<keys.count { pending[bucket, default: KeyList()].append(keys[index]) }
      pendingCount += keys.count
      pendingBytes += keys.byteCount
    }
    packing.removeAll(keepingCapacity: true)
  }

  /// Sorts the notes in memory, each once.
  private mutating func sortPending() {
    (pendingCount, pendingBytes) = (0, 0)
    for bucket in pending.keys {
      guard var keys = pending.removeValue(forKey: bucket) else { continue }
      keys.sort()
      pendingCount += keys.count
      pendingBytes += keys.byteCount
      pending[bucket] = keys
    }
  }
}

// MARK: - Writing

extension ExpiryNotes {
  /// Looks at a batch of the write that ``contribute(to:)`` adds to.
  func admit(_ batch: borrowing WriteBatch) {
    guard batch.rows.contains(where: { $0.stamp != nil }) else { return }
    state.withLock { $0.hasRecords = true }
  }

  /// Adds packs and the mark to a write, if that is due.
  func contribute(to rows: inout WriteBatch) {
    state.withLock { state in
      let hasRecords = state.hasRecords
      state.hasRecords = false
      guard needsWrite else { return }
      let task = state.task
      let packs = state.isFull || task.rawValue >= Task.packs.rawValue ? state.packs(for: task) : []
      let start = rows.bytes.count
      for (pack, keys) in packs { rows.put(pack, keys) }
      let bytes = rows.bytes.count - start
      var mark = state.mark
      if !packs.isEmpty || state.pending.isEmpty, state.isComplete {
        mark.noted = max(mark.noted, state.last)
      }
      // The records of this write are noted only once it has ended.
      mark.isClosed = task == .closing && state.isComplete && !hasRecords
      state.task = .none
      if !packs.isEmpty { state.beginPacking() }
      if !packs.isEmpty || mark != state.markOnDisk {
        mark.put(in: &rows)
        state.contributed = Contribution(
          mark: mark, packs: packs.map(\.pack), bytes: bytes, task: task)
      } else {
        isDue.store(false, ordering: .relaxed)
      }
    }
  }

  /// Ends the write that was contributed to.
  func ended(didCommit: Bool) {
    guard needsWrite else { return }
    state.withLock { state in
      guard let contributed = state.contributed.take() else { return }
      if didCommit {
        for pack in contributed.packs { state.lower(pack.cacheID, to: pack.bucket) }
        if !contributed.packs.isEmpty {
          state.packing.removeAll(keepingCapacity: true)
          state.packedBytes += contributed.bytes
          if state.isRemaking || state.packedBytes >= Self.leastExcess {
            isScanDue.store(true, ordering: .relaxed)
          }
        }
        if state.isComplete { state.mark.noted = contributed.mark.noted }
        state.markOnDisk = contributed.mark
      } else {
        state.takeBackPacking()
        state.require(contributed.task)
        // The write may have taken effect, or still take it.
        state.markOnDisk = nil
      }
      let isDone = state.task == .none && state.mark == state.markOnDisk && !state.isFull
      isDue.store(!isDone, ordering: .relaxed)
    }
  }

  /// Lets the next write put all notes in memory into packs.
  ///
  /// - Parameter closing: Whether the mark may say that no record follows.
  func requestPacks(closing: Bool) {
    state.withLock { $0.require(closing ? .closing : .packs) }
    isDue.store(true, ordering: .relaxed)
  }

  /// Whether the mark on disk says that no record follows the packs, or nothing was written since
  /// the opening.
  var isClosed: Bool { state.withLock { $0.markOnDisk.map(\.isClosed) ?? ($0.last == 0) } }

  /// The date up to which entries may be swept at a closing; nil before the first closing.
  var closingDate: Date? {
    state.withLock { $0.mark.closingDate }.map { Date(timeIntervalSinceReferenceDate: Double($0)) }
  }

  /// Lets the next write put another date into the mark.
  ///
  /// - Returns: False if the date is beyond 64 bits of seconds, or if the store has never had a
  ///   record: then nothing changes.
  func setClosingDate(_ date: Date) -> Bool {
    guard let seconds = Int64(exactly: date.timeIntervalSinceReferenceDate.rounded(.down)) else {
      return false
    }
    return state.withLock { state in
      guard state.mark != Mark() || state.last > 0 || !state.isComplete else { return false }
      state.mark.closingDate = seconds
      return true
    }
  }

  /// The number for a pack of a write that the caller makes.
  ///
  /// The mark of that write says that it is used.
  func takeNumber() -> UInt64 {
    defer { isDue.store(true, ordering: .relaxed) }
    return state.withLock { state in
      defer { state.mark.nextNumber += 1 }
      state.require(.mark)
      return state.mark.nextNumber
    }
  }
}

// MARK: - Sweeping

extension ExpiryNotes {
  /// The caches that may have due notes, as far as is known without a scan.
  struct Due {
    fileprivate let pending: Set<UInt64>
    fileprivate let earliest: [UInt64: Int64]
    fileprivate let lastBucket: Int64

    func contains(_ id: UInt64) -> Bool {
      pending.contains(id) || earliest[id] ?? .min <= lastBucket
    }

    /// Whether some of the notes are in memory only.
    var hasPending: Bool { !pending.isEmpty }
  }

  func due(at lastBucket: Int64) -> Due {
    state.withLock { state in
      let due = [state.pending, state.packing].map { notes in
        notes.keys.lazy.filter { $0.end <= lastBucket }.map(\.cacheID)
      }
      return Due(
        pending: Set(due.joined()), earliest: state.earliest, lastBucket: lastBucket)
    }
  }

  /// Takes the earliest bucket of a cache that may have packs, for a sweep that looks for it.
  ///
  /// Until the sweep ends by ``lower(_:to:)``, only packs count that are written during it.
  func takeEarliest(of id: UInt64) -> Int64 {
    state.withLock { $0.earliest.updateValue(.max, forKey: id) ?? .min }
  }

  /// Notes that a cache may have packs from `bucket` on.
  func lower(_ id: UInt64, to bucket: Int64) { state.withLock { $0.lower(id, to: bucket) } }

  /// Forgets a cache that has no rows any more.
  func forget(_ id: UInt64) {
    state.withLock { state in
      state.earliest[id] = nil
      for bucket in state.pending.keys where bucket.cacheID == id {
        guard let keys = state.pending.removeValue(forKey: bucket) else { continue }
        state.pendingCount -= keys.count
        state.pendingBytes -= keys.byteCount
      }
    }
  }
}

extension ExpiryNotes.State {
  fileprivate mutating func lower(_ id: UInt64, to bucket: Int64) {
    earliest[id] = min(earliest[id] ?? .min, bucket)
  }
}
