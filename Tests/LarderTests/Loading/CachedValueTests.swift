import LarderObservation
import LarderTestSupport
import LarderTesting
import Observation
import Testing

@testable import Larder

/// A value that views observe.
@Suite(.timeLimit(.minutes(10))) @MainActor struct CachedValueTests {
  /// Waits until a value is shown that fulfils a condition; each change is observed.
  private func wait(
    for value: CachedValue<String, Int>, until isMet: (LoadState<Int>) -> Bool
  ) async {
    while !isMet(value.state), !Task.isCancelled {
      let (changed, continuation) = AsyncStream.makeStream(of: Void.self)
      withObservationTracking {
        if isMet(value.state) { continuation.finish() }
      } onChange: {
        continuation.finish()
      }
      for await _ in changed {}
    }
  }

  @Test("It loads, follows the cache, and shows failures; a refresh is seen by all who follow.")
  func follows() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let one = CachedValue(numbers, "a", load: source.load)
    let two = CachedValue(numbers, "a", load: source.load)
    #expect(one.value == nil && one.state.isLoading)
    source.reply(1)
    await wait(for: one) { $0.value == 1 && !$0.isLoading }
    await wait(for: two) { $0.value == 1 && !$0.isLoading }
    #expect(source.begun == 1)
    try numbers.save(2, for: "a")
    await wait(for: one) { $0.value == 2 }
    source.reply([.failure(.init(number: 5))])
    await one.refresh()
    await wait(for: two) { $0.error as? Source.Failure == .init(number: 5) }
    #expect(two.value == 2)
    source.reply(3)
    await two.refresh()
    await wait(for: one) { $0.value == 3 && $0.error == nil }
    // What is in memory is shown at once.
    _ = try numbers.value(for: "a")
    #expect(CachedValue(numbers, "a", load: source.load).value == 3)
  }

  @Test("Its end cancels its load, and nobody observes the store any more.")
  func ends() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    var value: CachedValue? = CachedValue(numbers, "a", load: source.load)
    await source.begun(1)
    #expect(value != nil)
    value = nil
    await source.state.wait { $0.ended == 1 }
    #expect(source.state.read { $0.cancelled } == 1)
    while !fixture.store.context.observations.isEmpty, !Task.isCancelled { await Task.yield() }
    #expect(!numbers.core.loads.isWatched)
  }
}
