// The store's own rows, in the metadata key space. The format of a value is:
//
//   offset  bytes  field
//   0       4      CRC32C over the physical key and all bytes from offset 4, little-endian
//   4       rest   the body: a UInt64, little-endian ("format", "next-id", "sealed/..."), a UInt64
//                  and a byte that says what is counted ("bytes/..."), JSON ("cache/...",
//                  "migrate/...", "data-key/..."), or empty ("reclaim/...")
//
// The value under "tag/..." is a stamp instead; see Stamp.swift.

package import Foundation

/// The stored description of a cache, for the store and for tools.
package struct Registration: Codable, Hashable, Sendable {
  /// The id in the physical keys of the cache.
  ///
  /// An id is never reused.
  package var id: UInt64
  package var keyKind: UInt8
  /// The coder and schema version that the cache was last opened with, and writes with.
  package var coder: UInt8
  package var schemaVersion: Int
  package var lifetime: Lifetime
  /// The budget that the cache was last opened with; nil for none.
  package var byteBudget: Int?
  /// The newest schema version that the cache was opened with under this id, if it is newer than
  /// ``schemaVersion``.
  package var newerSchemaVersion: Int?
  /// The fields that entries of the cache may have; nil if none has any.
  package var features: EntryFeatures?

  /// The names of its members in JSON.
  package static let memberNames: Set<String> = [
    "id", "keyKind", "coder", "schemaVersion", "lifetime", "byteBudget", "newerSchemaVersion",
    "features",
  ]

  /// The newest schema version that a record of the cache may have.
  package var newestSchemaVersion: Int { max(schemaVersion, newerSchemaVersion ?? 0) }

  /// Whether records are written with the same coder and schema version as with `other`.
  func writesAs(_ other: Registration) -> Bool {
    coder == other.coder && schemaVersion == other.schemaVersion
  }
}

/// Fields of entries that sweeps must know of.
///
/// A cache is registered with them before an entry with the field is written, and stays so.
package struct EntryFeatures: OptionSet, Codable, Hashable, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Own lifetimes: entries may expire although the cache's lifetime is unlimited.
  package static let ownLifetimes = EntryFeatures(rawValue: 1)
  /// Tags: entries may end before the date that they are noted for.
  package static let tags = EntryFeatures(rawValue: 2)
}

extension Registration {
  /// Whether entries of the cache may expire, by its lifetime or by their own.
  package var mayExpire: Bool {
    lifetime.expiry(from: .distantPast) != nil || features?.contains(.ownLifetimes) == true
  }
}

