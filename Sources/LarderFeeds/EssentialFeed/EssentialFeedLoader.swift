public import Foundation
public import Larder

/// An item of a feed: an image, and what its poster wrote about it.
public struct FeedItem: Codable, Hashable, Sendable {
  /// The server's identifier for the item.
  public var id: UUID
  /// What the image shows, if the poster said so.
  public var description: String?
  /// Where the image was made, if the poster said so.
  public var location: String?
  /// Where the image is.
  public var imageURL: URL

  /// Makes an item.
  ///
  /// It has no description and no location by default.
  public init(id: UUID, description: String? = nil, location: String? = nil, imageURL: URL) {
    self.id = id
    self.description = description
    self.location = location
    self.imageURL = imageURL
  }
}

/// Loads a feed's items: from the server, or the last ones saved when the server fails.
public typealias EssentialFeedLoader = Loader<Void, String, [FeedItem]>

extension Loader where Input == Void, Key == String, Value == [FeedItem] {
  /// A loader for the feed at one URL.
  ///
  /// The server comes first, since customers want the latest items; the cache is for when it fails
  /// in any way. Saved items are kept until others replace them, and delivered whatever their age,
  /// unless a load says how old they may be.
  ///
  /// - Parameters:
  ///   - url: The feed's URL, requested as it is.
  ///   - client: What sends the requests.
  ///   - store: The store whose cache `essential-feed` holds the last items.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, as `Store.cache`.
  public static func essentialFeed(
    at url: URL, client: any HTTPClient, store: Store
  ) throws -> EssentialFeedLoader {
    EssentialFeedLoader(
      .json(RemoteFeed.self, at: { url }, \.models), client: client,
      cache: try store.cache("essential-feed", of: [FeedItem].self, lifetime: .unlimited),
      key: { "all" }, policy: LoadPolicy(.remoteThenCache))
  }
}

private struct RemoteFeed: Decodable {
  struct Item: Decodable {
    var id: UUID
    var description: String?
    var location: String?
    var image: URL
  }
  var items: [Item]
  var models: [FeedItem] {
    items.map {
      FeedItem(
        id: $0.id, description: $0.description, location: $0.location, imageURL: $0.image)
    }
  }
}
