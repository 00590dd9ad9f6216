public import Foundation
public import Larder

/// An image of a feed.
public struct FeedImage: Codable, Hashable, Sendable {
  /// The server's identifier for the image.
  public var id: UUID
  /// The poster's description of the image, if any.
  public var description: String?
  /// The place where the image was made, if the poster named it.
  public var location: String?
  /// The URL of the image's bytes.
  public var url: URL

  /// Makes an image, by default without a description and a location.
  public init(id: UUID, description: String? = nil, location: String? = nil, url: URL) {
    self.id = id
    self.description = description
    self.location = location
    self.url = url
  }
}

/// Loads the images of a feed from the server, or the ones saved in the last seven days if the
/// server fails.
public typealias ImageFeedLoader = Loader<Void, String, [FeedImage]>

extension Loader where Input == Void, Key == String, Value == [FeedImage] {
  /// Makes a loader for the images listed at one URL.
  ///
  /// A load asks the server first, because customers want the newest images of their friends, and
  /// reads the cache only if the server fails. ``ImageDataLoader`` loads the images' bytes.
  ///
  /// - Parameters:
  ///   - url: The list's URL, requested unchanged.
  ///   - client: The client that sends the requests.
  ///   - store: The store whose cache `image-feed` holds the last list for seven days.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, like `Store.cache`.
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
