import Foundation
import LarderTesting
import Testing

@testable import Larder

/// The example in the documentation of `LarderTesting`.
@Suite(.timeLimit(.minutes(10))) struct OfflineFeedTests {
  @Test("A feed is shown on a full disk, and offline with its age.")
  func offlineFeed() async throws {
    let clock = ManualClock()
    let faults = StoreFaults()
    var options = Store.Options()
    options.clock = clock
    let store = Store.inMemory(options: options, faults: faults)
    var loading = Loading()
    loading.staleIfError = .seconds(86_400)
    let feed = try store.cache(
      "feed", of: [String].self, lifetime: .fresh(for: .hours(1), thenStaleFor: .days(7)),
      loading: loading)

    // Online, on a full disk: the articles are shown, and not saved.
    faults.isDiskFull = true
    let first = try await feed.entry(for: "top") { _ in .value(["Rain"]) }
    #expect(first?.value == ["Rain"] && first?.isSaved == false)

    // There is room again.
    faults.isDiskFull = false
    _ = try await feed.value(for: "top") { ["Sun"] }

    // Offline, two hours later: the articles are shown, with their age.
    clock.advance(by: .seconds(7200))
    let old = try await feed.entry(for: "top") { _ in throw URLError(.notConnectedToInternet) }
    #expect(old?.value == ["Sun"] && old?.isStale == true && old?.age == .seconds(7200))
  }
}
