import Foundation
import Larder
import Synchronization

/// Values that are in memory, against what a program would use without Larder.
struct MemorySuite {
  private static let keys = 1000
  private static let goals = (text: 0.9, number: 2.0)
  /// The goal is that two threads read at 0.85 times the rate of threads that share nothing.
  private static let threadsGoal = 1 / 0.85
  private static let threads = 2

  private let items = KeyedItems(keys)
  private let order: [UInt32]
  private let store: Store
  private let byText: Cache<String, FeedItem>
  private let byNumber: Cache<Int, FeedItem>
  private let files: FileCache<FeedItem>
  private let costs: MemoryCosts
  private let mixes: MemoryMixes

  init(_ scale: BenchScale, in workspace: Workspace) throws {
    // A hit takes so little time that more of them are needed.
    order = Plan.random(5 * scale.visited, from: Self.keys)
    store = try Store(at: workspace.directory("resident"))
    byText = try store.cache("texts", of: FeedItem.self)
    byNumber = try store.cache("numbers", of: FeedItem.self, keyedBy: Int.self)
    files = try FileCache(in: workspace.directory("resident-files"), lifetime: 7 * 86_400)
    for (number, item) in items.items.enumerated() {
      try byText.save(item, for: items.texts[number])
      try byNumber.save(item, for: number)
      try files.save(item, for: items.texts[number])
    }
    let stored = KeyedItems(scale.filled / 10)
    let original = workspace.directory("items")
    let weight = try ItemStores.fill(original, with: stored)
    costs = try MemoryCosts(scale, stored, at: original, weight: weight, in: workspace)
    mixes = try MemoryMixes(scale, stored, at: original, weight: weight, in: workspace)
  }

  func close() throws {
    try store.close()
    try costs.close()
    try mixes.close()
  }

  var contests: [Contest] { hits + [twoThreads] + costs.contests + mixes.contests }

  private var hits: [Contest] {
    let items = items
    let dictionary = LockedDictionary(
      Dictionary(uniqueKeysWithValues: zip(items.texts, items.items)))
    let numbers = LockedDictionary(
      Dictionary(uniqueKeysWithValues: zip(items.items.indices, items.items)))
    let objects = ObjectCache(
      Dictionary(uniqueKeysWithValues: zip(items.texts, items.items)))
    let larder = { [byText] key in try byText.value(for: key) }
    func run(
      _ order: [UInt32], _ read: @escaping (String) throws -> FeedItem?
    ) -> Contest.Run {
      {
        try timed(expecting: order.count) {
          try items.countRight(order) { try read(items.texts[$0]) }
        }
      }
    }
    func against(
      _ other: String, share: Double = 1, goal: Double? = nil,
      _ read: @escaping (String) throws -> FeedItem?
    ) -> Contest {
      let order = Array(order.prefix(Int(Double(order.count) * share)))
      return Contest(
        name: "hit by String, to \(other)", operations: order.count, goal: goal,
        a: run(order, larder), b: run(order, read))
    }
    return [
      against("a dictionary", goal: Self.goals.text) { dictionary.value(for: $0) },
      against("NSCache", share: 0.2) { objects.value(for: $0) },
      against("a dictionary with JSON files") { [files] in try files.value(for: $0) },
      Contest(
        name: "hit by Int, to a dictionary", operations: order.count, goal: Self.goals.number,
        a: { [byNumber, order] in
          try timed(expecting: order.count) {
            try items.countRight(order) { try byNumber.value(for: $0) }
          }
        },
        b: { [order] in
          try timed(expecting: order.count) {
            items.countRight(order) { numbers.value(for: $0) }
          }
        }),
    ]
  }

  /// Two threads that read from one cache, against two that have a dictionary and values each.
  private var twoThreads: Contest {
    let (items, order, byText) = (items, order, byText)
    let dictionaries = (0..<Self.threads).map { _ in
      let own = KeyedItems(Self.keys)
      return LockedDictionary(Dictionary(uniqueKeysWithValues: zip(own.texts, own.items)))
    }
    let operations = Self.threads * order.count
    return Contest(
      name: "hit by String, 2 threads, to a dictionary each", operations: operations,
      goal: Self.threadsGoal,
      a: {
        try timed(expecting: operations) {
          try sum(onThreads: Self.threads) { _ in
            try items.countRight(order) { try byText.value(for: items.texts[$0]) }
          }
        }
      },
      b: {
        try timed(expecting: operations) {
          try sum(onThreads: Self.threads) { thread in
            let dictionary = dictionaries[thread]
            return items.countRight(order) { dictionary.value(for: items.texts[$0]) }
          }
        }
      })
  }
}

/// Runs `body` on several threads at once, and returns the sum of its results.
///
/// - Parameters:
///   - count: The number of threads.
///   - body: Receives the number of its thread, from 0.
/// - Returns: The sum.
/// - Throws: An error that `body` has thrown.
func sum(
  onThreads count: Int, _ body: @escaping @Sendable (Int) throws -> Int
) throws -> Int {
  guard count > 1 else { return try body(0) }
  let results = Mutex<[Result<Int, any Error>]>([])
  let group = DispatchGroup()
  for thread in 0..<count {
    group.enter()
    Thread.detachNewThread {
      let result = Result { try body(thread) }
      results.withLock { $0.append(result) }
      group.leave()
    }
  }
  group.wait()
  return try results.withLock { $0 }.reduce(0) { try $0 + $1.get() }
}
