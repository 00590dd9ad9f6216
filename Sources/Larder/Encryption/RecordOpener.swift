import Foundation

/// Opens sealed payloads and validators, for tools that do not open a store.
package struct RecordOpener: Sendable {
  #if Encryption
    private let seal: StoreSeal
    /// A name under which a cache was sealed that has lost it; nil for none.
    private let lostName: String?
    /// The setting with which the store is opened.
    package var encryption: Encryption { seal.encryption }

    /// Opens the data keys of a store; nil if it is not sealed.
    ///
    /// - Parameters:
    ///   - engine: The engine of a store, or of a snapshot of one.
    ///   - key: The 32 bytes of the user's key.
    ///   - lostName: A name under which a cache was sealed that has lost it; nil for none.
    /// - Throws: ``StoreError/wrongKey(found:given:)``; ``StoreError/invalidArgument(_:)`` for a
    ///   key of another size; ``StoreError/corrupt(cache:key:file:)`` if a data key is lost.
    package init?(
      of engine: any StorageEngine, key: [UInt8], lostName: String?
    ) throws(StoreError) {
      guard let id = try StoreSeal.keyID(of: engine) else { return nil }
      var options = Store.Options()
      options.access = .readOnly
      options.encryption = .key(id: id, bytes: key)
      try options.checkRanges()
      guard let seal = try StoreSeal.ofStore(in: engine, options) else { return nil }
      (self.seal, self.lostName) = (seal, lostName)
    }

    /// Calls `open` with the name of a cache, and if that fails with the name that one has lost.
    private func trying<R>(
      _ cache: String, _ open: (_ cache: String) throws(UnreadablePayload) -> R
    ) throws(UnreadablePayload) -> R {
      do throws(UnreadablePayload) {
        return try open(cache)
      } catch {
        guard let lostName else { throw error }
        return try open(lostName)
      }
    }

    /// The id of the user's key in a row of a data key; nil if the row is damaged.
    package static func userKeyID(inRow value: [UInt8], under key: [UInt8]) -> String? {
      Metadata.body(of: value, under: key).flatMap { SealedDataKey(json: $0)?.keyID }
    }

    /// The payload of a sealed record, which is `bytes`, as its coder wrote it; nil if it cannot be
    /// opened.
    package func payload(
      of record: Record, in bytes: RawSpan, under key: RawSpan, in cache: String
    ) -> [UInt8]? {
      var payload = ByteBuffer()
      do throws(UnreadablePayload) {
        let opened = try trying(cache) { name throws(UnreadablePayload) in
          try seal.payload(of: record, in: bytes, under: key, in: name)
        }
        let isWhole = opened.withUnsafeBytes {
          record.appendDecompressed($0.bytes, to: &payload)
        }
        guard isWhole else { return nil }
        return Array(payload)
      } catch {
        return nil
      }
    }

    /// The bytes of a sealed validator; nil if it cannot be opened.
    package func validator(_ field: RawSpan, under key: RawSpan, in cache: String) -> [UInt8]? {
      do throws(UnreadablePayload) {
        return try trying(cache) { name throws(UnreadablePayload) in
          try seal.validator(in: field, under: key, in: name).bytes
        }
      } catch {
        return nil
      }
    }
  #else
    private init() {}

    package static func userKeyID(inRow value: [UInt8], under key: [UInt8]) -> String? { nil }

    package func payload(
      of record: Record, in bytes: RawSpan, under key: RawSpan, in cache: String
    ) -> [UInt8]? {
      nil
    }

    package func validator(_ field: RawSpan, under key: RawSpan, in cache: String) -> [UInt8]? {
      nil
    }
  #endif
}
