import Larder
import LarderTestSupport
import Synchronization
import Testing

/// Every call is safe on any thread, at the same time as any other call.
@Suite struct ConcurrencyTests {
  @Test(
    "Eight threads can mix all operations.", arguments: EngineKind.allCases,
    [1, .random(in: 0 ... .max)] as [UInt64])
  func allOperations(kind: EngineKind, seed: UInt64) throws {
    try withEngine(kind, cursorSliceEntries: 10) { engine in
      onThreads(8) { thread in
        #expect(throws: Never.self, "seed \(seed)") {
          var random = SplitMix64(seed: seed &+ UInt64(thread))
          for step in 0..<300 {
            try self.operate(on: engine, step: step, random: &random)
          }
        }
      }
      let entries = try engine.entries()
      #expect(entries.allSatisfy { isIntact($0.value, key: $0.key) })
    }
  }

  private func operate(
    on engine: any StorageEngine, step: Int, random: inout SplitMix64
  ) throws {
    let key = "\(Int.random(in: 0..<50, using: &random))"
    switch Int.random(in: 0..<8, using: &random) {
    case 0..<3:
      if let value: [UInt8] = try engine.value(bytes(key)) {
        #expect(isIntact(value, key: bytes(key)))
      }
    case 3..<6:
      try engine.put(bytes(key), stampedValue(UInt8(step & 0xFF), tail: step), stamped: true)
    case 6:
      try engine.remove(key)
    default:
      let cursor = try engine.cursor(over: EngineRange(from: [1]))
      var last: [UInt8] = []
      while try cursor.next() {
        let entry = cursor.entry
        #expect(last.lexicographicallyPrecedes(entry.key))
        #expect(isIntact(entry.value, key: entry.key))
        last = entry.key
      }
      if step % 50 == 0 { try engine.compact(EngineRange()) }
    }
  }

  @Test("Commit sequences are unique, and rise for every thread.", arguments: EngineKind.allCases)
  func sequences(kind: EngineKind) throws {
    let sequences = Mutex<[UInt64]>([])
    try withEngine(kind) { engine in
      onThreads(8) { thread in
        #expect(throws: Never.self) {
          var own: [UInt64] = []
          for _ in 0..<200 { own.append(try engine.put("\(thread)", "v").sequence) }
          #expect(own == own.sorted())
          sequences.withLock { $0 += own }
        }
      }
    }
    #expect(sequences.withLock { Set($0).count } == 8 * 200)
  }

  @Test("Exactly one of several conditional writers wins.", arguments: EngineKind.allCases)
  func conditionalWriters(kind: EngineKind) throws {
    let winners = Atomic<Int>(0)
    try withEngine(kind) { engine in
      for round in 0..<50 {
        onThreads(8) { thread in
          #expect(throws: Never.self) {
            var batch = WriteBatch()
            let requirement = batch.require("\(round)", .absent)
            batch.put("\(round)", "thread \(thread)", if: requirement)
            if try engine.write(&batch, synced: false).failed.isEmpty {
              winners.add(1, ordering: .relaxed)
            }
          }
        }
      }
    }
    #expect(winners.load(ordering: .relaxed) == 50)
  }

  @Test("During a close every call completes or throws `closed`.", arguments: EngineKind.allCases)
  func closeUnderLoad(kind: EngineKind) throws {
    for round in 0..<10 {
      try withEngine(kind, cursorSliceEntries: 3) { engine in
        for key in 0..<20 { try engine.put("\(key)", "v") }
        let started = (0..<8).map { _ in Flag() }
        onThreads(9) { thread in
          guard thread < 8 else {
            for flag in started { flag.wait() }
            #expect(throws: Never.self) { try engine.close() }
            return
          }
          #expect(throws: StoreError.closed) {
            var step = 0
            while true {
              let cursor = try engine.cursor(over: EngineRange(from: [1]))
              while try cursor.next() { #expect(cursor.entry.value == bytes("v")) }
              try engine.put("\(thread) \(step % 7) \(round)", "v")
              step += 1
              started[thread].raise()
            }
          }
        }
      }
    }
  }

  @Test("Several threads can read an empty file at once.")
  func emptyFilesOnThreads() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("empty")
    try SystemFiles().create(path, with: [])
    onThreads(4) { _ in
      for _ in 0..<100 {
        #expect(throws: Never.self) { try SystemFiles().read(path, limit: nil) }
      }
    }
  }
}
