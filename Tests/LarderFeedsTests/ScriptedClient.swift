import Foundation
import HTTPTypes
import LarderFeeds
import LarderTesting

typealias ScriptedClient = ScriptedHTTPClient

extension ScriptedHTTPClient {
  /// When the script has ended, it goes on with its last word: by default, that there is no
  /// connection.
  convenience init(
    _ script: Answer..., last: Answer = .fail(URLError(.notConnectedToInternet))
  ) {
    self.init(script, then: last)
  }

  /// The URLs of the requests so far, in order.
  var urls: [URL] { requests.compactMap(\.url) }
}

extension HTTPClient {
  /// Requests a URL by GET, and returns the status and the body.
  func get(_ url: URL) async throws -> (status: Int, body: Data) {
    let (response, body) = try await send(HTTPRequest(url: url), body: Data())
    return (response.status.code, body)
  }
}
