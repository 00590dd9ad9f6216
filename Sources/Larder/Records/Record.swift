// A record is what a store keeps under one key: a header, optional fields, the payload.
// Integers are fixed-width and little-endian.
//
//   offset  bytes  field
//   0       1      format version, always 1
//   1       1      flags: bit 0 expires, bit 1 has a validator; bits 2-7 are kept for compressed,
//                  encrypted, external, shared version, tombstone, own lifetime
//   2       1      coder: 1 binary, 2 JSON, 3 property list, 4 bytes
//   3       1      more flags: bit 0 is kept for tags, bit 1 has an original sequence
//   4       4      schema version of the payload
//   8       8      saved at: the bits of the date's seconds since 2001-01-01, a Double
//   16      8      expires at: the same; only meaningful with flag bit 0, else 0
//   24      8      commit sequence
//   32      4      CRC32C over bytes 0-31, the physical key, and everything from byte 36 on
//   36      8      original sequence, only with its flag
//   ...     ...    validator (varint length, bytes), only with its flag
//   ...     rest   payload
//
// A reader refuses a flag that it does not know. The fields of the flags that are kept have places,
// too: after byte 36 stand shared version (8 bytes), own lifetime (two Doubles), original sequence,
// validator, tags, payload, each only with its flag.
//
// This layout is on users' disks. Do not change a field: add a format version, keep reading this
// one, and add a fixture. Explained in Documentation.docc/StorageFormat.md.

package import Foundation
import LarderBytes
package import LarderEngine

/// A record's header, checked: what stands before the payload.
package struct Record: Sendable, Hashable {
  package static let formatVersion: UInt8 = 1
  /// The commit sequence and the checksum.
  package static var stamp: Stamp { Stamp(at: Offset.stamp) }
  package static var headerBytes: Int { stamp.end }
  /// The largest payload: 32 MiB.
  package static let maximumPayloadBytes = 32 << 20

  package enum Flag {
    package static let expires: UInt8 = 1 << 0
    package static let hasValidator: UInt8 = 1 << 1
    static let known: UInt8 = expires | hasValidator
  }

  /// The flags of the second flag byte.
  package enum MoreFlag {
    package static let hasOriginalSequence: UInt8 = 1 << 1
    static let known: UInt8 = hasOriginalSequence
  }

  private enum Offset {
    static let version = 0
    static let flags = version + 1
    static let coder = flags + 1
    static let moreFlags = coder + 1
    static let schemaVersion = moreFlags + 1
    static let savedAt = schemaVersion + 4
    static let expiresAt = savedAt + 8
    static let stamp = expiresAt + 8
  }

  package var flags: UInt8
  package var coder: UInt8
  package var schemaVersion: UInt32
  package var savedAt: Date
  /// When the record may be deleted: the end of its stale time.
  ///
  /// Nil for never.
  package var expiresAt: Date?
  package var sequence: UInt64
  /// The sequence of the commit that saved the value.
  ///
  /// Touching and migrating a record give it a new sequence, and keep this one.
  package var originalSequence: UInt64
  /// The validator's place in the record, without its length; nil if there is none.
  package var validator: Range<Int>?
  package var payload: Range<Int>
}

/// Why bytes are no record that this version can use.
package enum RecordFault: Error, Hashable {
  /// A length or the checksum is wrong.
  case damaged
  /// The record is whole, and written by a later version of this library.
  case unsupported(String)
}

extension Record {
  /// Checks and reads the record `bytes` that was found under the physical key `key`.
  ///
  /// - Complexity: One checksum over the whole record.
  package init(_ bytes: RawSpan, under key: RawSpan) throws(RecordFault) {
    guard Self.stamp.isIntact(bytes, key: key), let sequence = Self.stamp.sequence(of: bytes) else {
      throw .damaged
    }
    try self.init(intact: bytes, sequence: sequence)
  }

