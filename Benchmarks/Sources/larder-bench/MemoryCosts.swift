import Foundation
import Larder

/// What the memory for values costs a read or a save that it does not help.
///
/// Both sides are caches with the same entries, with memory and without.
struct MemoryCosts {
  /// A read from disk may take this many nanoseconds longer.
  private static let margin = 200.0
  private static let goals = (read: 1.03, save: 1.05)

  private let items: KeyedItems
  private let order: [UInt32]
  private let missing: [String]
  /// Stores with memory for one item in a hundred.
  private let small: ItemStores
  /// Stores with memory for all items.
  private let large: ItemStores

  init(
    _ scale: BenchScale, _ items: KeyedItems, at original: URL, weight: Int,
    in workspace: Workspace
  ) throws {
    self.items = items
    order = Plan.random(scale.visited, from: items.items.count)
    missing = items.texts.map { "\($0)." }
    small = try ItemStores(
      of: original, as: "small-memory", memory: items.items.count / 100 * weight, in: workspace)
    var options = Store.Options()
    // Large, so that the runs are not affected by each other's compactions.
    options.writeBufferBytes = 64 << 20
    large = try ItemStores(
      of: original, as: "large-memory", memory: 2 * items.items.count * weight, options: options,
      in: workspace)
  }

  func close() throws {
    try small.close()
    try large.close()
  }

  var contests: [Contest] {
    [
      reading("read not in memory, to no memory") { [items, order] cache in
        try items.countRight(order) { try cache.value(for: items.texts[$0]) }
      },
      reading("read of a missing key, to no memory") { [missing, order] cache in
        var right = 0
        for number in order where try cache.value(for: missing[Int(number)]) == nil { right += 1 }
        return right
      },
      saving,
    ]
  }

  private func reading(
    _ name: String, _ read: @escaping (Cache<String, FeedItem>) throws -> Int
  ) -> Contest {
    Contest(
      name: name, operations: order.count, goal: Self.goals.read, goalMargin: Self.margin,
      a: { try timed(expecting: order.count) { try read(small.withMemory) } },
      b: { try timed(expecting: order.count) { try read(small.withoutMemory) } })
  }

  /// Saves each item once, after a read that puts it into memory.
  private var saving: Contest {
    func save(in cache: Cache<String, FeedItem>, resident expected: Int) throws -> Duration {
      let order = Plan.shuffled(items.items.count)
      let right = try items.countRight(order) { try cache.value(for: items.texts[$0]) }
      guard right == order.count, large.resident == expected else {
        throw WrongResults(
          description: "\(right) items were right, and \(large.resident) are in memory")
      }
      return try timed(expecting: order.count) {
        for number in order {
          try cache.save(items.items[Int(number)], for: items.texts[Int(number)])
        }
        return order.count
      }
    }
    return Contest(
      name: "save over a value in memory, to no memory", operations: items.items.count,
      goal: Self.goals.save,
      a: { try save(in: large.withMemory, resident: items.items.count) },
      b: { try save(in: large.withoutMemory, resident: 0) })
  }
}
