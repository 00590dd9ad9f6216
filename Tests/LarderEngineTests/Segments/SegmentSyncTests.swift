import Foundation
@testable import Larder
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

/// The thread that syncs segments while the leader appends to them, with a slow device.
@Suite struct SegmentSyncTests {
  /// A device on which one sync of a segment is slow.
  private final class SlowDevice: Sendable {
    private let next = Mutex<(@Sendable () -> Void)?>(nil)

    /// Makes the next sync call `body` first.
    func delayNextSync(_ body: @escaping @Sendable () -> Void) { next.withLock { $0 = body } }

    var files: DirectFiles {
      DirectFiles(watch: { call in
        guard case .syncFile = call else { return }
        let body = self.next.withLock { next in
          defer { next = nil }
          return next
        }
        body?()
      })
    }
  }

  private static let segmentBytes = 64 << 10

  private static func options() -> LevelDBOptions {
    var options = SeparationTests.options(from: 1, segmentBytes: segmentBytes)
    options.collectsInBackground = false
    return options
  }

  private static func open(
    in directory: borrowing TemporaryDirectory, on device: SlowDevice
  ) throws -> LevelDBEngine {
    var options = options()
    options.files = device.files
    let engine = try LevelDBEngine(at: directory.path, options: options)
    // The first write of a store is durable.
    try SeparationTests.put(bytes("key first"), [1], in: engine)
    return engine
  }

  /// Fills about this many segments, with 64 payloads each.
  private static func fill(_ count: Int, of engine: LevelDBEngine) throws {
    try put(0..<count * 64, in: engine)
  }

  private static func put(_ numbers: Range<Int>, in engine: LevelDBEngine) throws {
    let payload = [UInt8](repeating: 1, count: 1000)
    for number in numbers {
      try SeparationTests.put(bytes("key \(number)"), payload, in: engine)
    }
  }

  @Test("Saves do not wait while the device is busy with a full segment.")
  func writesDuringSync() throws {
    let directory = try TemporaryDirectory()
    let device = SlowDevice()
    let engine = try Self.open(in: directory, on: device)
    let release = Flag()
    device.delayNextSync { release.wait() }
    try Self.fill(2, of: engine)
    #expect(try SeparationTests.segments(of: directory).count == 3)
    release.raise()
    try engine.close()
  }

  @Test("A durable write waits until the frames of full segments are on the device.")
  func durableWrite() throws {
    let directory = try TemporaryDirectory()
    let device = SlowDevice()
    let engine = try Self.open(in: directory, on: device)
    let (isWritten, isSynced) = (Flag(), Flag())
    device.delayNextSync {
      for _ in 0..<100_000 where !isWritten.isRaised { sched_yield() }
      isSynced.raise()
    }
    try Self.fill(2, of: engine)
    try SeparationTests.put(bytes("key last"), [1], in: engine, synced: true)
    #expect(isSynced.isRaised)
    isWritten.raise()
    try engine.close()
  }

  @Test("Saves wait while two full segments are not on the device.")
  func mostEnded() throws {
    let directory = try TemporaryDirectory()
    let (device, path) = (SlowDevice(), directory.path)
    let engine = try Self.open(in: directory, on: device)
    let most = Mutex(0)
    @Sendable func look() -> Int {
      let names = (try? SystemFiles().names(in: path)) ?? []
      let count = names.count { $0.hasSuffix(".segment") }
      return most.withLock { most in
        most = max(most, count)
        return most
      }
    }
    device.delayNextSync {
      let limit = TimeLimit { fatalError("saves wait for the first full segment") }
      while look() < 3 {}
      limit.lift()
      for _ in 0..<3000 where look() == 3 {}
    }
    try Self.fill(8, of: engine)
    try engine.close()
    #expect(most.withLock { $0 } == 3)
  }

