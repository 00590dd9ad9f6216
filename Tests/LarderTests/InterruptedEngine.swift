import LarderEngine

/// An engine that lets something happen just before a write, once: what another thread might do.
///
/// It is used by one thread at a time.
final class InterruptedEngine: StorageEngine, @unchecked Sendable {
  private let base: any StorageEngine
  var beforeNextWrite: (() throws -> Void)?

  init(_ base: any StorageEngine) { self.base = base }

  func write(_ batch: inout WriteBatch, synced: Bool) throws(EngineError) -> Commit {
    if let interruption = beforeNextWrite {
      beforeNextWrite = nil
      do {
        try interruption()
      } catch let error as EngineError {
        throw error
      } catch {
        throw .io("\(error)")
      }
    }
    return try base.write(&batch, synced: synced)
  }

  var writeCount: Int? { base.writeCount }

  private(set) var lookupCount = 0

  func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(EngineError) -> Bool {
    lookupCount += 1
    return try base.get(key, into: &buffer)
  }

  private(set) var cursorCount = 0

  func cursor(over range: EngineRange) throws(EngineError) -> any EngineCursor {
    cursorCount += 1
    return try base.cursor(over: range)
  }

  func approximateBytes(in range: EngineRange) throws(EngineError) -> UInt64 {
    try base.approximateBytes(in: range)
  }

  private(set) var compacted: [EngineRange] = []

  func compact(_ range: EngineRange) throws(EngineError) {
    compacted.append(range)
    try base.compact(range)
  }

  func property(_ name: String) throws(EngineError) -> String? { try base.property(name) }

  func measure(by meter: any CommitMeter) { base.measure(by: meter) }

  func checkOpen() throws(EngineError) { try base.checkOpen() }

  func close() throws(EngineError) { try base.close() }
}
