package import Dispatch
import Larder
import Synchronization

/// Faults of the disk of a store in memory, which a test switches on and off.
///
/// ```swift
/// let faults = StoreFaults()
/// let store = Store.inMemory(faults: faults)
/// let notes = try store.cache("notes", of: Note.self)
/// try notes.save(first, for: "a")
///
/// faults.isDiskFull = true
/// #expect(throws: StoreError.self) { try notes.save(second, for: "a") }
/// #expect(try notes.value(for: "a") == first)       // nothing was written
///
/// faults.isDiskFull = false
/// try notes.save(second, for: "a")
/// ```
///
/// A fault applies to all calls of the store from then on, including calls by loads and by other
/// threads. A write that fails has written nothing, and the next write after the fault succeeds:
/// ``/Larder/StoreError/writesDisabled(cause:)`` is never thrown. To damage a single entry, use
/// ``Larder/Cache/damageEntry(for:)``.
///
/// Faults can be set from any thread at any time, also before the store is made. Several stores may
/// share them.
public final class StoreFaults: Sendable {
  private struct Held {
    let store: ObjectIdentifier
    let release: DispatchSemaphore
  }

  private struct Waiter {
    let count: Int
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var isDiskFull = false
    var failsWrites = false
    var failsReads = false
    var holdsWrites = false
    /// The writes that are not held although writes are.
    var writesBeforeHold = 0
    var held: [Int: Held] = [:]
    var waiters: [Int: Waiter] = [:]
    var lastID = 0

    mutating func newID() -> Int {
      lastID += 1
      return lastID
    }
  }

  private let state = Mutex(State())
  private let holdLimit: DispatchTimeInterval

  /// Makes faults that are all switched off.
  public init() { holdLimit = .seconds(600) }

  /// - Parameter holdLimit: The time after which a write that is held fails.
  package init(holdLimit: DispatchTimeInterval) { self.holdLimit = holdLimit }

  /// Whether the disk is full: writes throw ``/Larder/StoreError/diskFull``.
  ///
  /// False at first. Removals, clears, and opening a cache that exists succeed, as on a real disk:
  /// a store keeps a reserve for them.
  public var isDiskFull: Bool {
    get { state.withLock { $0.isDiskFull } }
    set { state.withLock { $0.isDiskFull = newValue } }
  }

  /// Whether all writes throw ``/Larder/StoreError/io(_:)``.
  ///
  /// ```swift
  /// faults.failsWrites = true
  /// #expect(throws: StoreError.self) { try notes.save(second, for: "a") }
  /// ```
  ///
  /// False at first. Removals, opening a new cache and ``/Larder/Store/flush()`` are writes, too.
  public var failsWrites: Bool {
    get { state.withLock { $0.failsWrites } }
    set { state.withLock { $0.failsWrites = newValue } }
  }

  /// Whether all reads throw ``/Larder/StoreError/io(_:)``, also reads by cursors that are open.
  ///
  /// ```swift
  /// faults.failsReads = true
  /// #expect(throws: StoreError.self) { try notes.value(for: "a") }
  /// ```
  ///
  /// False at first. Opening a cache reads, too.
  public var failsReads: Bool {
    get { state.withLock { $0.failsReads } }
    set { state.withLock { $0.failsReads = newValue } }
  }
}

// MARK: - Slow writes

extension StoreFaults {
  /// Holds all writes from now on, as a very slow disk does, until ``releaseWrites()``.
  ///
  /// ```swift
  /// faults.holdWrites()
  /// let saving = Task { try await store.run { try notes.save(note, for: "a") } }
  /// try await faults.waitForHeldWrites(1)
  /// #expect(try notes.value(for: "a") == nil)         // reads do not wait
  /// faults.releaseWrites()
  /// try await saving.value
  /// ```
  ///
  /// A held write blocks its thread, so make it with ``/Larder/Store/run(_:)`` or in a thread of
  /// its own. The saves of loads run on such threads already. Other faults apply to a held write
  /// when it is released.
  ///
  /// A test that does not release its writes ends nevertheless: closing the store makes them throw
  /// ``/Larder/StoreError/closed``, and a write that was held for ten minutes throws
  /// ``/Larder/StoreError/io(_:)``. In both cases nothing is written.
  public func holdWrites() { holdWrites(after: 0) }

