public import Foundation
public import Larder

/// Loads the bytes of images by their URL: from the cache, or from the server once.
///
/// ```swift
/// let images = try ImageDataLoader.imageData(client: URLSessionClient(), store: store)
/// let load = images.load(image.url) { result in show(result) }
/// load.cancel()      // the image has left the screen: the request stops, and nothing is delivered
/// ```
public typealias ImageDataLoader = Loader<URL, URL, Data>

extension Loader where Input == URL, Key == URL, Value == Data {
  /// A loader for the bytes of images.
  ///
  /// What is saved is delivered without a request, whatever its age and whatever becomes of the
  /// feed that names it. The server has to answer with status 200 and at least one byte; whether
  /// the bytes are an image is not looked at.
  ///
  /// Two URLs are the same image if their `absoluteString`s have the same bytes.
  ///
  /// - Parameters:
  ///   - client: What sends the requests.
  ///   - store: The store whose cache `image-data` holds the bytes.
  ///   - lifetime: How long they are kept. Without a limit by default.
  ///   - byteBudget: How many bytes are kept; what was saved first and not loaded since goes first.
  ///     64 MiB by default; nil for no limit, else at least 1.
  /// - Returns: The loader.
  /// - Throws: A `StoreError`, as `Store.cache`.
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
