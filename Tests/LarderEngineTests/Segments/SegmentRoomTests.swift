import Foundation
import Larder
import LarderTestSupport
import SimulatedDisk
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Segments get room in advance, and give back what they do not use.
@Suite struct SegmentRoomTests {
  private static let segmentBytes = 8 << 20

  /// The bytes of a file behind its end that are allocated on the device; 0 if it is missing.
  private static func spareBytes(of path: String) -> Int {
    var status = stat()
    guard stat(path, &status) == 0 else { return 0 }
    return Int(status.st_blocks) * 512 - Int(status.st_size)
  }

  private static func fill(_ engine: LevelDBEngine, _ count: Int) throws {
    for number in 0..<count {
      let tail = [UInt8](repeating: 7, count: 10_000)
      try SeparationTests.put(bytes("key \(number)"), tail, in: engine)
    }
  }

  @Test("The seal gives back the room that a segment does not use.")
  func sealed() throws {
    let directory = try TemporaryDirectory()
    let options = SeparationTests.options(from: 1, segmentBytes: Self.segmentBytes)
    let engine = try LevelDBEngine(at: directory.path, options: options)
    try Self.fill(engine, 5)
    let path = directory.path("00000001.segment")
    #expect(Self.spareBytes(of: path) > Self.segmentBytes / 16)
    try engine.close()
    #expect(try SystemFiles().byteCount(of: path) ?? 0 > 50_000)
    #expect(Self.spareBytes(of: path) < 16 << 10)
  }

  @Test("The opening after a kill gives back the room, and one that only reads does not.")
  func afterKill() throws {
    let directory = try TemporaryDirectory()
    let (store, killed) = (directory.path("store"), directory.path("killed"))
    let options = SeparationTests.options(from: 1, segmentBytes: Self.segmentBytes)
    let engine = try LevelDBEngine(at: store, options: options)
    try Self.fill(engine, 5)
    let segment = "00000001.segment"
    let size = try SystemFiles().byteCount(of: "\(store)/\(segment)")

    let reader = try LevelDBEngine.readOnly(at: store, options: options)
    #expect(try reader.entries().count == 5)
    try reader.close()
    #expect(Self.spareBytes(of: "\(store)/\(segment)") > Self.segmentBytes / 16)

    // As a kill leaves it, with the same file.
    try FileManager.default.copyItem(atPath: store, toPath: killed)
    try SystemFiles().remove("\(killed)/\(segment)")
    #expect(try SystemFiles().link("\(store)/\(segment)", as: "\(killed)/\(segment)") == .made)
    let next = try LevelDBEngine(at: killed, options: options)
    #expect(Self.spareBytes(of: "\(killed)/\(segment)") < 16 << 10)
    #expect(try SystemFiles().byteCount(of: "\(killed)/\(segment)") == size)
    let tail = [UInt8](repeating: 7, count: 10_000)
    for number in 0..<5 {
      try SeparationTests.expect(tail, under: bytes("key \(number)"), in: next)
    }
    try next.close()
    try engine.close()
  }

  @Test("Saves succeed where room cannot be allocated in advance.")
  func refused() throws {
    let disk = SimulatedDisk()
    var options = SeparationTests.options(from: 1, segmentBytes: 64 << 10)
    options.files = SimulatedFiles(disk, refusesAllocation: true)
    let engine = try LevelDBEngine(at: "/store", options: options)
    try Self.fill(engine, 20)
    #expect(try engine.entries().count == 20)
    try engine.close()
  }
}
