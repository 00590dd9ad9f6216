import Foundation
import Larder

/// Allocations of reads whose values are in memory.
enum Hits {
  private struct Small: Codable {
    var id: Int
    var name: String
  }

  /// Prints a line for each type of key: its name, and the allocations of a hit and of a miss.
  static func run(in path: String) throws {
    let store = try Store(at: URL(filePath: path))
    try count("text", key: "item-12345", missing: "item-54321", in: store)
    try count("long text", key: String(repeating: "k", count: 100), missing: "none", in: store)
    try count("number", key: 12345, missing: 54321, in: store)
    try store.close()
  }

  private static func count<Key: CacheKey>(
    _ name: String, key: Key, missing: Key, in store: Store
  ) throws {
    let cache = try store.cache(name, of: Small.self, keyedBy: Key.self)
    try cache.save(Small(id: 7, name: "a name that is too long for a small string"), for: key)
    let hit = try allocations { try cache.value(for: key) }
    let before = store.statistics.caches[name]?.reads.memory
    let miss = try allocations { try cache.value(for: missing) }
    guard let before, before >= 30, store.statistics.caches[name]?.reads.memory == before else {
      return print("\(name): the reads were from disk")
    }
    print("\(name): \(hit) \(miss)")
  }
}
