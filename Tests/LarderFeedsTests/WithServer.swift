import FeedServer
import Foundation
import LarderFeeds

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Runs `body` with a server on loopback, and stops it.
///
/// The server also stops when the test is cancelled, for example by its time limit. Then pending
/// requests fail.
func withServer<R>(_ body: (FeedServer) async throws -> R) async throws -> R {
  let server = try await FeedServer()
  do {
    let result = try await withTaskCancellationHandler {
      try await body(server)
    } onCancel: {
      Task { await server.stop() }
    }
    await server.stop()
    return result
  } catch {
    await server.stop()
    throw error
  }
}

extension FeedServer {
  var genresURL: URL { url.appending(path: "api/v2/genres") }
}

extension URLSessionClient {
  /// A client whose time limits a busy machine does not reach.
  static var patient: URLSessionClient { patient() }

  static func patient(
    maximumResponseBytes: Int = 16 << 20, maximumRedirects: Int = 5,
    configuration: URLSessionConfiguration = .ephemeral
  ) -> URLSessionClient {
    URLSessionClient(
      maximumResponseBytes: maximumResponseBytes, maximumRedirects: maximumRedirects,
      requestTimeout: .seconds(600), resourceTimeout: .seconds(600), configuration: configuration)
  }
}
