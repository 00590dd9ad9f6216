import Larder
import LarderTesting

/// An engine that runs a closure just before its next write, as another thread might.
///
/// It also counts reads and records compactions. It must be used by one thread at a time.
final class InterruptedEngine: ForwardingEngine, @unchecked Sendable {
  let base: any StorageEngine
  /// Runs once, before the next write; an error that it throws is the write's error.
  var beforeNextWrite: (() throws -> Void)?
  private(set) var lookupCount = 0
  private(set) var cursorCount = 0
  private(set) var compacted: [EngineRange] = []
  private(set) var participant: (any CommitParticipant)?

  init(_ base: any StorageEngine) { self.base = base }

  func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    if let interruption = beforeNextWrite {
      beforeNextWrite = nil
      do {
        try interruption()
      } catch let error as StoreError {
        throw error
      } catch {
        throw .io("\(error)")
      }
    }
    return try base.write(&batch, synced: synced)
  }

  func join(_ participant: any CommitParticipant) {
    self.participant = participant
    base.join(participant)
  }

  func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    lookupCount += 1
    return try base.get(key, into: &buffer)
  }

  func cursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    cursorCount += 1
    return try base.cursor(over: range)
  }

  func compact(_ range: EngineRange) throws(StoreError) {
    compacted.append(range)
    try base.compact(range)
  }
}
