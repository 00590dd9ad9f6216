// LevelDB's MANIFEST: a log of edits to the set of live tables.
//
// A log is a sequence of blocks of 32 KiB. A block holds chunks; one begins with
//
//   offset  bytes  field
//   0       4      CRC32C over type and data, masked, little-endian
//   4       2      length of the data, little-endian
//   6       1      type: 1 whole record, 2 first, 3 middle, 4 last part of one
//
// and less than seven bytes at the end of a block are filler. A record of a MANIFEST is an edit: a
// sequence of fields, each a varint tag and what the tag says.

import Larder
import LarderEngine

/// Which tables a database consists of.
struct Manifest {
  struct Table: Hashable {
    var level: Int
    var bytes: Int
  }

  /// The live tables by their number.
  private(set) var tables: [UInt64: Table] = [:]

  /// Reads the bytes of a MANIFEST; nil when it is damaged.
  ///
  /// An edit that is cut off at the end has not been made.
  init?(_ bytes: [UInt8]) {
    var log = LogRecords(bytes)
    while let record = log.next() {
      guard apply(record.span.bytes) else { return nil }
    }
    if log.isDamaged { return nil }
  }

  private mutating func apply(_ edit: RawSpan) -> Bool {
    var at = 0
    while at < edit.byteCount {
      guard let tag = readVarint(edit, at: &at) else { return false }
      switch tag {
      case 1:  // name of the comparator
        guard skipText(edit, at: &at) else { return false }
      case 2, 3, 4, 9:  // numbers of the log, of the next file, of the last entry, of the log before
        guard readVarint(edit, at: &at) != nil else { return false }
      case 5:  // where a level's next compaction begins
        guard readVarint(edit, at: &at) != nil, skipText(edit, at: &at) else { return false }
      case 6:  // a table that is no longer
        guard readVarint(edit, at: &at) != nil, let number = readVarint(edit, at: &at) else {
          return false
        }
        tables[number] = nil
      case 7:  // a new table
        guard let level = readVarint(edit, at: &at), let number = readVarint(edit, at: &at),
          let bytes = readVarint(edit, at: &at), skipText(edit, at: &at), skipText(edit, at: &at)
        else { return false }
        tables[number] = Table(
          level: Int(truncatingIfNeeded: level), bytes: Int(truncatingIfNeeded: bytes))
      default: return false
      }
    }
    return true
  }

  private func skipText(_ edit: RawSpan, at offset: inout Int) -> Bool {
    guard let count = readVarint(edit, at: &offset), count <= edit.byteCount - offset else {
      return false
    }
    offset += Int(count)
    return true
  }
}

/// The records of a log, one after another.
private struct LogRecords {
  private static let blockBytes = 32 << 10
  private static let headerBytes = 7

  private(set) var isDamaged = false
  private let bytes: [UInt8]
  private var at = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The next whole record; nil at the end, or at the first damage.
  mutating func next() -> [UInt8]? {
    var record: [UInt8] = []
    var isInside = false
    while let (type, data) = nextChunk() {
      switch type {
      case 1 where !isInside: return Array(data)
      case 2 where !isInside: isInside = true
      case 3 where isInside: break
      case 4 where isInside: return record + data
      default:
        isDamaged = true
        return nil
      }
      record += data
    }
    return nil
  }

  private mutating func nextChunk() -> (type: UInt8, data: ArraySlice<UInt8>)? {
    let rest = Self.blockBytes - at % Self.blockBytes
    if rest < Self.headerBytes { at += rest }
    guard at + Self.headerBytes <= bytes.count else { return nil }
    let length = Int(bytes[at + 4]) | Int(bytes[at + 5]) << 8
    let start = at + Self.headerBytes
    guard start + length <= bytes.count else { return nil }
    let stored = (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[at + $1]) << (8 * UInt32($1)) }
    let sum = bytes.withUnsafeBytes { bytes in
      crc32c(UnsafeRawBufferPointer(rebasing: bytes[(start - 1)..<(start + length)]))
    }
    guard stored == (sum >> 15 | sum << 17) &+ 0xA282_EAD8 else {
      isDamaged = true
      return nil
    }
    at = start + length
    return (bytes[start - 1], bytes[start..<at])
  }
}
