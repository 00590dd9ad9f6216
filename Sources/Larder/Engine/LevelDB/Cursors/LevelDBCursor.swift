import CLarder

/// A cursor over the entries of a ``LevelDBEngine``.
///
/// It reads slice by slice. At the end of a slice it keeps its key, renews the iterator, and
/// continues after that key. A failure of an iterator is kept, and thrown at the end of the scan.
///
/// Forwards, it reads small entries ahead in runs, which grow with the length of the scan. If the
/// iterator has failed during a run, the run is discarded, since it may contain old values of
/// damaged entries. From then on each entry is confirmed by a lookup.
///
/// Unless it lends heads or rows, it reads the payload of a separated value with each move.
final class LevelDBCursor: EngineCursor {
  /// What a cursor lends of separated values.
  enum Form {
    case values, heads
    /// The rows that LevelDB has, with pointers.
    case rows
  }

  private enum Position {
    /// Before the first key of the range.
    case start
    /// Just before this key of the range, which may or may not exist.
    case before([UInt8])
    case onEntry
    /// On an entry of ``run``; the iterator stands behind the last entry of the run.
    case inRun
    /// Behind the last key of the range.
    case end
  }

  private let engine: LevelDBEngine
  private let iterator: LevelDBIterator
  private let range: EngineRange
  private let form: Form
  /// Nil if the rows of separated values are lent as they are.
  private let format: ValueSeparation?

  private var position = Position.start {
    didSet { entry = nil }
  }
  /// Whether the row of the cursor's entry is separated, and the value that is lent instead.
  private var isSeparated = false
  private var lent = ValueBuffer()
  private(set) var valueCount = 0
  /// A copy of the cursor's entry, once it was read.
  private var entry: LevelDBIterator.Entry?
  private var run = EntryRun(over: UnsafeRawBufferPointer(start: nil, count: 0))
  /// The number of entries in the next run.
  private var runEntries = 1
  private var slice: CursorSlice
  /// The first failure of this scan, which is thrown at its end.
  ///
  /// Each move notes it, because the database may end the iterator after the move.
  private var failure: StoreError?

  init(
    over range: EngineRange, of engine: LevelDBEngine, by iterator: LevelDBIterator,
    lending form: Form
  ) {
    self.engine = engine
    self.form = form
    format = form == .rows ? nil : engine.segments?.format
    self.iterator = iterator
    self.range = range
    slice = CursorSlice(entries: engine.cursorSliceEntries, now: uptimeSeconds())
  }

  deinit {
    engine.release(iterator)
  }

  func next() throws(StoreError) -> Bool {
    while try moveForward() {
      guard isSeparated else { return true }
      if try readSeparated() { return true }
    }
    return false
  }

  func previous() throws(StoreError) -> Bool {
    while try moveBackward() {
      guard isSeparated else { return true }
      if try readSeparated() { return true }
    }
    return false
  }

  /// Notes whether the row that the cursor has moved to is separated.
  private func note(_ value: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer) {
    isSeparated = format.map { SeparatedRow.isOne(value, under: key, by: $0) } ?? false
    valueCount = value.count
  }

  /// Reads what is lent of the entry, whose row is separated; false if the entry is gone.
  private func readSeparated() throws(StoreError) -> Bool {
    guard let segments = engine.segments else { return true }
    let key = withRow { key, value in
      lent.assign(value)
      return [UInt8](key)
    }
    if form == .heads {
      valueCount = segments.removePayload(of: &lent, under: key.span.bytes) ?? valueCount
      return true
    }
    defer { valueCount = lent.count }
    // The iterator keeps the segments of its state; but an entry of an ended one may be older.
    guard case .missing = try segments.resolve(&lent, under: key.span.bytes) else { return true }
    return try engine.get(key.span.bytes, into: &lent)
  }

