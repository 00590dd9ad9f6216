public import Larder

/// The pages of a feed, one at a time; see ``Loader/pages(from:upTo:maxAge:next:)``.
public struct LoadedPages<Input: Sendable, Key: CacheKey, Value: Sendable>: AsyncSequence,
  Sendable
{
  let loader: Loader<Input, Key, Value>
  let first: Input
  let limit: Int
  let maxAge: MaxAge?
  let following: @Sendable (Value) -> Input?

  /// The iterator of the sequence.
  public struct Iterator: AsyncIteratorProtocol {
    let pages: LoadedPages
    var input: Input?
    var count = 0

    /// Loads the next page; returns nil after the last one.
    ///
    /// - Throws: As ``Loader/load(_:maxAge:)``. The next call tries the same page again.
    public mutating func next() async throws -> Loaded<Value>? {
      guard count < pages.limit, let input else { return nil }
      let page = try await pages.loader.load(input, maxAge: pages.maxAge)
      self.input = pages.following(page.value)
      count += 1
      return page
    }
  }

  /// Creates an iterator, which begins with the first page.
  public func makeAsyncIterator() -> Iterator { Iterator(pages: self, input: first) }
}

extension Loader {
  /// Loads the pages of a feed one at a time, each as an entry of its own.
  ///
  /// ```swift
  /// for try await page in songs.pages(from: firstURL, upTo: 20, next: { $0.nextURL }) {
  ///   list.append(contentsOf: page.value.songs)
  ///   if list.count >= wanted { break }
  /// }
  /// ```
  ///
  /// A page is loaded when the loop asks for it, from the cache or the server as the policy says:
  /// it has a lifetime, a validator and a fallback of its own. So a reader who comes back gets the
  /// pages that are fresh without a request, and the others once the server has confirmed them.
  /// Pages that were loaded at different times need not fit together: an item may come twice, or
  /// not at all. ``Endpoint/pages(of:upTo:atOnce:at:more:_:)`` joins pages into one value instead.
  ///
  /// - Parameters:
  ///   - first: The input of the first page.
  ///   - limit: The most pages, at least 1. It ends a feed whose pages name each other in a circle.
  ///   - maxAge: As in ``load(_:maxAge:)``, for each page.
  ///   - next: Returns the input of the page after one; nil if that is the last one.
  /// - Returns: The pages.
  public func pages(
    from first: Input, upTo limit: Int, maxAge: MaxAge? = nil,
    next: @escaping @Sendable (Value) -> Input?
  ) -> LoadedPages<Input, Key, Value> {
    precondition(limit >= 1, "a feed has at least one page")
    return LoadedPages(loader: self, first: first, limit: limit, maxAge: maxAge, following: next)
  }
}
