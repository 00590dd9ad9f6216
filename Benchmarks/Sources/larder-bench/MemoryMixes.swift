import Foundation
import Larder

/// Reads and saves by Zipf's law, of ten times as many items as fit into memory, against caches
/// without memory.
struct MemoryMixes {
  /// The goal is three times the rate.
  private static let goal = 1.0 / 3
  private static let exponent = 0.99

  /// The operations of a thread: an item's number, and whether it is saved.
  private typealias Operation = (number: UInt32, isSave: Bool)

  private let items: KeyedItems
  private let zipf: Zipf
  private let operations: Int
  private let blocksInMemory: ItemStores
  private let blocksOnDisk: ItemStores

  init(
    _ scale: BenchScale, _ items: KeyedItems, at original: URL, weight: Int,
    in workspace: Workspace
  ) throws {
    self.items = items
    zipf = Zipf(count: items.items.count, exponent: Self.exponent)
    operations = scale.visited / 2
    var options = Store.Options()
    options.blockCacheBytes = 64 << 20
    blocksInMemory = try ItemStores(
      of: original, as: "blocks", memory: items.items.count / 10 * weight, options: options,
      in: workspace)
    options.blockCacheBytes = 0
    blocksOnDisk = try ItemStores(
      of: original, as: "no-blocks", memory: items.items.count / 10 * weight, options: options,
      in: workspace)
  }

  func close() throws {
    try blocksInMemory.close()
    try blocksOnDisk.close()
  }

  var contests: [Contest] {
    [
      mix(reads: 95, threads: 1, goal: Self.goal, blocksInMemory),
      mix(reads: 95, threads: 1, goal: Self.goal, blocksOnDisk, ", no block cache"),
    ]
      + [100, 75, 50].flatMap { reads in
        [1, 2].map { mix(reads: reads, threads: $0, blocksInMemory) }
      }
  }

  private func mix(
    reads: Int, threads: Int, goal: Double? = nil, _ stores: ItemStores, _ suffix: String = ""
  ) -> Contest {
    let scripts = (0..<threads).map { script(reads: reads, seed: Scale.seed + UInt64($0)) }
    let count = threads * operations
    func run(_ cache: Cache<String, FeedItem>) throws -> Duration {
      let items = items
      return try timed(expecting: count) {
        try sum(onThreads: threads) { try Self.run(scripts[$0], items, cache) }
      }
    }
    return Contest(
      name: "Zipf, \(reads) % reads, \(threads) thread\(threads == 1 ? "" : "s")\(suffix)",
      operations: count, goal: goal, a: { try run(stores.withMemory) },
      b: { try run(stores.withoutMemory) })
  }

  private func script(reads: Int, seed: UInt64) -> [Operation] {
    var random = WorkloadRandom(seed: seed)
    return (0..<operations).map { _ in
      (UInt32(zipf.next(&random)), Int.random(in: 0..<100, using: &random) >= reads)
    }
  }

  /// Saves store the item that the key has already, so every read knows its result.
  private static func run(
    _ script: [Operation], _ items: KeyedItems, _ cache: Cache<String, FeedItem>
  ) throws -> Int {
    var right = 0
    for (number, isSave) in script {
      let key = items.texts[Int(number)]
      if isSave {
        try cache.save(items.items[Int(number)], for: key)
        right += 1
      } else if items.isRight(try cache.value(for: key), Int(number)) {
        right += 1
      }
    }
    return right
  }
}
