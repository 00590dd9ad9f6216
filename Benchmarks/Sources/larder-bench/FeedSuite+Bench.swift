import Larder

extension FeedSuite {
  /// All contests, in the order of the table.
  func contests() throws -> [Contest] {
    let plain = feeds.map { $0.map(PlainFeedItem.init) }
    let cache = try store.cache("plain", of: [PlainFeedItem].self, keyedBy: Int.self)
    return [
      saving,
      saving("save 100 feed items, by Codable", of: plain) { try cache.save(plain[$0], for: $0) },
      retrieving,
      retrieving("retrieve 100 feed items, by Codable", of: plain) { try cache.value(for: $0) },
    ]
  }
}
