import LarderBytes
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderEngine

/// An engine reports each write to its commit meter, which counts bytes and enforces a limit.
@Suite struct CommitMeterTests {
  /// Counts every key but its own, and refuses growth beyond a limit.
  private final class Meter: CommitMeter {
    struct State {
      var bytes = 0
      var batch: [Int?] = []
      var write: [Int?] = []
      var ends: [Bool] = []
      var isExact = true
    }

    static let countKey = bytes("count")
    let state = Mutex(State())
    let limit: Int

    init(limit: Int = .max) { self.limit = limit }

    var isCounting: Bool { true }
    func counts(_ key: UnsafeRawBufferPointer) -> Bool { !key.elementsEqual(Self.countKey) }

    func add(_ key: UnsafeRawBufferPointer, written: Int, replaced: Int?) {
      state.withLock { $0.batch.append(replaced.map { written - $0 }) }
    }

    func admit(mayGrow: Bool) -> Shortage? {
      state.withLock { state in
        defer { state.batch = [] }
        let growth = state.batch.reduce(0) { $0 + ($1 ?? 0) }
        let sum = state.write.reduce(state.bytes + growth) { $0 + ($1 ?? 0) }
        guard mayGrow || sum <= limit else {
          return Shortage(budget: 0, limit: limit, growth: growth, excess: sum - limit)
        }
        state.write += state.batch
        return nil
      }
    }

    func putCounts(in rows: inout WriteBatch) {
      let sum = state.withLock { state in state.write.reduce(state.bytes) { $0 + ($1 ?? 0) } }
      rows.put(Self.countKey.span.bytes, bytes("\(sum)").span.bytes)
    }

    func end(didCommit: Bool) {
      state.withLock { state in
        state.ends.append(didCommit)
        if didCommit {
          state.bytes += state.write.reduce(0) { $0 + ($1 ?? 0) }
          if state.write.contains(nil) { state.isExact = false }
        }
        state.write = []
      }
    }
  }

  /// The bytes of all entries in the engine, without the entry of the count.
  private func held(_ engine: any StorageEngine) throws -> Int {
    try engine.entries(in: EngineRange(from: [1])).reduce(0) { sum, entry in
      entry.key == Meter.countKey ? sum : sum + entry.key.count + entry.value.count
    }
  }

  @Test("Each write is measured, and its count is written with it.", arguments: EngineKind.allCases)
  func eachWrite(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      try engine.put("before", "it is there")
      let meter = Meter()
      meter.state.withLock { $0.bytes = "before".count + "it is there".count }
      engine.measure(by: meter)
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
        try engine.write(&batch, synced: false)
        let counted = meter.state.withLock { $0.bytes }
        #expect(try counted == held(engine), "step \(step)")
        if let row = try engine.get(Meter.countKey.span.bytes) {
          #expect(String(decoding: row, as: UTF8.self) == "\(counted)")
        }
      }
      #expect(meter.state.withLock { $0.isExact && $0.batch.isEmpty && $0.write.isEmpty })
    }
  }

  @Test("A write that the meter refuses changes nothing.", arguments: EngineKind.allCases)
  func refusedWrite(kind: EngineKind) throws {
    try withEngine(kind) { engine in
      let meter = Meter(limit: 20)
      engine.measure(by: meter)
      try engine.put("a", "0123456789")
      var batch = WriteBatch()
      batch.put(bytes("b").span.bytes, bytes("0123456789").span.bytes)
      #expect(
        throws: EngineError.overBudget(Shortage(budget: 0, limit: 20, growth: 11, excess: 2))
      ) { try engine.write(&batch, synced: false) }
      #expect(try engine.get(bytes("b").span.bytes) == nil)
      // The same batch once there is room, and then one that may exceed the limit.
      try engine.put("a", "")
      try engine.write(&batch, synced: false)
      batch.reset()
      batch.put(bytes("c").span.bytes, bytes("0123456789").span.bytes)
      batch.mayExceedBudget = true
      try engine.write(&batch, synced: false)
      let counted = meter.state.withLock { $0.bytes }
      #expect(try counted == held(engine) && counted == 23)
    }
  }

  @Test("A refused batch leaves no staged sizes behind.")
  func refusedBatch() {
    let meter = Meter(limit: 30)
    var staged = StagedSizes(isAlone: false)
    func add(_ value: String) -> Shortage? {
      var batch = WriteBatch()
      batch.put(bytes("a").span.bytes, bytes(value).span.bytes)
      return staged.add(batch, without: [], to: meter) { _ in 0 }
    }
    #expect(add(String(repeating: "x", count: 9)) == nil)
    // The batch is refused, so the next one does not replace its row.
    #expect(add(String(repeating: "x", count: 99)) != nil)
    #expect(add(String(repeating: "x", count: 19)) == nil)
    meter.end(didCommit: true)
    #expect(meter.state.withLock { $0.bytes } == 20)
  }
}
