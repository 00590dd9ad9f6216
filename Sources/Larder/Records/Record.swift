// A record is what a store keeps under one key: a header, optional fields, the payload.
// Integers are fixed-width and little-endian.
//
//   offset  bytes  field
//   0       1      format version, always 1
//   1       1      flags: bit 0 expires, bit 1 has a validator, bit 2 has a compressed payload,
//                  bit 3 has a sealed payload, bit 5 has a shared version, bit 7 has its own
//                  lifetime; bit 4 is set in the row of a record whose payload is in a segment, and
//                  never in the record itself; bit 6 is a tombstone, which is never in a store
//   2       1      coder: 1 binary, 2 JSON, 3 property list, 4 bytes
//   3       1      more flags: bit 0 has tags, bit 1 has an original sequence, bit 2 slides until
//                  a date, bit 3 has a sealed validator
//   4       4      schema version of the payload
//   8       8      saved at: the bits of the date's seconds since 2001-01-01, a Double
//   16      8      expires at: the same; only meaningful with flag bit 0, else 0
//   24      8      commit sequence
//   32      4      CRC32C over bytes 0-31, the physical key, and everything from byte 36 on
//   36      8      shared version, only with its flag: the version of the value in a shared tier
//   ...     16     own lifetime, only with its flag: the seconds of fresh time and of stale time,
//                  two Doubles; infinity is unlimited
//   ...     8      original sequence, only with its flag
//   ...     8      slides until: a date as above, only with its flag
//   ...     ...    validator (varint length, bytes), only with its flag; with another, a sealed
//                  field, see SealedField.swift
//   ...     ...    tags, only with their flag: their number (1 byte), and of each tag the length
//                  (1 byte) and the bytes, UTF-8 in normalization form C
//   ...     rest   payload; with its flag, compressed in the raw format of Snappy; then, with its
//                  flag, a sealed field, see SealedField.swift
//
// A reader refuses a flag that it does not know.
//
// This layout is on users' disks. Do not change a field: add a format version, keep reading this
// one, and add a fixture. Explained in Documentation.docc/StorageFormat.md.

package import Foundation

