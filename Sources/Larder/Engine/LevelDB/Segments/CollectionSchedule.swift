import Synchronization

/// How much work a collection does for room.
package enum CollectionEffort: Sendable {
  /// Copies the live payloads of segments that are at least half dead.
  case routine
  /// Copies the live payloads of segments that are at least an eighth dead.
  case complete

  /// Whether a segment of `size` bytes has so few live ones that they are copied.
  func copies(live: Int, of size: Int) -> Bool {
    self == .routine ? 2 * live <= size : 8 * live <= 7 * size
  }
}

/// Decides when a collection is due, and lets one thread at a time run it.
///
/// A collection is due when so many bytes have died since the last one that a scan of the rows is
/// worth it, or when one was asked for. What becomes due during a collection is remembered: the
/// thread that runs it continues with the next one.
///
/// The bytes that have died are estimated: each payload that is appended may replace one of its
/// size, and payloads that are removed count as well. See ``SegmentFiles/changedBytes``.
struct CollectionSchedule: ~Copyable {
  // Not private: Swift 6.3 cannot compile a private type in a lock of another file's property.
  struct State {
    var isRunning = false
    var isAsked = false
    /// The changed bytes when the collection under way began.
    var begin = 0
    /// The size of the segments that the last collection has left.
    var byteCount: Int
    /// The engine's write count when a save had last waited for room.
    var writesWhenFull = -1
  }

  /// Whether collections may begin, and if not, why.
  enum Ending: UInt8, AtomicRepresentable {
    case none, suspended, closed
  }

  /// With so many segments at the opening, a collection is due with the first write: processes that
  /// each write little would otherwise never collect.
  static let manySegments = 8
  /// The longest time that a save waits for a collection that is behind, in milliseconds.
  static let longestWait = 10

  /// The changed bytes from which on a collection is due; `Int.max` while one is running.
  private let due: Atomic<Int>
  /// The changed bytes from which on saves wait; `Int.max` while no collection is running.
  private let behind = Atomic(Int.max)
  private let ending = Atomic(Ending.none)
  /// The generation up to which iterators keep segments that are to be deleted; 0 for none.
  private let waited = Atomic<UInt64>(0)
  private let segmentBytes: Int
  private let state: Lock<State>

  init(segmentBytes: Int, segments: Int) {
    self.segmentBytes = segmentBytes
    state = Lock(State(byteCount: segments * segmentBytes))
    due = Atomic(0)
    if segments < Self.manySegments {
      due.store(interval(after: segments * segmentBytes), ordering: .relaxed)
    }
  }

  /// The bytes that may change before the next collection.
  private func interval(after byteCount: Int) -> Int {
    max(segmentBytes / 2, min(byteCount / 4, 2 * segmentBytes), byteCount / 8)
  }

  /// Whether the caller is to run a collection: false if none is due, or one is running.
  ///
  /// It runs another one as long as ``continues(after:changed:)`` returns true.
  func begin(changed: Int) -> Bool {
    guard changed >= due.load(ordering: .relaxed), !hasStopped else { return false }
    return state.withLock { state in
      guard !state.isRunning, changed >= due.load(ordering: .relaxed) else { return false }
      state.isRunning = true
      due.store(.max, ordering: .relaxed)
      begin(&state, changed)
      return true
    }
  }

  /// Whether another collection became due during the last one; false ends the run.
  func continues(after totals: SegmentTotals, changed: Int) -> Bool {
    state.withLock { state in
      state.byteCount = totals.byteCount
      let next = state.begin + interval(after: state.byteCount)
      guard !hasStopped, state.isAsked || changed >= next else {
        end(&state, due: next)
        return false
      }
      begin(&state, changed)
      return true
    }
  }

  /// Ends a run that could not begin; the collection stays due.
  func cancel() { state.withLock { end(&$0, due: 0) } }

  private func begin(_ state: inout State, _ changed: Int) {
    state.isAsked = false
    state.begin = changed
    let lag = min(8 * segmentBytes, max(segmentBytes, state.byteCount))
    behind.store(changed + lag, ordering: .relaxed)
  }

  private func end(_ state: inout State, due next: Int) {
    state.isRunning = false
    behind.store(.max, ordering: .relaxed)
    due.store(next, ordering: .relaxed)
  }

  /// Whether so much has changed since the collection under way began that saves must wait.
  func isBehind(changed: Int) -> Bool { changed >= behind.load(ordering: .relaxed) }

  /// Makes a collection due at once, or after the one under way.
  func ask() {
    state.withLock { state in
      state.isAsked = true
      if !state.isRunning { due.store(0, ordering: .relaxed) }
    }
  }

  /// Asks for a collection because the disk is full, if it may find room.
  ///
  /// - Returns: False if there is nothing to wait for: no collection is running, and nothing was
  ///   written since a save last waited for one.
  func askForRoom(writes: Int) -> Bool {
    let (isRunning, hasChanged) = state.withLock { ($0.isRunning, $0.writesWhenFull != writes) }
    if hasChanged { ask() }
    return isRunning || hasChanged
  }

  /// Notes the engine's write count when a save has waited for room.
  func didWaitForRoom(writes: Int) { state.withLock { $0.writesWhenFull = writes } }

  /// Notes that segments are to be deleted once all iterators before `generation` have ended; with
  /// nil, no segment waits.
  func waits(for generation: UInt64?) { waited.store(generation ?? 0, ordering: .relaxed) }

  /// The generation for which segments wait; nil if no segment waits.
  var waitedGeneration: UInt64? {
    let generation = waited.load(ordering: .relaxed)
    return generation > 0 ? generation : nil
  }

  /// Makes a collection under way end soon, and lets no other begin.
  func stop(because ending: Ending) { self.ending.store(ending, ordering: .relaxed) }

  /// Lets collections begin again after ``stop(because:)``.
  func restart() { ending.store(.none, ordering: .relaxed) }

  private var hasStopped: Bool { ending.load(ordering: .relaxed) != .none }

  /// Throws if the collection under way is to end.
  func checkRunning() throws(StoreError) {
    switch ending.load(ordering: .relaxed) {
    case .none: return
    case .suspended: throw .suspended
    case .closed: throw .closed
    }
  }
}
