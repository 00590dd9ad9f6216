public import Larder

extension Store {
  /// Makes a store in memory whose disk has faults.
  ///
  /// - Parameters:
  ///   - options: As in ``/Larder/Store/inMemory(options:)``.
  ///   - faults: The faults, which the test keeps to switch them on and off.
  /// - Returns: An empty store.
  public static func inMemory(options: Options = Options(), faults: StoreFaults) -> Store {
    Store(inMemory: FaultyEngine(InMemoryEngine(), faults), options: options)
  }
}

/// An engine that fails as a test says.
final class FaultyEngine: ForwardingEngine {
  let base: any StorageEngine
  private let faults: StoreFaults

  init(_ base: any StorageEngine, _ faults: StoreFaults) {
    (self.base, self.faults) = (base, faults)
  }

  var isClosed: Bool {
    do throws(StoreError) {
      try base.checkOpen()
      return false
    } catch {
      return true
    }
  }

  /// Throws if the engine is closed, or reads fail.
  func checkReads() throws(StoreError) {
    try base.checkOpen()
    if faults.failsReads { throw .io("reads fail, because the test says so") }
  }

  func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    try checkReads()
    return try base.get(key, into: &buffer)
  }

  func cursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    try checkReads()
    return FaultyCursor(try base.cursor(over: range), of: self)
  }

  func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    try faults.holdWrite(of: self)
    try base.checkOpen()
    // LevelDB's engine accepts the same batches once its reserve is spent.
    let freesRoom = batch.freesRoom || batch.isEmpty
    if let failure = faults.failure(ofWriteThatFreesRoom: freesRoom) { throw failure }
    return try base.write(&batch, synced: synced)
  }

  func close() throws(StoreError) {
    defer { faults.releaseWrites(of: self) }
    try base.close()
  }
}

/// A cursor of a ``FaultyEngine``.
final class FaultyCursor: EngineCursor {
  private let base: any EngineCursor
  private let engine: FaultyEngine

  init(_ base: any EngineCursor, of engine: FaultyEngine) {
    (self.base, self.engine) = (base, engine)
  }

  var isComplete: Bool { base.isComplete }

  func next() throws(StoreError) -> Bool {
    try engine.checkReads()
    return try base.next()
  }

  func previous() throws(StoreError) -> Bool {
    try engine.checkReads()
    return try base.previous()
  }

  func seek(to key: RawSpan) throws(StoreError) {
    try engine.checkReads()
    try base.seek(to: key)
  }

  func seekToEnd() throws(StoreError) {
    try engine.checkReads()
    try base.seekToEnd()
  }

  func renew() throws(StoreError) {
    try engine.checkReads()
    try base.renew()
  }

  func withEntry<R, E: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(E) -> R
  ) throws(E) -> R {
    try base.withEntry(body)
  }
}
