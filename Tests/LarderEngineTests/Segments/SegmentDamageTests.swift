import AcceptanceRows
import Foundation
import Larder
import LarderTestSupport
import Testing

/// Every damage to a segment costs the values that it touches, and no other value changes.
@Suite(.acceptance) struct SegmentDamageTests {
  private static let values = 6
  /// The number of values that a durable write has synced, if one did.
  private static let synced = 3
  private static let tailBytes = 1300
  /// Where the frames of a segment begin, and the size of each.
  private static let (headerBytes, frameBytes) = (16, 24 + 5 + tailBytes)
  private static let sealBytes = 24

  private static func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

  private static func tail(_ number: Int, mark: UInt8 = 0) -> [UInt8] {
    (0..<tailBytes).map { UInt8(truncatingIfNeeded: $0 * 7 + number * 31) ^ mark }
  }

  private static var options: LevelDBOptions {
    // Room for three frames.
    var options = SeparationTests.options(from: 1, segmentBytes: 4096)
    options.collectsInBackground = false
    options.syncsInBackground = false
    return options
  }

  /// Makes a store with two full segments.
  private static func make(in path: String, mark: UInt8 = 0) throws -> LevelDBEngine {
    let engine = try LevelDBEngine(at: path, options: options)
    for number in 0..<values {
      try SeparationTests.put(key(number), tail(number, mark: mark), in: engine)
    }
    return engine
  }

  /// The numbers of the intact values; all others are reported as damaged.
  private static func intactValues(
    in engine: LevelDBEngine, _ note: Comment, outOf numbers: Range<Int> = 0..<values
  ) throws -> [Int] {
    try numbers.filter { number in
      let value = try #require(try engine.value(key(number)), note)
      guard isIntact(value, key: key(number)) else { return false }
      #expect(Array(value[Stamp.test.end...]) == tail(number), note)
      return true
    }
  }

  /// A change of a segment's bytes, and the values of the segment that it may damage.
  private struct Damage {
    let name: String
    let bytes: [UInt8]
    let damaged: [Int]
  }

  /// The number, in its segment, of the frame with the byte at `offset`; nil for the header.
  private static func frame(at offset: Int) -> Int? {
    offset < headerBytes ? nil : (offset - headerBytes) / frameBytes
  }

  private static func range(ofFrame number: Int) -> Range<Int> {
    let start = headerBytes + number * frameBytes
    return start..<start + frameBytes
  }

  /// The offsets of all bytes but those of payloads, of which some are enough.
  private static func offsets(in segment: [UInt8]) -> [Int] {
    segment.indices.filter { offset in
      guard let frame = frame(at: offset) else { return true }
      let place = offset - range(ofFrame: frame).lowerBound
      return place < frameBytes - tailBytes + 2 || place % 500 == 0 || place == frameBytes - 1
    }
  }

