/// A record as a shared tier has it, under a key of the tier: a value, or a tombstone.
///
/// Its version takes the place of the commit sequence. The date, the lifetime, the validator, the
/// tags and the payload are the same bytes as in a store. The shared version and the original
/// sequence are left out, because they belong to one store.
package struct SharedRecord: Sendable {
  package static var versionOffset: Int { Record.stamp.offset }
  /// How long a tombstone stays: the longest load that it stops from bringing the value back.
  package static let tombstoneStay = Duration.seconds(30)

  package let bytes: [UInt8]
  /// What the bytes say; nil for a tombstone, which says that the value was removed.
  package let record: Record?
  /// A random number that each write draws anew; never 0.
  package let version: UInt64
}

extension SharedRecord {
  /// Checks and reads what a tier has under a key.
  ///
  /// - Throws: ``RecordFault``.
  /// - Complexity: One checksum.
  package init(_ bytes: [UInt8], under key: [UInt8]) throws(RecordFault) {
    let span = bytes.span.bytes
    guard Record.stamp.isIntact(span, key: key.span.bytes),
      let version = Record.stamp.sequence(of: span), version != 0
    else { throw .damaged }
    (self.bytes, self.version) = (bytes, version)
    let (flags, more) = (bytes[Record.Offset.flags], bytes[Record.Offset.moreFlags])
    guard flags & Record.Flag.isTombstone == 0 else {
      guard bytes == Self.tombstone(version: version, under: key).bytes else {
        throw .unsupported("a tombstone with fields")
      }
      record = nil
      return
    }
    guard flags & Record.Flag.hasSharedVersion == 0,
      more & Record.MoreFlag.hasOriginalSequence == 0
    else { throw .unsupported("a shared record with fields of one store") }
    record = try Record(intact: span, sequence: version)
  }

  /// Makes the shared record of a record of a store, which is `bytes`.
  ///
  /// - Throws: ``RecordFault`` if the record was not read from `bytes`.
  /// - Complexity: One copy, and one checksum.
  package init(
    _ record: Record, in bytes: RawSpan, version: UInt64, under key: [UInt8]
  ) throws(RecordFault) {
    var fields = Record.headerBytes + (record.sharedVersion == nil ? 0 : 8)
    let lifetime = fields..<fields + (record.ownLifetime == nil ? 0 : OwnLifetime.byteCount)
    fields = lifetime.upperBound + (record.hasOriginalSequence(in: bytes) ? 8 : 0)
    var shared = [UInt8](bytes.extracting(0..<Record.headerBytes))
    shared.reserveCapacity(bytes.byteCount)
    shared += [UInt8](bytes.extracting(lifetime)) + [UInt8](bytes.extracting(fields...))
    shared[Record.Offset.flags] &= ~Record.Flag.hasSharedVersion
    shared[Record.Offset.moreFlags] &= ~Record.MoreFlag.hasOriginalSequence
    Self.seal(&shared, version: version, under: key)
    try self.init(shared, under: key)
  }

  /// Makes the shared record of the only row of a batch, a record that is about to be written.
  init(only batch: borrowing WriteBatch, version: UInt64, under key: [UInt8]) {
    let record = batch.bytes.withBytes { bytes -> SharedRecord? in
      guard batch.rows.count == 1, batch.rows[0].kind == .put else { return nil }
      let bytes = UnsafeRawBufferPointer(rebasing: bytes[batch.rows[0].value]).bytes
      do throws(RecordFault) {
        return try SharedRecord(
          Record(intact: bytes, sequence: 0), in: bytes, version: version, under: key)
      } catch {
        return nil
      }
    }
    guard let record else { preconditionFailure("a batch that is not one record") }
    self = record
  }

  /// Makes the record that says that there is no value under a key.
  package static func tombstone(version: UInt64, under key: [UInt8]) -> SharedRecord {
    var bytes = [UInt8](repeating: 0, count: Record.headerBytes)
    bytes[Record.Offset.version] = Record.formatVersion
    bytes[Record.Offset.flags] = Record.Flag.isTombstone
    seal(&bytes, version: version, under: key)
    return SharedRecord(bytes: bytes, record: nil, version: version)
  }

  private static func seal(_ bytes: inout [UInt8], version: UInt64, under key: [UInt8]) {
    bytes.withUnsafeMutableBytes { bytes in
      key.withUnsafeBytes { Record.stamp.seal(value: bytes, key: $0, sequence: version) }
    }
  }

  /// Appends the record as a store has it, with its version as the shared version; the commit
  /// fills in its stamp.
  ///
  /// - Returns: The size of the payload; nil for a tombstone, and then nothing is appended.
  package func append(to buffer: inout ByteBuffer) -> Int? {
    guard let record else { return nil }
    let start = buffer.count
    buffer.append(bytes.span.bytes.extracting(0..<Record.headerBytes))
    buffer.set(
      bytes[Record.Offset.flags] | Record.Flag.hasSharedVersion, at: start + Record.Offset.flags)
    buffer.append(littleEndian: version)
    buffer.append(bytes.span.bytes.extracting(Record.headerBytes...))
    return record.payload.count
  }
}

extension Record {
  fileprivate func hasOriginalSequence(in bytes: RawSpan) -> Bool {
    bytes.unsafeLoad(fromByteOffset: Offset.moreFlags, as: UInt8.self)
      & MoreFlag.hasOriginalSequence != 0
  }
}
