import AcceptanceRows
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// A collection in the background begins by itself when enough payloads have died.
@Suite(.acceptance, .timeLimit(.minutes(5))) struct CollectionDueTests {
  private static func options(segmentBytes: Int = 8 << 10) -> LevelDBOptions {
    SeparationTests.options(from: 1, segmentBytes: segmentBytes)
  }

  private static func put(_ number: Int, _ round: Int = 0, in engine: LevelDBEngine) throws {
    let tail = withUnsafeBytes(of: (number, round)) { Array($0) } + Array(repeating: 7, count: 1000)
    try SeparationTests.put(bytes("key \(number)"), tail, in: engine)
  }

  /// Makes an engine with 42 values in six segments, before any collection is due.
  private static func filledEngine(
    in directory: borrowing TemporaryDirectory, _ files: any StoreFiles = SystemFiles()
  ) throws -> LevelDBEngine {
    var options = options()
    options.files = files
    let engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<42 { try put(number, in: engine) }
    engine.waitForBackgroundWork()
    return engine
  }

  private static func segments(_ directory: borrowing TemporaryDirectory) throws -> Int {
    try SeparationTests.segments(of: directory).count
  }

  private static func byteCount(_ directory: borrowing TemporaryDirectory) throws -> Int {
    try SeparationTests.segments(of: directory).reduce(0) {
      $0 + (try SystemFiles().byteCount(of: directory.path($1)) ?? 0)
    }
  }

  /// Holds the collection that is the first to delete a segment.
  private final class Hold: Sendable {
    private let isFirst = Atomic(false)
    private let isHeld = Flag()
    private let isOver = Flag()

    func willRemove() {
      guard isFirst.exchange(false, ordering: .relaxed) else { return }
      isHeld.raise()
      isOver.wait()
    }

    /// Holds the next deletion; before, an opening and the first segment delete files, too.
    func begin() { isFirst.store(true, ordering: .relaxed) }
    func waitUntilHeld() { isHeld.wait() }
    func end() { isOver.raise() }
  }

  @Test(
    "What becomes due during a collection is collected when it ends.", arguments: [false, true])
  func duringCollection(isAsked: Bool) throws {
    let directory = try TemporaryDirectory()
    let hold = Hold()
    let engine = try Self.filledEngine(
      in: directory, DirectFiles(watch: { if $0 == .remove { hold.willRemove() } }))
    hold.begin()
    for round in 1..<3 { for number in 0..<42 { try Self.put(number, round, in: engine) } }
    hold.waitUntilHeld()
    for number in 0..<42 { try engine.remove("key \(number)") }
    // As a clear and a sweep do.
    if isAsked { engine.collectSegmentsSoon() }
    hold.end()
    engine.waitForBackgroundWork()
    #expect(try Self.segments(directory) <= 1)
    try engine.close()
  }

  @Test("Removals make a collection due, whether or not a condition has read what they remove.")
  func removals() throws {
    for isConditional in [false, true] {
      let directory = try TemporaryDirectory()
      let engine = try Self.filledEngine(in: directory)
      #expect(try Self.segments(directory) == 6)
      for number in 0..<41 {
        let key = bytes("key \(number)")
        var batch = WriteBatch()
        batch.remove(
          key.span.bytes, if: isConditional ? batch.require(key.span.bytes, .present) : nil)
        try engine.write(&batch, synced: false)
      }
      engine.waitForBackgroundWork()
      // The last removals are not worth a collection.
      #expect(try Self.segments(directory) <= 2)
      #expect(try engine.value(bytes("key 41")) != nil)
      try engine.close()
    }
  }

  @Test(
    "A batch that failed makes no collection due by what it would have removed.",
    arguments: [false, true])
  func failedRemovals(isConditional: Bool) throws {
    let directory = try TemporaryDirectory()
    let files = DirectFiles()
    let engine = try Self.filledEngine(in: directory, files)
    // From here on, more than one payload must die before another collection is due.
    engine.collectSegmentsSoon()
    engine.waitForBackgroundWork()
    let live = engine.segmentTotals.liveBytes
    try engine.remove("key 0")
    files.failsWrites.store(true, ordering: .relaxed)
    let (key, other) = (bytes("key 1"), bytes("key other"))
    for _ in 0..<40 {
      var batch = WriteBatch()
      batch.remove(
        key.span.bytes, if: isConditional ? batch.require(key.span.bytes, .present) : nil)
      batch.putSeparable(other, stampedValue(1, tail: 1000))
      do throws(StoreError) {
        try engine.write(&batch, synced: false)
        Issue.record("a payload was appended although that fails")
      } catch {
        // As it should.
      }
    }
    files.failsWrites.store(false, ordering: .relaxed)
    try Self.put(42, in: engine)
    engine.waitForBackgroundWork()
    #expect(live > 0 && engine.segmentTotals.liveBytes == live)
    #expect(try engine.value(key) != nil && engine.value(other) == nil)
    try engine.close()
  }

  @Test("With many segments, the first write after an opening collects, even if it is small.")
  func opening() throws {
    let directory = try TemporaryDirectory()
    var options = Self.options()
    options.collectsInBackground = false
    var engine = try LevelDBEngine(at: directory.path, options: options)
    for number in 0..<70 { try Self.put(number, in: engine) }
    for number in 0..<70 { try engine.remove("key \(number)") }
    try engine.close()
    #expect(try Self.segments(directory) == 10)
    engine = try LevelDBEngine(at: directory.path, options: Self.options())
    var batch = WriteBatch()
    batch.put(bytes("z").span.bytes, bytes("small").span.bytes)
    try engine.write(&batch, synced: false)
    engine.waitForBackgroundWork()
    #expect(try Self.segments(directory) == 0)
    try engine.close()
  }

  @Test("Segments that only a cursor has kept are deleted when it ends.")
  func cursor() throws {
    let directory = try TemporaryDirectory()
    let engine = try Self.filledEngine(in: directory)
    var cursor: (any EngineCursor)? = try engine.cursor(over: EngineRange())
    #expect(try cursor?.next() == true)
    for number in 0..<42 { try engine.remove("key \(number)") }
    engine.waitForBackgroundWork()
    #expect(try Self.segments(directory) >= 5)
    // Another cursor that ends changes nothing.
    _ = try engine.entries()
    engine.waitForBackgroundWork()
    #expect(try Self.segments(directory) >= 5)
    cursor = nil
    engine.waitForBackgroundWork()
    #expect(try Self.segments(directory) <= 2)
    try engine.close()
  }

  @Test("Segments that a cursor has kept are deleted when it ends during a collection, too.")
  func cursorDuringCollection() throws {
    let directory = try TemporaryDirectory()
    let hold = Hold()
    let engine = try Self.filledEngine(
      in: directory, DirectFiles(watch: { if $0 == .remove { hold.willRemove() } }))
    var first: (any EngineCursor)? = try engine.cursor(over: EngineRange())
    #expect(try first?.next() == true)
    for number in 0..<21 { try engine.remove("key \(number)") }
    engine.waitForBackgroundWork()
    // It keeps only the segments that die from now on.
    var second: (any EngineCursor)? = try engine.cursor(over: EngineRange())
    #expect(try second?.next() == true)
    for number in 21..<42 { try engine.remove("key \(number)") }
    engine.waitForBackgroundWork()
    hold.begin()
    first = nil
    hold.waitUntilHeld()
    second = nil
    hold.end()
    engine.waitForBackgroundWork()
    #expect(try Self.segments(directory) <= 2)
    try engine.close()
  }

  @Test("A few values that are saved again and again take a segment and twice their size at most.")
  func turnover() throws {
    let directory = try TemporaryDirectory()
    let segmentBytes = 32 << 10
    let engine = try LevelDBEngine(
      at: directory.path, options: Self.options(segmentBytes: segmentBytes))
    let live = 8
    var most = 0
    for round in 0..<100 {
      for number in 0..<live {
        try Self.put(number, round, in: engine)
        // So that the bound does not depend on the speed of the thread.
        engine.waitForBackgroundWork()
        if round.isMultiple(of: 4) { most = max(most, try Self.byteCount(directory)) }
      }
    }
    #expect(most <= 2 * live * 1100 + segmentBytes, "\(most) bytes")
    #expect(engine.segmentTotals.deletedBytes > 500_000)
    try engine.close()
  }
}
