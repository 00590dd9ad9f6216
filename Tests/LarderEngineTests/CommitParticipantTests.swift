import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// An engine asks its commit participant to admit each write, and notifies it of each commit.
@Suite struct CommitParticipantTests {
  /// Counts every key but its own, and refuses growth beyond a limit.
  private final class Meter: CommitParticipant {
    struct State {
      var bytes = 0
      var refused: [Shortage] = []
      var committed: [UInt64] = []
      var write: [Int?] = []
      var ends: [Bool] = []
      var isExact = true
    }

    static let countKey = bytes("count")
    let state = Mutex(State())
    let limit: Int

    init(limit: Int = .max) { self.limit = limit }

    var needs: (counting: Bool, reports: Bool) { (true, true) }

    func admit(
      _ batch: borrowing WriteBatch, without failed: Set<Int>, replacedBytes: (_ row: Int) -> Int?
    ) -> Shortage? {
      let isAlwaysAdmitted = batch.isAlwaysAdmitted
      let changes: [Int?] = batch.bytes.withBytes { bytes in
        batch.rows.enumerated()
          .filter { _, row in
            row.isKept(without: failed) && !bytes[row.key].elementsEqual(Self.countKey)
          }
          .map { index, row in replacedBytes(index).map { row.size - $0 } }
      }
      return state.withLock { state in
        let growth = changes.reduce(0) { $0 + ($1 ?? 0) }
        let sum = state.write.reduce(state.bytes + growth) { $0 + ($1 ?? 0) }
        guard isAlwaysAdmitted || sum <= limit else {
          let shortage = Shortage(budget: 0, limit: limit, growth: growth, excess: sum - limit)
          state.refused.append(shortage)
          return shortage
        }
        state.write += changes
        return nil
      }
    }

    func contribute(to rows: inout WriteBatch) {
      let sum = state.withLock { state in state.write.reduce(state.bytes) { $0 + ($1 ?? 0) } }
      rows.put(Self.countKey.span.bytes, bytes("\(sum)").span.bytes)
    }

    func ended(didCommit: Bool) {
      state.withLock { state in
        state.ends.append(didCommit)
        if didCommit {
          state.bytes += state.write.reduce(0) { $0 + ($1 ?? 0) }
          if state.write.contains(nil) { state.isExact = false }
        }
        state.write = []
      }
    }

    func committed(_ batch: borrowing WriteBatch, _ commit: Commit) {
      state.withLock { $0.committed.append(commit.sequence) }
    }

    func reopened(reading read: EngineReader) -> Bool { true }
  }

  /// The bytes of all entries in the engine, without the entry of the count.
  private func held(_ engine: any StorageEngine) throws -> Int {
    try engine.entries(in: EngineRange(from: [1])).reduce(0) { sum, entry in
      entry.key == Meter.countKey ? sum : sum + entry.key.count + entry.value.count
    }
  }

  @Test(
    "Each write is counted and reported, and its count is written with it.",
    arguments: EngineKind.allCases)
  func eachWrite(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      try engine.put("before", "it is there")
      let meter = Meter()
      meter.state.withLock { $0.bytes = "before".count + "it is there".count }
      engine.join(meter)
      var applied: [UInt64] = []
      var random = SplitMix64(seed: testSeed())
      for step in 0..<200 {
        var batch = WriteBatch()
        let present = batch.require(bytes("k3"), .present)
        for _ in 0..<Int.random(in: 1...6, using: &random) {
          let key = bytes(["before", "k1", "k2", "k3", "k4"].randomElement(using: &random) ?? "")
          let condition = Bool.random(using: &random) ? present : nil
          if Int.random(in: 0..<3, using: &random) == 0 {
            batch.remove(key.span.bytes, if: condition)
          } else {
            let value = random.bytes(Int.random(in: 0...50, using: &random))
            batch.put(key.span.bytes, value.span.bytes, if: condition)
          }
        }
        let sequence = try engine.write(&batch, synced: false).sequence
        if sequence > 0 { applied.append(sequence) }
        let counted = meter.state.withLock { $0.bytes }
        #expect(try counted == held(engine), "step \(step)")
        if let row = try engine.get(Meter.countKey.span.bytes) {
          #expect(String(decoding: row, as: UTF8.self) == "\(counted)")
        }
      }
      #expect(meter.state.withLock { $0.committed } == applied)
      #expect(meter.state.withLock { $0.isExact && $0.refused.isEmpty && $0.write.isEmpty })
    }
  }

  @Test("A write that the participant refuses changes nothing.", arguments: EngineKind.allCases)
  func refusedWrite(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      let meter = Meter(limit: 20)
      engine.join(meter)
      try engine.put("a", "0123456789")
      var batch = WriteBatch()
      batch.put(bytes("b").span.bytes, bytes("0123456789").span.bytes)
      #expect(throws: StoreError.budgetExceeded(bytes: 22, budget: 20)) {
        try engine.write(&batch, synced: false)
      }
      let shortage = Shortage(budget: 0, limit: 20, growth: 11, excess: 2)
      #expect(batch.shortage == shortage && meter.state.withLock { $0.refused } == [shortage])
      #expect(try engine.get(bytes("b").span.bytes) == nil)
      #expect(meter.state.withLock { $0.committed.count } == 1)
      // The same batch once there is room, and then one that may exceed the limit.
      try engine.put("a", "")
      try engine.write(&batch, synced: false)
      batch.reset()
      batch.put(bytes("c").span.bytes, bytes("0123456789").span.bytes)
      batch.isAlwaysAdmitted = true
      try engine.write(&batch, synced: false)
      let counted = meter.state.withLock { $0.bytes }
      #expect(try counted == held(engine) && counted == 23)
    }
  }

  @Test("A refused batch leaves no staged sizes behind.")
  func refusedBatch() {
    let meter = Meter(limit: 30)
    var staged = StagedSizes(isAlone: false)
    func admit(_ value: String) -> Shortage? {
      var batch = WriteBatch()
      batch.put(bytes("a").span.bytes, bytes(value).span.bytes)
      return staged.admit(batch, without: [], by: meter) { _ in 0 }
    }
    #expect(admit(String(repeating: "x", count: 9)) == nil)
    // The batch is refused, so the next one does not replace its row.
    #expect(admit(String(repeating: "x", count: 99)) != nil)
    #expect(admit(String(repeating: "x", count: 19)) == nil)
    meter.ended(didCommit: true)
    #expect(meter.state.withLock { $0.bytes } == 20)
  }
}
