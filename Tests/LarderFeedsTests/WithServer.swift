import FeedServer
import Foundation

/// Runs `body` with a server on loopback, and stops it.
///
/// The server stops at once when the test is cancelled, by its time limit say: what still waits for
/// a reply then fails.
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
