import Larder
import LarderTestSupport
import Testing

/// Every engine keeps the same contract for reads, writes, batches and conditions.
@Suite struct ContractTests {
  @Test("A value can be written, overwritten and removed.", arguments: EngineKind.allCases)
  func oneValue(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      #expect(try engine.value("k") == nil)

      try engine.put("k", "first")
      #expect(try engine.value("k") == "first")
      try engine.put("k", "second")
      #expect(try engine.value("k") == "second")
      try engine.remove("k")
      #expect(try engine.value("k") == nil)
    }
  }

  @Test(
    "A missing key empties the buffer, and an empty value is not a missing one.",
    arguments: EngineKind.allCases)
  func emptyValues(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      try engine.put("empty", "")
      try engine.put("k", "value")
      var buffer = ValueBuffer()

      #expect(try engine.read("k", into: &buffer))
      #expect(buffer.count == 5)
      #expect(try !engine.read("none", into: &buffer))
      #expect(buffer.count == 0)
      #expect(try engine.read("empty", into: &buffer))
      #expect(buffer.count == 0)
    }
  }

  @Test(
    "Any bytes can be a key, and keys are ordered as unsigned bytes.",
    arguments: EngineKind.allCases)
  func keyOrder(kind: EngineKind) throws {
    let long = Array(repeating: UInt8(0x61), count: 64 << 10)
    let keys: [[UInt8]] = [
      [], [0], [0, 0], [0, 0xFF], [1], [0x61], long, long + [0], [0x7F], [0x80], [0xFF], [0xFF, 0],
      [0xFF, 0xFF],
    ]
    try withEngine(kind) { engine in
      for (index, key) in keys.enumerated().reversed() {
        try engine.put(key, [UInt8(index)])
      }

      let entries = try engine.entries()
      #expect(entries.map(\.key) == keys)
      #expect(entries.map(\.value) == keys.indices.map { [UInt8($0)] })
      for (index, key) in keys.enumerated() {
        #expect(try engine.value(key) == [UInt8(index)])
      }
    }
  }

  @Test("A value of 32 MiB is stored.", arguments: EngineKind.allCases)
  func largeValue(kind: EngineKind) throws {
    let value = [UInt8](repeating: 0xA5, count: 32 << 20)
    try withEngine(kind) { engine in
      try engine.put(bytes("large"), value)

      #expect(try engine.value(bytes("large")) == value)
    }
  }

  @Test(
    "A later row of a batch replaces an earlier one with the same key.",
    arguments: EngineKind.allCases)
  func laterRows(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      var batch = WriteBatch()
      batch.put("a", "1")
      batch.remove("a")
      batch.put("b", "1")
      batch.put("b", "2")
      batch.remove("c")
      batch.put("c", "3")
      try engine.write(&batch, synced: true)

      #expect(try engine.entries() == [Entry("b", "2"), Entry("c", "3")])
    }
  }

  @Test("A row whose closure throws is not part of the batch.", arguments: EngineKind.allCases)
  func abandonedRow(kind: EngineKind) throws {
    struct Refusal: Error {}
    try withEngine(kind) { engine in
      var batch = WriteBatch()
      batch.put("a", "1")
      #expect(throws: Refusal.self) {
        try batch.put(bytes("b").span.bytes) { value throws(Refusal) in
          value.append([1, 2, 3])
          throw Refusal()
        }
      }
      batch.put("c", "3")
      try engine.write(&batch, synced: false)

      #expect(try engine.entries() == [Entry("a", "1"), Entry("c", "3")])
    }
  }

  @Test(
    "Conditions are checked against the state before the batch.", arguments: EngineKind.allCases)
  func conditions(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      let first = try engine.put(bytes("there"), stampedValue(1), stamped: true)
      try engine.put("short", "no room for a stamp")
      var batch = WriteBatch()
      let expected: [(WriteBatch.Condition, key: String, holds: Bool)] = [
        (.absent, "there", false), (.absent, "gone", true),
        (.present, "there", true), (.present, "gone", false), (.present, "short", true),
        (.unchanged(since: first.sequence, in: .test), "there", true),
        (.unchanged(since: first.sequence + 1, in: .test), "there", false),
        (.unchanged(since: first.sequence, in: .test), "gone", false),
        (.unchanged(since: 0, in: .test), "gone", false),
        (.unchanged(since: 0, in: .test), "short", false),
      ]
      for (index, (condition, key, _)) in expected.enumerated() {
        #expect(batch.require(key, condition) == index)
        batch.put("row \(index)", "x", if: index)
      }
      // The batch's own rows do not affect its conditions.
      batch.put("gone", "now there")
      batch.remove("there")
      let commit = try engine.write(&batch, synced: false)

      for (index, (condition, key, holds)) in expected.enumerated() {
        #expect(commit.failed.contains(index) == !holds, "\(condition) of \(key)")
        #expect(try (engine.value("row \(index)") != nil) == holds, "\(condition) of \(key)")
      }
      #expect(try engine.value("gone") == "now there")
      #expect(try engine.value("there") == nil)
    }
  }

  @Test("A failed condition skips only its own rows.", arguments: EngineKind.allCases)
  func failedCondition(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      try engine.put("k", "old")
      var batch = WriteBatch()
      let failing = batch.require("k", .absent)
      let holding = batch.require("k", .present)
      batch.put("k", "new", if: failing)
      batch.put("k index", "new", if: failing)
      batch.put("a", "1", if: holding)
      batch.put("b", "2")
      let commit = try engine.write(&batch, synced: false)

      #expect(commit.failed == [failing])
      #expect(
        try engine.entries() == [Entry("a", "1"), Entry("b", "2"), Entry("k", "old")])
    }
  }

  @Test(
    "A batch without rows, or with none left, takes no sequence.", arguments: EngineKind.allCases)
  func emptyBatch(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      let before = try engine.put("k", "old")
      var batch = WriteBatch()
      let failing = batch.require("k", .absent)
      batch.remove("k", if: failing)
      let nothing = try engine.write(&batch, synced: true)
      batch.reset()
      let empty = try engine.write(&batch, synced: true)
      let after = try engine.put("l", "new")

      #expect(nothing.sequence == 0 && nothing.failed == [failing])
      #expect(empty.sequence == 0 && empty.failed == [])
      #expect(after.sequence == before.sequence + 1)
      #expect(try engine.value("k") == "old")
    }
  }

  @Test(
    "A stamped row carries its commit's sequence, and is intact only under its own key.",
    arguments: EngineKind.allCases)
  func stamps(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      var last: UInt64 = 0
      for round in 0..<20 as Range<UInt8> {
        var batch = WriteBatch()
        for row in 0..<3 as Range<UInt8> {
          batch.put([round, row].span.bytes, stamp: .test) {
            $0.append(stampedValue(row, tail: Int(row)))
          }
        }
        let commit = try engine.write(&batch, synced: false)
        #expect(commit.sequence > last)
        last = commit.sequence

        for row in 0..<3 as Range<UInt8> {
          let value = try #require(try engine.value([round, row]))
          #expect(sequence(of: value) == commit.sequence)
          #expect(isIntact(value, key: [round, row]))
          #expect(!isIntact(value, key: [round, row, 0]))
          // The bytes after the stamp are the bytes that were put.
          var own = value
          own.replaceSubrange(
            Stamp.test.offset..<Stamp.test.end,
            with: repeatElement(0, count: Stamp.test.end - Stamp.test.offset))
          #expect(own == stampedValue(row, tail: Int(row)))
        }
      }
    }
  }

  @Test("Every flipped bit and every cut of a stamped value is detected.")
  func changedBits() throws {
    let engine = InMemoryEngine()
    let key = bytes("key")
    try engine.put(key, stampedValue(7, tail: 9), stamped: true)
    let value = try #require(try engine.value(key))

    for bit in 0..<(value.count * 8) {
      var changed = value
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(!isIntact(changed, key: key))
    }
    for count in 0..<value.count {
      #expect(!isIntact(Array(value[..<count]), key: key))
    }
  }

  @Test("A batch over a limit is refused and changes nothing.", arguments: EngineKind.allCases)
  func limits(kind: EngineKind) throws {
    let key = [UInt8](repeating: 1, count: EngineLimits.keyBytes)
    let value = [UInt8](repeating: 2, count: EngineLimits.valueBytes)
    try withEngine(kind) { engine in
      func refuses(_ fill: (inout WriteBatch) -> Void) -> Bool {
        var batch = WriteBatch()
        batch.put("other", "row")
        fill(&batch)
        do throws(StoreError) {
          try engine.write(&batch, synced: false)
          return false
        } catch {
          guard case .invalidArgument = error else { return false }
          return true
        }
      }
      #expect(refuses { $0.put(key + [0], []) })
      #expect(refuses { $0.put([1], value + [0]) })
      #expect(refuses { $0.remove(key + [0]) })
      #expect(
        refuses { batch in
          for row in 0..<2 as Range<UInt8> { batch.put([row], value) }
        })
      #expect(refuses { $0.put(engineRow, []) })
      #expect(refuses { $0.put(SyncedPlace.key, []) })
      #expect(refuses { $0.remove(engineRow) })
      #expect(try engine.entries() == [])

      // A key and a value of exactly the maximum size are allowed.
      try engine.put(key, value)
      #expect(try engine.value(key) == value)
    }
  }

  @Test(
    "After a close every call throws `closed`, except a second close.",
    arguments: EngineKind.allCases)
  func closed(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      try engine.put("k", "v")
      try engine.close()

      #expect(throws: StoreError.closed) { try engine.value("k") }
      #expect(throws: StoreError.closed) { try engine.put("k", "v") }
      #expect(throws: StoreError.closed) { try engine.entries() }
      #expect(throws: StoreError.closed) { try engine.approximateBytes(in: EngineRange()) }
      #expect(throws: StoreError.closed) { try engine.compact(EngineRange()) }
      #expect(throws: StoreError.closed) { try engine.property("leveldb.stats") }
      #expect(throws: Never.self) { try engine.close() }
    }
  }

  @Test(
    "Every engine behaves like a dictionary under random batches.",
    arguments: [1, 2, .random(in: 0 ... .max)] as [UInt64])
  func enginesAgreeWithADictionary(seed: UInt64) throws {
    for kind in EngineKind.allCases {
      var random = SplitMix64(seed: seed)
      var model: [[UInt8]: [UInt8]] = [:]
      try withEngine(kind) { engine in
        for step in 0..<2_000 {
          var batch = WriteBatch()
          for _ in 0..<Int.random(in: 1...5, using: &random) {
            let key = random.bytes(Int.random(in: 0...2, using: &random)).map { $0 & 0x1F }
            if Bool.random(using: &random) {
              let value = random.bytes(Int.random(in: 0...20, using: &random))
              batch.put(key, value)
              model[key] = value
            } else {
              batch.remove(key)
              model[key] = nil
            }
          }
          try engine.write(&batch, synced: false)
          guard step % 400 == 399 else { continue }
          if step % 800 == 799 { try engine.compact(EngineRange()) }

          let expected = model.sorted { $0.key.lexicographicallyPrecedes($1.key) }
            .map { Entry($0.key, $0.value) }
          let forwards = try engine.entries()
          let backwards = try engine.entriesBackwards()
          #expect(forwards == expected, "seed \(seed), step \(step), \(kind)")
          #expect(backwards == expected.reversed(), "seed \(seed), step \(step), \(kind)")
        }
      }
    }
  }
}
