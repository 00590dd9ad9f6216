import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Loads of calls that limit the age of the entries they accept.
@Suite(.timeLimit(.minutes(10))) struct LoadMaxAgeTests {
  typealias Numbers = Cache<String, Int>

  /// A cache with a saved 1 of some age; its entries are fresh for 100 seconds.
  private func numbers(
    in fixture: LoadFixture, age: Int, isResident: Bool = false
  ) throws -> Numbers {
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a")
    if isResident { #expect(try numbers.value(for: "a") == 1) }
    fixture.clock.advance(by: .seconds(age))
    return numbers
  }

  private func loading(_ seconds: Double, _ change: (inout Loading) -> Void = { _ in }) -> Loading {
    var loading = Loading()
    loading.maxAge = .seconds(seconds)
    change(&loading)
    return loading
  }

  @Test(
    "An entry below the maximum age is returned; from that age on it is loaded.",
    arguments: [false, true], [(9, 1), (10, 2)])
  func limit(isResident: Bool, _ row: (age: Int, value: Int)) async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try numbers(in: fixture, age: row.age, isResident: isResident)
    let source = Source([.success(.value(2))])
    let value = try await numbers.value(for: "a", loading: loading(10), load: source.load)
    #expect(value == row.value)
    #expect(source.begun == row.value - 1)
  }

  @Test("A read is counted once, whether the value in memory is young enough for it or not.")
  func counts() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try numbers(in: fixture, age: 10, isResident: true)
    func reads() -> CacheStatistics.Reads? { fixture.store.statistics.caches["numbers"]?.reads }
    let before = try #require(reads())
    let source = Source([.success(.unsaved(2))])
    for (maxAge, memory) in [(10.0, 0), (11, 1)] {
      _ = try await numbers.value(for: "a", loading: loading(maxAge), load: source.load)
      #expect(reads()?.memory == before.memory + memory)
    }
    #expect(try await numbers.value(for: "a") { 3 } == 1)
    #expect(reads()?.memory == before.memory + 2)
    #expect(reads()?.fresh == before.fresh + 3)
  }

  @Test("Several keys are judged by the maximum age, too.")
  func severalKeys() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try numbers(in: fixture, age: 10, isResident: true)
    try numbers.save(5, for: "b")
    #expect(try numbers.value(for: "b") == 5)
    let values = try await numbers.values(for: ["a", "b"], loading: loading(10)) { keys in
      #expect(keys == ["a"])
      return [.value(2)]
    }
    #expect(values == [2, 5])
  }

  @Test("No entry is below a maximum age of zero, not even one that was saved in the future.")
  func zero() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try numbers(in: fixture, age: 0)
    fixture.clock.set(fixture.clock.now() - 100)
    let source = Source([.success(.value(2))])
    #expect(try await numbers.value(for: "a", loading: loading(0), load: source.load) == 2)
  }

  @Test("A maximum age does not lengthen the lifetime.")
  func doesNotLengthen() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try numbers(in: fixture, age: 5000)
    let source = Source([.success(.value(2))])
    let entry = try await numbers.entry(
      for: "a", loading: loading(10_000) { $0.staleIfError = .seconds(10_000) }, load: source.load)
    #expect(entry?.value == 2)
  }

  @Test(
    "An entry that is too old for the call is its stale entry when the load fails.",
    arguments: [(19, true), (20, true), (21, false)])
  func staleIfError(_ row: (age: Int, isReturned: Bool)) async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try numbers(in: fixture, age: row.age)
    let source = Source([.failure(.init(number: 1))])
    // The window counts from the maximum age on.
    let options = loading(10) { $0.staleIfError = .seconds(10) }
    if row.isReturned {
      let entry = try #require(
        try await numbers.entry(for: "a", loading: options, load: source.load))
      #expect(entry.value == 1 && entry.isStale && entry.loadFailure is Source.Failure)
    } else {
      await #expect(throws: Source.Failure(number: 1)) {
        _ = try await numbers.entry(for: "a", loading: options, load: source.load)
      }
    }
  }

  @Test("An entry that is too old for the call is returned when it is out of patience.")
  func softTimeout() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try numbers(in: fixture, age: 10)
    let source = Source()
    let options = loading(0) { $0.softTimeout = .seconds(3) }
    async let entry = numbers.entry(for: "a", loading: options, load: source.load)
    await source.begun(1)
    #expect(await fixture.timer.fire(.seconds(3)) == 1)
    let stale = try #require(try await entry)
    #expect(stale.value == 1 && stale.isStale && stale.isRefreshing)
    source.reply(2)
    await eventually("the load is saved") {
      fixture.store.statistics.caches["numbers"]?.saves == 2
    }
  }

  @Test("A caller with a maximum age that joins a refresh waits for it; one without does not.")
  func joining() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try numbers(in: fixture, age: 10)
    let source = Source()
    async let first = numbers.refresh("a", load: source.load)
    await source.begun(1)
    // This caller is returned the entry that the refresh has found.
    #expect(try await numbers.value(for: "a", load: source.load) == 1)
    async let second = numbers.value(for: "a", loading: loading(10), load: source.load)
    await eventually("the caller has joined") { fixture.loads().joins == 1 }
    source.reply(2)
    #expect(try await first?.value == 2)
    #expect(try await second == 2)
    #expect(source.begun == 1)
  }

  @Test("A caller with a maximum age that joins before the disk was read waits for the load.")
  func joiningEarly() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try numbers(in: fixture, age: 10)
    let source = Source([.success(.value(2)), .success(.value(3))])
    // Both options are asked for by many callers at once, in any order.
    try await withThrowingTaskGroup { group in
      for index in 0..<200 {
        group.addTask {
          let options = index % 2 == 0 ? loading(10) : Loading()
          let value = try #require(
            try await numbers.value(for: "a", loading: options, load: source.load))
          #expect(index % 2 == 0 ? value == 2 : value <= 2)
        }
      }
      try await group.waitForAll()
    }
    #expect(source.begun == 1)
  }
}
