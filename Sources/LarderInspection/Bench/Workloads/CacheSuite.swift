import Foundation
import Larder

/// `Cache.value` of `Data` payloads, against the engine's get of the same records.
///
/// The difference is the work of a cache: it encodes the key, verifies the record, checks its age,
/// and copies the payload into a `Data`. The store keeps no values in memory. Both sides read
/// byte-identical copies of one compacted directory.
struct CacheSuite {
  static let goal = 1.5
  private static let cacheName = "records"

  private let all: Plan
  private let hot: Plan
  private let keys: [String]
  private let physicalKeys: [[UInt8]]
  private let store: Store
  private let cache: Cache<String, Data>
  private let engine: any StorageEngine

  init(_ scale: Scale, in workspace: Workspace) throws {
    let original = workspace.directory("cache")
    all = Plan(records: scale.filled, order: Plan.random(scale.visited, from: scale.filled))
    let few = Int(Double(scale.filled) * Scale.hotShare)
    hot = Plan(records: scale.filled, order: Plan.random(scale.visited, from: few))
    let plan = all
    keys = (0..<UInt32(scale.filled)).map { record in
      plan.withKey(record) { String(decoding: [UInt8]($0), as: UTF8.self) }
    }
    try Self.fill(original, plan, keys)
    physicalKeys = try Self.compactAndListKeys(of: original, plan)
    store = try Store(
      at: workspace.copy(of: original, as: "cache-a"), options: .withoutMemory)
    cache = try Self.openCache(in: store)
    engine = try LevelDBEngine(
      at: workspace.copy(of: original, as: "cache-b").path(percentEncoded: false),
      options: LevelDBOptions())
  }

  func close() throws {
    try store.close()
    try engine.close()
  }

  var contests: [Contest] {
    [contest("Cache.value", all), contest("Cache.value hot", hot)]
  }

  private func contest(_ name: String, _ plan: Plan) -> Contest {
    let count = plan.order.count
    return Contest(
      name: name, operations: count, goal: Self.goal,
      a: { try timed(expecting: count) { try readCache(plan) } },
      b: { try timed(expecting: count) { try readEngine(plan) } })
  }

  private func readCache(_ plan: Plan) throws -> Int {
    var right = 0
    for record in plan.order {
      guard let data = try cache.value(for: keys[Int(record)]) else { continue }
      if plan.matches(data.span.bytes, record) { right += 1 }
    }
    return right
  }

  /// Compares the end of each record, which is the payload.
  private func readEngine(_ plan: Plan) throws -> Int {
    var buffer = ValueBuffer()
    var right = 0
    for record in plan.order {
      let key = physicalKeys[Int(record)]
      guard try engine.get(key.span.bytes, into: &buffer) else { continue }
      let isRight = buffer.withBytes { bytes in
        plan.matches(bytes.extracting(last: Scale.valueBytes), record)
      }
      if isRight { right += 1 }
    }
    return right
  }

  // MARK: - Set-up

  private static func openCache(in store: Store) throws -> Cache<String, Data> {
    try store.cache(cacheName, of: Data.self, lifetime: .unlimited, coder: .bytes)
  }

  private static func fill(_ directory: URL, _ plan: Plan, _ keys: [String]) throws {
    let store = try Store(at: directory)
    let cache = try openCache(in: store)
    for record in keys.indices {
      let value = plan.withValue(UInt32(record)) { $0.withUnsafeBytes { Data($0) } }
      try cache.save(value, for: keys[record])
    }
    try store.close()
  }

  /// The engine's keys of the records, in the order of the records.
  ///
  /// A row is a record if it ends with the next record's payload; other rows are the store's own.
  private static func compactAndListKeys(of directory: URL, _ plan: Plan) throws -> [[UInt8]] {
    let engine = try LevelDBEngine(
      at: directory.path(percentEncoded: false), options: LevelDBOptions())
    try engine.compact(EngineRange())
    let cursor = try engine.cursor(over: EngineRange())
    var keys: [[UInt8]] = []
    while try cursor.next() {
      cursor.withEntry { key, value in
        guard value.byteCount > Scale.valueBytes,
          plan.matches(value.extracting(last: Scale.valueBytes), UInt32(keys.count))
        else { return }
        keys.append([UInt8](key))
      }
    }
    try engine.close()
    return keys
  }
}
