import Larder

extension FeedSuite {
  /// The items as a field of a type that uses `Codable`.
  private struct Feed: Codable, Sendable {
    var items: [FeedItem]
  }

  /// All contests, in the order of the table.
  func contests() throws -> [Contest] {
    let wrapped = try store.cache("wrapped", of: Feed.self, keyedBy: Int.self)
    return [
      saving,
      saving("save 100 feed items, by Codable") {
        try wrapped.save(Feed(items: feeds[$0]), for: $0)
      },
      retrieving,
      retrieving("retrieve 100 feed items, by Codable") { try wrapped.value(for: $0)?.items },
    ]
  }
}
