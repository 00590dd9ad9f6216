import Foundation
import Larder

/// Feed items with keys of two types, made anew by each initializer.
struct KeyedItems: Sendable {
  let texts: [String]
  let items: [FeedItem]
  /// The start of each item's id, by which a run recognizes the item.
  let words: [UInt64]

  init(_ count: Int) {
    var random = WorkloadRandom(seed: Scale.seed)
    texts = (0..<count).map { "item-\(10_000 + $0)" }
    items = (0..<count).map { _ in FeedItem(&random) }
    words = items.map(\.word)
  }

  /// Reads items in an order, and returns how many were right.
  @inline(__always)
  func countRight(_ order: [UInt32], _ read: (Int) throws -> FeedItem?) rethrows -> Int {
    var right = 0
    for number in order where isRight(try read(Int(number)), Int(number)) { right += 1 }
    return right
  }

  /// Whether an item is the one with a number.
  @inline(__always)
  func isRight(_ item: FeedItem?, _ number: Int) -> Bool { item?.word == words[number] }
}

extension FeedItem {
  /// The start of the id, because a comparison of whole items takes longer than a hit.
  @inline(__always)
  fileprivate var word: UInt64 {
    withUnsafeBytes(of: id.uuid) { $0.loadUnaligned(as: UInt64.self) }
  }
}

/// The same items in two stores: one keeps values in memory, and the other does not.
struct ItemStores {
  private static let cacheName = "items"

  let withMemory: Cache<String, FeedItem>
  let withoutMemory: Cache<String, FeedItem>
  private let stores: [Store]

  /// Copies the store of ``fill(_:with:)`` twice.
  ///
  /// - Parameters:
  ///   - original: The directory of that store.
  ///   - name: A name for the copies.
  ///   - memory: The size of the memory for values, in bytes.
  ///   - options: Options of both stores, besides their memory.
  ///   - workspace: The place for the copies.
  /// - Throws: A file error, or a `StoreError`.
  init(
    of original: URL, as name: String, memory: Int, options: Store.Options = Store.Options(),
    in workspace: Workspace
  ) throws {
    stores = try ["with", "without"].map { side in
      var options = options
      options.memoryBytes = side == "with" ? memory : 0
      return try Store(
        at: workspace.copy(of: original, as: "\(name)-\(side)"), options: options)
    }
    withMemory = try Self.cache(in: stores[0])
    withoutMemory = try Self.cache(in: stores[1])
  }

  func close() throws { for store in stores { try store.close() } }

  /// The number of values in memory.
  var resident: Int { stores[0].statistics.memory.entries }

  private static func cache(in store: Store) throws -> Cache<String, FeedItem> {
    try store.cache(cacheName, of: FeedItem.self)
  }

  /// Saves items to a new store, and compacts it.
  ///
  /// - Returns: The bytes that an item takes in memory.
  /// - Throws: A file error, or a `StoreError`.
  static func fill(_ directory: URL, with items: KeyedItems) throws -> Int {
    let engine = try LevelDBEngine(
      at: directory.path(percentEncoded: false), options: LevelDBOptions())
    let store = try Store(engine: engine, origin: .disk)
    let cache = try cache(in: store)
    for (key, item) in zip(items.texts, items.items) { try cache.save(item, for: key) }
    try engine.compact(EngineRange())
    for key in items.texts.prefix(100) { _ = try cache.value(for: key) }
    let memory = store.statistics.memory
    try store.close()
    return memory.bytes / memory.entries
  }
}
