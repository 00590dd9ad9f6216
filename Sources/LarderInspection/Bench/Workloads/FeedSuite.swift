import Foundation
import Larder

/// 100 feed items saved to a cache and read from it, against one JSON file per key.
///
/// The store keeps no values in memory; files and database are in the system's page cache.
struct FeedSuite {
  private static let keys = CodingSuite.variants
  let store: Store
  let feeds: [[FeedItem]]
  private let operations: Int
  private let cache: Cache<Int, [FeedItem]>
  private let files: URL

  init(_ scale: Scale, in workspace: Workspace) throws {
    operations = CodingSuite.operations(scale)
    var random = WorkloadRandom(seed: Scale.seed)
    feeds = (0..<Self.keys).map { _ in (0..<100).map { _ in FeedItem(&random) } }
    store = try Store(at: workspace.directory("feeds"), options: .withoutMemory)
    cache = try store.cache("feeds", of: [FeedItem].self, keyedBy: Int.self)
    files = workspace.directory("files")
    try FileManager.default.createDirectory(at: files, withIntermediateDirectories: true)
  }

  func close() throws { try store.close() }

  var saving: Contest {
    saving("save 100 feed items", of: feeds) { try cache.save(feeds[$0], for: $0) }
  }

  var retrieving: Contest {
    retrieving("retrieve 100 feed items", of: feeds) { try cache.value(for: $0) }
  }

  /// `save` saves the feed with the given number.
  func saving<Item: Encodable>(
    _ name: String, of feeds: [[Item]], _ save: @escaping (Int) throws -> Void
  ) -> Contest {
    Contest(
      name: name, operations: operations, goal: 1 / 15, a: run(save),
      b: run { try JSONEncoder().encode(feeds[$0]).write(to: file($0)) })
  }

  /// `read` reads the feed with the given number.
  func retrieving<Item: Decodable & Equatable>(
    _ name: String, of feeds: [[Item]], _ read: @escaping (Int) throws -> [Item]?
  ) -> Contest {
    Contest(
      name: name, operations: operations, goal: 1 / 4, a: reading(feeds[7], read),
      b: reading(feeds[7]) {
        try JSONDecoder().decode([Item].self, from: Data(contentsOf: file($0)))
      })
  }

  private func file(_ key: Int) -> URL { files.appending(path: "\(key).json") }

  private func run(_ body: @escaping (Int) throws -> Void) -> Contest.Run {
    {
      try timed(expecting: operations) {
        for step in 0..<operations { try body(step % Self.keys) }
        return operations
      }
    }
  }

  /// Reads, and in each run compares the feed with number 7.
  private func reading<Item: Equatable>(
    _ seventh: [Item], _ body: @escaping (Int) throws -> [Item]?
  ) -> Contest.Run {
    {
      guard try body(7) == seventh else {
        throw WrongResults(description: "a feed was read back with other items")
      }
      return try timed(expecting: operations) {
        var right = 0
        for step in 0..<operations where try body(step % Self.keys)?.count == 100 { right += 1 }
        return right
      }
    }
  }
}
