import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Replies, several keys, limits and errors of loads.
@Suite(.timeLimit(.minutes(10))) struct LoadTests {
  typealias Numbers = Cache<String, Int>

  // MARK: - Replies

  @Test("A conditional request keeps the value, also of an expired entry.", arguments: [50, 5000])
  func unchanged(age: Int) async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a", validator: "v1", tags: ["t"])
    let savedAt = fixture.clock.now()
    fixture.clock.advance(by: .seconds(age))
    let source = Source([.success(.unchanged(lifetime: .seconds(7), validator: "v2"))])
    let entry = try #require(try await numbers.refresh("a", load: source.load))
    #expect(entry.value == 1 && entry.isSaved && !entry.isStale && entry.age == .zero)
    let previous = try #require(source.state.read { $0.previous[0] })
    #expect(previous.validator == "v1" && previous.savedAt == savedAt)
    #expect(previous.value == (age < 1000 ? 1 : nil))
    let saved = try #require(try numbers.entry(for: "a"))
    #expect(saved.validator == "v2" && saved.lifetime == .seconds(7) && saved.tags == ["t"])
  }

  @Test("An unchanged reply without a previous entry is an invalid argument.")
  func unchangedWithoutEntry() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.retries = Loading.Retries(extra: 3) }
    try await expectInvalid("without a previous entry") {
      _ = try await numbers.value(for: "a") { _ in .unchanged }
    }
    // An invalidated entry is none.
    try numbers.save(1, for: "b", validator: "v", tags: ["t"])
    try fixture.store.invalidate(tag: "t")
    try await expectInvalid("without a previous entry") {
      _ = try await numbers.value(for: "b") { previous in
        #expect(previous == nil)
        return .unchanged
      }
    }
  }

  @Test("A value that may be nil is loaded, found again and passed on as it is, nil or not.")
  func optionalValues() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let cache = try fixture.store.cache(
      "optionals", of: Int?.self, lifetime: LoadFixture.lifetime, coder: .binary, memory: .none)
    for (key, value) in [("a", Int?.none), ("b", 3)] {
      let loaded = try #require(try await cache.entry(for: key) { _ in .value(value) })
      #expect(loaded.value == value && loaded.origin == .loaded, "\(key)")
      let found = try #require(try await cache.entry(for: key) { _ in .absent })
      #expect(found.value == value && found.origin == .disk, "\(key)")
      let kept = try await cache.refresh(key) { previous in
        let offered = try #require(previous)
        #expect(offered.value == .some(value), "\(key)")
        return .unchanged
      }
      #expect(kept?.value == .some(value), "\(key)")
      let several = try await cache.values(for: [key, key]) { keys in keys.map { _ in .absent } }
      #expect(several == [value, value], "\(key)")
    }
  }

  @Test("A value that is not to be saved is returned, and the entry that is there stays.")
  func unsaved() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a")
    let entry = try #require(try await numbers.refresh("a") { _ in .unsaved(2) })
    #expect(entry.value == 2 && !entry.isSaved && entry.saveFailure == nil)
    #expect(try numbers.value(for: "a") == 1)
  }

  @Test("An unreadable entry is loaded and overwritten.", arguments: [false, true])
  func unreadable(isUndecodable: Bool) async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    if isUndecodable {
      let texts = try fixture.store.cache("numbers", of: String.self)
      try texts.save("a", for: "a")
      try fixture.base.reopen()
    }
    let numbers = try fixture.numbers()
    if !isUndecodable {
      try numbers.save(1, for: "a")
      var record = try fixture.base.onlyRecord()
      record.value[record.value.count - 1] ^= 1
      try fixture.base.put(record.value, under: record.key)
    }
    let source = Source([.success(.value(2))])
    #expect(try await numbers.value(for: "a", load: source.load) == 2)
    #expect(source.state.read { $0.previous[0] == nil })
    #expect(try numbers.value(for: "a") == 2)
  }

  @Test("An entry of a newer schema is kept unless the cache overwrites newer ones.")
  func newerSchema() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let newer = try fixture.store.cache("n", of: Int.self, schema: Schema(version: 2))
    try newer.save(1, for: "a")
    for overwrites in [false, true] {
      try fixture.base.reopen()
      let numbers = try fixture.store.cache("n", of: Int.self, overwritesNewer: overwrites)
      let entry = try #require(try await numbers.entry(for: "a") { _ in .value(2) })
      #expect(entry.value == 2 && entry.isSaved == overwrites)
      if overwrites {
        #expect(entry.saveFailure == nil)
      } else if case .newerSchema(found: 2, known: 1)? = entry.saveFailure {
      } else {
        Issue.record("\(String(describing: entry.saveFailure))")
      }
      #expect(try await numbers.refresh("a") { _ in .absent } == nil)
      #expect(try fixture.base.rows(in: .records).isEmpty == overwrites)
    }
  }

  @Test("A value that cannot be saved is returned with the reason.")
  func failedSave() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let tags = (0..<17).map { "\($0)" }
    let entry = try #require(try await numbers.entry(for: "a") { _ in .value(2, tags: tags) })
    #expect(entry.value == 2 && !entry.isSaved)
    guard case .invalidArgument(let message)? = entry.saveFailure else {
      Issue.record("no failure")
      return
    }
    #expect(message.contains("17 tags"))
    #expect(try numbers.value(for: "a") == nil)
  }

  @Test("On a full disk a loaded value is returned, and the entry stays until a save succeeds.")
  func fullDisk() async throws {
    let faults = StoreFaults()
    let store = Store.inMemory(faults: faults)
    let numbers = try store.cache("numbers", of: Int.self)
    try numbers.save(1, for: "a")
    faults.isDiskFull = true
    for key in ["a", "b"] {
      let entry = try #require(try await numbers.refresh(key) { _ in .value(2) })
      #expect(entry.value == 2 && !entry.isSaved)
      guard case .diskFull? = entry.saveFailure else {
        Issue.record("\(String(describing: entry.saveFailure))")
        return
      }
    }
    #expect(try numbers.value(for: "a") == 1 && numbers.value(for: "b") == nil)
    faults.isDiskFull = false
    #expect(try await numbers.refresh("a") { _ in .value(3) }?.isSaved == true)
    #expect(try numbers.value(for: "a") == 3)
  }

  @Test("A load takes the priority of a caller that joins it with a higher one.")
  func priority() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let priority = Watched(TaskPriority?.none)
    let isOver = Watched(false)
    let first = Task(priority: .background) {
      try await numbers.value(for: "a") { _ in
        while !isOver.read({ $0 }) {
          priority.change { $0 = Task.currentPriority }
          await Task.yield()
        }
        return try await source.load()
      }
    }
    await priority.wait { $0 != nil }
    #expect(try #require(priority.read { $0 }) < .high)
    // It has joined when it waits for the value. The task of a load begins before the cache has
    // noted which task it is, so that its priority may be raised a moment after that. Nothing
    // awaits that task, which would raise its priority, too.
    let second = Task(executorPreference: ImmediateExecutor(), priority: .high) {
      try await numbers.value(for: "a", load: source.load)
    }
    #expect(fixture.loads().joins == 1)
    await eventually("The load kept its priority.") { priority.read { $0 ?? .low } >= .high }
    isOver.change { $0 = true }
    source.reply(1)
    #expect(try await second.value == 1)
    #expect(try await first.value == 1)
    #expect(source.begun == 1)
  }

  // MARK: - Several keys

  @Test("One call loads the keys that are missing and not being loaded.")
  func severalKeys() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "fresh")
    let source = Source()
    async let joined = numbers.value(for: "joined", load: source.load)
    await source.begun(1)
    let asked = Watched<[[String]]>([])
    let task = Task {
      try await numbers.values(for: ["x", "fresh", "joined", "x", "gone", "y"]) { keys in
        asked.change { $0.append(keys) }
        return [.value(10), .absent, .value(20)]
      }
    }
    await asked.wait { !$0.isEmpty }
    source.reply(5)
    #expect(try await task.value == [10, 1, 5, 10, nil, 20])
    #expect(try await joined == 5)
    #expect(asked.read { $0 } == [["x", "gone", "y"]])
    #expect(try numbers.values(for: ["x", "y", "gone"]) == [10, 20, nil])
    #expect(try await numbers.values(for: []) { _ in [] } == [])
  }

  @Test("A wrong number of replies is an invalid argument, for all.", arguments: [0, 1, 3])
  func wrongCount(count: Int) async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try await expectInvalid("2 keys returned \(count) replies") {
      _ = try await numbers.values(for: ["a", "b"]) { _ in
        Array(repeating: .value(1), count: count)
      }
    }
    #expect(try fixture.base.rows(in: .records).isEmpty)
    #expect(fixture.store.context.loads.isEmpty)
  }

  @Test("Of several keys that are loaded together, one that was changed is left out.")
  func oneOvertaken() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let values = try await numbers.values(for: ["a", "b", "c"]) { keys in
      try numbers.remove("b")
      return keys.indices.map { .value($0) }
    }
    #expect(values == [0, 1, 2])
    #expect(try numbers.values(for: ["a", "b", "c"]) == [0, nil, 2])
  }

  @Test("An error of one key is thrown, and the other keys are saved.")
  func oneFails() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try await expectInvalid("without a previous entry") {
      _ = try await numbers.values(for: ["a", "b"]) { _ in [.unchanged, .value(2)] }
    }
    try await eventually("the other key is saved") { try numbers.value(for: "b") == 2 }
    await eventually("no flight is left") { fixture.store.context.loads.isEmpty }
  }

  @Test("A prefetch loads what is missing, a few keys at once, and returns what failed.")
  func prefetch() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "k0")
    let running = Mutex((now: 0, most: 0))
    let failures = await numbers.prefetch((0..<20).map { "k\($0)" }, atOnce: 3) { key, _ in
      running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
      defer { running.withLock { $0.now -= 1 } }
      await Task.yield()
      if key == "k7" { throw Source.Failure(number: 7) }
      return .value(2)
    }
    #expect(failures.map(\.key) == ["k7"])
    #expect(failures.first?.error as? Source.Failure == .init(number: 7))
    #expect(try numbers.value(for: "k0") == 1 && numbers.value(for: "k19") == 2)
    #expect(running.withLock { $0.most } <= 3)
  }

  // MARK: - Limits

  @Test("At most so many loads run at once; others wait in order, and leave the line.")
  func concurrent() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.concurrent = 1 }
    let begun = Watched<[String]>([])
    let source = Source()
    func load(_ key: String) -> Task<Int?, any Error> {
      Task {
        try await numbers.value(for: key) { previous in
          begun.change { $0.append(key) }
          return try await source.load(previous)
        }
      }
    }
    var tasks: [Task<Int?, any Error>] = []
    for key in ["a", "b", "c"] {
      tasks.append(load(key))
      let count = tasks.count
      await eventually("\(key) has read the disk") {
        fixture.store.statistics.caches["numbers"]?.reads.missing == count
      }
      // The others may come to the line before a load that has only read the disk.
      if key == "a" { await begun.wait { $0 == ["a"] } }
    }
    tasks[1].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[1].value }
    source.reply([.success(.value(1)), .success(.value(3))])
    #expect(try await tasks[0].value == 1)
    #expect(try await tasks[2].value == 3)
    #expect(begun.read { $0 } == ["a", "c"])
  }

  @Test("A load that another load waits for does not wait for its slot.")
  func nestedSlot() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.concurrent = 1 }
    let value: Int = try await numbers.value(for: "a") {
      try await numbers.value(for: "b") { 4 } + 1
    }
    #expect(value == 5)
  }

  @Test("A load that asks for its own key is refused, also in a circle of loads.")
  func circles() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let (numbers, others) = (try fixture.numbers(), try fixture.numbers("others"))
    try await expectInvalid("would wait for itself") {
      _ = try await numbers.value(for: "a") { try await numbers.value(for: "a") { 1 } }
    }
    try await expectInvalid("would wait for itself") {
      _ = try await numbers.refresh("a") { _ in
        try await numbers.refresh("a") { _ in .value(1) }
        return .value(1)
      }
    }
    // Two callers; their loads wait for each other, across caches.
    let source = Source()
    let first = Task {
      try await numbers.value(for: "a") {
        _ = try await source.load()
        return try await others.value(for: "b") { 1 }
      }
    }
    await source.begun(1)
    let second = Task {
      try await others.value(for: "b") { try await numbers.value(for: "a") { 1 } }
    }
    await eventually("the second load waits for the first") { fixture.loads().joins == 1 }
    source.reply(0)
    for task in [first, second] {
      try await expectInvalid("would wait for itself") { _ = try await task.value }
    }
  }

  @Test("Closing the store ends the loads at once.")
  func close() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.concurrent = 1 }
    let source = Source()
    let tasks = ["a", "b"].map { key in
      Task { try await numbers.value(for: key, load: source.load) }
    }
    await eventually("both have read the disk") {
      fixture.store.statistics.caches["numbers"]?.reads.missing == 2
    }
    await source.begun(1)
    try fixture.store.close()
    for task in tasks + [Task { try await numbers.value(for: "c", load: source.load) }] {
      do {
        _ = try await task.value
        Issue.record("no error")
      } catch StoreError.closed {
      } catch {
        Issue.record(error)
      }
    }
    await source.state.wait { $0.ended == 1 }
    #expect(source.state.read { $0.cancelled } == 1 && source.begun == 1)
  }

  @Test(
    "Options outside their ranges are refused, at opening and at a call.",
    arguments: [
      "staleIfError", "retryThrottle", "softTimeout", "hardTimeout", "absentFor", "refreshAhead",
      "refreshAhead NaN", "concurrent", "retries extra", "retries first", "retries upTo",
    ])
  func ranges(name: String) async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    var loading = Loading()
    let negative = Duration.nanoseconds(-1)
    switch name {
    case "staleIfError": loading.staleIfError = negative
    case "retryThrottle": loading.retryThrottle = negative
    case "softTimeout": loading.softTimeout = negative
    case "hardTimeout": loading.hardTimeout = negative
    case "absentFor": loading.absentFor = negative
    case "refreshAhead": loading.refreshAhead = 0.51
    case "refreshAhead NaN": loading.refreshAhead = .nan
    case "concurrent": loading.concurrent = 0
    case "retries extra": loading.retries = Loading.Retries(extra: -1)
    case "retries first": loading.retries = Loading.Retries(extra: 1, first: negative)
    default: loading.retries = Loading.Retries(extra: 1, upTo: negative)
    }
    let (numbers, wrong) = (try fixture.numbers(), loading)
    let option = String(name.prefix { $0 != " " })
    try await expectInvalid(option) {
      _ = try await numbers.value(for: "a", loading: wrong) { 1 }
    }
    try await expectInvalid(option) { _ = try fixture.numbers("b") { $0 = wrong } }
  }

  @Test("Durations of any length are allowed.")
  func longDurations() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let longest = Duration(
      secondsComponent: .max, attosecondsComponent: 999_999_999_999_999_999)
    let numbers = try fixture.numbers {
      $0.staleIfError = longest
      $0.retryThrottle = longest
      $0.softTimeout = longest
      $0.hardTimeout = longest
      $0.absentFor = longest
      $0.retries = Loading.Retries(extra: .max, first: longest, upTo: longest)
    }
    fixture.clock.advance(by: .seconds(1_000_000))
    #expect(try await numbers.value(for: "a") { _ in .absent } == nil)
    #expect(try await numbers.value(for: "a") { _ in .value(1) } == nil)
    let source = Source([.failure(.init()), .success(.value(3))])
    async let value = numbers.value(for: "b", load: source.load)
    let half = Duration.seconds(1_577_880_000)
    #expect(await fixture.timer.fire(half) == 1)
    #expect(try await value == 3)
  }

  @Test("Opening a cache again needs the same loading.")
  func settings() async throws {
    let fixture = try LoadFixture(.memory)
    defer { fixture.end() }
    _ = try fixture.numbers { $0.concurrent = 2 }
    _ = try fixture.numbers { $0.concurrent = 2 }
    try await expectInvalid("loading") { _ = try fixture.numbers { $0.concurrent = 3 } }
  }

  @Test("The system's timer fires once, or never if it is cancelled before.")
  func systemTimer() async {
    let fired = Watched(0)
    let cancel = systemLoadTimer(.seconds(100_000_000_000)) { fired.change { $0 += 100 } }
    cancel()
    _ = systemLoadTimer(.milliseconds(1)) { fired.change { $0 += 1 } }
    await fired.wait { $0 > 0 }
    #expect(fired.read { $0 } == 1)
  }
}

/// Expects ``StoreError/invalidArgument(_:)`` with a text in its message.
private func expectInvalid(
  _ text: String, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () async throws -> Void
) async throws {
  do {
    try await body()
    Issue.record("no error", sourceLocation: sourceLocation)
  } catch StoreError.invalidArgument(let message) {
    #expect(message.contains(text), sourceLocation: sourceLocation)
  }
}
