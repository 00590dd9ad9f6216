import LarderShared
import NIOPosix

/// Ports for servers of tests.
enum Ports {
  /// A port that was free a moment ago.
  static func free() async throws -> Int {
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = server.localAddress?.port ?? 0
    try await server.close()
    return port
  }
}

extension SharedTier.Options {
  /// Options whose times only tests about late replies reach: the machine may be busy.
  static var patient: Self {
    var options = Self()
    options.security = .plain
    (options.requestTimeout, options.connectTimeout) = (.seconds(60), .seconds(60))
    return options
  }
}
