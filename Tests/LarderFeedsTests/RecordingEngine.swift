import Larder
import LarderTesting
import Synchronization

/// An engine that notes which records a store reads and writes, and fails on request.
///
/// It notes records only. Opening a cache reads and writes the store's own bookkeeping. The first
/// opening of a cache also looks for records under its id; call ``forgetMessages()`` after it.
final class RecordingEngine: ForwardingEngine {
  enum Message: Hashable, Sendable {
    /// One point lookup of a record.
    case retrieve
    /// A scan over the records of a cache.
    case scan
    /// One atomic write that puts this many records in place.
    case replace(Int)
    /// One atomic write that only deletes this many records.
    case delete(Int)
  }

  private struct State {
    var messages: [Message] = []
    var readFailure: StoreError?
    var writeFailure: StoreError?
    var beforeRead: (@Sendable () -> Void)?
  }

  let base: any StorageEngine
  private let state = Mutex(State())

  init(_ base: any StorageEngine) { self.base = base }

  var messages: [Message] { state.withLock { $0.messages } }
  func forgetMessages() { state.withLock { $0.messages = [] } }
  func failReads(_ error: StoreError?) { state.withLock { $0.readFailure = error } }
  func failWrites(_ error: StoreError?) { state.withLock { $0.writeFailure = error } }
  /// Runs `body` before each lookup of a record.
  func beforeReads(_ body: (@Sendable () -> Void)?) { state.withLock { $0.beforeRead = body } }

  func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    guard Self.isRecord(key) else { return try base.get(key, into: &buffer) }
    let (body, failure) = state.withLock { state in
      state.messages.append(.retrieve)
      return (state.beforeRead, state.readFailure)
    }
    body?()
    if let failure { throw failure }
    return try base.get(key, into: &buffer)
  }

  func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    let rows = batch.rows
    let records = batch.bytes.withBytes { bytes in
      rows.filter { bytes[$0.start] == KeySpace.records.rawValue }
    }
    guard !records.isEmpty else { return try base.write(&batch, synced: synced) }
    let puts = records.count { $0.kind != .remove }
    let failure = state.withLock { state in
      state.messages.append(puts > 0 ? .replace(puts) : .delete(records.count))
      return state.writeFailure
    }
    if let failure { throw failure }
    return try base.write(&batch, synced: synced)
  }

  func cursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    if range.lower.first == KeySpace.records.rawValue {
      state.withLock { $0.messages.append(.scan) }
    }
    return try base.cursor(over: range)
  }

  private static func isRecord(_ key: RawSpan) -> Bool {
    key.byteCount > 0
      && key.unsafeLoadUnaligned(as: UInt8.self) == KeySpace.records.rawValue
  }
}
