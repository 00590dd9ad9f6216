import Larder

extension SharedTier {
  #if Shared
    /// Creates a tier, and begins to connect to its server.
    ///
    /// ```swift
    /// var options = SharedTier.Options()
    /// options.login = .init(user: "shop", password: password)
    /// let tier = try SharedTier(.server(host: "cache-1"), namespace: "shop", options)
    /// ```
    ///
    /// It uses one connection, or one to each primary of a cluster, on a thread of
    /// `MultiThreadedEventLoopGroup.singleton`. The server is Redis from version 6.2 on, or Valkey;
    /// see <doc:LarderShared> for the user's rights there.
    ///
    /// - Parameters:
    ///   - address: Where the server is.
    ///   - namespace: What the keys of this application begin with: 1 to 64 bytes without braces,
    ///     colons, percent signs and control characters. Machines of one namespace share their
    ///     caches by name.
    ///   - options: How the tier is used.
    /// - Throws: `StoreError.invalidArgument` for a namespace, an address or an option outside its
    ///   limits. That the server cannot be reached, or is set up wrongly, is no error here; see
    ///   ``waitUntilConnected()``.
    public convenience init(
      _ address: Address, namespace: String, _ options: Options = Options()
    ) throws {
      try address.check()
      let clock = SystemClock()
      try self.init(namespace: namespace, options, clock: clock) { link, observer in
        guard case .cluster(let nodes) = address.place else {
          return SharedLink(to: address, options.security, link, uptime: { clock.uptime() }) {
            observer($0, 0)
          }
        }
        return ClusterLink(
          to: nodes, options.security, link, uptime: { clock.uptime() }, observer: observer)
      }
    }
  #else
    /// Needs the trait `Shared` of the package, which adds SwiftNIO to it.
    @available(*, unavailable, message: "depend on the package with the trait \"Shared\"")
    public convenience init(
      _ address: Address, namespace: String, _ options: Options = Options()
    ) throws {
      fatalError("unavailable")
    }
  #endif
}