  /// Lets `count` more writes through, and holds all that follow, as ``holdWrites()`` does.
  package func holdWrites(after count: Int) {
    state.withLock { ($0.holdsWrites, $0.writesBeforeHold) = (true, count) }
  }

  /// Lets the writes that are held continue, in no particular order, and holds no further ones.
  ///
  /// It does not wait for them to end.
  public func releaseWrites() {
    let held = state.withLock { state in
      state.holdsWrites = false
      defer { state.held = [:] }
      return state.held.values.map(\.release)
    }
    for release in held { release.signal() }
  }

  /// The number of writes that are held.
  public var heldWrites: Int { state.withLock { $0.held.count } }

  /// Waits until so many writes, or more, are held at once.
  ///
  /// - Parameter count: The number of writes, of all stores with these faults.
  /// - Throws: `CancellationError` if the task is cancelled first, by a test's time limit for
  ///   example.
  public func waitForHeldWrites(_ count: Int) async throws {
    let id = state.withLock { $0.newID() }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let outcome = state.withLock { state -> Result<Void, any Error>? in
          // A task that is cancelled later finds the waiter.
          if Task.isCancelled { return .failure(CancellationError()) }
          if state.held.count >= count { return .success(()) }
          state.waiters[id] = Waiter(count: count, continuation: continuation)
          return nil
        }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
      waiter?.continuation.resume(throwing: CancellationError())
    }
  }
}

// MARK: - In the engine

extension StoreFaults {
  /// Waits while writes are held.
  ///
  /// Throws if that takes too long.
  func holdWrite(of engine: FaultyEngine) throws(StoreError) {
    guard let (id, release) = addHeld(by: engine) else { return }
    // Closing the store releases the writes that it finds, and this one may have come later.
    if engine.isClosed { remove(id) }
    guard release.wait(timeout: .monotonicNow + holdLimit) == .timedOut, remove(id) else { return }
    throw .io("a write was held for too long: the test has not released it")
  }

  /// Releases the writes of an engine that is closed.
  func releaseWrites(of engine: FaultyEngine) {
    let store = ObjectIdentifier(engine)
    let held = state.withLock { state in state.held.filter { $0.value.store == store }.keys }
    for id in held { remove(id) }
  }

  /// The error of a write; nil if it succeeds.
  func failure(ofWriteThatFreesRoom freesRoom: Bool) -> StoreError? {
    state.withLock { state in
      if state.failsWrites { return .io("writes fail, because the test says so") }
      return state.isDiskFull && !freesRoom ? .diskFull : nil
    }
  }

  private func addHeld(by engine: FaultyEngine) -> (id: Int, release: DispatchSemaphore)? {
    let release = DispatchSemaphore(value: 0)
    let (id, met) = state.withLock { state -> (Int?, [Waiter]) in
      guard state.holdsWrites else { return (nil, []) }
      if state.writesBeforeHold > 0 {
        state.writesBeforeHold -= 1
        return (nil, [])
      }
      let id = state.newID()
      state.held[id] = Held(store: ObjectIdentifier(engine), release: release)
      let met = state.waiters.filter { $0.value.count <= state.held.count }
      for id in met.keys { state.waiters[id] = nil }
      return (id, Array(met.values))
    }
    for waiter in met { waiter.continuation.resume() }
    return id.map { ($0, release) }
  }

  /// Releases a write; returns false if it is not held.
  @discardableResult private func remove(_ id: Int) -> Bool {
    guard let held = state.withLock({ $0.held.removeValue(forKey: id) }) else { return false }
    held.release.signal()
    return true
  }
}
