import Foundation
import Larder
import LarderFeeds
import Testing

/// The error messages of feeds are their descriptions.
@Suite struct FeedErrorMessageTests {
  @Test("An error's localized description is its description.")
  func localizedDescriptions() {
    let errors: [any Error] = [
      FeedError.notFound, FeedError.cache(.closed),
      FeedError.remote(RemoteFailure(.invalidData), cache: .closed),
      RemoteFailure(.connectivity), HTTPClientError.responseTooLarge(limit: 3), PaletteError.empty,
    ]
    for error in errors { #expect(error.localizedDescription == "\(error)") }
  }
}
