import Foundation
import Larder

/// Saving and reading large encoded values with compression, against the same without it.
struct CompressionSuite {
  private static let keys = 256

  /// With compression, and without it.
  private let stores: [Store]
  private let operations: Int
  private(set) var contests: [Contest] = []

  init(_ scale: BenchScale, in workspace: Workspace) throws {
    operations = min(4096, scale.visited / 10)
    stores = try ["compressed", "plain"].map { name in
      var options = Store.Options()
      options.compression = name == "compressed"
      options.memoryBytes = 0
      return try Store(at: workspace.directory(name), options: options)
    }
    var random = WorkloadRandom(seed: Scale.seed)
    let feed = (0..<100).map { _ in FeedItem(&random) }
    let characters = (0..<1000).map { _ in CharacterItem(&random) }
    try add("100 feed items", feed)
    try add("100 characters", Array(characters.prefix(100)))
    try add("1,000 characters", characters)
    try add("100 characters in JSON", Array(characters.prefix(100)), coder: .json)
    try add("2,000 random numbers", Numbers(&random))
    try add("random bytes in a field", Blob(&random))
  }

  func close() throws { for store in stores { try store.close() } }

  /// Adds the contests of a value, under names with its encoded and its compressed size.
  private mutating func add<Value: Codable & Sendable>(
    _ name: String, _ value: Value, coder: Coder<Value> = .binary
  ) throws {
    let caches = try stores.map { store in
      try store.cache(name, of: Value.self, keyedBy: Int.self, coder: coder)
    }
    for cache in caches {
      for key in 0..<Self.keys { try cache.save(value, for: key) }
    }
    let sizes = try stores.map { try $0.contents()[name]?.fresh.bytes ?? 0 }
    let kilobytes = sizes.map { decimals(Double($0 / Self.keys) / 1000, 1) }
    let title = "\(name), \(kilobytes[1]) KB in \(kilobytes[0])"
    contests.append(contest("save \(title)", of: caches) { try $0.save(value, for: $1) })
    contests.append(
      contest("read \(title)", of: caches) { cache, key in
        guard try cache.value(for: key) != nil else {
          throw WrongResults(description: "no value under \(key) of \(name)")
        }
      })
  }

  private func contest<Value: Sendable>(
    _ name: String, of caches: [Cache<Int, Value>],
    _ body: @escaping (Cache<Int, Value>, Int) throws -> Void
  ) -> Contest {
    func run(_ cache: Cache<Int, Value>) throws -> Duration {
      try timed(expecting: operations) {
        for step in 0..<operations { try body(cache, step * 7 % Self.keys) }
        return operations
      }
    }
    return Contest(
      name: name, operations: operations, a: { try run(caches[0]) }, b: { try run(caches[1]) })
  }
}