  private func moveForward() throws(StoreError) -> Bool {
    if case .inRun = position {
      if !engine.isUp {
        try engine.enter()
        engine.leave()
      }
      if run.advance() {
        note(run.value, under: run.key)
        return true
      }
    }
    try engine.enter()
    defer { engine.leave() }
    refresh(towardsEnd: true)
    let hasMoved =
      switch position {
      case .start: iterator.seek(to: range.lower)
      case .before(let key): iterator.seek(to: key)
      case .onEntry: iterator.next()
      case .inRun: iterator.isOnEntry
      case .end: false
      }
    guard hasMoved, isBelowUpper(iterator.key) else { return try arrive(false, orElseAt: .end) }
    if readRun() { return true }
    return try arrive(!iterator.isDoubtful || settle(towardsEnd: true), orElseAt: .end)
  }

  /// Reads a run from the iterator's entry on; false if the entry is to be read by itself.
  private func readRun() -> Bool {
    defer { runEntries = min(2 * runEntries, EntryRun.mostEntries) }
    guard runEntries > 1, !iterator.isDoubtful else { return false }
    // The step to the first entry is counted already.
    let count = 1 + slice.takeSteps(upTo: runEntries - 1)
    guard let run = iterator.copyEntries(below: range.upper, count: count) else { return false }
    guard !iterator.isDoubtful else {
      _ = iterator.seek(to: [UInt8](run.key))
      return false
    }
    self.run = run
    position = .inRun
    note(run.value, under: run.key)
    return true
  }

  private func moveBackward() throws(StoreError) -> Bool {
    try engine.enter()
    defer { engine.leave() }
    refresh(towardsEnd: false)
    if case .inRun = position { position = .before([UInt8](run.key)) }
    runEntries = 1
    let hasMoved =
      switch position {
      case .start, .inRun: false
      case .before(let key): iterator.seek(before: key)
      case .onEntry: iterator.previous()
      case .end: range.upper.map { iterator.seek(before: $0) } ?? iterator.seekToLast()
      }
    return try arrive(
      hasMoved && isAboveLower(iterator.key) && (!iterator.isDoubtful || settle(towardsEnd: false)),
      orElseAt: .start)
  }

  var isComplete: Bool { failure == nil }

  func seek(to key: RawSpan) throws(StoreError) {
    try engine.enter()
    defer { engine.leave() }
    runEntries = 1
    position = key.withUnsafeBytes { key in
      guard isAboveLower(key) else { return .start }
      return isBelowUpper(key) ? .before([UInt8](key)) : .end
    }
  }

  func seekToEnd() throws(StoreError) {
    try engine.enter()
    defer { engine.leave() }
    position = .end
  }

