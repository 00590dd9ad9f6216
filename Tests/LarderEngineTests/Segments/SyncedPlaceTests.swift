import AcceptanceRows
import Foundation
import LarderTestSupport
import SimulatedDisk
import Testing

@testable import Larder

/// The logs say how far the segments are on the device, where recovery needs to know.
@Suite(.acceptance) struct SyncedPlaceTests {
  private static func options(segmentBytes: Int = 64 << 10) -> LevelDBOptions {
    var options = SeparationTests.options(from: 100, segmentBytes: segmentBytes)
    options.collectsInBackground = false
    options.syncsInBackground = false
    return options
  }

  private static func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

  private static func put(
    _ number: Int, in engine: LevelDBEngine, synced: Bool = false
  ) throws {
    try SeparationTests.put(
      key(number), [UInt8](repeating: UInt8(number), count: 1000), in: engine, synced: synced)
  }

  private static func putSmall(in engine: LevelDBEngine, synced: Bool = false) throws {
    var batch = WriteBatch()
    batch.put("other", "value")
    try engine.write(&batch, synced: synced)
  }

  /// Replaces the head of a value and keeps its payload.
  private static func restamp(_ number: Int, in engine: LevelDBEngine) throws {
    var value = try #require(try engine.value(key(number)))
    let since = try #require(sequence(of: value))
    value.replaceSubrange(0..<Stamp.test.end, with: [UInt8](repeating: 0, count: Stamp.test.end))
    var batch = WriteBatch()
    let same = batch.require(key(number).span.bytes, .unchanged(since: since, in: .test))
    batch.putSeparable(key(number), value, if: same, keepsPayload: true)
    #expect(try engine.write(&batch, synced: false).failed.isEmpty)
  }

  /// The places in a store's last log.
  private static func places(in path: String) throws -> [SyncedPlace] {
    let log = try #require(try Damage.files(in: path, endingIn: ".log").last)
    var scan = LogScan(try SystemFiles().read(log, limit: nil), of: .batches(minimumSequence: 0))
    var places: [SyncedPlace] = []
    while let record = scan.next() {
      scan.withBytes(of: record) { batch in
        LogBatch.forEachPut(in: batch) { key, value in
          if let place = SyncedPlace(value, under: key) { places.append(place) }
        }
      }
    }
    return places
  }

