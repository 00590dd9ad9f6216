/// A cursor over the entries of a ``LevelDBEngine``.
///
/// It reads slice by slice. At the end of one it remembers its key, takes a fresh iterator, and
/// goes on behind that key; what the old iterator could not read is remembered too, and reported
/// at the end of the walk.
final class LevelDBCursor: EngineCursor {
  private enum Position {
    /// Before the first key of the range.
    case start
    /// In the gap before this key, which may or may not be there. It is within the range.
    case before([UInt8])
    case onEntry
    /// Behind the last key of the range.
    case end
  }

  private let engine: LevelDBEngine
  private let iterator: LevelDBIterator
  private let range: EngineRange

  private var position = Position.start
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
    try engine.enter()
    defer { engine.gate.leave() }
    refresh(towardsEnd: true)
    let hasMoved =
      switch position {
      case .start: iterator.seek(to: range.lower)
      case .before(let key): iterator.seek(to: key)
      case .onEntry: iterator.next()
      case .end: false
      }
    return try arrive(
      hasMoved && isBelowUpper(iterator.key) && (!iterator.isDoubtful || settle(towardsEnd: true)),
      orElseAt: .end)
  }

  func previous() throws(EngineError) -> Bool {
    try engine.enter()
    defer { engine.gate.leave() }
    refresh(towardsEnd: false)
    let hasMoved =
      switch position {
      case .start: false
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
    defer { engine.gate.leave() }
    position = key.withUnsafeBytes { key in
      guard isAboveLower(key) else { return .start }
      return isBelowUpper(key) ? .before([UInt8](key)) : .end
    }
  }

  func seekToEnd() throws(EngineError) {
    try engine.enter()
    defer { engine.gate.leave() }
    position = .end
  }

  func withEntry<R, E: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> R
  ) throws(E) -> R {
    guard case .onEntry = position else { preconditionFailure("the cursor stands on no entry") }
    if engine.gate.enter() {
      defer { engine.gate.leave() }
      if !iterator.hasEnded { return try body(iterator.key.bytes, iterator.value.bytes) }
    }
    // The database was closed between the move and now: the entry was kept for this.
    guard let entry = engine.lastEntry(of: iterator) else {
      preconditionFailure("an iterator ended without its entry")
    }
    return try body(entry.key.span.bytes, entry.value.span.bytes)
  }

  /// Steps on from an entry that may be an old one, until a lookup by key finds what it is now.
  ///
  /// False at the end of the range.
  private func settle(towardsEnd: Bool) -> Bool {
    while !iterator.confirm(in: engine.database) {
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
      iterator.renew(over: engine.database)
      throw failure
    }
    return false
  }

  /// Takes a fresh iterator once the slice is spent or the database is another one, keeping the
  /// place.
  private func refresh(towardsEnd: Bool) {
    let now = uptimeSeconds()
    guard !slice.admitsStep(now: now) || iterator.hasEnded else { return }
    slice = CursorSlice(entries: engine.cursorSliceEntries, now: now)
    if case .onEntry = position {
      let key = iterator.lastEntry?.key ?? [UInt8](iterator.key)
      // No key lies between one and the same with a zero byte behind it.
      position = .before(towardsEnd ? key + [0] : key)
    }
    noteFailure()
    iterator.renew(over: engine.database)
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
