import Foundation
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Damaged files are reported, and never taken for data or for absence.
@Suite struct DamageTests {
  private static let keys = (10_000..<14_000).map { "\($0)" }

  /// A store with its entries in tables, and the path of one of those.
  private func withDamagedStore(_ body: (_ path: String) throws -> Void) throws {
    let directory = try TemporaryDirectory()
    var random = SplitMix64(seed: 9)
    let engine = try LevelDBEngine(at: directory.path)
    for key in Self.keys { try engine.put(bytes(key), random.bytes(100)) }
    try engine.compact(EngineRange())
    try engine.close()
    let table = try #require(try Damage.files(in: directory.path, endingIn: ".ldb").first)
    try Damage.flipByte(at: 20_000, of: table)
    try body(directory.path)
  }

  /// The keys that cannot be read, each for its being corrupt.
  private func corruptKeys(in engine: LevelDBEngine) throws -> Set<String> {
    var corrupt: Set<String> = []
    for key in Self.keys {
      do throws(EngineError) {
        let value: [UInt8]? = try engine.value(bytes(key))
        #expect(value?.count == 100, "\(key) seems absent")
      } catch {
        guard case .corrupt = error else { throw error }
        corrupt.insert(key)
      }
    }
    return corrupt
  }

  @Test func rule9ChangedByteInATableIsCorruptOnRead() throws {
    try withDamagedStore { path in
      let engine = try LevelDBEngine(at: path)
      let corrupt = try corruptKeys(in: engine)

      // One block of 4 KiB: some dozens of entries of 100 bytes.
      #expect((1..<100).contains(corrupt.count))
    }
  }