  @Test("Only durable writes behind rows that name payloads write a place, which no reader sees.")
  func durableWrites() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options())
    try Self.putSmall(in: engine)
    #expect(try Self.places(in: directory.path).isEmpty)
    let frameBytes = 24 + Self.key(1).count + 1000
    // A step, and the number of frames that are synced after it; nil without another place.
    let steps: [(step: () throws -> Void, frames: Int?)] = [
      ({ try Self.put(1, in: engine, synced: true) }, 1),
      ({ try Self.putSmall(in: engine, synced: true) }, nil),
      ({ try engine.flush() }, nil),
      ({ try Self.put(2, in: engine) }, nil),
      ({ try Self.putSmall(in: engine) }, nil),
      ({ try Self.putSmall(in: engine, synced: true) }, 2),
      ({ try Self.put(3, in: engine) }, nil),
      ({ try engine.flush() }, 3),
      ({ try Self.restamp(1, in: engine) }, nil),
      ({ try engine.flush() }, 3),
      ({ try engine.remove("key 1") }, nil),
      ({ try engine.flush() }, nil),
      ({ try Self.put(4, in: engine) }, nil),
      ({ try engine.close() }, 4),
    ]
    var expected: [SyncedPlace] = []
    for (number, (step, frames)) in steps.enumerated() {
      try step()
      if let frames { expected.append(SyncedPlace(segment: 1, offset: 16 + frames * frameBytes)) }
      #expect(try Self.places(in: directory.path) == expected, "step \(number)")
    }
    #expect(SyncedPlace.rowBytes < 30)
    // Another opening knows that all of them are on the device.
    let again = try LevelDBEngine(at: directory.path, options: Self.options())
    #expect(try again.value(SyncedPlace.key) == nil)
    #expect(try again.entries().map(\.key) == (2...4).map(Self.key) + [bytes("other")])
    try Self.putSmall(in: again)
    #expect(try Self.places(in: directory.path).isEmpty)
    try Self.restamp(2, in: again)
    #expect(try Self.places(in: directory.path) == [SyncedPlace(endOf: 1)])
    try again.close()
  }

  @Test("The next write after a sync in the background, or a seal, writes a place.")
  func sealed() throws {
    let directory = try TemporaryDirectory()
    // Room for three frames; each is a quarter of a segment.
    let engine = try LevelDBEngine(at: directory.path, options: Self.options(segmentBytes: 4 << 10))
    try Self.putSmall(in: engine)
    for number in 1...4 { try Self.put(number, in: engine) }
    let places = try Self.places(in: directory.path)
    #expect(places.count == 4 && places == places.sorted())
    #expect(places.last.map { $0 > SyncedPlace(endOf: 1) } == true)
    try engine.close()
  }

  @Test("A durable write notes payloads that a sync in the background had not reached.")
  func behindBackgroundSync() throws {
    let directory = try TemporaryDirectory()
    let (path, copy) = (directory.path("store"), directory.path("killed"))
    // The fourth frame of a segment begins a sync; the batch has a fifth one.
    let engine = try LevelDBEngine(at: path, options: Self.options(segmentBytes: 16 << 10))
    try Self.putSmall(in: engine)
    var batch = WriteBatch()
    for number in 1...5 {
      let payload = [UInt8](repeating: UInt8(number), count: 1000)
      batch.putSeparable(Self.key(number), stampedValue(1, tail: 0) + payload)
    }
    try engine.write(&batch, synced: false)
    #expect(try Self.places(in: path).count == 1)
    try Self.putSmall(in: engine, synced: true)
    let end = 16 + 5 * (24 + Self.key(1).count + 1000)
    #expect(try Self.places(in: path).last == SyncedPlace(segment: 1, offset: end))
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    try engine.close()
    // The last byte of the fifth payload.
    try Damage.flipByte(at: end - 1, of: "\(copy)/00000001.segment")
    let opened = try LevelDBEngine(at: copy, options: Self.options())
    #expect(opened.recovery == nil)
    #expect(try opened.value("other") == "value")
    try opened.close()
  }

  @Test("A payload in an older segment or log, if damaged, cuts nothing before a durable write.")
  func olderPayload() throws {
    let directory = try TemporaryDirectory()
    let (path, copy) = (directory.path("store"), directory.path("killed"))
    let engine = try LevelDBEngine(at: path, options: Self.options())
    try Self.put(1, in: engine, synced: true)
    // Begins another log, in which is no place.
    try engine.compact(EngineRange())
    try Self.restamp(1, in: engine)
    #expect(try Self.places(in: path).isEmpty)
    try Self.putSmall(in: engine, synced: true)
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    try engine.close()
    try Damage.flipByte(at: 500, of: "\(copy)/00000001.segment")
    let opened = try LevelDBEngine(at: copy, options: Self.options())
    #expect(opened.recovery == nil)
    #expect(try opened.value("other") == "value")
    let value = try #require(try opened.value(Self.key(1)))
    #expect(!isIntact(value, key: Self.key(1)))
    try opened.close()
  }

  @Test("While a store is open, no segment gets the number of one that was there.")
  func numbers() throws {
    let directory = try TemporaryDirectory()
    var engine = try LevelDBEngine(at: directory.path, options: Self.options())
    try Self.put(1, in: engine)
    try engine.close()
    engine = try LevelDBEngine(at: directory.path, options: Self.options())
    try engine.remove("key 1")
    try engine.collectSegments()
    #expect(try SeparationTests.segments(of: directory) == [])
    try Self.put(2, in: engine)
    #expect(try SeparationTests.segments(of: directory) == ["00000002.segment"])
    try engine.close()
  }

  @Test("Closing a store on a full disk writes nothing to its log.")
  func fullDisk() throws {
    let disk = SimulatedDisk()
    var options = Self.options()
    options.files = SimulatedFiles(disk)
    let engine = try LevelDBEngine(at: "/store", options: options)
    try Self.putSmall(in: engine)
    try Self.put(1, in: engine)
    let log = try #require(disk.names.last { $0.hasSuffix(".log") })
    let before = disk.bytes(of: log)
    disk.setCapacity(1)
    try engine.close()
    #expect(disk.bytes(of: log) == before)
  }
}
