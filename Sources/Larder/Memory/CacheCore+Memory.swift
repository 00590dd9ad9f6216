import Foundation
import LarderBytes
import LarderCoding
import LarderEngine

// Reads look into memory first. What is there is the value of a fresh entry, so a read that finds
// it needs only the date. All other reads go to the disk.

extension CacheCore {
  /// The hash of a record's key in memory; 0 if the cache has no memory.
  @inline(__always)
  func memoryHash(of key: borrowing KeyBuffer) -> UInt64 {
    guard let memory = context.memory, residents != nil else { return 0 }
    return key.withBytes { memory.hash($0) }
  }

  /// Returns the value that is in memory under a record's key if it is fresh; nil otherwise.
  ///
  /// It is nil, too, if the store is closed or belongs to another process: the read from disk then
  /// throws. That is checked first, because a lock may be held in another process.
  @inline(__always)
  func resident(under key: borrowing KeyBuffer, hash: UInt64) -> ResidentEntry<Value>? {
    guard let residents, engine.isUp else { return nil }
    let found = key.withBytes { residents.read($0, hash: hash, by: owner) }
    guard let found else { return nil }
    guard context.isValid(found) else {
      residents.takeBackHit(hash: hash, by: owner)
      key.withBytes { residents.remove($0, hash: hash) }
      return nil
    }
    // The id of a cache is in the key, and a cache has one type of values.
    return unsafeDowncast(found, to: ResidentEntry<Value>.self)
  }

  /// Begins to read a record from disk; nil if its value is not to be kept in memory.
  func beginReading(hash: UInt64) -> StoreMemory.Reading? {
    guard residents != nil else { return nil }
    return context.memory?.beginReading(hash: hash, tagEpoch: context.invalidatedTags.epoch)
  }

  /// Keeps the value of a fresh record that was read from disk in memory.
  func keep(
    _ value: Value, of record: Record, in bytes: RawSpan, under key: RecordKey,
    _ reading: StoreMemory.Reading?
  ) {
    guard let reading, let residents, let memory = context.memory else { return }
    let entry = ResidentEntry(
      value, of: record, in: bytes, validUntil: validUntil(of: record),
      tagEpoch: record.tags == nil ? nil : reading.tagEpoch)
    let weight = weight(of: record, under: key)
    key.bytes.withUnsafeBytes { key in
      memory.add(entry, weight: weight, under: key, reading, to: residents)
    }
  }

  /// The date up to which an entry is returned from memory, in seconds since the reference date.
  ///
  /// In a sliding cache, that is the date from which on a read restarts its lifetime.
  private func validUntil(of record: Record) -> Double {
    let fresh = record.ownLifetime.map { $0.lifetime.fresh } ?? lifetime.fresh
    let end = fresh.end(from: record.savedAt)?.timeIntervalSinceReferenceDate ?? .infinity
    guard slides != nil else { return end }
    return min(end, slideDate(of: record)?.timeIntervalSinceReferenceDate ?? .infinity)
  }

  /// Roughly the bytes that an entry takes in memory.
  ///
  /// Decoded values take more than their payloads, because each string and array is allocated on
  /// its own: ``MemoryWeight/perPayloadByte`` was measured.
  private func weight(of record: Record, under key: RecordKey) -> Int {
    let value = MemoryLayout<Value>.stride
    let payload =
      coder.format == .bytes
      ? record.payload.count : record.payload.count * MemoryWeight.perPayloadByte
    return MemoryWeight.entry + value + payload + key.bytes.count
  }
}

/// The bytes of entries in memory, besides their values.
enum MemoryWeight {
  /// A slot of a ``MemoryShard``, its part of the table, and a ``ResidentEntry``.
  static let entry = 320
  /// The decoded bytes for each byte of a payload.
  static let perPayloadByte = 2
}

extension StoreContext {
  /// The most by which the coarse clock is late, in seconds, with a margin.
  private static let coarseness = 0.02

  /// Whether a value in memory may be returned.
  @inline(__always)
  func isValid(_ resident: Resident) -> Bool {
    if let epoch = resident.tagEpoch, epoch != invalidatedTags.epoch { return false }
    if resident.validUntil == .infinity { return true }
    if hasSystemClock, coarseSecondsSinceReferenceDate() + Self.coarseness < resident.validUntil {
      return true
    }
    return clock.now().timeIntervalSinceReferenceDate < resident.validUntil
  }
}
