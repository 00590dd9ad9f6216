import Foundation
import Larder
import LarderEngineSupport
import LarderTestSupport
import Testing

/// The LevelDB engine persists its data and avoids LevelDB's pitfalls.
@Suite struct LevelDBTests {
  @Test("Entries are still there after reopening.")
  func reopening() throws {
    let directory = try TemporaryDirectory()
    var expected: [Entry] = []
    for round in 0..<5 {
      let engine = try LevelDBEngine(at: directory.path)
      #expect(try engine.entries() == expected)
      for key in 0..<100 { try engine.put("\(round) \(key)", "\(key)") }
      if round % 2 == 0 { try engine.compact(EngineRange()) }
      expected = try engine.entries()
      #expect(expected.count == (round + 1) * 100)
      try engine.close()
    }
  }

  @Test("Commit sequences rise across reopening.")
  func sequences() throws {
    let directory = try TemporaryDirectory()
    var last: UInt64 = 0
    for _ in 0..<5 {
      let engine = try LevelDBEngine(at: directory.path)
      for _ in 0..<3 {
        let commit = try engine.put("k", "v")
        #expect(commit.sequence > last)
        last = commit.sequence
      }
      try engine.close()
    }
  }

  @Test("Sequences are reserved on disk before they are used.")
  func reservedSequences() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    #expect(try engine.value(engineRow) == nil)

    let commit = try engine.put("k", "v")

    // A later opening continues above the reserved sequences, whatever was lost after the row.
    let row = try #require(try engine.value(engineRow))
    let reserved = row.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    #expect(reserved >= commit.sequence + 1_000_000)
    try engine.close()
    let next = try LevelDBEngine(at: directory.path).put("k", "v")
    #expect(next.sequence == reserved + 1)
  }

  @Test("A damaged row of sequences is corrupt.")
  func damagedSequences() {
    for count in [0, 7, 9] {
      #expect(throws: StoreError.self) {
        try CommitSequence(resumingAfter: [UInt8](repeating: 1, count: count))
      }
    }
  }

  @Test("Sizes and properties describe the files.")
  func sizes() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    var random = SplitMix64(seed: 1)
    for key in 1000..<2000 { try engine.put(bytes("\(key)"), random.bytes(1000)) }
    #expect(try engine.approximateBytes(in: EngineRange()) == 0)

    try engine.compact(EngineRange())

    let all = try engine.approximateBytes(in: EngineRange())
    let half = try engine.approximateBytes(in: EngineRange(upTo: bytes("1500")))
    #expect((1_000_000..<1_200_000).contains(all))
    #expect((all * 45 / 100..<all * 55 / 100).contains(half))
    #expect(try engine.property("leveldb.stats")?.contains("Compactions") == true)
    #expect(try engine.property("leveldb.nonsense") == nil)
  }

  @Test("A slice ends after its entries or its seconds.")
  func slices() {
    var byCount = CursorSlice(entries: 2, now: 5)
    #expect([5, 5, 5].map { byCount.admitsStep(now: $0) } == [true, true, false])
    var byTime = CursorSlice(entries: 100, now: 5)
    #expect([5, 14, 15].map { byTime.admitsStep(now: $0) } == [true, true, false])
  }

  @Test("The shim has no call for snapshots.")
  func noSnapshots() throws {
    let package = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL
    let shim = package.appending(path: "Sources/CLarder")
    let names = try #require(FileManager.default.enumerator(atPath: shim.path)).allObjects
    let sources = names.compactMap { $0 as? String }.filter {
      $0.hasSuffix(".h") || $0.hasSuffix(".cc")
    }
    #expect(sources.count > 5)
    for source in sources {
      let text = try String(contentsOf: shim.appending(path: source), encoding: .utf8)
      for line in text.split(separator: "\n")
      where !line.drop(while: \.isWhitespace).hasPrefix("//") {
        #expect(!line.lowercased().contains("snapshot"), "\(source): \(line)")
      }
    }
  }

  @Test("A close waits for running calls.")
  func close() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    try engine.put("k", "v")
    let hasClosed = Flag()
    let isInside = Flag()

    onThreads(2) { thread in
      #expect(throws: Never.self) {
        guard thread == 0 else {
          isInside.wait()
          try engine.close()
          hasClosed.raise()
          return
        }
        let cursor = try engine.cursor(over: EngineRange(from: [1]))
        #expect(try cursor.next())
        var batch = WriteBatch()
        batch.put(bytes("l").span.bytes, bytes("w").span.bytes)
        engine.join(
          InsideWrite { [weak engine] in
            isInside.raise()
            // Once reads are refused, the other thread is in `close` and waits for this write.
            while (try? engine?.value("k")) != nil {}
            #expect(!hasClosed.isRaised)
          })
        try engine.write(&batch, synced: false)
        hasClosed.wait()
        #expect(cursor.entry == Entry("k", "v"))
        #expect(throws: StoreError.closed) { try cursor.next() }
      }
    }
  }

  private final class InsideWrite: ForwardingParticipant {
    var base: (any CommitParticipant)? { nil }
    var needs: (counting: Bool, reports: Bool) { (counting: false, reports: true) }
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    func committed(_ batch: borrowing WriteBatch, _ commit: Commit) { body() }
  }

  @Test("A compaction that reads trigger changes no entry.")
  func compactionByReads() throws {
    let directory = try TemporaryDirectory()
    var options = LevelDBOptions()
    (options.writeBufferBytes, options.maxFileBytes, options.filterBitsPerKey) =
      (64 << 10, 1 << 20, 0)
    let engine = try LevelDBEngine(at: directory.path, options: options)
    var random = SplitMix64(seed: 12)
    // Overlapping tables on several levels, so that a read searches more than one of them.
    for round in 0..<4 {
      for _ in 0..<2000 {
        let key = "\(Int.random(in: 10_000..<20_000, using: &random))"
        if round > 0, random.next() % 4 == 0 {
          try engine.remove(key)
        } else {
          try engine.put(bytes(key), random.bytes(100))
        }
      }
    }
    let before = try engine.entries()

    // LevelDB compacts a table after about a hundred misses in it.
    for _ in 0..<20_000 {
      _ = try engine.value("\(Int.random(in: 10_000..<20_000, using: &random)) absent")
    }

    #expect(try engine.entries() == before)
    try engine.close()
    #expect(try LevelDBEngine(at: directory.path).entries() == before)
  }
}
