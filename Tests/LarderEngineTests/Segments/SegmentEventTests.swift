import AcceptanceRows
import Larder
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

/// Events that a store with segments must survive; power losses are in `SegmentPowerTests`.
@Suite(.acceptance) struct SegmentEventTests {
  private static func options(_ disk: SimulatedDisk? = nil) -> LevelDBOptions {
    var options = SeparationTests.options(from: 1, segmentBytes: 8 << 10)
    options.collectsInBackground = false
    if let disk { options.files = SimulatedFiles(disk) }
    return options
  }

  private static func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

  private static func put(_ number: Int, _ mark: UInt8, in engine: LevelDBEngine) throws {
    try SeparationTests.put(key(number), [UInt8](repeating: mark, count: 1000), in: engine)
  }

  private static func expect(_ number: Int, _ mark: UInt8, in engine: LevelDBEngine) throws {
    try SeparationTests.expect(
      [UInt8](repeating: mark, count: 1000), under: key(number), in: engine)
  }

  @Test("A change on condition that the value is unchanged holds after its payload was moved.")
  func changedAfterMoving() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options())
    for number in 0..<14 { try Self.put(number, 1, in: engine) }
    let old = try #require(try engine.value(Self.key(0)))
    let since = try #require(sequence(of: old))
    for number in 1..<14 { try engine.remove("key \(number)") }
    try engine.collectSegments()
    #expect(engine.segmentTotals.copiedBytes > 0)
    var batch = WriteBatch()
    let key = Self.key(0)
    let requirement = batch.require(key.span.bytes, .unchanged(since: since, in: .test))
    batch.putSeparable(key, old, if: requirement)
    #expect(try engine.write(&batch, synced: false).failed.isEmpty)
    try engine.collectSegments()
    try Self.expect(0, 1, in: engine)
    try engine.close()
  }

  /// Replaces the head of a value and keeps its payload; returns the failed conditions.
  @discardableResult
  private static func restamp(
    _ number: Int, since: UInt64? = nil, in engine: LevelDBEngine
  ) throws -> Set<Int> {
    var value = try #require(try engine.value(key(number)))
    let since = try #require(since ?? sequence(of: value))
    value.replaceSubrange(0..<20, with: [UInt8](repeating: 77, count: 20))
    value.replaceSubrange(
      Stamp.test.offset..<Stamp.test.end, with: [UInt8](repeating: 0, count: 12))
    var batch = WriteBatch()
    let same = batch.require(key(number).span.bytes, .unchanged(since: since, in: .test))
    batch.putSeparable(key(number), value, if: same, keepsPayload: true)
    return try engine.write(&batch, synced: false).failed
  }

  @Test("A value that keeps its payload does not write it again, and reads back.")
  func keptPayload() throws {
    let directory = try TemporaryDirectory()
    var engine = try LevelDBEngine(at: directory.path, options: Self.options())
    for number in 0..<3 { try Self.put(number, UInt8(number), in: engine) }
    let before = engine.segmentTotals.appendedBytes
    #expect(try Self.restamp(1, in: engine).isEmpty)
    #expect(engine.segmentTotals.appendedBytes == before)
    for _ in 0..<2 {
      try Self.expect(1, 1, in: engine)
      #expect(try engine.value(Self.key(1))?.first == 77)
      try engine.close()
      engine = try LevelDBEngine(at: directory.path, options: Self.options())
    }
    // Its payload was written by another process, and is still the same.
    #expect(try Self.restamp(1, in: engine).isEmpty)
    #expect(engine.segmentTotals.appendedBytes == 0)
    // It is in LevelDB now, then in a segment.
    var whole = Self.options()
    whole.separation = .test(from: 5000)
    for options in [whole, Self.options()] {
      try engine.close()
      engine = try LevelDBEngine(at: directory.path, options: options)
      #expect(try Self.restamp(1, in: engine).isEmpty)
      try Self.expect(1, 1, in: engine)
    }
    #expect(engine.segmentTotals.appendedBytes > 1000)
    try engine.close()
  }

  @Test("A payload that was replaced is not kept.")
  func replacedPayload() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options())
    try Self.put(1, 1, in: engine)
    let old = try #require(try engine.value(Self.key(1)).flatMap(sequence))
    try Self.put(1, 2, in: engine)
    #expect(try Self.restamp(1, since: old, in: engine).count == 1)
    try Self.expect(1, 2, in: engine)
    try engine.close()
  }

  @Test("A payload that a value keeps while a collection moves it is not lost.")
  func keptWhileMoving() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    var engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<7 { try Self.put(number, 1, in: engine) }
    for number in 1..<7 { try engine.remove("key \(number)") }
    try engine.close()
    let restamp = Mutex<(@Sendable () -> Void)?>(nil)
    options.files = DirectFiles(watch: { call in
      // The collection has read the row, and is about to read its payload.
      guard case .openFile = call else { return }
      let run = restamp.withLock { restamp in
        defer { restamp = nil }
        return restamp
      }
      run?()
    })
    engine = try LevelDBEngine(at: directory.path, options: options)
    let reopened = engine
    let errors = Mutex<[String]>([])
    restamp.withLock { restamp in
      restamp = {
        do { try Self.restamp(0, in: reopened) } catch { errors.withLock { $0.append("\(error)") } }
      }
    }
    try engine.collectSegments()
    #expect(errors.withLock { $0 } == [] && restamp.withLock { $0 } == nil)
    #expect(try !SeparationTests.segments(of: directory).contains("00000001.segment"))
    try Self.expect(0, 1, in: engine)
    #expect(try engine.value(Self.key(0))?.first == 77)
    try engine.close()
  }

  @Test("A value whose segment is deleted between the reads of its row and its payload is read.")
  func deletedWhileReading() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    var engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<7 { try Self.put(number, 1, in: engine) }
    try engine.close()
    let replace = Mutex<(@Sendable () -> Void)?>(nil)
    let watch: DirectFiles.Watch = { call in
      guard case .openFile = call else { return }
      let run = replace.withLock { replace in
        defer { replace = nil }
        return replace
      }
      run?()
    }
    options.files = DirectFiles(watch: watch)
    engine = try LevelDBEngine(at: directory.path, options: options)
    let reopened = engine
    let errors = Mutex<[String]>([])
    replace.withLock { replace in
      replace = {
        do {
          for number in 0..<7 { try Self.put(number, 2, in: reopened) }
          try reopened.collectSegments()
        } catch {
          errors.withLock { $0.append("\(error)") }
        }
      }
    }
    try Self.expect(3, 2, in: engine)
    #expect(errors.withLock { $0 } == [] && replace.withLock { $0 } == nil)
    let left = try SeparationTests.segments(of: directory)
    #expect(!left.contains("00000001.segment"))
    try engine.close()
  }

  @Test("A segment that is begun while a collection lists the segments is not deleted.")
  func begunWhileListing() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    let lists = Mutex<[@Sendable () -> Void]>([])
    let isInside = Atomic<Bool>(false)
    let watch: DirectFiles.Watch = { call in
      // A segment that is begun lists the others, too.
      guard case .list = call, !isInside.load(ordering: .relaxed) else { return }
      let run = lists.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      isInside.store(true, ordering: .relaxed)
      run?()
      isInside.store(false, ordering: .relaxed)
    }
    options.files = DirectFiles(watch: watch)
    let engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<14 { try Self.put(number, 1, in: engine) }
    let errors = Mutex<[String]>([])
    let attempt = { @Sendable (body: () throws -> Void) in
      do { try body() } catch { errors.withLock { $0.append("\(error)") } }
    }
    lists.withLock { lists in
      lists = [
        {
          // A new segment, which no row names during the scan, ...
          attempt {
            for number in 0..<8 { try Self.put(number, 2, in: engine) }
            for number in 0..<14 { try engine.remove("key \(number)") }
          }
        },
        {
          // The collection lists the files to see whether a table has room. No thread can write
          // at that point.
        },
        {
          // ... and one row when it is over.
          attempt { try Self.put(20, 3, in: engine) }
        },
      ]
    }
    try engine.collectSegments()
    #expect(errors.withLock { $0 } == [] && lists.withLock { $0.isEmpty })
    try Self.expect(20, 3, in: engine)
    try engine.close()
  }

  @Test("Processes that each write little collect their segments, and merge small ones.")
  func shortSessions() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    options.segmentBytes = 64 << 10
    options.collectsInBackground = true
    for session in 0..<40 {
      let engine = try LevelDBEngine(at: directory.path, options: options)
      try Self.put(session % 10, UInt8(session), in: engine)
      engine.waitForBackgroundWork()
      try engine.close()
      #expect(try SeparationTests.segments(of: directory).count <= 10)
    }
    let engine = try LevelDBEngine(at: directory.path, options: options)
    for session in 30..<40 { try Self.expect(session % 10, UInt8(session), in: engine) }
    try engine.close()
  }

  @Test("Opening lists the directory three times: there may be thousands of segments.")
  func listingsOfOpening() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    try LevelDBEngine(at: directory.path, options: options).close()
    let lists = Atomic(0)
    options.files = DirectFiles(watch: { call in
      if call == .list { lists.add(1, ordering: .relaxed) }
    })
    for expected in [4, 3] {
      // A store without segments is looked through for those of a marker that does not say so.
      lists.store(0, ordering: .relaxed)
      let engine = try LevelDBEngine(at: directory.path, options: options)
      #expect(lists.load(ordering: .relaxed) == expected)
      try Self.put(0, 1, in: engine)
      try engine.close()
    }
  }

  @Test("A row whose condition failed leaves no payload.")
  func failedCondition() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options())
    try Self.put(0, 1, in: engine)
    func byteCount() throws -> Int {
      try SystemFiles().byteCount(of: directory.path("00000001.segment")) ?? 0
    }
    let before = try byteCount()
    var batch = WriteBatch()
    let requirement = batch.require(Self.key(0).span.bytes, .absent)
    batch.putSeparable(Self.key(0), stampedValue(2, tail: 1000), if: requirement)
    batch.putSeparable(Self.key(1), stampedValue(1, tail: 1))
    #expect(try engine.write(&batch, synced: false).failed == [requirement])
    #expect(try byteCount() == before + 24 + Self.key(1).count + 1)
    try Self.expect(0, 1, in: engine)
    try engine.close()
  }

  @Test("A segment that no row names, as a crash leaves one, is deleted by a collection.")
  func orphan() throws {
    let directory = try TemporaryDirectory()
    var engine = try LevelDBEngine(at: directory.path, options: Self.options())
    try Self.put(0, 1, in: engine)
    try engine.close()
    try SystemFiles().create(directory.path("00000007.segment"), with: [1, 2, 3])
    engine = try LevelDBEngine(at: directory.path, options: Self.options())
    try Self.put(1, 1, in: engine)
    #expect(try SeparationTests.segments(of: directory).last == "00000008.segment")
    try engine.collectSegments()
    #expect(
      try SeparationTests.segments(of: directory) == ["00000001.segment", "00000008.segment"])
    try Self.expect(0, 1, in: engine)
    try Self.expect(1, 1, in: engine)
    try engine.close()
  }

  @Test("On a full disk saves fail without effect, and removals and a collection make room again.")
  func fullDisk() throws {
    let disk = SimulatedDisk()
    var options = Self.options(disk)
    options.segmentBytes = 64 << 10
    options.writeBufferBytes = 64 << 10
    let engine = try LevelDBEngine(at: "/store", options: options)
    disk.setCapacity(4 << 20)
    var saved = 0
    var failure: StoreError?
    while failure == nil, saved < 10_000 {
      do throws(StoreError) {
        var batch = WriteBatch()
        batch.putSeparable(Self.key(saved), stampedValue(1, tail: 1000))
        try engine.write(&batch, synced: false)
        saved += 1
      } catch {
        failure = error
      }
    }
    #expect(failure == .diskFull)
    #expect(saved > 2000)
    #expect(try engine.value(Self.key(saved)) == nil)
    try Self.expect(saved - 1, 1, in: engine)
    for number in 0..<(saved - 10) { try engine.remove("key \(number)") }
    try engine.collectSegments()
    #expect(engine.segmentTotals.deletedBytes > 1 << 20)
    for number in 0..<500 { try Self.put(number, 2, in: engine) }
    try Self.expect(saved - 1, 1, in: engine)
    try Self.expect(499, 2, in: engine)
    try engine.close()
  }

  @Test("After removals, a save that finds the disk full begins a collection, and others succeed.")
  func fullDiskCollects() throws {
    let disk = SimulatedDisk()
    var options = Self.options(disk)
    options.segmentBytes = 64 << 10
    options.writeBufferBytes = 64 << 10
    options.collectsInBackground = true
    let engine = try LevelDBEngine(at: "/store", options: options)
    disk.setCapacity(4 << 20)
    let isSaved = { (number: Int) throws(StoreError) in
      var batch = WriteBatch()
      batch.putSeparable(Self.key(number), stampedValue(2, tail: 1000))
      do throws(StoreError) {
        try engine.write(&batch, synced: false)
        return true
      } catch .diskFull, .writesDisabled {
        return false
      }
    }
    var saved = 0
    while saved < 10_000, try isSaved(saved) { saved += 1 }
    engine.waitForBackgroundWork()
    let before = engine.segmentTotals.deletedBytes
    #expect(before < 1 << 20)
    for number in 0..<(saved - 10) { try engine.remove("key \(number)") }
    // The room of the rows alone holds some values; and a collection may meet a failed compaction.
    var tries = 0
    while engine.segmentTotals.deletedBytes - before < 1 << 20, tries < 10_000 {
      tries += 1
      if try !isSaved(tries % 500) { engine.waitForBackgroundWork() }
    }
    #expect(tries < 10_000)
    for number in 0..<500 { #expect(try isSaved(number)) }
    try Self.expect(saved - 1, 2, in: engine)
    try engine.close()
  }

  @Test("A collection that finds the disk full once, at any of its file calls, still frees room.")
  func collectionMeetsFullDisk() throws {
    var call = 0
    var wasReached = true
    while wasReached {
      call += 1
      let disk = SimulatedDisk()
      var options = Self.options(disk)
      options.syncsInBackground = false
      let engine = try LevelDBEngine(at: "/store", options: options)
      for number in 0..<30 { try Self.put(number, 1, in: engine) }
      for number in 0..<20 { try engine.remove("key \(number)") }
      disk.fail(atCall: disk.counts.mutating + call, .enospc, forever: false)
      do throws(StoreError) {
        try engine.collectSegments()
      } catch .io {
        // LevelDB does not say why it could not begin a log.
        try engine.collectSegments()
      }
      wasReached = disk.counts.failed > 0
      disk.heal()
      #expect(engine.segmentTotals.deletedBytes > 8 << 10, "call \(call)")
      try Self.put(0, 2, in: engine)
      for number in 20..<30 { try Self.expect(number, 1, in: engine) }
      try engine.close()
    }
    #expect(call > 10)
  }

  private static let faults: [SimulatedDisk.Fault] = [.eio, .enospc, .shortWrite, .failedSync]

  /// In the proof each call fails in each way, otherwise in one.
  @Test(
    "A failing file call loses nothing that was acknowledged.", arguments: faults, [false, true])
  func failingCalls(fault: SimulatedDisk.Fault, forever: Bool) throws {
    var whole = try SegmentFaultScript(options: Self.options())
    let calls = try whole.run(failing: nil, "without a fault")
    var failures = 0
    let way = try #require(Self.faults.firstIndex(of: fault)) + (forever ? 4 : 0)
    for number in 1..<calls where isProof || number % 8 == way {
      var script = try SegmentFaultScript(options: Self.options())
      _ = try script.run(
        failing: (number, fault, forever), "\(fault) at call \(number), forever: \(forever)")
      failures += script.failures
    }
    #expect(calls > 60 && failures > 2)
  }
}