  func withEntry<R, E: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> R
  ) throws(E) -> R {
    guard isSeparated else { return try withRow(body) }
    return try withRow { key, _ throws(E) in
      try lent.withBytes { value throws(E) in try body(key, value) }
    }
  }

  /// Lends the key of the entry, and its value in LevelDB.
  private func withRow<R, E: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> R
  ) throws(E) -> R {
    if case .inRun = position { return try body(run.key.bytes, run.value.bytes) }
    guard case .onEntry = position else { preconditionFailure("the cursor stands on no entry") }
    let entry = entry ?? copyOfEntry()
    self.entry = entry
    return try body(entry.key.span.bytes, entry.value.span.bytes)
  }

  /// Copies the iterator's entry.
  ///
  /// The reader of an entry has not entered the database: it may run code that closes the store.
  private func copyOfEntry() -> LevelDBIterator.Entry {
    if engine.enterIfOpen() {
      defer { engine.leave() }
      if !iterator.hasEnded { return ([UInt8](iterator.key), [UInt8](iterator.value)) }
    }
    // The database was closed after the move, and the iterator has kept its entry.
    guard let entry = engine.database.lastEntry(of: iterator) else {
      preconditionFailure("an iterator ended without its entry")
    }
    return entry
  }

  /// Moves on from an entry that may be outdated to the first one that a lookup confirms.
  ///
  /// False at the end of the range.
  private func settle(towardsEnd: Bool) -> Bool {
    while !iterator.confirm(in: engine.database.pointer) {
      let hasMoved = towardsEnd ? iterator.next() : iterator.previous()
      guard hasMoved, towardsEnd ? isBelowUpper(iterator.key) : isAboveLower(iterator.key) else {
        return false
      }
    }
    return true
  }

  /// Ends a move: on an entry, or at an edge of the range, where failures are thrown.
  private func arrive(_ isOnEntry: Bool, orElseAt edge: Position) throws(StoreError) -> Bool {
    if iterator.isDoubtful { noteFailure() }
    guard !isOnEntry else {
      position = .onEntry
      note(iterator.value, under: iterator.key)
      return true
    }
    position = edge
    if let failure {
      // A failure is thrown once for each scan: the next one starts anew.
      self.failure = nil
      engine.database.renew(iterator)
      throw engine.noted(failure)
    }
    return false
  }

  /// Renews the iterator once the slice has ended or the database was reopened, and keeps the
  /// position.
  private func refresh(towardsEnd: Bool) {
    let now = uptimeSeconds()
    guard !slice.admitsStep(now: now) || iterator.hasEnded else { return }
    renew(towardsEnd: towardsEnd, now: now)
  }

  func renew() throws(StoreError) {
    try engine.enter()
    defer { engine.leave() }
    renew(towardsEnd: true, now: uptimeSeconds())
  }

  private func renew(towardsEnd: Bool, now: Int) {
    slice = CursorSlice(entries: engine.cursorSliceEntries, now: now)
    let key: [UInt8]? =
      switch position {
      case .onEntry: iterator.lastEntry?.key ?? [UInt8](iterator.key)
      case .inRun: [UInt8](run.key)
      case .start, .before, .end: nil
      }
    // No key lies between a key and the same key followed by a zero byte.
    if let key { position = .before(towardsEnd ? key + [0] : key) }
    engine.database.renew(iterator)
  }

  private func noteFailure() {
    do throws(StoreError) {
      try iterator.checkStatus()
    } catch {
      failure = failure ?? error
    }
  }

  private func isAboveLower(_ key: UnsafeRawBufferPointer) -> Bool {
    range.lower.withUnsafeBytes { !isOrdered(key, before: $0) }
  }

  private func isBelowUpper(_ key: UnsafeRawBufferPointer) -> Bool {
    guard let upper = range.upper else { return true }
    return upper.withUnsafeBytes { isOrdered(key, before: $0) }
  }
}

/// Entries that a cursor has read ahead, in memory of its iterator.
///
/// A step within a run needs no call into LevelDB, and its entries outlive the database. A run
/// holds only pointers, so that a step needs no reference counting: its cursor has the iterator.
struct EntryRun {
  /// Runs are for small entries: an entry that does not fit is read by itself.
  static let mostEntries = 64
  static let mostBytes = 16 << 10

  private var rest: UnsafeRawBufferPointer
  /// The current entry, valid until the iterator copies others.
  private(set) var key = UnsafeRawBufferPointer(start: nil, count: 0)
  private(set) var value = UnsafeRawBufferPointer(start: nil, count: 0)

  /// Begins before the first of the entries that `clarder_cursor_copy` has copied to `bytes`.
  init(over bytes: UnsafeRawBufferPointer) { rest = bytes }

  /// Moves to the next entry; at the end it returns false and stays on the last one.
  mutating func advance() -> Bool {
    guard let start = rest.baseAddress, !rest.isEmpty else { return false }
    let keyCount = Int(start.loadUnaligned(as: UInt32.self))
    let valueCount = Int(start.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
    key = UnsafeRawBufferPointer(start: start + 8, count: keyCount)
    value = UnsafeRawBufferPointer(start: start + 8 + keyCount, count: valueCount)
    let count = 8 + keyCount + valueCount
    rest = UnsafeRawBufferPointer(start: start + count, count: rest.count - count)
    return true
  }
}