/// The keys and values of the metadata key space.
package enum Metadata {
  /// The newest store format that this version can read.
  package static let formatVersion: UInt64 = 1

  package static let format = key("format")
  static let nextID = key("next-id")
  /// A key without a row: removing it is a commit without effect, made for its sequence.
  ///
  /// See ``Cache/remove(in:)``.
  static let beginning = key("beginning")
  /// The key of the mark that says which notes there are; see ``ExpiryNotes``.
  package static let notes = key("notes")
  package static let cachePrefix = key("cache/")
  package static let reclaimPrefix = key("reclaim/")
  package static let migratePrefix = key("migrate/")
  package static let bytesPrefix = key("bytes/")
  package static let tagPrefix = key("tag/")
  package static let dataKeyPrefix = key("data-key/")
  package static let sealedCountPrefix = key("sealed/")

  package static func cache(_ name: String) -> [UInt8] { cachePrefix + Array(name.utf8) }

  /// The name in a key that begins with ``cachePrefix``.
  package static func cacheName(in key: [UInt8]) -> String {
    String(decoding: key.dropFirst(cachePrefix.count), as: UTF8.self)
  }

  /// The key of the mark for a retired cache id, whose rows are to be deleted.
  static func reclaim(_ id: UInt64) -> [UInt8] {
    reclaimPrefix + withUnsafeBytes(of: id.bigEndian, Array.init)
  }

  /// The key of the ``MigrationMark`` of the cache with this id.
  package static func migration(_ id: UInt64) -> [UInt8] {
    migratePrefix + withUnsafeBytes(of: id.bigEndian, Array.init)
  }

  /// The key of the byte count of the cache with this id, which exists while the cache is counted.
  package static func bytes(_ id: UInt64) -> [UInt8] {
    bytesPrefix + withUnsafeBytes(of: id.bigEndian, Array.init)
  }

  /// The key of the row of an invalidated tag.
  package static func tag(_ tag: [UInt8]) -> [UInt8] { tagPrefix + tag }

  /// The key of a data key, sealed with the user's key.
  static func dataKey(_ id: UInt32) -> [UInt8] {
    dataKeyPrefix + withUnsafeBytes(of: id.bigEndian, Array.init)
  }

  /// The id in a key that begins with ``dataKeyPrefix``; nil if it has another form.
  static func dataKeyID(in key: RawSpan) -> UInt32? {
    guard key.byteCount == dataKeyPrefix.count + 4 else { return nil }
    return UInt32(
      bigEndian: key.unsafeLoadUnaligned(fromByteOffset: dataKeyPrefix.count, as: UInt32.self))
  }

  /// The key of the number of messages that a data key may have sealed.
  static func sealedCount(_ id: UInt32) -> [UInt8] {
    sealedCountPrefix + withUnsafeBytes(of: id.bigEndian, Array.init)
  }

  /// The tag in a key that begins with ``tagPrefix``.
  package static func tag(in key: [UInt8]) -> [UInt8] { Array(key.dropFirst(tagPrefix.count)) }

  /// The id in a key that begins with ``reclaimPrefix``; nil if it has another form.
  package static func reclaimedID(in key: RawSpan) -> UInt64? { id(in: key, after: reclaimPrefix) }

  /// The id in a key that begins with ``bytesPrefix``; nil if it has another form.
  package static func countedID(in key: RawSpan) -> UInt64? { id(in: key, after: bytesPrefix) }

  private static func id(in key: RawSpan, after prefix: [UInt8]) -> UInt64? {
    guard key.byteCount == prefix.count + 8,
      key.withUnsafeBytes({ $0.starts(with: prefix) })
    else { return nil }
    return UInt64(
      bigEndian: key.unsafeLoadUnaligned(fromByteOffset: prefix.count, as: UInt64.self))
  }

  private static func key(_ name: String) -> [UInt8] {
    [KeySpace.metadata.rawValue] + Array(name.utf8)
  }

  static func sealed(_ body: [UInt8], under key: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: checksum(of: body, under: key).littleEndian, Array.init) + body
  }

  /// The body of a metadata value; nil if it is damaged.
  package static func body(of value: [UInt8], under key: [UInt8]) -> [UInt8]? {
    guard value.count >= 4 else { return nil }
    let stored = value.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
    let body = Array(value[4...])
    return UInt32(littleEndian: stored) == checksum(of: body, under: key) ? body : nil
  }

  /// The number in a metadata value; nil if it is damaged.
  package static func number(in value: [UInt8], under key: [UInt8]) -> UInt64? {
    guard let body = body(of: value, under: key), body.count == 8 else { return nil }
    return UInt64(littleEndian: body.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
  }

  /// What a byte count counts: the records of a cache, keys and values.
  ///
  /// Earlier counts have no such byte, and counted index rows too.
  fileprivate static let countOfRecords: UInt8 = 1

  /// The byte count in a metadata value; nil if it is damaged, or counts something else.
  ///
  /// At most 2^48, so that sums do not overflow.
  package static func count(in value: [UInt8], under key: [UInt8]) -> Int? {
    guard let body = body(of: value, under: key), body.count == 9, body[8] == countOfRecords
    else { return nil }
    let count = UInt64(littleEndian: body.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
    return Int(min(count, 1 << 48))
  }

  private static func checksum(of body: [UInt8], under key: [UInt8]) -> UInt32 {
    let sum = key.withUnsafeBytes { crc32c($0) }
    return body.withUnsafeBytes { crc32c($0, extending: sum) }
  }
}

extension Registration {
  /// The registration of a cache whose id the importing store chooses.
  package init(keys: KeyKind, coder: UInt8, schemaVersion: Int, lifetime: Lifetime) {
    self.init(
      id: 0, keyKind: keys.code, coder: coder, schemaVersion: schemaVersion, lifetime: lifetime)
  }

  /// The registration as the store keeps it, in JSON.
  package var json: Data {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      return try encoder.encode(self)
    }
  }
}

extension WriteBatch {
  /// Adds the registration of a cache.
  mutating func put(_ registration: Registration, ofCache name: String) throws {
    putMetadata(Array(try registration.json), under: Metadata.cache(name))
  }

  /// Whether the rows are enough for one write of many.
  var isFullSlice: Bool { rows.count >= 256 || bytes.count >= 1 << 20 }

  /// Adds a metadata row.
  mutating func putMetadata(_ body: [UInt8], under key: [UInt8]) {
    put(key.span.bytes, Metadata.sealed(body, under: key).span.bytes)
  }

  /// Adds a metadata row whose body is a number.
  mutating func putMetadata(_ number: UInt64, under key: [UInt8]) {
    putMetadata(withUnsafeBytes(of: number.littleEndian, Array.init), under: key)
  }

  /// Adds the byte count of a cache.
  mutating func putCount(_ bytes: Int, under key: [UInt8]) {
    // Allocates no array, because each counted save writes such a row.
    put(key.span.bytes) { buffer in
      var sum = key.withUnsafeBytes { crc32c($0) }
      withUnsafeBytes(of: UInt64(bytes).littleEndian) { sum = crc32c($0, extending: sum) }
      withUnsafeBytes(of: Metadata.countOfRecords) { sum = crc32c($0, extending: sum) }
      buffer.append(littleEndian: sum)
      buffer.append(littleEndian: UInt64(bytes))
      buffer.append(Metadata.countOfRecords)
    }
  }
}