  private init(intact bytes: RawSpan, sequence: UInt64) throws(RecordFault) {
    let version = bytes.unsafeLoad(fromByteOffset: Offset.version, as: UInt8.self)
    guard version == Self.formatVersion else { throw .unsupported("record format \(version)") }
    flags = bytes.unsafeLoad(fromByteOffset: Offset.flags, as: UInt8.self)
    guard flags & ~Flag.known == 0 else { throw .unsupported("record flags \(flags)") }
    let moreFlags = bytes.unsafeLoad(fromByteOffset: Offset.moreFlags, as: UInt8.self)
    guard moreFlags & ~MoreFlag.known == 0 else {
      throw .unsupported("record flags \(moreFlags) in the second byte")
    }
    coder = bytes.unsafeLoad(fromByteOffset: Offset.coder, as: UInt8.self)
    schemaVersion = UInt32(
      littleEndian: bytes.unsafeLoadUnaligned(
        fromByteOffset: Offset.schemaVersion, as: UInt32.self))
    savedAt = loadDate(bytes, at: Offset.savedAt)
    expiresAt = flags & Flag.expires == 0 ? nil : loadDate(bytes, at: Offset.expiresAt)
    self.sequence = sequence
    originalSequence = sequence
    var start = Self.headerBytes
    if moreFlags & MoreFlag.hasOriginalSequence != 0 {
      guard bytes.byteCount - start >= 8 else { throw .damaged }
      originalSequence = UInt64(
        littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self))
      start += 8
    }
    if flags & Flag.hasValidator != 0 {
      guard let count = readVarint(bytes, at: &start), count <= bytes.byteCount - start else {
        throw .damaged
      }
      validator = start..<(start + Int(count))
      start += Int(count)
    }
    payload = start..<bytes.byteCount
  }

  /// Appends the header and the validator of a new record; the commit fills in its stamp.
  static func appendHeader(
    coder: UInt8, schemaVersion: UInt32, savedAt: Date, expiresAt: Date?,
    validator: Validator?, to buffer: inout ByteBuffer
  ) {
    buffer.append(formatVersion)
    buffer.append(
      (expiresAt == nil ? 0 : Flag.expires) | (validator == nil ? 0 : Flag.hasValidator))
    buffer.append(coder)
    buffer.append(0)
    buffer.append(littleEndian: schemaVersion)
    buffer.append(littleEndian: bits(of: savedAt))
    buffer.append(littleEndian: expiresAt.map(bits) ?? 0)
    buffer.append(zeros: stamp.end - stamp.offset)
    if let validator { append(validator.bytes.span.bytes, to: &buffer) }
  }

  private static func append(_ validator: RawSpan, to buffer: inout ByteBuffer) {
    buffer.append(varint: UInt64(validator.byteCount))
    buffer.append(validator)
  }

  /// Appends this record, which is `bytes`, as saved at another date, its payload as it is.
  ///
  /// The record keeps its original sequence, and its validator unless it gets another one.
  func appendRestamped(
    _ bytes: RawSpan, savedAt: Date, expiresAt: Date?, validator: Validator?,
    to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    appendKept(bytes, validator: validator, to: &buffer)
    buffer.append(bytes.extracting(payload))
    buffer.withMutableBytes { buffer in
      let flags = buffer[start + Offset.flags]
      buffer[start + Offset.flags] =
        expiresAt == nil ? flags & ~Flag.expires : flags | Flag.expires
      buffer.storeBytes(
        of: bits(of: savedAt).littleEndian, toByteOffset: start + Offset.savedAt, as: UInt64.self)
      buffer.storeBytes(
        of: (expiresAt.map(bits) ?? 0).littleEndian, toByteOffset: start + Offset.expiresAt,
        as: UInt64.self)
    }
  }

  /// Appends this record, which is `bytes`, with another payload; dates and validator stay.
  ///
  /// The record keeps its original sequence.
  func appendReencoded(
    _ bytes: RawSpan, coder: UInt8, schemaVersion: UInt32, payload: borrowing ByteBuffer,
    to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    appendKept(bytes, validator: nil, to: &buffer)
    buffer.set(coder, at: start + Offset.coder)
    buffer.set(schemaVersion, at: start + Offset.schemaVersion)
    payload.withBytes { buffer.append($0) }
  }

  /// Appends what a change that is no save keeps: the header, the original sequence, and the
  /// validator unless another one is given.
  private func appendKept(
    _ bytes: RawSpan, validator: Validator?, to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    buffer.append(bytes.extracting(0..<Self.headerBytes))
    buffer.set(MoreFlag.hasOriginalSequence, at: start + Offset.moreFlags)
    buffer.append(littleEndian: originalSequence)
    if let validator {
      buffer.set(flags | Flag.hasValidator, at: start + Offset.flags)
      Self.append(validator.bytes.span.bytes, to: &buffer)
    } else if let old = self.validator {
      Self.append(bytes.extracting(old), to: &buffer)
    }
  }
}

// A date is kept as the bits of its seconds since 2001: going through 1970 would change two dates
// in five by a bit.

private func bits(of date: Date) -> UInt64 { date.timeIntervalSinceReferenceDate.bitPattern }

private func loadDate(_ bytes: RawSpan, at offset: Int) -> Date {
  let bits = bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
  return Date(timeIntervalSinceReferenceDate: Double(bitPattern: UInt64(littleEndian: bits)))
}
