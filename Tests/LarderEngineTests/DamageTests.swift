import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// Damaged files are reported, and are never read as values or as missing keys.
@Suite struct DamageTests {
  private static let keys = (10_000..<14_000).map { "\($0)" }

  /// Runs `body` with the path of a store that has a damaged table.
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

  /// The keys whose reads throw `corrupt`; every other key must have its value.
  private func corruptKeys(in engine: LevelDBEngine) throws -> Set<String> {
    var corrupt: Set<String> = []
    for key in Self.keys {
      do throws(StoreError) {
        let value: [UInt8]? = try engine.value(bytes(key))
        #expect(value?.count == 100, "\(key) reads as a missing key")
      } catch {
        guard case .corrupt = error else { throw error }
        corrupt.insert(key)
      }
    }
    return corrupt
  }

  @Test("A changed byte in a table makes its entries corrupt.")
  func changedByte() throws {
    try withDamagedStore { path in
      let engine = try LevelDBEngine(at: path)
      let corrupt = try corruptKeys(in: engine)

      // One block of 4 KiB: some dozens of entries of 100 bytes.
      #expect((1..<100).contains(corrupt.count))
    }
  }

  @Test("A scan visits all readable entries, then reports the damage.", arguments: [100_000, 7])
  func scans(sliceEntries: Int) throws {
    try withDamagedStore { path in
      var options = LevelDBOptions()
      options.cursorSliceEntries = sliceEntries
      let engine = try LevelDBEngine(at: path, options: options)
      let readable = Set(Self.keys).subtracting(try corruptKeys(in: engine))
      let cursor = try engine.cursor(over: EngineRange(from: [1]))

      // Twice, because a cursor can scan again after it has reported damage.
      for _ in 0..<2 {
        var forwards: [String] = []
        var complete = 0
        #expect(throws: StoreError.self) {
          while try cursor.next() {
            forwards.append(cursor.key)
            complete += cursor.isComplete ? 1 : 0
          }
        }
        #expect(forwards == readable.sorted())
        // The cursor reads ahead, so it is incomplete from a few entries before the damage on.
        let damaged = try #require(Self.keys.firstIndex { !readable.contains($0) })
        #expect((damaged - EntryRun.mostEntries...damaged).contains(complete))
        var backwards: [String] = []
        #expect(throws: StoreError.self) {
          while try cursor.previous() { backwards.append(cursor.key) }
        }
        #expect(backwards == readable.sorted().reversed())
      }
      // A scan of another range does not report the damage.
      let end = EngineRange(from: bytes("13990"))
      #expect(try engine.entries(in: end).count == 10)
    }
  }

  /// The rest of the scan reads intact blocks only, by an iterator of the reopened database.
  @Test(
    "A scan that is suspended after damage reports it at its end.", arguments: [false, true],
    [100_000, 7])
  func suspendedScan(isReversed: Bool, sliceEntries: Int) throws {
    try withDamagedStore { path in
      var options = LevelDBOptions()
      options.cursorSliceEntries = sliceEntries
      let engine = try LevelDBEngine(at: path, options: options)
      let corrupt = try corruptKeys(in: engine)
      let readable = Self.keys.filter { !corrupt.contains($0) }
      let cursor = try engine.cursor(over: EngineRange(from: [1]))
      if isReversed { try cursor.seekToEnd() }
      // Some blocks behind the damaged one.
      let passed = Self.keys.count { key in
        isReversed ? corrupt.contains { key > $0 } : corrupt.contains { key < $0 }
      }
      try #require(readable.count > passed + 100)
      var seen: [String] = []
      #expect(throws: StoreError.self) {
        while try isReversed ? cursor.previous() : cursor.next() {
          seen.append(cursor.key)
          guard seen.count == passed + 100 else { continue }
          try engine.suspend()
          #expect(!cursor.isComplete)
          try engine.resume()
        }
      }
      #expect(seen == (isReversed ? readable.reversed() : readable))
      #expect(cursor.isComplete, "a scan that has thrown starts anew")
      try engine.close()
    }
  }

  @Test("A store with a truncated table is corrupt.", arguments: [0, 1, 47, 48, 500, 30_000])
  func cutTable(count: Int) throws {
    let directory = try TemporaryDirectory()
    var random = SplitMix64(seed: 9)
    let engine = try LevelDBEngine(at: directory.path)
    for key in Self.keys.prefix(400) { try engine.put(bytes(key), random.bytes(100)) }
    try engine.compact(EngineRange())
    try engine.close()
    let table = try #require(try Damage.files(in: directory.path, endingIn: ".ldb").first)
    try Data(contentsOf: URL(filePath: table)).prefix(count).write(to: URL(filePath: table))

    do throws(StoreError) {
      // Opening reads the row of commit sequences.
      try LevelDBEngine(at: directory.path).close()
      Issue.record("a store with a truncated table was opened")
    } catch {
      guard case .corrupt = error else { throw error }
    }
  }

  /// The offset or the size of one of the footer's two handles is far too large.
  @Test("A table footer that points outside of its file is damage.", arguments: [0, 1, 2, 3])
  func footer(handle: Int) throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    try engine.put("k", "v")
    try engine.compact(EngineRange())
    try engine.close()
    let table = try #require(try Damage.files(in: directory.path, endingIn: ".ldb").first)
    var bytes = Array(try Data(contentsOf: URL(filePath: table)))
    // LevelDB accepts a zero with a redundant byte.
    var numbers: [[UInt8]] = Array(repeating: [0x80, 0], count: 4)
    numbers[handle] = Array(repeating: 0xFF, count: 9) + [1]
    let start = bytes.count - 48
    let handles = numbers.flatMap(\.self)
    bytes.replaceSubrange(start..<(start + handles.count), with: handles)
    try Data(bytes).write(to: URL(filePath: table))

    let message = "\(table) is damaged: its footer points outside the file"
    #expect(throws: StoreError.corrupt(message)) { try LevelDBEngine(at: directory.path) }
  }

  /// Two tables with the same keys, of which the newer one removes every other key and is damaged.
  @Test("A scan does not show old values in place of damaged newer ones.", arguments: [100_000, 1])
  func oldValues(sliceEntries: Int) throws {
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
      // The compaction makes the first table, and opening the store makes the second.
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
      #expect(throws: StoreError.self) {
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

  @Test("A compaction reports damage and keeps it.")
  func compaction() throws {
    try withDamagedStore { path in
      let engine = try LevelDBEngine(at: path)
      let corrupt = try corruptKeys(in: engine)
      // Entries at both ends, so that the compaction merges the damaged table.
      for key in ["10000", "13999"] {
        try engine.put(bytes(key), [UInt8](repeating: 1, count: 100))
      }

      #expect(throws: StoreError.self) { try engine.compact(EngineRange()) }
      try engine.close()

      let reopened = try LevelDBEngine(at: path)
      #expect(try corruptKeys(in: reopened) == corrupt)
    }
  }

  @Test("A condition on a damaged value throws, and nothing is written.")
  func condition() throws {
    try withDamagedStore { path in
      let engine = try LevelDBEngine(at: path)
      let corrupt = try #require(try corruptKeys(in: engine).first)
      var batch = WriteBatch()
      let requirement = batch.require(corrupt, .absent)
      batch.put(corrupt, "new", if: requirement)
      batch.put("other", "new")

      #expect(throws: StoreError.self) { try engine.write(&batch, synced: false) }
      #expect(try engine.value("other") == nil)
    }
  }

  @Test("A missing table is an error, and its keys do not read as missing.")
  func missingTable() throws {
    try withDamagedStore { path in
      // Opening reads the row of commit sequences. A new table has it, so no old one is open.
      let older = try Damage.files(in: path, endingIn: ".ldb")
      let writer = try LevelDBEngine(at: path)
      try writer.put("20000", "")
      try writer.close()
      let engine = try LevelDBEngine(at: path)
      for table in older { try FileManager.default.removeItem(atPath: table) }

      #expect(throws: StoreError.self) { try engine.value("10000") }
      #expect(throws: StoreError.self) { try engine.entries() }
      try engine.close()
      #expect(throws: StoreError.self) { try LevelDBEngine(at: path) }
    }
  }
}
