public import Foundation
public import Larder

/// An image of a feed.
public struct FeedImage: Codable, Hashable, Sendable {
  /// The server's identifier for the image.
  public var id: UUID
  /// What the image shows, if its poster said so.
  public var description: String?
  /// Where the image was made, if its poster said so.
  public var location: String?
  /// Where its bytes are.
  public var url: URL

  /// Makes an image.
  ///
  /// It has no description and no location by default.
  public init(id: UUID, description: String? = nil, location: String? = nil, url: URL) {
    self.id = id
    self.description = description
    self.location = location
    self.url = url
  }
}

/// Loads the images of a feed: from the server, or those saved in the last seven days when the
/// server fails.
public typealias ImageFeedLoader = Loader<Void, String, [FeedImage]>

extension Loader where Input == Void, Key == String, Value == [FeedImage] {
  /// A loader for the images listed at one URL.
  ///
  /// The server comes first, since customers want the newest images of their friends; the cache is
  /// for when it fails in any way. ``ImageDataLoader`` loads their bytes.
  ///
  /// - Parameters:
  ///   - url: The list's URL, requested as it is.
  ///   - client: What sends the requests.
  ///   - store: The store whose cache `image-feed` holds the last list for seven days.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, as `Store.cache`.
  public static func imageFeed(
    at url: URL, client: any HTTPClient, store: Store
  ) throws -> ImageFeedLoader {
    ImageFeedLoader(
      .json(RemoteImages.self, at: { url }, \.models), client: client,
      cache: try store.cache("image-feed", of: [FeedImage].self, lifetime: .days(7)),
      key: { "all" }, policy: LoadPolicy(.remoteThenCache))
  }
}

private struct RemoteImages: Decodable {
  struct Item: Decodable {
    var id: UUID
    var description: String?
    var location: String?
    var image: URL
  }
  var items: [Item]
  var models: [FeedImage] {
    items.map {
      FeedImage(id: $0.id, description: $0.description, location: $0.location, url: $0.image)
    }
  }
}