  @Test(arguments: [100_000, 7])
  func scanVisitsAllThatIsReadableAndThenReportsTheDamage(sliceEntries: Int) throws {
    try withDamagedStore { path in
      var options = LevelDBOptions()
      options.cursorSliceEntries = sliceEntries
      let engine = try LevelDBEngine(at: path, options: options)
      let readable = Set(Self.keys).subtracting(try corruptKeys(in: engine))
      let cursor = try engine.cursor(over: EngineRange(from: [1]))

      // Twice, because a cursor that has reported a walk is as good as new.
      for _ in 0..<2 {
        var forwards: [String] = []
        var complete = 0
        #expect(throws: EngineError.self) {
          while try cursor.next() {
            forwards.append(cursor.key)
            complete += cursor.isComplete ? 1 : 0
          }
        }
        #expect(forwards == readable.sorted())
        // Complete almost up to the damage, because it reads ahead, and not from there on.
        let damaged = try #require(Self.keys.firstIndex { !readable.contains($0) })
        #expect((damaged - EntryRun.mostEntries...damaged).contains(complete))
        var backwards: [String] = []
        #expect(throws: EngineError.self) {
          while try cursor.previous() { backwards.append(cursor.key) }
        }
        #expect(backwards == readable.sorted().reversed())
      }
      // A walk that does not come by reports nothing.
      let end = EngineRange(from: bytes("13990"))
      #expect(try engine.entries(in: end).count == 10)
    }
  }

  @Test(arguments: [0, 1, 47, 48, 500, 30_000])
  func aTableThatIsCutIsDamage(count: Int) throws {
    let directory = try TemporaryDirectory()
    var random = SplitMix64(seed: 9)
    let engine = try LevelDBEngine(at: directory.path)
    for key in Self.keys.prefix(400) { try engine.put(bytes(key), random.bytes(100)) }
    try engine.compact(EngineRange())
    try engine.close()
    let table = try #require(try Damage.files(in: directory.path, endingIn: ".ldb").first)
    try Data(contentsOf: URL(filePath: table)).prefix(count).write(to: URL(filePath: table))

    do throws(EngineError) {
      // Opening reads the row of commit sequences.
      try LevelDBEngine(at: directory.path).close()
      Issue.record("a store without its tables was opened")
    } catch {
      guard case .corrupt = error else { throw error }
    }
  }

  /// A number that is far too large, for the offset and the size of either handle.
  @Test(arguments: [0, 1, 2, 3])
  func aTableWhoseEndLeadsOutOfItIsDamageAndNoTrap(handle: Int) throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    try engine.put("k", "v")
    try engine.compact(EngineRange())
    try engine.close()
    let table = try #require(try Damage.files(in: directory.path, endingIn: ".ldb").first)
    var bytes = Array(try Data(contentsOf: URL(filePath: table)))
    // LevelDB reads a zero that is longer than it need be.
    var numbers: [[UInt8]] = Array(repeating: [0x80, 0], count: 4)
    numbers[handle] = Array(repeating: 0xFF, count: 9) + [1]
    let start = bytes.count - 48
    let handles = numbers.flatMap(\.self)
    bytes.replaceSubrange(start..<(start + handles.count), with: handles)
    try Data(bytes).write(to: URL(filePath: table))

    let message = "\(table) is damaged: its end leads out of it"
    #expect(throws: EngineError.corrupt(message)) { try LevelDBEngine(at: directory.path) }
  }

  /// Two tables with the same keys, of which the newer one removes every other key and is damaged.
  @Test(arguments: [100_000, 1])
  func scanShowsNothingOldInThePlaceOfWhatIsDamaged(sliceEntries: Int) throws {
    let directory = try TemporaryDirectory()
    var random = SplitMix64(seed: 9)
    for round in 0..<2 {
      let engine = try LevelDBEngine(at: directory.path)
      for (index, key) in Self.keys.prefix(400).enumerated() {
        if round == 1, index.isMultiple(of: 2) {
          try engine.remove(key)
        } else {
          try engine.put(bytes(key), random.bytes(100 + round))
        }
      }
      // The first becomes a table by a compaction, the second by opening the store.
      if round == 0 { try engine.compact(EngineRange()) }
      try engine.close()
    }
    try LevelDBEngine(at: directory.path).close()
    let table = try #require(try Damage.files(in: directory.path, endingIn: ".ldb").last)
    try Damage.flipByte(at: 10_000, of: table)
    var options = LevelDBOptions()
    options.cursorSliceEntries = sliceEntries
    let engine = try LevelDBEngine(at: directory.path, options: options)
    let cursor = try engine.cursor(over: EngineRange(from: [1]))

    for step in [cursor.next, cursor.previous] {
      var seen = 0
      #expect(throws: EngineError.self) {
        while try step() {
          seen += 1
          let (key, value) = (cursor.key, cursor.entry.value)
          #expect(value.count == 101, "\(key) has its old value")
          #expect(Int(key)?.isMultiple(of: 2) == false, "\(key) is there again")
        }
      }
      #expect((100..<200).contains(seen))
    }
    try engine.close()
  }

  @Test func rule9CompactionReportsDamageAndDoesNotLaunderIt() throws {
    try withDamagedStore { path in
      let engine = try LevelDBEngine(at: path)
      let corrupt = try corruptKeys(in: engine)
      // Something at both ends to merge the damaged table with.
      for key in ["10000", "13999"] {
        try engine.put(bytes(key), [UInt8](repeating: 1, count: 100))
      }

      #expect(throws: EngineError.self) { try engine.compact(EngineRange()) }
      try engine.close()

      let reopened = try LevelDBEngine(at: path)
      #expect(try corruptKeys(in: reopened) == corrupt)
    }
  }

  @Test func conditionOnADamagedValueThrowsAndNothingIsWritten() throws {
    try withDamagedStore { path in
      let engine = try LevelDBEngine(at: path)
      let corrupt = try #require(try corruptKeys(in: engine).first)
      var batch = WriteBatch()
      let requirement = batch.require(corrupt, .absent)
      batch.put(corrupt, "new", if: requirement)
      batch.put("other", "new")

      #expect(throws: EngineError.self) { try engine.write(&batch, synced: false) }
      #expect(try engine.value("other") == nil)
    }
  }

  @Test func missingTableIsAnErrorAndNotAbsence() throws {
    try withDamagedStore { path in
      // Opening reads the row of commit sequences, and so opens a table. A newer one has it now.
      let older = try Damage.files(in: path, endingIn: ".ldb")
      let writer = try LevelDBEngine(at: path)
      try writer.put("20000", "")
      try writer.close()
      let engine = try LevelDBEngine(at: path)
      for table in older { try FileManager.default.removeItem(atPath: table) }

      #expect(throws: EngineError.self) { try engine.value("10000") }
      #expect(throws: EngineError.self) { try engine.entries() }
      try engine.close()
      #expect(throws: EngineError.self) { try LevelDBEngine(at: path) }
    }
  }
}
