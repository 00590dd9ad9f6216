// A record is what a store keeps under one key: a header, an optional validator, the payload.
// Integers are fixed-width and little-endian.
//
//   offset  bytes  field
//   0       1      format version, always 1
//   1       1      flags: bit 0 expires, bit 1 has a validator; bits 2-4 are kept for compressed,
//                  encrypted, external; a bit that this version does not know is refused
//   2       1      coder: 1 binary, 2 JSON, 3 property list, 4 bytes
//   3       1      reserved, 0
//   4       4      schema version of the payload
//   8       8      saved at: the bits of the date's seconds since 2001-01-01, a Double
//   16      8      expires at: the same; only meaningful with flag bit 0, else 0
//   24      8      commit sequence
//   32      4      CRC32C over bytes 0-31, the physical key, and everything from byte 36 on
//   36      ...    validator (varint length, bytes), only with flag bit 1
//   ...     rest   payload
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

  private enum Offset {
    static let version = 0
    static let flags = version + 1
    static let coder = flags + 1
    static let reserved = coder + 1
    static let schemaVersion = reserved + 1
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
    guard bytes.unsafeLoad(fromByteOffset: Offset.reserved, as: UInt8.self) == 0 else {
      throw .unsupported("a record whose reserved byte is in use")
    }
    coder = bytes.unsafeLoad(fromByteOffset: Offset.coder, as: UInt8.self)
    schemaVersion = UInt32(
      littleEndian: bytes.unsafeLoadUnaligned(
        fromByteOffset: Offset.schemaVersion, as: UInt32.self))
    savedAt = loadDate(bytes, at: Offset.savedAt)
    expiresAt = flags & Flag.expires == 0 ? nil : loadDate(bytes, at: Offset.expiresAt)
    self.sequence = sequence
    var start = Self.headerBytes
    if flags & Flag.hasValidator != 0 {
      guard let count = readVarint(bytes, at: &start), count <= bytes.byteCount - start else {
        throw .damaged
      }
      validator = start..<(start + Int(count))
      start += Int(count)
    }
    payload = start..<bytes.byteCount
  }

  /// Appends a header for a new record, its stamp left for the commit to fill in.
  static func appendHeader(
    coder: UInt8, schemaVersion: UInt32, savedAt: Date, expiresAt: Date?,
    to buffer: inout ByteBuffer
  ) {
    buffer.append(formatVersion)
    buffer.append(expiresAt == nil ? 0 : Flag.expires)
    buffer.append(coder)
    buffer.append(0)
    buffer.append(littleEndian: schemaVersion)
    buffer.append(littleEndian: bits(of: savedAt))
    buffer.append(littleEndian: expiresAt.map(bits) ?? 0)
    buffer.append(zeros: stamp.end - stamp.offset)
  }

  /// Appends the record `bytes` as saved at another date, validator and payload as they are.
  static func appendRestamped(
    _ bytes: RawSpan, savedAt: Date, expiresAt: Date?, to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    buffer.append(bytes)
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
  func appendReencoded(
    _ bytes: RawSpan, coder: UInt8, schemaVersion: UInt32, payload: borrowing ByteBuffer,
    to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    buffer.append(bytes.extracting(0..<self.payload.lowerBound))
    buffer.set(coder, at: start + Offset.coder)
    buffer.set(schemaVersion, at: start + Offset.schemaVersion)
    payload.withBytes { buffer.append($0) }
  }
}

// A date is kept as the bits of its seconds since 2001: going through 1970 would change two dates
// in five by a bit.

private func bits(of date: Date) -> UInt64 { date.timeIntervalSinceReferenceDate.bitPattern }

private func loadDate(_ bytes: RawSpan, at offset: Int) -> Date {
  let bits = bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
  return Date(timeIntervalSinceReferenceDate: Double(bitPattern: UInt64(littleEndian: bits)))
}
