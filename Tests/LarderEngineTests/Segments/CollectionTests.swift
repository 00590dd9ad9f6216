import Larder
import LarderTestSupport
import Synchronization
import Testing

/// A collection gives back the room of payloads that no row names, and loses none.
@Suite struct CollectionTests {
  private static func options() -> LevelDBOptions {
    var options = SeparationTests.options(from: 1, segmentBytes: 8 << 10)
    options.collectsInBackground = false
    return options
  }

  private static func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

  private static func tail(_ number: Int, _ round: Int) -> [UInt8] {
    withUnsafeBytes(of: (number, round)) { Array($0) }
      + Array(repeating: UInt8(number), count: 1000)
  }

  private static func put(_ number: Int, _ round: Int, in engine: LevelDBEngine) throws {
    try SeparationTests.put(key(number), tail(number, round), in: engine)
  }

  private static func expect(_ number: Int, _ round: Int?, in engine: LevelDBEngine) throws {
    try SeparationTests.expect(round.map { tail(number, $0) }, under: key(number), in: engine)
  }

  @Test("Segments whose payloads were all replaced or removed are deleted.")
  func dead() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options())
    // Seven payloads fill a segment.
    for number in 0..<42 { try Self.put(number, 0, in: engine) }
    let before = try SeparationTests.segments(of: directory).count
    #expect(before == 6)
    for number in 0..<20 { try Self.put(number, 1, in: engine) }
    for number in 20..<42 { try engine.remove("key \(number)") }
    try engine.collectSegments()
    let after = try SeparationTests.segments(of: directory).count
    // Those of the second round remain.
    #expect(after == 3)
    #expect(engine.segmentTotals.copiedBytes == 0)
    #expect(engine.segmentTotals.deletedBytes >= 6 * (7 << 10))
    for number in 0..<42 { try Self.expect(number, number < 20 ? 1 : nil, in: engine) }
    try engine.close()
  }

  @Test("The directory is synced after each deleted segment, so that no write waits for many.")
  func deletedOneByOne() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    let calls = Mutex<[DirectFiles.Call]>([])
    options.files = DirectFiles(watch: { call in calls.withLock { $0.append(call) } })
    let engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<42 { try Self.put(number, 0, in: engine) }
    for number in 0..<42 { try engine.remove("key \(number)") }
    calls.withLock { $0 = [] }
    try engine.collectSegments()
    let deletions = calls.withLock { calls in
      calls.drop { $0 != .remove }.filter { $0 == .remove || $0 == .syncDirectory }
    }
    #expect(deletions.count == 12)
    for (index, call) in deletions.enumerated() {
      #expect(call == (index % 2 == 0 ? .remove : .syncDirectory))
    }
    try engine.close()
  }

  @Test("Live payloads of segments that are half dead are moved, their rows otherwise unchanged.")
  func sparse() throws {
    let directory = try TemporaryDirectory()
    var engine = try LevelDBEngine(at: directory.path, options: Self.options())
    for number in 0..<40 { try Self.put(number, 0, in: engine) }
    var values: [[UInt8]?] = []
    for number in 0..<40 where number % 4 > 0 { try engine.remove("key \(number)") }
    for number in 0..<40 { values.append(try engine.value(Self.key(number))) }
    try engine.collectSegments()
    #expect(engine.segmentTotals.copiedBytes >= 8 * 1016)
    #expect(try SeparationTests.segments(of: directory).count <= 3)
    for number in 0..<40 { #expect(try engine.value(Self.key(number)) == values[number]) }
    // After a kill, without the caches of the process.
    try engine.close()
    engine = try LevelDBEngine(at: directory.path, options: Self.options())
    for number in 0..<40 { #expect(try engine.value(Self.key(number)) == values[number]) }
    try engine.close()
  }

  @Test("A cursor keeps the segments of its state until it is renewed or freed.")
  func cursors() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path, options: Self.options())
    for number in 0..<40 { try Self.put(number, 0, in: engine) }
    var cursor: (any EngineCursor)? = try engine.cursor(over: EngineRange(prefix: bytes("key")))
    #expect(try cursor?.next() == true)
    for number in 0..<40 { try Self.put(number, 1, in: engine) }
    let before = try SeparationTests.segments(of: directory).count
    try engine.collectSegments()
    #expect(try SeparationTests.segments(of: directory).count == before)
    var seen = 0
    while let cursor, try cursor.next() {
      seen += 1
      let entry = cursor.entry
      #expect(isIntact(entry.value, key: entry.key))
      // The state of the cursor's slice.
      let round = entry.value[(Stamp.test.end + 8)...].prefix(8).first
      #expect(round == 0)
    }
    #expect(seen == 39)
    cursor = nil
    try engine.collectSegments()
    #expect(try SeparationTests.segments(of: directory).count < before)
    for number in 0..<40 { try Self.expect(number, 1, in: engine) }
    try engine.close()
  }

  @Test("Segments that were dead when the process ended are deleted by a later one.")
  func laterProcess() throws {
    let directory = try TemporaryDirectory()
    var engine = try LevelDBEngine(at: directory.path, options: Self.options())
    for round in 0..<3 { for number in 0..<20 { try Self.put(number, round, in: engine) } }
    try engine.close()
    engine = try LevelDBEngine(at: directory.path, options: Self.options())
    try engine.collectSegments()
    // Two payloads were moved out of a segment with five dead ones.
    #expect(try SeparationTests.segments(of: directory).count == 4)
    for number in 0..<20 { try Self.expect(number, 2, in: engine) }
    try engine.close()
  }

  @Test("A damaged payload is left where it is, and its segment too.")
  func damaged() throws {
    let directory = try TemporaryDirectory()
    let options = Self.options()
    var engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<14 { try Self.put(number, 0, in: engine) }
    try engine.compact(EngineRange())
    try engine.close()
    let names = try SeparationTests.segments(of: directory)
    let path = "\(directory.path)/\(names[0])"
    var contents = try SystemFiles().read(path, limit: nil)
    contents[200] ^= 1
    try SystemFiles().replace(path, with: contents)
    engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 2..<14 { try engine.remove("key \(number)") }
    try engine.collectSegments()
    #expect(try SeparationTests.segments(of: directory).first == names[0])
    try Self.expect(1, 0, in: engine)
    let value = try #require(try engine.value(Self.key(0)))
    #expect(!isIntact(value, key: Self.key(0)))
    try engine.close()
  }

  @Test("Nothing is deleted while a row cannot be read.")
  func unreadableRows() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    options.blockBytes = 1 << 10
    options.compression = false
    var engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<40 { try Self.put(number, 0, in: engine) }
    try engine.compact(EngineRange())
    try engine.close()
    let tables = try SystemFiles().names(in: directory.path).filter { $0.hasSuffix(".ldb") }
    for name in tables {
      let path = "\(directory.path)/\(name)"
      var contents = try SystemFiles().read(path, limit: nil)
      // Not in the first block, which has the engine's own row.
      contents[1500] ^= 1
      try SystemFiles().replace(path, with: contents)
    }
    let names = try SeparationTests.segments(of: directory)
    engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 30..<40 { try Self.put(number, 1, in: engine) }
    #expect { try engine.collectSegments() } throws: { error in
      guard case StoreError.corrupt = error else { return false }
      return true
    }
    let left = try SeparationTests.segments(of: directory)
    #expect(left.starts(with: names))
    try engine.close()
  }

  @Test("Threads that write, read and scan while segments are collected see only intact values.")
  func threads() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    options.collectsInBackground = true
    options.writeBufferBytes = 64 << 10
    let engine = try LevelDBEngine(at: directory.path, options: options)
    let isDone = Atomic<Bool>(false)
    let faults = Mutex<[String]>([])
    onThreads(6) { thread in
      do {
        switch thread {
        case 0..<3:
          var random = SplitMix64(seed: UInt64(thread))
          var round = 0
          // On a busy machine the collections may come late.
          while round < 1500
            || round < 100_000 && engine.segmentTotals.deletedBytes <= 1 << 20
          {
            round += 1
            let number = 3 * Int.random(in: 0..<20, using: &random) + thread
            if round % 9 == 0 {
              try engine.remove("key \(number)")
            } else {
              try Self.put(number, round, in: engine)
              let value = try engine.value(Self.key(number))
              if value.map({ Array($0[Stamp.test.end...]) }) != Self.tail(number, round) {
                faults.withLock { $0.append("key \(number) in round \(round)") }
              }
            }
          }
          isDone.store(true, ordering: .relaxed)
        case 3:
          while !isDone.load(ordering: .relaxed) { try engine.collectSegments() }
        default:
          while !isDone.load(ordering: .relaxed) {
            for entry in try engine.entries() where !isIntact(entry.value, key: entry.key) {
              faults.withLock { $0.append("scanned \(String(decoding: entry.key, as: UTF8.self))") }
            }
          }
        }
      } catch {
        faults.withLock { $0.append("\(error)") }
        isDone.store(true, ordering: .relaxed)
      }
    }
    #expect(faults.withLock { $0 } == [])
    #expect(engine.segmentTotals.deletedBytes > 1 << 20)
    #expect(try SeparationTests.segments(of: directory).count < 100)
    try engine.close()
  }

  @Test("Releasing an engine, or closing it, ends a collection under way.")
  func closing() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    options.collectsInBackground = true
    for round in 0..<20 {
      let engine = try LevelDBEngine(at: directory.path, options: options)
      for number in 0..<30 { try Self.put(number, round, in: engine) }
      if round % 2 == 0 { try engine.close() } else { engine.endBackgroundWork() }
    }
    let engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<30 { try Self.expect(number, 19, in: engine) }
    try engine.close()
  }
}
