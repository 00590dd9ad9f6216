public import Foundation
public import Larder

/// Loads the bytes of images by their URL, from the cache or else from the server.
///
/// ```swift
/// let images = try ImageDataLoader.imageData(client: URLSessionClient(), store: store)
/// let load = images.load(image.url) { result in show(result) }
/// load.cancel()      // the image is off screen: the request stops, and nothing is delivered
/// ```
public typealias ImageDataLoader = Loader<URL, URL, Data>

extension Loader where Input == URL, Key == URL, Value == Data {
  /// Makes a loader for the bytes of images.
  ///
  /// Saved bytes are delivered without a request at any age, even if no feed names the image any
  /// more. The server must reply with status 200 and at least one byte; the loader does not check
  /// whether the bytes are an image.
  ///
  /// Two URLs are the same image if their `absoluteString`s have the same bytes.
  ///
  /// - Parameters:
  ///   - client: The client that sends the requests.
  ///   - store: The store whose cache `image-data` holds the bytes.
  ///   - lifetime: How long saved bytes stay fresh. Unlimited by default.
  ///   - byteBudget: The cache's budget in bytes, at least 1, or nil for no limit. The images saved
  ///     first and not loaded since are evicted first. 64 MiB by default.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, like `Store.cache`.
  public static func imageData(
    client: any HTTPClient, store: Store, lifetime: Lifetime = .unlimited,
    byteBudget: Int? = 64 << 20
  ) throws -> ImageDataLoader {
    ImageDataLoader(
      .bytes(at: { $0 }), client: client,
      cache: try store.cache(
        "image-data", of: Data.self, keyedBy: URL.self, lifetime: lifetime, coder: .bytes,
        byteBudget: byteBudget),
      key: { $0 }, policy: LoadPolicy(.cacheThenRemote))
  }
}