  /// Every kind of damage, at each of ``offsets(in:)``.
  private static func damages(to segment: [UInt8], foreign: [UInt8]) -> [Damage] {
    var damages: [Damage] = []
    func add(_ name: String, damaged: [Int], _ change: (inout [UInt8]) -> Void) {
      var bytes = segment
      change(&bytes)
      guard bytes != segment else { return }
      damages.append(Damage(name: name, bytes: bytes, damaged: damaged))
    }
    for offset in offsets(in: segment) {
      // Behind the third frame is the seal.
      let touched = frame(at: offset).flatMap { $0 < 3 ? [$0] : nil } ?? []
      add("flip at \(offset)", damaged: touched) { $0[offset] ^= 1 << (offset % 8) }
      add("zero at \(offset)", damaged: touched) { $0[offset] = 0 }
      let behind = (0..<3).filter { range(ofFrame: $0).upperBound > offset }
      add("cut to \(offset)", damaged: behind) { $0.removeSubrange(offset...) }
      add("zeroes from \(offset)", damaged: behind) { bytes in
        bytes.replaceSubrange(offset..., with: repeatElement(0, count: bytes.count - offset))
      }
      add("insertion at \(offset)", damaged: behind) { $0.insert(0x5A, at: offset) }
      add("deletion at \(offset)", damaged: behind) { $0.remove(at: offset) }
    }
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
      add("exchange of \(one) and \(other)", damaged: [one, other]) { bytes in
        bytes.replaceSubrange(range(ofFrame: one), with: segment[range(ofFrame: other)])
        bytes.replaceSubrange(range(ofFrame: other), with: segment[range(ofFrame: one)])
      }
      add("\(one) over \(other)", damaged: [other]) { bytes in
        bytes.replaceSubrange(range(ofFrame: other), with: segment[range(ofFrame: one)])
      }
    }
    for number in 0..<3 {
      add("\(number) removed", damaged: Array(number..<3)) {
        $0.removeSubrange(range(ofFrame: number))
      }
      add("\(number) of another store", damaged: [number]) { bytes in
        bytes.replaceSubrange(range(ofFrame: number), with: foreign[range(ofFrame: number)])
      }
    }
    add("bytes behind the end", damaged: []) { $0 += [1, 2, 3] }
    add("another store's", damaged: [0, 1, 2]) { $0 = foreign }
    return damages
  }

  @Test("Any damage to a sealed segment costs the values that it touches.")
  func sealed() throws {
    let directory = try TemporaryDirectory()
    let other = try TemporaryDirectory()
    for (path, mark) in [(directory.path, UInt8(0)), (other.path, 0x80)] {
      let engine = try Self.make(in: path, mark: mark)
      try engine.compact(EngineRange())
      try engine.close()
    }
    let path = directory.path("00000001.segment")
    let segment = try SystemFiles().read(path, limit: nil)
    #expect(segment.count == Self.headerBytes + 3 * Self.frameBytes + Self.sealBytes)
    let foreign = try SystemFiles().read(other.path("00000001.segment"), limit: nil)
    let damages = Self.damages(to: segment, foreign: foreign)
    #expect(damages.count > 700)
    for damage in damages {
      try Data(damage.bytes).write(to: URL(filePath: path))
      let note: Comment = "\(damage.name)"
      let engine = try LevelDBEngine(at: directory.path, options: Self.options)
      #expect(engine.recovery == nil, note)
      let intact = try Self.intactValues(in: engine, note)
      // Deleting a byte that equals the next one damages less.
      let damaged = (0..<Self.values).filter { !intact.contains($0) }
      #expect(Set(damaged).isSubset(of: damage.damaged), note)
      let mayBeLess = damage.name.hasPrefix("deletion") || damage.name.hasPrefix("zeroes")
      #expect(mayBeLess || damaged == damage.damaged, note)
      try engine.close()
    }
    // The undamaged bytes are whole again.
    try Data(segment).write(to: URL(filePath: path))
    let engine = try LevelDBEngine(at: directory.path, options: Self.options)
    #expect(try Self.intactValues(in: engine, "restored") == Array(0..<Self.values))
    try engine.close()
  }

  @Test("After a kill, damage to a value that was not synced ends the logs before it.")
  func unsealed() throws {
    let directory = try TemporaryDirectory()
    let image = try TemporaryDirectory()
    // A larger segment than that of the options, so that it has all values and no seal.
    var options = Self.options
    options.segmentBytes = 64 << 10
    let engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<Self.values {
      try SeparationTests.put(
        Self.key(number), Self.tail(number), in: engine, synced: number == Self.synced - 1)
    }
    let segment = try SystemFiles().read(directory.path("00000001.segment"), limit: nil)
    #expect(segment.count == Self.headerBytes + Self.values * Self.frameBytes)
    for offset in Self.offsets(in: segment) {
      let copy = image.path("\(offset)")
      try FileManager.default.copyItem(atPath: directory.path, toPath: copy)
      var damaged = segment
      damaged[offset] ^= 0x20
      try Data(damaged).write(to: URL(filePath: "\(copy)/00000001.segment"))
      let reopened = try LevelDBEngine(at: copy, options: options)
      // Nothing reads the header of a segment.
      let frame = Self.frame(at: offset)
      let kept = frame.map { $0 < Self.synced ? Self.values : $0 } ?? Self.values
      let note: Comment = "offset \(offset)"
      let intact = try Self.intactValues(in: reopened, note, outOf: 0..<kept)
      #expect(intact == (0..<kept).filter { $0 != frame }, note)
      for number in kept..<Self.values {
        #expect(try reopened.value(Self.key(number)) == nil, note)
      }
      #expect((reopened.recovery == nil) == (kept == Self.values), note)
      #expect((reopened.recovery?.lostPayload == nil) == (kept == Self.values), note)
      // The store goes on.
      try SeparationTests.put(Self.key(0), Self.tail(5), in: reopened)
      try SeparationTests.expect(Self.tail(5), under: Self.key(0), in: reopened)
      try reopened.close()
      try FileManager.default.removeItem(atPath: copy)
    }
    try engine.close()
  }

  @Test("A file with the last possible number of a segment makes saves fail, and nothing else.")
  func lastNumber() throws {
    let directory = try TemporaryDirectory()
    var engine = try Self.make(in: directory.path)
    try engine.close()
    let last = directory.path("\(UInt32.max).segment")
    try SystemFiles().create(last, with: [])
    engine = try LevelDBEngine(at: directory.path, options: Self.options)
    #expect(try Self.intactValues(in: engine, "").count == Self.values)
    #expect(throws: StoreError.io("\(last) has the last possible number")) {
      try SeparationTests.put(Self.key(0), Self.tail(1), in: engine)
    }
    try engine.put("other", "value")
    #expect(try Self.intactValues(in: engine, "").count == Self.values)
    try engine.close()
  }
}
