package import Larder

/// An engine that passes each call on to another one.
///
/// A conforming type implements only the calls that it observes or changes. All forwarding is in
/// the extension below, so a new requirement of `StorageEngine` is one edit here.
package protocol ForwardingEngine: StorageEngine {
  /// The engine that does the work.
  var base: any StorageEngine { get }
}

extension ForwardingEngine {
  package var writeCount: Int? { base.writeCount }

  package func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    try base.get(key, into: &buffer)
  }

  package func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    try base.write(&batch, synced: synced)
  }

  package func cursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    try base.cursor(over: range)
  }

  package func approximateBytes(in range: EngineRange) throws(StoreError) -> UInt64 {
    try base.approximateBytes(in: range)
  }

  package func compact(_ range: EngineRange) throws(StoreError) { try base.compact(range) }

  package func property(_ name: String) throws(StoreError) -> String? {
    try base.property(name)
  }

  package func publish(statistics bytes: [UInt8]) throws(StoreError) {
    try base.publish(statistics: bytes)
  }

  package func markSealed() throws(StoreError) { try base.markSealed() }

  package func isMarkedSealed() throws(StoreError) -> Bool { try base.isMarkedSealed() }

  package func keep(keys: [UInt8]) throws(StoreError) { try base.keep(keys: keys) }

  package func keptKeys() throws(StoreError) -> [UInt8]? { try base.keptKeys() }

  package var isUp: Bool { base.isUp }

  package func join(_ participant: any CommitParticipant) { base.join(participant) }

  package func checkOpen() throws(StoreError) { try base.checkOpen() }

  package func suspend() throws(StoreError) { try base.suspend() }

  package func resume() throws(StoreError) { try base.resume() }

  package func close() throws(StoreError) { try base.close() }
}
