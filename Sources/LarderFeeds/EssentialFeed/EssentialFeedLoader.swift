public import Foundation
public import Larder

/// An item of a feed: an image with its poster's description.
public struct FeedItem: Codable, Hashable, Sendable {
  /// The server's identifier for the item.
  public var id: UUID
  /// The poster's description of the image, if any.
  public var description: String?
  /// The place where the image was made, if the poster named it.
  public var location: String?
  /// The URL of the image.
  public var imageURL: URL

  /// Makes an item, by default without a description and a location.
  public init(id: UUID, description: String? = nil, location: String? = nil, imageURL: URL) {
    self.id = id
    self.description = description
    self.location = location
    self.imageURL = imageURL
  }
}

/// Loads a feed's items from the server, or the last saved ones if the server fails.
public typealias EssentialFeedLoader = Loader<Void, String, [FeedItem]>

extension Loader where Input == Void, Key == String, Value == [FeedItem] {
  /// Makes a loader for the feed at one URL.
  ///
  /// A load asks the server first, because customers want the latest items, and reads the cache
  /// only if the server fails. Saved items are kept until others replace them. A load without a
  /// maximum age delivers them at any age.
  ///
  /// - Parameters:
  ///   - url: The feed's URL, requested unchanged.
  ///   - client: The client that sends the requests.
  ///   - store: The store whose cache `essential-feed` holds the last items.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, like `Store.cache`.
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
