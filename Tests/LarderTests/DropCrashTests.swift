import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// Kills during drops leave a cache with all of its entries, or none.
@Suite struct DropCrashTests {
  @Test("A killed drop leaves the cache as it was, or nothing of it.")
  func kills() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let temporary = try TemporaryDirectory()
    var dropped = 0
    var found = 0
    for round in 0..<(12 * proofFactor) {
      let first = round * 1_000_000
      var worker = try ChildProcess("CrashWorker", ["drop", temporary.path, "\(first)"])
      var lines = Int.random(in: 1...60, using: &random)
      while let line = worker.readLine() {
        let words = line.split(separator: " ")
        let value = try #require(words.last.flatMap { Int($0) }, "\(line), seed \(seed)")
        if words.first == "dropped" { dropped = value }
        lines -= 1
        if lines == 0 { worker.kill() }
      }
      let values = try check(temporary.path, "seed \(seed), round \(round)")
      #expect(values.allSatisfy { $0 > dropped }, "seed \(seed), round \(round)")
      #expect(Set(values).count <= 1, "seed \(seed), round \(round)")
      found += values.count
    }
    #expect(dropped > 0 && found > 0)
  }

  /// Checks a store that was left by a kill; returns the values in its cache.
  private func check(_ path: String, _ place: Comment) throws -> [Int] {
    // Each opening reclaims rows.
    for _ in 0..<2 { try Store(engine: LevelDBEngine(at: path), origin: .disk).close() }
    let engine = try LevelDBEngine(at: path)
    let store = try Store(engine: engine, origin: .disk)
    defer { close(store) }
    let row = try engine.get(Metadata.cache("a").span.bytes)
    let ids = try [KeySpace.records, .expiry].flatMap { try self.ids(engine, $0) }
    let marks = try engine.cursor(over: EngineRange(prefix: Metadata.reclaimPrefix))
    #expect(try !marks.next(), place)
    let counts = try engine.cursor(over: EngineRange(prefix: Metadata.bytesPrefix))
    guard let row else {
      #expect(ids.isEmpty, place)
      #expect(try !counts.next(), place)
      return []
    }
    guard case .registration(let found) = Registration.read(row, under: Metadata.cache("a")) else {
      Issue.record("an unreadable registration, \(place)")
      return []
    }
    #expect(Set(ids).isSubset(of: [found.id]), place)
    guard found.keyKind == KeyKind.integer.code else {
      return try values(store.cache("a", of: Int.self)).map { value in
        #expect(!value.isMultiple(of: 2), place)
        return value
      }
    }
    return try values(store.cache("a", of: Int.self, keyedBy: Int.self)).map { value in
      #expect(value.isMultiple(of: 2), place)
      return value
    }
  }

  private func values<Key>(_ cache: Cache<Key, Int>) throws -> [Int] {
    var values: [Int] = []
    let cursor = try cache.entries()
    while let item = try cursor.next() { values.append(try item.entry.get().value) }
    return values
  }

  /// The ids of the caches that have rows in a key space.
  private func ids(_ engine: LevelDBEngine, _ space: KeySpace) throws -> [UInt64] {
    var ids: [UInt64] = []
    let cursor = try engine.cursor(over: EngineRange(prefix: [space.rawValue]))
    while try cursor.next() {
      if let id = cursor.withEntry({ key, _ in RecordKey(key)?.cacheID }) { ids.append(id) }
    }
    return ids
  }

  private func close(_ store: Store) {
    do { try store.close() } catch { Issue.record(error) }
  }
}
