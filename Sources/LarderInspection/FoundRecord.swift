import Foundation
import Larder
import LarderCoding

/// What a record is at one moment.
enum RecordState: String {
  case fresh, stale, expired
  /// Its checksum does not fit, so nothing in it can be trusted.
  case damaged
  /// It was written by a later version of this library.
  case unsupported
}

/// A record as it was found, and what it is at one moment.
struct FoundRecord {
  let cache: KnownCache
  let key: [UInt8]
  /// How long the stored record is, header included.
  let storedBytes: Int
  let content: Result<Record, RecordFault>
  let state: RecordState

  /// Reads the record `bytes` that is stored under `physicalKey`, of which `key` is the end.
  init(
    _ bytes: RawSpan, under physicalKey: RawSpan, key: [UInt8], in cache: KnownCache, at now: Date
  ) {
    self.cache = cache
    self.key = key
    storedBytes = bytes.byteCount
    do throws(RecordFault) {
      let record = try Record(bytes, under: physicalKey)
      content = .success(record)
      state = Self.state(of: record, in: cache, at: now)
    } catch {
      content = .failure(error)
      state = error == .damaged ? .damaged : .unsupported
    }
  }

  /// By the lifetime that the cache was last opened with; where that is not known, by the date of
  /// eviction that the record carries.
  private static func state(of record: Record, in cache: KnownCache, at now: Date) -> RecordState {
    if let lifetime = cache.registration?.lifetime {
      return switch lifetime.freshness(of: record.savedAt, at: now) {
      case .fresh: .fresh
      case .stale: .stale
      case .expired: .expired
      }
    }
    return record.expiresAt.map { now < $0 } ?? true ? .fresh : .expired
  }

  /// When the record has expired, stale time included; nil for never.
  func expiry(of record: Record) -> Date? {
    guard let lifetime = cache.registration?.lifetime else { return record.expiresAt }
    return lifetime.expiry(from: record.savedAt)
  }

  /// What is wrong with it, in words; nil for nothing.
  var fault: String? {
    switch content {
    case .success: nil
    case .failure(.damaged): "its checksum does not fit"
    case .failure(.unsupported(let what)): "\(what), which this version does not know"
    }
  }
}

/// The coder byte of a record in words.
func coderName(_ code: UInt8) -> String {
  PayloadFormat(rawValue: code).map { "\($0)" } ?? "coder \(code)"
}
