/// A cursor over the entries of a ``LevelDBEngine``.
///
/// It reads slice by slice. At the end of one it remembers its key, takes a fresh iterator, and
/// goes on behind that key; what the old iterator could not read is remembered too, and reported
/// at the end of the walk.
///
/// Forwards, small entries are read ahead in runs, which are longer the longer the walk is. A run
/// behind which the iterator has failed is thrown away: it may have the old values of damaged ones.
/// From then on each entry is looked at by itself.
final class LevelDBCursor: EngineCursor {
  private enum Position {
    /// Before the first key of the range.
    case start
    /// In the gap before this key, which may or may not be there. It is within the range.
    case before([UInt8])
    case onEntry
    /// On an entry of ``run``. The iterator stands behind the last one of it.
    case inRun
    /// Behind the last key of the range.
    case end
  }

  private let engine: LevelDBEngine
  private let iterator: LevelDBIterator
  private let range: EngineRange

  private var position = Position.start {
    didSet { entry = nil }
  }
  /// A copy of the entry that the cursor stands on, once somebody has read it.
  private var entry: LevelDBIterator.Entry?
  private var run = EntryRun(over: UnsafeRawBufferPointer(start: nil, count: 0))
  /// How many entries the next run has.
  private var runEntries = 1
  private var slice: CursorSlice
  private var failure: EngineError?

  init(over range: EngineRange, of engine: LevelDBEngine, by iterator: LevelDBIterator) {
    self.engine = engine
    self.iterator = iterator
    self.range = range
    slice = CursorSlice(entries: engine.cursorSliceEntries, now: uptimeSeconds())
  }

  deinit {
    engine.release(iterator)
  }

  func next() throws(EngineError) -> Bool {
    if case .inRun = position {
      if !engine.isUp {
        try engine.enter()
        engine.leave()
      }
      if run.advance() { return true }
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

  /// Reads ahead from the entry that the iterator stands on; false when that is not to be done.
  private func readRun() -> Bool {
    defer { runEntries = min(2 * runEntries, EntryRun.mostEntries) }
    guard runEntries > 1, !iterator.isDoubtful else { return false }
    // The first of its steps is counted.
    let count = 1 + slice.takeSteps(upTo: runEntries - 1)
    guard let run = iterator.copyEntries(below: range.upper, count: count) else { return false }
    guard !iterator.isDoubtful else {
      _ = iterator.seek(to: [UInt8](run.key))
      return false
    }
    self.run = run
    position = .inRun
    return true
  }

  func previous() throws(EngineError) -> Bool {
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

  var isComplete: Bool { failure == nil && !iterator.isDoubtful }

  func seek(to key: RawSpan) throws(EngineError) {
    try engine.enter()
    defer { engine.leave() }
    runEntries = 1
    position = key.withUnsafeBytes { key in
      guard isAboveLower(key) else { return .start }
      return isBelowUpper(key) ? .before([UInt8](key)) : .end
    }
  }

  func seekToEnd() throws(EngineError) {
    try engine.enter()
    defer { engine.leave() }
    position = .end
  }

  func withEntry<R, E: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> R
  ) throws(E) -> R {
    if case .inRun = position { return try body(run.key.bytes, run.value.bytes) }
    guard case .onEntry = position else { preconditionFailure("the cursor stands on no entry") }
    let entry = entry ?? copyOfEntry()
    self.entry = entry
    return try body(entry.key.span.bytes, entry.value.span.bytes)
  }

  /// Copies the entry that the iterator stands on.
  ///
  /// The reader of an entry is not inside the gate: it may run code that closes the store.
  private func copyOfEntry() -> LevelDBIterator.Entry {
    if engine.enterIfOpen() {
      defer { engine.leave() }
      if !iterator.hasEnded { return ([UInt8](iterator.key), [UInt8](iterator.value)) }
    }
    // The database was closed between the move and now: the entry was kept for this.
    guard let entry = engine.database.lastEntry(of: iterator) else {
      preconditionFailure("an iterator ended without its entry")
    }
    return entry
  }

  /// Steps on from an entry that may be an old one, until a lookup by key finds what it is now.
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

  /// Ends a move: on an entry, or at an edge of the range, where failures are reported.
  private func arrive(_ isOnEntry: Bool, orElseAt edge: Position) throws(EngineError) -> Bool {
    guard !isOnEntry else {
      position = .onEntry
      return true
    }
    position = edge
    noteFailure()
    if let failure {
      // Once for each walk: the next one begins with a clean record.
      self.failure = nil
      iterator.renew(over: engine.database.pointer)
      throw engine.noted(failure)
    }
    return false
  }

  /// Takes a fresh iterator once the slice is spent or the database is another one, keeping the
  /// place.
  private func refresh(towardsEnd: Bool) {
    let now = uptimeSeconds()
    guard !slice.admitsStep(now: now) || iterator.hasEnded else { return }
    slice = CursorSlice(entries: engine.cursorSliceEntries, now: now)
    let key: [UInt8]? =
      switch position {
      case .onEntry: iterator.lastEntry?.key ?? [UInt8](iterator.key)
      case .inRun: [UInt8](run.key)
      case .start, .before, .end: nil
      }
    // No key lies between one and the same with a zero byte behind it.
    if let key { position = .before(towardsEnd ? key + [0] : key) }
    noteFailure()
    iterator.renew(over: engine.database.pointer)
  }

  private func noteFailure() {
    do throws(EngineError) {
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
