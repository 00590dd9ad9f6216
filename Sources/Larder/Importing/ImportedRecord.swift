package import Foundation

/// A record of another store, as an import receives it.
package struct ImportedRecord: Sendable {
  package var coder: UInt8
  package var schemaVersion: UInt32
  package var savedAt: Date
  /// When the record may be deleted; nil for never.
  package var expiresAt: Date?
  package var ownLifetime: OwnLifetime?
  package var slidesUntil: Date?
  package var validator: Validator?
  package var tags: [String] = []
  /// The value as its coder wrote it.
  package var payload: [UInt8]

  package init(
    coder: UInt8, schemaVersion: UInt32, savedAt: Date, expiresAt: Date?, payload: [UInt8]
  ) {
    (self.coder, self.schemaVersion, self.payload) = (coder, schemaVersion, payload)
    (self.savedAt, self.expiresAt) = (savedAt, expiresAt)
  }
}

extension ImportedRecord {
  var fields: Record.Fields {
    get throws(StoreError) {
      try validator?.checkLimits()
      return Record.Fields(
        lifetime: ownLifetime, slidesUntil: slidesUntil, validator: validator,
        tags: try Tags(tags))
    }
  }
}

extension WriteBatch {
  /// Puts a record of a cache, sealed if the store is.
  mutating func put(
    _ record: ImportedRecord, _ fields: Record.Fields, under key: RecordKey, in cache: String,
    compressedFrom: Int, by seal: StoreSeal?
  ) throws(StoreError) {
    if let seal { hold(seal) }
    let fields = try seal?.sealed(fields, under: key.bytes.span.bytes, in: cache) ?? fields
    try putSeparable(key.bytes.span.bytes, stamp: Record.stamp) { buffer throws(StoreError) in
      let start = buffer.count
      Record.appendHeader(
        coder: record.coder, schemaVersion: record.schemaVersion, savedAt: record.savedAt,
        expiresAt: record.expiresAt, fields: fields, to: &buffer)
      let payload = buffer.count
      buffer.append(record.payload.span.bytes)
      if record.coder != PayloadFormat.bytes.rawValue, record.payload.count >= compressedFrom {
        Record.compress(&buffer, from: start, payload: payload)
      }
      if let seal {
        try seal.sealPayload(
          of: &buffer, from: start, payload: payload, under: key.bytes.span.bytes, in: cache)
      }
      return buffer.count - payload
    }
  }
}

// For tools, which do not have a program's types.
extension Store {
  /// Puts a record under a key of a cache that is registered, and need not be open.
  ///
  /// - Throws: ``StoreError/invalidArgument(_:)`` if a field or the key is not allowed; otherwise
  ///   as ``Cache/save(_:for:lifetime:validator:tags:durability:)``.
  package func put(
    _ record: ImportedRecord, under key: RecordKey, in cache: String
  ) throws(StoreError) {
    try Record.checkLimit(ofPayload: record.payload.count)
    try key.checkLimit()
    var write = WriteBatch()
    try write.put(
      record, try record.fields, under: key, in: cache, compressedFrom: context.compressedFrom,
      by: context.seal)
    try context.commit(&write, .powerLoss)
  }

  /// Removes the record under a key of a cache that need not be open, and returns whether there was
  /// one.
  @discardableResult package func remove(_ key: RecordKey) throws(StoreError) -> Bool {
    try key.checkLimit()
    var write = WriteBatch()
    write.remove(key.bytes.span.bytes, if: write.require(key.bytes, .present))
    return try context.commit(&write, .powerLoss).failed.isEmpty
  }
}