  @Test("A sync that fails in the background is an error of a later write, and loses nothing.")
  func failure() throws {
    let disk = SimulatedDisk()
    var options = Self.options()
    options.files = SimulatedFiles(disk)
    var engine = try LevelDBEngine(at: "/store", options: options)
    try SeparationTests.put(bytes("key durable"), [7], in: engine, synced: true)
    // The first quarter of the segment; the system reports the failure once.
    disk.fail(atCall: disk.counts.syncs + 1, .failedSync, forever: false)
    try Self.fill(1, of: engine)
    #expect(throws: StoreError.self) {
      try SeparationTests.put(bytes("key last"), [1], in: engine, synced: true)
    }
    disk.heal()
    try SeparationTests.put(bytes("key last"), [2], in: engine, synced: true)
    for round in 0..<2 {
      try SeparationTests.expect([7], under: bytes("key durable"), in: engine)
      try SeparationTests.expect([2], under: bytes("key last"), in: engine)
      try SeparationTests.expect(
        [UInt8](repeating: 1, count: 1000), under: bytes("key 63"), in: engine)
      try engine.close()
      if round == 0 { engine = try LevelDBEngine(at: "/store", options: options) }
    }
  }

  @Test("A sync of names that fails after a deletion is an error of the next durable write.")
  func failureAfterDeletion() throws {
    let disk = SimulatedDisk()
    var options = Self.options()
    options.files = SimulatedFiles(disk)
    // No other sync meets the failure.
    options.syncsInBackground = false
    let engine = try LevelDBEngine(at: "/store", options: options)
    try Self.fill(1, of: engine)
    try Self.fill(2, of: engine)
    // The cursor keeps the first segment, whose rows are durable after the collection.
    var cursor: (any EngineCursor)? = try engine.cursor(over: EngineRange(prefix: bytes("key")))
    #expect(try cursor?.next() == true)
    try Self.fill(3, of: engine)
    try engine.collectSegments()
    // The name of another segment is not durable when the first one is deleted.
    let segments = try options.files.names(in: "/store")
    var number = 1000
    while try options.files.names(in: "/store").count == segments.count {
      try Self.put(number..<number + 1, in: engine)
      number += 1
    }
    cursor = nil
    let deleted = engine.segmentTotals.deletedBytes
    disk.fail(atCall: disk.counts.syncs + 1, .failedSync)
    #expect(throws: StoreError.self) { try engine.collectSegments() }
    #expect(engine.segmentTotals.deletedBytes > deleted)
    disk.heal()
    #expect(throws: StoreError.self) {
      try SeparationTests.put(bytes("key last"), [1], in: engine, synced: true)
    }
    try SeparationTests.put(bytes("key last"), [2], in: engine, synced: true)
    try SeparationTests.expect([2], under: bytes("key last"), in: engine)
    try engine.collectSegments()
    try engine.close()
  }

  @Test("After a failed sync, which the system reports once, segments are written again.")
  func writtenAgain() throws {
    let directory = try TemporaryDirectory()
    let writes = Mutex<[Range<Int>]>([])
    let files = DirectFiles(watch: { call in
      if case .write(let range) = call { writes.withLock { $0.append(range) } }
    })
    var options = Self.options()
    options.syncsInBackground = false
    options.files = files
    let engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<5 {
      try SeparationTests.put(bytes("key \(number)"), [1, 2, 3], in: engine)
    }
    let first = directory.path("00000001.segment")
    let size = try SystemFiles().byteCount(of: first) ?? 0
    let before = try SystemFiles().read(first, limit: nil)
    files.failsNextSync.store(true, ordering: .relaxed)
    #expect(throws: StoreError.self) {
      try SeparationTests.put(bytes("key last"), [1], in: engine, synced: true)
    }
    writes.withLock { $0 = [] }
    try SeparationTests.put(bytes("key last"), [2], in: engine, synced: true)
    let again = writes.withLock { $0 }
    #expect(again.contains { $0.lowerBound == 0 && $0.upperBound >= size })
    #expect(try SystemFiles().read(first, limit: size) == before)
    for number in 0..<5 {
      try SeparationTests.expect([1, 2, 3], under: bytes("key \(number)"), in: engine)
    }
    try engine.close()
  }

  @Test("After a failed sync, payloads are appended to another segment.")
  func failedDurableWrite() throws {
    let disk = SimulatedDisk()
    var options = Self.options()
    options.files = SimulatedFiles(disk)
    let engine = try LevelDBEngine(at: "/store", options: options)
    try SeparationTests.put(bytes("key 1"), [1], in: engine, synced: true)
    disk.fail(atCall: disk.counts.syncs + 1, .failedSync)
    #expect(throws: StoreError.self) {
      try SeparationTests.put(bytes("key 2"), [2], in: engine, synced: true)
    }
    try SeparationTests.put(bytes("key 3"), [3], in: engine)
    #expect(try options.files.names(in: "/store").contains("00000002.segment"))
    try SeparationTests.expect([1], under: bytes("key 1"), in: engine)
    try SeparationTests.expect([3], under: bytes("key 3"), in: engine)
    try engine.close()
  }

  @Test("A full segment is sealed in the background, once it is on the device.")
  func seal() throws {
    let directory = try TemporaryDirectory()
    let device = SlowDevice()
    let engine = try Self.open(in: directory, on: device)
    // All but the end of the segment is synced.
    try Self.put(0..<56, in: engine)
    try SeparationTests.put(bytes("key last"), [1], in: engine, synced: true)
    let (begun, release) = (Flag(), Flag())
    device.delayNextSync {
      begun.raise()
      release.wait()
    }
    try Self.put(56..<70, in: engine)
    begun.wait()
    let first = directory.path("00000001.segment")
    #expect(try !SegmentHeader.isSealed(first, SystemFiles()))
    release.raise()
    try SeparationTests.put(bytes("key last"), [1], in: engine, synced: true)
    #expect(try SegmentHeader.isSealed(first, SystemFiles()))
    try engine.close()
  }
}
