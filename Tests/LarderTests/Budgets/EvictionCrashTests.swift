import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Kills during evictions and clears leave counts right and budgets kept.
@Suite struct EvictionCrashTests {
  /// The budget that the worker uses.
  private static let budget = 100_000

  @Test("A killed process keeps its counts, its budget and its acknowledged writes.")
  func kills() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let temporary = try TemporaryDirectory()
    var kept: Set<Int> = []
    var least = 0
    var clears = 0
    var lastIDs: [UInt64] = []
    for round in 0..<(10 * proofFactor) {
      var worker = try ChildProcess(
        "CrashWorker", ["evict", temporary.path, "\(round * 1_000_000)"])
      // The first round is long enough that something is evicted.
      var lines = round == 0 ? 2000 : Int.random(in: 1...600, using: &random)
      while let line = worker.readLine() {
        let words = line.split(separator: " ")
        let number = try #require(words.last.flatMap { Int($0) }, "\(line), seed \(seed)")
        switch words.first {
        case "kept": kept.insert(number)
        case "cleared":
          least = number
          clears += 1
        default: Issue.record("\(line), seed \(seed)")
        }
        lines -= 1
        if lines == 0 { worker.kill() }
      }
      let ids = try check(temporary.path, kept: kept, least: least, "seed \(seed), round \(round)")
      // Numbers only rise, and each clear takes one.
      #expect(zip(lastIDs, ids).allSatisfy { $0 <= $1 }, "seed \(seed)")
      lastIDs = ids
    }
    #expect(clears > 0)
    #expect(try #require(lastIDs.last) >= clears)
  }

  /// Checks a store that was left by a kill; returns the ids of its caches, the highest last.
  private func check(
    _ path: String, kept: Set<Int>, least: Int, _ place: Comment
  ) throws -> [UInt64] {
    let engine = try LevelDBEngine(at: path)
    let store = try Store(engine: engine, origin: .disk)
    let few = try store.cache(
      "few", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: Self.budget)
    let cleared = try store.cache(
      "cleared", of: Int.self, keyedBy: Int.self, byteBudget: Self.budget)
    let all = try store.cache("kept", of: Int.self, keyedBy: Int.self, lifetime: .unlimited)
    for number in kept { try #require(try all.value(for: number) == number, place) }
    let entries = try cleared.entries()
    while let item = try entries.next() { try #expect(item.entry.get().value >= least, place) }
    for (id, name) in [(few.core.id, few.name), (cleared.core.id, cleared.name)] {
      let bytes = try rows(engine, .records, id).reduce(0) { $0 + $1.key.count + $1.valueCount }
      let account = try #require(store.context.budgets.accounting.count(id), place)
      #expect(account.bytes == bytes, "\(name), \(place)")
      #expect(account.isExact, place)
      #expect(bytes <= Self.budget, place)
    }
    try store.close()
    return [all.core.id, few.core.id, cleared.core.id]
  }

  private func rows(
    _ engine: LevelDBEngine, _ space: KeySpace, _ id: UInt64
  ) throws -> [(key: [UInt8], valueCount: Int)] {
    var rows: [(key: [UInt8], valueCount: Int)] = []
    let cursor = try engine.cursor(over: EngineRange(prefix: space.prefix(ofCache: id)))
    while try cursor.next() {
      rows.append(
        cursor.withEntry { key, value in
          (key.withUnsafeBytes { Array($0) }, value.byteCount)
        })
    }
    return rows
  }
}
