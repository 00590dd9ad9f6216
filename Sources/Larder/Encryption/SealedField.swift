// A sealed field is a payload, or a validator, that only a key opens. Its bytes:
//
//   offset  bytes  field
//   0       4      id of the data key, little-endian
//   4       12     nonce, random
//   16      ...    ciphertext, as long as what was sealed
//   ...     16     tag
//
// AES-256-GCM also authenticates bytes that are not in the field, which say where it belongs:
//
//   bytes  of a payload                                       of a validator
//   1      1                                                  2
//   1      1 if it was compressed before, 0 if not            -
//   1      coder                                              -
//   4      schema version, little-endian                      -
//   2      number of the bytes of the cache's name, l.-e.     the same
//   ...    the cache's name, UTF-8                            the same
//   ...    the user's key                                     the same
//
// So a field is an error under another key, in another cache and in another kind of field, and its
// record may get another id of its cache, other dates and other tags.

/// Where a sealed field belongs: what is authenticated beside it.
struct SealedPlace {
  let bytes: [UInt8]

  /// The place of the payload of a record, by its physical key and the name of its cache.
  init(
    ofPayload coder: UInt8, schemaVersion: UInt32, isCompressed: Bool, under key: RawSpan,
    in cache: String
  ) {
    var bytes: [UInt8] = [1, isCompressed ? 1 : 0, coder]
    withUnsafeBytes(of: schemaVersion.littleEndian) { bytes += $0 }
    self.init(bytes, under: key, in: cache)
  }

  /// The place of the payload of a record that was read.
  init(ofPayloadOf record: Record, under key: RawSpan, in cache: String) {
    self.init(
      ofPayload: record.coder, schemaVersion: record.schemaVersion,
      isCompressed: record.isCompressed, under: key, in: cache)
  }

  /// The place of the validator of a record.
  init(ofValidatorUnder key: RawSpan, in cache: String) {
    self.init([2], under: key, in: cache)
  }

  private init(_ start: [UInt8], under key: RawSpan, in cache: String) {
    var bytes = start
    let name = cache.utf8
    bytes.reserveCapacity(start.count + 2 + name.count + key.byteCount)
    withUnsafeBytes(of: UInt16(name.count).littleEndian) { bytes += $0 }
    bytes += name
    key.extracting(RecordKey.prefixCount(of: key)...).withUnsafeBytes { bytes += $0 }
    self.bytes = bytes
  }
}

enum SealedField {
  static let idBytes = 4
  /// How much longer a field is than what was sealed.
  static let overhead = idBytes + 12 + 16
}
