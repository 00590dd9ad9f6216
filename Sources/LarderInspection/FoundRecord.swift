import Foundation
import Larder

/// The state of a record at one moment.
package enum RecordState: String, Sendable, CaseIterable {
  case fresh, stale, expired
  /// The checksum does not match, so nothing in the record can be trusted.
  case damaged
  /// A later version of this library wrote the record.
  case unsupported
}

/// A record found in a store, and its state at one moment.
struct FoundRecord {
  let cache: KnownCache
  let key: [UInt8]
  /// The size of the stored record, header included.
  let storedBytes: Int
  /// The part of it that lies in a segment and was not read.
  let separatedBytes: Int
  let content: Result<Record, RecordFault>
  let state: RecordState
  /// The stored record; empty if only its fields were asked for.
  let bytes: [UInt8]

  /// Reads the record of `count` bytes stored under `physicalKey`, which ends with `key`.
  ///
  /// `bytes` are all of it, or what is before its payload; with `isKept` the result has them.
  init(
    _ bytes: RawSpan, of count: Int, under physicalKey: RawSpan, key: [UInt8], in cache: KnownCache,
    endedBy tags: InvalidatedTags, at now: Date, isKept: Bool
  ) {
    let kept = isKept ? [UInt8](bytes) : []
    self.init(
      bytes, of: count, under: physicalKey, key: key, in: cache, endedBy: tags, at: now,
      keeping: kept)
  }

  /// Reads a whole record, which may be large, and keeps it without a copy.
  init(
    whole bytes: [UInt8], under physicalKey: [UInt8], key: [UInt8], in cache: KnownCache,
    endedBy tags: InvalidatedTags, at now: Date
  ) {
    self.init(
      bytes.span.bytes, of: bytes.count, under: physicalKey.span.bytes, key: key, in: cache,
      endedBy: tags, at: now, keeping: bytes)
  }

  private init(
    _ bytes: RawSpan, of count: Int, under physicalKey: RawSpan, key: [UInt8], in cache: KnownCache,
    endedBy tags: InvalidatedTags, at now: Date, keeping kept: [UInt8]
  ) {
    self.cache = cache
    self.key = key
    self.bytes = kept
    storedBytes = count
    separatedBytes = count - bytes.byteCount
    do throws(RecordFault) {
      var record = try Record(head: bytes, of: count, under: physicalKey)
      tags.judge(&record, in: bytes)
      let isWhole = bytes.byteCount == count
      if isWhole, record.isCompressed, !record.isSealed,
        !Snappy.isValid(bytes.extracting(record.payload))
      {
        throw .unsupported("a compressed payload that cannot be decompressed")
      }
      content = .success(record)
      state = Self.state(of: record, in: cache, at: now)
    } catch {
      content = .failure(error)
      state = error == .damaged ? .damaged : .unsupported
    }
  }

  /// The size of the stored key and the stored record.
  var entryBytes: Int {
    KeySpace.records.prefix(ofCache: cache.id).count + key.count + storedBytes
  }

  /// Uses the lifetime that the cache was last opened with; if that is not known, the expiry date
  /// stored in the record.
  private static func state(of record: Record, in cache: KnownCache, at now: Date) -> RecordState {
    if let lifetime = cache.registration?.lifetime {
      return switch lifetime.freshness(of: record, at: now) {
      case .fresh: .fresh
      case .stale: .stale
      case .expired: .expired
      }
    }
    if record.isInvalidated { return .expired }
    return record.expiresAt.map { now < $0 } ?? true ? .fresh : .expired
  }

  /// The date when the record expires, stale time included; nil if it never does.
  func expiry(of record: Record) -> Date? {
    guard let lifetime = cache.registration?.lifetime else { return record.expiresAt }
    return lifetime.applied(to: record).expiry(from: record.savedAt)
  }

  /// Why the record cannot be read; nil if it can.
  var problem: String? {
    switch content {
    case .success: isLocked ? "it is sealed; --key-file opens it" : nil
    case .failure(.damaged): "its checksum does not match"
    case .failure(.unsupported(let what)): "\(what), which this version does not support"
    }
  }
}

// Fields of a record whose bytes were kept; nil if there are none, or they cannot be read.
extension FoundRecord {
  private var physicalKey: [UInt8] { KeySpace.records.prefix(ofCache: cache.id) + key }

  /// Whether the payload is sealed, and there is no key to open it.
  var isLocked: Bool {
    guard case .success(let record) = content else { return false }
    return record.isSealed && cache.opener == nil
  }

  /// The payload as its coder wrote it; nil if it is sealed, and cannot be opened.
  var payload: [UInt8]? {
    guard case .success(let record) = content else { return nil }
    if record.isPlain { return Array(bytes[record.payload]) }
    if record.isSealed {
      return cache.opener?.payload(
        of: record, in: bytes.span.bytes, under: physicalKey.span.bytes, in: cache.name ?? "")
    }
    var payload = ByteBuffer()
    guard record.appendPayload(in: bytes.span.bytes, to: &payload) else { return nil }
    return Array(payload)
  }

  var validator: [UInt8]? {
    guard case .success(let record) = content else { return nil }
    guard let place = record.validator else { return nil }
    guard record.isValidatorSealed else { return Array(bytes[place]) }
    return cache.opener?.validator(
      bytes.span.bytes.extracting(place), under: physicalKey.span.bytes, in: cache.name ?? "")
  }

  var tags: Tags? {
    guard case .success(let record) = content else { return nil }
    return Tags(of: record, in: bytes.span.bytes)
  }
}

/// The name of a record's coder byte.
func coderName(_ code: UInt8) -> String {
  PayloadFormat(rawValue: code).map { "\($0)" } ?? "coder \(code)"
}
