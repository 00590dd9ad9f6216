import Foundation
import Larder

/// 100 feed items saved to a cache and read from it, against a file of JSON for each key.
///
/// The store has no tier in memory above the engine; files and database are in the system's memory.
struct FeedSuite {
  private static let keys = CodingSuite.variants
  private let operations: Int
  private let feeds: [[FeedItem]]
  private let store: Store
  private let cache: Cache<Int, [FeedItem]>
  /// The same items as the field of a type that goes by `Codable`.
  private let wrapped: Cache<Int, Feed>
  private let files: URL

  struct Feed: Codable, Equatable, Sendable {
    var items: [FeedItem]
  }

  init(_ scale: Scale, in workspace: Workspace) throws {
    operations = CodingSuite.operations(scale)
    var random = SplitMix64(seed: Scale.seed)
    feeds = (0..<Self.keys).map { _ in (0..<100).map { _ in FeedItem(&random) } }
    store = try Store(at: workspace.directory("feeds"))
    cache = try store.cache("feeds", of: [FeedItem].self, keyedBy: Int.self)
    wrapped = try store.cache("wrapped", of: Feed.self, keyedBy: Int.self)
    files = workspace.directory("files")
    try FileManager.default.createDirectory(at: files, withIntermediateDirectories: true)
  }

  func close() throws { try store.close() }

  var contests: [Contest] {
    let saveFile = run { try JSONEncoder().encode(feeds[$0]).write(to: file($0)) }
    let readFile = reading { key in
      try JSONDecoder().decode([FeedItem].self, from: Data(contentsOf: file(key)))
    }
    return [
      contest("save 100 feed items", 1 / 15, run { try cache.save(feeds[$0], for: $0) }, saveFile),
      contest(
        "save 100 feed items, by Codable", 1 / 15,
        run { try wrapped.save(Feed(items: feeds[$0]), for: $0) }, saveFile),
      contest("retrieve 100 feed items", 1 / 4, reading { try cache.value(for: $0) }, readFile),
      contest(
        "retrieve 100 feed items, by Codable", 1 / 4,
        reading { try wrapped.value(for: $0)?.items }, readFile),
    ]
  }

  private func file(_ key: Int) -> URL { files.appending(path: "\(key).json") }

  private func contest(
    _ name: String, _ goal: Double, _ a: @escaping Contest.Run, _ b: @escaping Contest.Run
  ) -> Contest {
    Contest(name: name, operations: operations, goal: goal, a: a, b: b)
  }

  private func run(_ body: @escaping (Int) throws -> Void) -> Contest.Run {
    {
      try timed(expecting: operations) {
        for step in 0..<operations { try body(step % Self.keys) }
        return operations
      }
    }
  }

  /// Reads, and compares one feed in each run with what was saved.
  private func reading(_ body: @escaping (Int) throws -> [FeedItem]?) -> Contest.Run {
    {
      guard try body(7) == feeds[7] else {
        throw WrongResults(description: "a feed came back as something else")
      }
      return try timed(expecting: operations) {
        var right = 0
        for step in 0..<operations where try body(step % Self.keys)?.count == 100 { right += 1 }
        return right
      }
    }
  }
}
