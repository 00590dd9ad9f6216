import Foundation
import Larder
import LarderFeeds
import LarderTestSupport
import LarderTesting
import Testing

/// The times between the attempts of a load.
@Suite(.timeLimit(.minutes(10))) struct RetryDelayTests {
  @Test("The times before attempts double up to the longest one, times chance.")
  func delays() async throws {
    let answers = [ScriptedClient.Answer](repeating: .status(503), count: 4)
    let bench = try SharedBench(.cacheThenRemote, answers + [.words("x")]) {
      $0.loading.retries = Loading.Retries(extra: 4, first: .seconds(8), upTo: .seconds(20))
    }
    async let loaded = bench.load()
    // The store's chance is 0.5.
    for (attempt, delay) in [4, 8, 10, 10].enumerated() {
      try await bench.client.waitForRequests(attempt + 1)
      #expect(await bench.timer.fire(.seconds(delay)) == 1)
    }
    #expect(try await loaded.value == ["x"])
    #expect(bench.client.requests.count == 5)
  }

  @Test("A load that is cancelled between attempts makes no other one.")
  func cancelled() async throws {
    let bench = try SharedBench(.remoteOnly, [.offline]) {
      $0.loading.retries = Loading.Retries(extra: 1, first: .seconds(8))
    }
    let load = Task { try await bench.load() }
    await bench.timer.wait(untilRunning: 1)
    load.cancel()
    await #expect(throws: CancellationError.self) { _ = try await load.value }
    #expect(bench.timer.running.isEmpty && bench.client.requests.count == 1)
  }

  @Test("Attempts without a delay start no timer.")
  func withoutDelay() async throws {
    let bench = try SharedBench(.remoteOnly, [.offline, .words("x")]) {
      $0.loading.retries = Loading.Retries(extra: 1, first: .zero)
    }
    #expect(try await bench.load().value == ["x"])
    #expect(bench.timer.started.isEmpty)
  }
}
