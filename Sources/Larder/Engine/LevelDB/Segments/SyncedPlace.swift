// A batch may say how far the segments are on the device. It puts the place under a key of the
// engine, 8 bytes, little-endian:
//
//   0   4   offset in the segment
//   4   4   number of the segment
//
// and removes the key again. So logs contain places, and the database has no such row: no reader,
// copy or older version of this library ever meets one. `FrameCheck.swift` says who reads them.

import CLarder

/// A place in the segments: all frames before it that rows name are on the device.
package struct SyncedPlace: Comparable, Sendable {
  /// The key of places in logs.
  ///
  /// A batch may not change it.
  package static let key: [UInt8] = [CommitSequence.keySpace] + Array("synced".utf8)
  /// The bytes of the keys and values of the two rows.
  static let rowBytes = 2 * key.count + 8

  let rawValue: UInt64

  init(rawValue: UInt64) { self.rawValue = rawValue }

  init(segment: UInt32, offset: Int) { rawValue = UInt64(segment) << 32 | UInt64(offset) }

  /// The end of a segment, and of all before it.
  init(endOf segment: UInt32) { self.init(segment: segment, offset: Int(UInt32.max)) }

  /// The place that a row of a log contains; nil if it is another row.
  init?(_ value: RawSpan, under key: RawSpan) {
    guard value.byteCount == 8, key.byteCount == Self.key.count,
      key.withUnsafeBytes({ $0.elementsEqual(Self.key) })
    else { return nil }
    rawValue = UInt64(littleEndian: value.unsafeLoadUnaligned(as: UInt64.self))
  }

  package static func < (a: SyncedPlace, b: SyncedPlace) -> Bool { a.rawValue < b.rawValue }

  /// Whether the frame lies before this place.
  func isBehind(_ frame: FramePointer) -> Bool {
    SyncedPlace(segment: frame.segment, offset: frame.offset) < self
  }

  /// Adds the place to the next write of a LevelDB database.
  func stage(in database: OpaquePointer) {
    stagePut(of: rawValue, under: Self.key, in: database)
    Self.key.withUnsafeBytes { clarder_stage_removal(database, clarder_slice($0)) }
  }
}
