import Foundation
import Larder

/// Records of a number and a text in a cache, against the same bytes in C++.
///
/// Saves in C++ write the records that Larder made of the same values, and nothing else. Reads get
/// the same bytes from byte-identical copies of one compacted directory.
struct SmallSuite {
  private static let goal = 1.3
  private static let batchRecords = 256

  private let scale: BenchScale
  private let workspace: Workspace
  /// The saved records, in order.
  private let saved: [(key: Int, value: Small)]
  private let plan: Plan
  private let records: SmallRecords

  init(_ scale: BenchScale, in workspace: Workspace) throws {
    (self.scale, self.workspace) = (scale, workspace)
    let count = scale.small
    // Both sides have the records in memory in the order of their use.
    saved = Plan.shuffled(count).map { (Int($0), SmallRecords.value(Int($0))) }
    records = SmallRecords(count, visited: count, in: workspace)
    let made = workspace.directory("small-made")
    let store = try Store(at: made)
    let cache = try SmallRecords.cache(in: store)
    for record in saved { try cache.save(record.value, for: record.key) }
    try store.close()
    plan = try SmallRecords.plan(of: saved.map(\.key), in: made)
    try workspace.remove("small-made")
  }

  var contests: [Contest] {
    [
      saving("save small records", batchSize: 1),
      saving("save small records, 256 at once", batchSize: Self.batchRecords),
      records.contest("retrieve small records", goal: Self.goal),
    ]
  }

  private func saving(_ name: String, batchSize: Int) -> Contest {
    Contest(
      name: name, operations: saved.count, goal: Self.goal,
      a: {
        try workspace.remove("small-a")
        let store = try Store(at: workspace.directory("small-a"))
        let cache = try SmallRecords.cache(in: store)
        let time = try timed(expecting: saved.count) {
          batchSize == 1
            ? try saveEach(cache) : try saveBatches(cache, in: store, of: batchSize)
        }
        try store.close()
        return time
      },
      b: {
        try workspace.remove("small-b")
        let side = RawSide(at: workspace.directory("small-b"))
        let time = try timed(expecting: saved.count) { side.putBatches(plan, of: batchSize) }
        side.close()
        return time
      })
  }

  private func saveEach(_ cache: Cache<Int, Small>) throws -> Int {
    for record in saved { try cache.save(record.value, for: record.key) }
    return saved.count
  }

  private func saveBatches(
    _ cache: Cache<Int, Small>, in store: Store, of count: Int
  ) throws -> Int {
    for start in stride(from: 0, to: saved.count, by: count) {
      try store.write { batch in
        for record in saved[start..<min(start + count, saved.count)] {
          batch.save(record.value, for: record.key, in: cache)
        }
      }
    }
    return saved.count
  }
}

/// Reads from stores of several sizes, against LevelDB's own reads.
struct SizesSuite {
  private static let goal = 1.3
  let contests: [Contest]

  init(_ scale: BenchScale, in workspace: Workspace) {
    contests = scale.grown.map { count in
      var contest = SmallRecords(count, visited: scale.visited, in: workspace)
        .contest("retrieve one of \(count)", goal: Self.goal)
      contest.mostRounds = 6
      return contest
    }
  }
}

/// A cache of small records and two copies of its store, created at the first read.
private final class SmallRecords {
  private static let cacheName = "small"
  private let count: Int
  private let visited: Int
  private let workspace: Workspace
  private var opened: Opened?

  /// The opened stores, and the records to read in order.
  private struct Opened {
    let cache: Cache<Int, Small>
    let keys: [Int]
    let values: [Small]
    let side: RawSide
    let plan: Plan
  }

  init(_ count: Int, visited: Int, in workspace: Workspace) {
    (self.count, self.visited, self.workspace) = (count, visited, workspace)
  }

  deinit { opened?.side.close() }

  static func cache(in store: Store) throws -> Cache<Int, Small> {
    try store.cache(cacheName, of: Small.self, keyedBy: Int.self)
  }

  /// A value; all values have payloads of the same size.
  static func value(_ number: Int) -> Small {
    Small(id: number, name: "Genre number \(10_000_000 + number)")
  }

  static func userKey(_ number: Int) -> [UInt8] {
    let bits = UInt64(bitPattern: Int64(number)) ^ (1 << 63)
    return withUnsafeBytes(of: bits.bigEndian) { Array($0) }
  }

  func contest(_ name: String, goal: Double) -> Contest {
    Contest(
      name: name, operations: visited, goal: goal,
      a: {
        let opened = try self.open()
        return try timed(expecting: self.visited) {
          var right = 0
          for (step, key) in opened.keys.enumerated()
          where try opened.cache.value(for: key) == opened.values[step] { right += 1 }
          return right
        }
      },
      b: {
        let opened = try self.open()
        return try timed(expecting: self.visited) { opened.side.getEach(opened.plan) }
      })
  }

  private func open() throws -> Opened {
    if let opened { return opened }
    let original = workspace.directory("small-\(count)")
    try fill(original)
    let keys = Plan.random(visited, from: count).map { Int($0) }
    let plan = try Self.plan(of: keys, in: original)
    let store = try Store(
      at: workspace.copy(of: original, as: "small-\(count)-a"), options: .withoutMemory)
    let made = Opened(
      cache: try Self.cache(in: store), keys: keys, values: keys.map(Self.value),
      side: RawSide(at: try workspace.copy(of: original, as: "small-\(count)-b")), plan: plan)
    try workspace.remove("small-\(count)")
    opened = made
    return made
  }

  private func fill(_ directory: URL) throws {
    let engine = try LevelDBEngine(
      at: directory.path(percentEncoded: false), options: LevelDBOptions())
    let store = try Store(engine: engine, origin: .disk)
    let cache = try Self.cache(in: store)
    for start in stride(from: 0, to: count, by: 1000) {
      try store.write { batch in
        for number in start..<min(start + 1000, count) {
          batch.save(Self.value(number), for: number, in: cache)
        }
      }
    }
    try engine.compact(EngineRange())
    try store.close()
  }

  /// Makes the plan for C++ from the physical keys and the stored bytes of the records.
  static func plan(of keys: [Int], in directory: URL) throws -> Plan {
    let engine = try LevelDBEngine(
      at: directory.path(percentEncoded: false), options: LevelDBOptions())
    var (physical, records): ([UInt8], [UInt8]) = ([], [])
    var buffer = ValueBuffer()
    var recordBytes = 0
    for key in keys {
      let key = KeySpace.records.prefix(ofCache: 1) + Self.userKey(key)
      guard try engine.get(key.span.bytes, into: &buffer) else {
        throw WrongResults(description: "a record is missing")
      }
      physical += key
      let bytes = buffer.withBytes { $0.withUnsafeBytes { Array($0) } }
      recordBytes = bytes.count
      records += bytes
    }
    try engine.close()
    return Plan(
      keys: physical, keyBytes: physical.count / keys.count, values: records,
      valueBytes: recordBytes, order: Plan.sequence(keys.count))
  }
}