/// A record's header, checked: what stands before the payload.
package struct Record: Sendable, Hashable {
  package static let formatVersion: UInt8 = 1
  /// The commit sequence and the checksum.
  package static var stamp: Stamp { Stamp(at: Offset.stamp) }
  package static var headerBytes: Int { stamp.end }
  /// How the engine keeps payloads of at least `bytes` in segments; nil for none.
  package static func separation(from bytes: Int?) -> ValueSeparation {
    ValueSeparation(
      keySpace: KeySpace.records.rawValue, flagOffset: Offset.flags, flag: Flag.isSeparated,
      stamp: stamp, thresholdBytes: bytes)
  }
  /// The largest payload: 32 MiB.
  package static let maximumPayloadBytes = 32 << 20

  package enum Flag {
    package static let expires: UInt8 = 1 << 0
    package static let hasValidator: UInt8 = 1 << 1
    package static let isCompressed: UInt8 = 1 << 2
    static let isSealed: UInt8 = 1 << 3
    package static let hasSharedVersion: UInt8 = 1 << 5
    package static let hasOwnLifetime: UInt8 = 1 << 7
    /// Only in a shared tier, see ``SharedRecord``.
    static let isTombstone: UInt8 = 1 << 6
    /// Set by the engine alone, which clears it when it reads.
    static let isSeparated: UInt8 = 1 << 4
    #if Encryption
      static let known = knownUnsealed | isSealed
    #else
      static let known = knownUnsealed
    #endif
    private static let knownUnsealed: UInt8 =
      expires | hasValidator | isCompressed | hasSharedVersion | hasOwnLifetime
  }

  /// The flags of the second flag byte.
  package enum MoreFlag {
    package static let hasTags: UInt8 = 1 << 0
    package static let hasOriginalSequence: UInt8 = 1 << 1
    package static let slidesUntil: UInt8 = 1 << 2
    static let hasSealedValidator: UInt8 = 1 << 3
    #if Encryption
      static let known = knownUnsealed | hasSealedValidator
    #else
      static let known = knownUnsealed
    #endif
    private static let knownUnsealed: UInt8 = hasTags | hasOriginalSequence | slidesUntil
  }

  enum Offset {
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
  /// The version that the value has in a shared tier; nil if it was not there.
  package var sharedVersion: UInt64?
  /// The record's own lifetime; nil if the cache's applies.
  package var ownLifetime: OwnLifetime?
  package var sequence: UInt64
  /// The sequence of the commit that saved the value.
  ///
  /// Touching and migrating a record give it a new sequence, and keep this one.
  package var originalSequence: UInt64
  /// The date at which its fresh time ends at the latest, however often it begins anew; nil if the
  /// record does not say.
  package var slidesUntil: Date?
  /// The validator's place in the record, without its length; nil if there is none.
  package var validator: Range<Int>?
  /// Whether the validator is a sealed field.
  package var isValidatorSealed = false
  /// The place of the tags in the record; nil if there are none.
  package var tags: Range<Int>?
  /// The place of the payload in the record, compressed if ``isCompressed``, sealed if
  /// ``isSealed``.
  package var payload: Range<Int>
  /// Whether one of the tags was invalidated after the value was saved.
  ///
  /// The bytes do not tell; see ``InvalidatedTags/judge(_:in:)``.
  package var isInvalidated = false
}

/// Why bytes are no record that this version can use.
package enum RecordFault: Error, Hashable {
  /// The checksum does not match, or the record is shorter than its header.
  case damaged
  /// The record is whole, and written by a later version of this library.
  case unsupported(String)
}

extension Record {
  /// Checks and reads the record `bytes` that was found under the physical key `key`.
  ///
  /// - Complexity: One checksum over the whole record.
  @inline(__always) package init(_ bytes: RawSpan, under key: RawSpan) throws(RecordFault) {
    try self.init(head: bytes, of: bytes.byteCount, under: key)
  }

  /// Reads the record of `count` bytes that begins with `bytes`: all of it, or what is before its
  /// payload.
  ///
  /// A record without its payload cannot be checked; LevelDB has checked the block or the log that
  /// it lies in.
  package init(head bytes: RawSpan, of count: Int, under key: RawSpan) throws(RecordFault) {
    let isWhole = bytes.byteCount >= count
    guard !isWhole || Self.stamp.isIntact(bytes, key: key),
      let sequence = Self.stamp.sequence(of: bytes)
    else { throw .damaged }
    try self.init(intact: bytes, sequence: sequence)
    if !isWhole {
      guard payload.isEmpty else { throw .damaged }
      payload = payload.lowerBound..<count
    }
  }

  /// The fault of an intact record with a field that is longer than the record.
  private static var beyondEnd: RecordFault { .unsupported("a record with a field beyond its end") }

  /// Reads the record `bytes`, whose checksum is right.
  init(intact bytes: RawSpan, sequence: UInt64) throws(RecordFault) {
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
    if flags & Flag.hasSharedVersion != 0 {
      guard bytes.byteCount - start >= 8 else { throw Self.beyondEnd }
      sharedVersion = loadNumber(bytes, at: start)
      start += 8
    }
    if flags & Flag.hasOwnLifetime != 0 {
      guard bytes.byteCount - start >= OwnLifetime.byteCount else { throw Self.beyondEnd }
      guard let lifetime = OwnLifetime(in: bytes, at: start) else {
        throw .unsupported("a lifetime of its own that is negative or not a number")
      }
      ownLifetime = lifetime
      start += OwnLifetime.byteCount
    }
    if moreFlags & MoreFlag.hasOriginalSequence != 0 {
      guard bytes.byteCount - start >= 8 else { throw Self.beyondEnd }
      originalSequence = loadNumber(bytes, at: start)
      start += 8
    }
    if moreFlags & MoreFlag.slidesUntil != 0 {
      guard bytes.byteCount - start >= 8 else { throw Self.beyondEnd }
      slidesUntil = loadDate(bytes, at: start)
      start += 8
    }
    if flags & Flag.hasValidator != 0 {
      guard let count = readVarint(bytes, at: &start), count <= bytes.byteCount - start else {
        throw Self.beyondEnd
      }
      validator = start..<(start + Int(count))
      isValidatorSealed = moreFlags & MoreFlag.hasSealedValidator != 0
      start += Int(count)
    }
    if moreFlags & MoreFlag.hasTags != 0 {
      guard let tags = Tags.place(in: bytes, at: start) else { throw Self.beyondEnd }
      self.tags = tags
      start = tags.upperBound
    }
    payload = start..<bytes.byteCount
  }
}

// MARK: - Dates

extension Record {
  /// When a record was saved and expires, and its sequence.
  struct Dates {
    let savedAt: Date
    /// Nil for never.
    let expiresAt: Date?
    let sequence: UInt64
  }

  /// The dates of the record that begins with `bytes`; nil if it was not committed, or the key is
  /// none of a record.
  ///
  /// Nothing is checked: a wrong date is one of a damaged record.
  static func dates(in bytes: RawSpan, under key: RawSpan) -> Dates? {
    guard key.byteCount > 1, key.unsafeLoad(as: UInt8.self) == KeySpace.records.rawValue,
      let sequence = stamp.sequence(of: bytes), sequence > 0
    else { return nil }
    let flags = bytes.unsafeLoad(fromByteOffset: Offset.flags, as: UInt8.self)
    return Dates(
      savedAt: loadDate(bytes, at: Offset.savedAt),
      expiresAt: flags & Flag.expires == 0 ? nil : loadDate(bytes, at: Offset.expiresAt),
      sequence: sequence)
  }
}

// MARK: - Compressed and sealed payloads

extension Record {
  package var isCompressed: Bool { flags & Flag.isCompressed != 0 }
  package var isSealed: Bool { flags & Flag.isSealed != 0 }
  /// Whether the payload is as its coder wrote it.
  package var isPlain: Bool { flags & (Flag.isCompressed | Flag.isSealed) == 0 }

  /// The size of the payload of this record, which is `bytes`, as its coder wrote it.
  ///
  /// Twice its size if it is compressed and sealed, which is a guess.
  func encodedBytes(in bytes: RawSpan) -> Int {
    if isPlain { return payload.count }
    if isSealed {
      let count = max(payload.count - SealedField.overhead, 0)
      return isCompressed ? 2 * count : count
    }
    return Snappy.decompressedCount(bytes.extracting(payload)) ?? 0
  }

  /// Appends the payload of this record, which is `bytes`, as its coder wrote it, to `buffer`.
  ///
  /// - Returns: False if it is sealed, or if it is compressed and cannot be decompressed; then
  ///   nothing is appended.
  package func appendPayload(in bytes: RawSpan, to buffer: inout ByteBuffer) -> Bool {
    guard !isSealed else { return false }
    return appendDecompressed(bytes.extracting(payload), to: &buffer)
  }

  /// Appends this record's payload, which is opened if it was sealed, as its coder wrote it.
  ///
  /// - Returns: False if it is compressed and cannot be decompressed; then nothing is appended.
  func appendDecompressed(_ payload: RawSpan, to buffer: inout ByteBuffer) -> Bool {
    guard isCompressed else {
      buffer.append(payload)
      return true
    }
    return Snappy.decompress(payload, limit: Self.maximumPayloadBytes, to: &buffer)
  }

  /// Compresses the payload of the record that begins at `start`, if that saves at least an eighth.
  ///
  /// The payload begins at `payload`, and ends with the buffer.
  static func compress(_ buffer: inout ByteBuffer, from start: Int, payload: Int) {
    guard Snappy.compress(&buffer, from: payload) else { return }
    buffer.withMutableBytes { $0[start + Offset.flags] |= Flag.isCompressed }
  }
}

// MARK: - Writing

extension Record {
  package static func checkLimit(ofPayload count: Int) throws(StoreError) {
    guard count <= maximumPayloadBytes else {
      throw .invalidArgument("a payload of \(count) bytes; the limit is \(maximumPayloadBytes)")
    }
  }

  /// The optional fields of a new record.
  struct Fields {
    var lifetime: OwnLifetime?
    var slidesUntil: Date?
    var validator: Validator?
    /// Whether the validator is a sealed field.
    var isValidatorSealed = false
    var tags: Tags?

    var flags: UInt8 {
      (lifetime == nil ? 0 : Flag.hasOwnLifetime) | (validator == nil ? 0 : Flag.hasValidator)
    }

    var moreFlags: UInt8 {
      (tags == nil ? 0 : MoreFlag.hasTags) | (slidesUntil == nil ? 0 : MoreFlag.slidesUntil)
        | (isValidatorSealed ? MoreFlag.hasSealedValidator : 0)
    }
  }

  /// Appends the header and the fields of a new record; the commit fills in its stamp.
  static func appendHeader(
    coder: UInt8, schemaVersion: UInt32, savedAt: Date, expiresAt: Date?, fields: Fields,
    to buffer: inout ByteBuffer
  ) {
    // One append for the first eight bytes, because each of them checks for room.
    let flags = (expiresAt == nil ? 0 : Flag.expires) | fields.flags
    let moreFlags = fields.moreFlags
    buffer.append(
      littleEndian: UInt64(formatVersion) | UInt64(flags) << (8 * Offset.flags)
        | UInt64(coder) << (8 * Offset.coder) | UInt64(moreFlags) << (8 * Offset.moreFlags)
        | UInt64(schemaVersion) << (8 * Offset.schemaVersion))
    buffer.append(littleEndian: bits(of: savedAt))
    buffer.append(littleEndian: expiresAt.map(bits) ?? 0)
    buffer.append(littleEndian: UInt64(0))
    buffer.append(littleEndian: UInt32(0))
    if let lifetime = fields.lifetime { lifetime.append(to: &buffer) }
    if let end = fields.slidesUntil { buffer.append(littleEndian: bits(of: end)) }
    if let validator = fields.validator { append(validator.bytes.span.bytes, to: &buffer) }
    if let tags = fields.tags { buffer.append(tags.bytes.span.bytes) }
  }

  private static func append(_ validator: RawSpan, to buffer: inout ByteBuffer) {
    buffer.append(varint: UInt64(validator.byteCount))
    buffer.append(validator)
  }

  /// Appends this record, which is `bytes`, as saved at another date, its payload as it is.
  ///
  /// The record keeps its original sequence and its tags, and its lifetime and its validator unless
  /// `fields` has others. It slides until the end in `fields`, or without an end that it says.
  ///
  /// It has no shared version, because a shared tier has the value with its old date.
  func appendRestamped(
    _ bytes: RawSpan, savedAt: Date, expiresAt: Date?, fields: Fields, to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    appendKept(bytes, sharedVersion: nil, fields, to: &buffer)
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

  /// Appends this record, which is `bytes`, with another payload, as its coder wrote it; everything
  /// else stays.
  func appendReencoded(
    _ bytes: RawSpan, coder: UInt8, schemaVersion: UInt32, payload: borrowing ByteBuffer,
    to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    appendKept(
      bytes, sharedVersion: sharedVersion, Fields(slidesUntil: slidesUntil), to: &buffer)
    buffer.withMutableBytes {
      $0[start + Offset.flags] &= ~(Flag.isCompressed | Flag.isSealed)
    }
    buffer.set(coder, at: start + Offset.coder)
    buffer.set(schemaVersion, at: start + Offset.schemaVersion)
    payload.withBytes { buffer.append($0) }
  }

  /// Appends this record, which is `bytes`, with a payload and a validator that were opened, to be
  /// sealed; everything else stays.
  func appendOpened(
    _ bytes: RawSpan, payload: RawSpan, validator: Validator?, to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    let fields = Fields(
      slidesUntil: slidesUntil, validator: validator, isValidatorSealed: validator != nil)
    appendKept(bytes, sharedVersion: sharedVersion, fields, to: &buffer)
    buffer.withMutableBytes { $0[start + Offset.flags] &= ~Flag.isSealed }
    buffer.append(payload)
  }

  /// Appends what a change that is no save keeps: the header, the original sequence, the tags, and
  /// the lifetime and the validator unless others are given.
  private func appendKept(
    _ bytes: RawSpan, sharedVersion: UInt64?, _ fields: Fields, to buffer: inout ByteBuffer
  ) {
    let start = buffer.count
    var fields = fields
    fields.lifetime = fields.lifetime ?? ownLifetime
    if fields.validator == nil { fields.isValidatorSealed = isValidatorSealed }
    buffer.append(bytes.extracting(0..<Self.headerBytes))
    let kept = sharedVersion == nil ? flags & ~Flag.hasSharedVersion : flags
    buffer.set(kept | fields.flags, at: start + Offset.flags)
    buffer.set(
      MoreFlag.hasOriginalSequence | fields.moreFlags | (tags == nil ? 0 : MoreFlag.hasTags),
      at: start + Offset.moreFlags)
    if let sharedVersion { buffer.append(littleEndian: sharedVersion) }
    if let lifetime = fields.lifetime { lifetime.append(to: &buffer) }
    buffer.append(littleEndian: originalSequence)
    if let end = fields.slidesUntil { buffer.append(littleEndian: bits(of: end)) }
    if let validator = fields.validator {
      Self.append(validator.bytes.span.bytes, to: &buffer)
    } else if let old = self.validator {
      Self.append(bytes.extracting(old), to: &buffer)
    }
    if let tags { buffer.append(bytes.extracting(tags)) }
  }
}

// A date is kept as the bits of its seconds since 2001: going through 1970 would change two dates
// in five by a bit.

private func bits(of date: Date) -> UInt64 { date.timeIntervalSinceReferenceDate.bitPattern }

private func loadDate(_ bytes: RawSpan, at offset: Int) -> Date {
  Date(timeIntervalSinceReferenceDate: Double(bitPattern: loadNumber(bytes, at: offset)))
}

private func loadNumber(_ bytes: RawSpan, at offset: Int) -> UInt64 {
  UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
}
