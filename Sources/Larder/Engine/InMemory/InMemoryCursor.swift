/// A cursor over the entries of an ``InMemoryEngine``.
final class InMemoryCursor: EngineCursor {
  private let engine: InMemoryEngine
  private let range: EngineRange
  private let sliceEntries: Int

  private var slice: CursorSlice
  private var entries: SortedEntries
  private var bounds: Range<SortedEntries.Position>
  // The cursor's entry, or the entry behind the gap that the cursor stands in.
  private var position: SortedEntries.Position
  private var isOnEntry = false
  // Whether the cursor stands before the first key of the range.
  private var isAtStart = true

  init(
    over range: EngineRange, in engine: InMemoryEngine, reading entries: SortedEntries,
    sliceEntries: Int
  ) {
    self.engine = engine
    self.range = range
    self.sliceEntries = sliceEntries
    self.entries = entries
    slice = CursorSlice(entries: sliceEntries, now: uptimeSeconds())
    bounds = entries.bounds(of: range)
    position = bounds.lowerBound
  }

  func next() throws(StoreError) -> Bool {
    try refresh()
    if isOnEntry { position = entries.position(after: position) }
    isOnEntry = position < bounds.upperBound
    isAtStart = false
    return isOnEntry
  }

  func previous() throws(StoreError) -> Bool {
    try refresh()
    isOnEntry = position > bounds.lowerBound
    isAtStart = !isOnEntry
    if isOnEntry { position = entries.position(before: position) }
    return isOnEntry
  }

  var isComplete: Bool { true }

  func seek(to key: RawSpan) throws(StoreError) {
    try refresh()
    let sought = key.withUnsafeBytes { entries.position(of: $0) }
    position = min(max(sought, bounds.lowerBound), bounds.upperBound)
    isOnEntry = false
    isAtStart = false
  }

  func seekToEnd() throws(StoreError) {
    try refresh()
    position = bounds.upperBound
    isOnEntry = false
    isAtStart = false
  }

  func withEntry<R, E: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> R
  ) throws(E) -> R {
    precondition(isOnEntry, "the cursor stands on no entry")
    let entry = entries[position]
    return try body(entry.key.span.bytes, entry.value.span.bytes)
  }

  /// Continues in the engine's current state once the slice has ended.
  private func refresh() throws(StoreError) {
    let now = uptimeSeconds()
    guard !slice.admitsStep(now: now) else { return try engine.checkOpen() }
    try renew(now: now)
  }

  func renew() throws(StoreError) { try renew(now: uptimeSeconds()) }

  private func renew(now: Int) throws(StoreError) {
    slice = CursorSlice(entries: sliceEntries, now: now)

    let isAtEnd = position == bounds.upperBound
    let key = isAtStart || isAtEnd ? [] : entries[position].key
    entries = try engine.snapshot()
    bounds = entries.bounds(of: range)
    guard !isAtStart, !isAtEnd else {
      position = isAtStart ? bounds.lowerBound : bounds.upperBound
      return
    }
    position = key.withUnsafeBytes { entries.position(of: $0) }
    // Its entry may be gone; then it stands in the gap that the entry left.
    isOnEntry = isOnEntry && key.withUnsafeBytes { entries.holds($0, at: position) }
  }
}

extension SortedEntries {
  fileprivate func bounds(of range: EngineRange) -> Range<Position> {
    let lower = range.lower.withUnsafeBytes { position(of: $0) }
    let upper = range.upper.map { upper in upper.withUnsafeBytes { position(of: $0) } } ?? end
    return lower..<max(lower, upper)
  }
}
