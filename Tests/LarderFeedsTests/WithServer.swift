import FeedServer
import Foundation

/// Runs `body` with a server on loopback, and stops it.
func withServer<R>(_ body: (FeedServer) async throws -> R) async throws -> R {
  let server = try await FeedServer()
  do {
    let result = try await body(server)
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
