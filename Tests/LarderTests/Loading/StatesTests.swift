import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// What a screen shows of a key, state by state.
@Suite(.timeLimit(.minutes(10))) struct StatesTests {
  typealias States = LoadStates<String, Int>.Iterator

  /// A state in words.
  private func describe(_ state: LoadState<Int>?) -> String {
    func words(_ entry: LoadedEntry<Int>) -> String {
      (["\(entry.value)"] + (entry.isStale ? ["stale"] : []) + (entry.isSaved ? [] : ["unsaved"])
        + (entry.isRefreshing ? ["refreshing"] : [])).joined(separator: " ")
    }
    switch state {
    case .loading?: return "loading"
    case .value(let entry)?: return words(entry)
    case .absent?: return "absent"
    case .failed(let error, let old)?:
      let number = (error as? Source.Failure).map { "\($0.number)" } ?? "\(error)"
      return "failed \(number)" + (old.map { " over \(words($0))" } ?? "")
    case nil: return "end"
    }
  }

  private func next(_ states: inout States) async -> String { describe(await states.next()) }

  @Test(
    "A missing value is loaded; then each change of it is shown.", arguments: StoreKind.allCases)
  func missing(kind: StoreKind) async throws {
    let fixture = try LoadFixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "loading")
    source.reply(1)
    #expect(await next(&states) == "1")
    try numbers.save(2, for: "b")
    try numbers.save(2, for: "a")
    #expect(await next(&states) == "2")
    try numbers.remove("a")
    #expect(await next(&states) == "absent")
    try numbers.save(3, for: "a")
    #expect(await next(&states) == "3")
    try numbers.removeAll()
    #expect(await next(&states) == "absent")
    try numbers.save(4, for: "a")
    #expect(await next(&states) == "4")
    #expect(source.begun == 1)
  }

  @Test("A fresh value is shown, and not loaded.")
  func fresh() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a")
    let source = Source()
    for _ in 0..<2 {
      // From disk, and from memory.
      var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
      #expect(await next(&states) == "1")
    }
    #expect(source.begun == 0)
  }

  @Test("A stale value is shown while another one is loaded, whatever the options say.")
  func stale() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    for swr in [false, true] {
      let numbers = try fixture.numbers("swr \(swr)") { $0.staleWhileRevalidate = swr }
      try numbers.save(1, for: "a")
      fixture.clock.advance(by: .seconds(150))
      let source = Source()
      var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
      #expect(await next(&states) == "1 stale refreshing")
      await source.begun(1)
      source.reply(2)
      var state = await next(&states)
      // The answer of the call may come before the end of the refresh, and changes nothing. The
      // new value may be seen as soon as it is saved, a little before that end.
      for known in ["1 stale refreshing", "2 refreshing"] where state == known {
        state = await next(&states)
      }
      #expect(state == "2")
    }
  }

  @Test("A server that fails, then answers, then fails again.")
  func flapping() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "loading")
    source.reply([.failure(.init(number: 500))])
    #expect(await next(&states) == "failed 500")
    for round in 1...3 {
      let first = Task { try await numbers.refresh("a", load: source.load) }
      #expect(await next(&states) == (round == 1 ? "loading" : "\(round - 1) refreshing"))
      source.reply([.failure(.init(number: 500 + round))])
      #expect(
        await next(&states)
          == "failed \(500 + round)" + (round == 1 ? "" : " over \(round - 1)"))
      _ = await first.result
      let second = Task { try await numbers.refresh("a", load: source.load) }
      #expect(await next(&states) == (round == 1 ? "loading" : "\(round - 1) refreshing"))
      source.reply(round)
      #expect(await next(&states) == "\(round)")
      _ = try await second.value
    }
  }

  @Test("A refresh in the background that somebody else has begun is seen to fail.")
  func backgroundFailure() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.staleWhileRevalidate = true }
    try numbers.save(1, for: "a")
    let source = Source()
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "1")
    fixture.clock.advance(by: .seconds(150))
    let entry = try await numbers.entry(for: "a", load: source.load)
    #expect(entry?.isRefreshing == true)
    #expect(await next(&states) == "1 refreshing")
    source.reply([.failure(.init(number: 503))])
    #expect(await next(&states) == "failed 503 over 1")
    // Whoever comes now finds the stale entry, and the next load.
    var others = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&others) == "1 stale refreshing")
    #expect(await next(&states) == "1 refreshing")
    source.reply(2)
    #expect(await next(&states) == "2")
  }

  @Test("A value that is due is shown as refreshing; a failure is seen.")
  func refreshAhead() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers { $0.refreshAhead = 0.5 }
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(99))
    let source = Source()
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "1 refreshing")
    await source.begun(1)
    source.reply([.failure(.init(number: 7))])
    #expect(await next(&states) == "failed 7 over 1")
  }

  @Test("After a tag was invalidated the old value is shown until another one is loaded.")
  func invalidated() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a", tags: ["red"])
    let source = Source()
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "1")
    try fixture.store.invalidate(tag: "blue")
    try fixture.store.invalidate(tag: "red")
    #expect(await next(&states) == "1 stale refreshing")
    source.reply([.success(.value(2, tags: ["red"]))])
    #expect(await next(&states) == "2")
    // Once more during the load that follows: that one does not count, whatever its outcome.
    try fixture.store.invalidate(tag: "red")
    #expect(await next(&states) == "2 stale refreshing")
    await source.begun(2)
    try fixture.store.invalidate(tag: "red")
    let replies = Task {
      source.reply([.failure(.init(number: 9))])
      await source.begun(3)
      source.reply(3)
    }
    #expect(await next(&states) == "3")
    await replies.value
  }

  @Test("A load that an invalidation overtakes is repeated; where nothing is shown, none begins.")
  func invalidatedLoad() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    // The cache has tags from here on.
    try numbers.save(0, for: "b", tags: ["red"])
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "loading")
    await source.begun(1)
    try fixture.store.invalidate(tag: "red")
    source.reply([.success(.value(1, tags: ["red"])), .success(.value(2, tags: ["red"]))])
    #expect(await next(&states) == "2")
    #expect(source.begun == 2)
    try numbers.remove("a")
    #expect(await next(&states) == "absent")
    try fixture.store.invalidate(tag: "red")
    try numbers.save(3, for: "a")
    #expect(await next(&states) == "3")
    #expect(source.begun == 2)
  }

  @Test("A save and a removal win over the load that is under way.")
  func overtaken() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "loading")
    await source.begun(1)
    try numbers.save(5, for: "a")
    #expect(await next(&states) == "5 refreshing")
    source.reply(1)
    #expect(await next(&states) == "5")
    fixture.clock.advance(by: .seconds(150))
    var others = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&others) == "5 stale refreshing")
    await source.begun(2)
    try numbers.remove("a")
    #expect(await next(&others) == "loading")
    source.reply(2)
    #expect(await next(&others) == "absent")
  }

  @Test("What is not saved is shown by whoever loaded it, until the next change.")
  func unsaved() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source([.success(.unsaved(7))])
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "loading")
    #expect(await next(&states) == "7 unsaved")
    try numbers.save(8, for: "a")
    #expect(await next(&states) == "8")
    var absent = numbers.states(for: "b") { _ in .absent }.makeAsyncIterator()
    #expect(await next(&absent) == "loading")
    #expect(await next(&absent) == "absent")
  }

  @Test("A value that expires at once is shown nevertheless.")
  func expiresAtOnce() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    var states = numbers.states(for: "a") { _ in .value(1, lifetime: .seconds(0)) }
      .makeAsyncIterator()
    #expect(await next(&states) == "loading")
    #expect(await next(&states) == "1")
  }

  @Test("On a full disk, and without one that can be read, what was loaded is shown.")
  func hardship() async throws {
    let faults = StoreFaults()
    let store = Store.inMemory(faults: faults)
    let numbers = try store.cache("n", of: Int.self)
    let source = Source([.success(.value(1)), .success(.value(2))])
    faults.isDiskFull = true
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "loading")
    guard case .value(let entry)? = await states.next() else {
      Issue.record("no value")
      return
    }
    #expect(entry.value == 1 && !entry.isSaved && entry.saveFailure == .diskFull)
    faults.isDiskFull = false
    try numbers.save(5, for: "a")
    #expect(await next(&states) == "5")
    faults.failsReads = true
    try numbers.save(6, for: "a")
    #expect(await next(&states).hasPrefix("failed"))
    var others = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&others).hasPrefix("failed"))
    faults.failsReads = false
    try numbers.save(7, for: "a")
    #expect(await next(&states) == "7")
    #expect(await next(&others) == "7")
    #expect(source.begun == 1)
  }

  @Test("Deletions that the store makes by itself leave what is shown; ranges, imports do not.")
  func otherChanges() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a")
    let source = Source()
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "1")
    fixture.clock.advance(by: .seconds(2000))
    #expect(try fixture.store.sweep() == 1)
    // It is still on the screen; the next save is the next state.
    try numbers.save(2, for: "a")
    #expect(await next(&states) == "2")
    try numbers.remove(in: .all)
    #expect(await next(&states) == "absent")
    try fixture.store.write { batch in
      batch.save(3, for: "a", in: numbers)
      batch.save(4, for: "b", in: numbers)
    }
    #expect(await next(&states) == "3")
    fixture.clock.advance(by: .seconds(1))
    try numbers.touch("a")
    #expect(await next(&states) == "3")
    #expect(source.begun == 0)
  }

  @Test("A slow loop skips states, and gets the last one.")
  func slow() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(0, for: "a")
    let source = Source()
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "0")
    for number in 1...1000 { try numbers.save(number, for: "a") }
    #expect(await next(&states) == "1000")
  }

  @Test("The end of a loop cancels its load, and leaves nothing behind.")
  func cancelled() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let loop = Task { for await _ in numbers.states(for: "a", load: source.load) {} }
    await source.begun(1)
    loop.cancel()
    await loop.value
    await source.state.wait { $0.ended == 1 }
    #expect(source.state.read { $0.cancelled } == 1)
    #expect(fixture.store.context.observations.isEmpty)
    // A loop that is left instead.
    for await _ in numbers.states(for: "a", load: source.load) {
      await source.begun(2)
      break
    }
    await source.state.wait { $0.ended == 2 }
    #expect(source.state.read { $0.cancelled } == 2)
    await eventually("nobody observes the store") { fixture.store.context.observations.isEmpty }
    #expect(!numbers.core.loads.isWatched)
  }

  @Test("The states end with the cache and with the store; unusable arguments are the only state.")
  func ends() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let dropped = try fixture.numbers("dropped")
    let source = Source()
    try numbers.save(1, for: "a")
    try dropped.save(1, for: "a")
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    var others = dropped.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "1")
    #expect(await next(&others) == "1")
    try fixture.store.drop(cache: "dropped")
    var state = await next(&others)
    if state == "absent" { state = await next(&others) }
    #expect(state == "end" || state.hasPrefix("failed"))
    var long = numbers.states(for: String(repeating: "x", count: 70_000), load: source.load)
      .makeAsyncIterator()
    #expect(await next(&long).hasPrefix("failed "))
    #expect(await next(&long) == "end")
    try fixture.store.close()
    #expect(await next(&states) == "end")
    var closed = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&closed) == "failed \(StoreError.closed)")
    #expect(await next(&closed) == "end")
    #expect(source.begun == 0)
  }

  @Test(
    "What is written after a load was saved stays, also if it is shown before the load has ended.")
  func savedThenOvertaken() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let source = Source()
    let loaded = try await numbers.refresh("a") { _ in .value(1) }
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "1")
    // The load of the sequence is saved, and another value after it.
    states.watch.callBegins()
    try numbers.save(2, for: "a")
    #expect(await next(&states) == "2 refreshing")
    states.watch.callEnded(.success(loaded))
    #expect(await next(&states) == "2")
    // The same, and the entry is removed.
    states.watch.callBegins()
    try numbers.remove("a")
    #expect(await next(&states) == "loading")
    states.watch.callEnded(.success(loaded))
    #expect(await next(&states) == "absent")
    #expect(source.begun == 0)
  }

  @Test("A change is shown at once while another load runs, also after one that was being saved.")
  func changeBesideLoads() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    try numbers.save(1, for: "a")
    let source = Source()
    var states = numbers.states(for: "a", load: source.load).makeAsyncIterator()
    #expect(await next(&states) == "1")
    // A load, and a second one that begins while the first one is being saved.
    for event in [LoadMachine.News.began, .saving, .began] { states.watch.hear(event) }
    states.watch.hear(.ended(failure: nil, wasSaving: true))
    #expect(await next(&states) == "1 refreshing")
    try numbers.save(2, for: "a")
    #expect(await next(&states) == "2 refreshing")
    states.watch.hear(.ended(failure: nil, wasSaving: false))
    #expect(await next(&states) == "2")
  }

  @Test("Whatever writes and loads at the same time, the last state is what the cache has.")
  func races() async throws {
    let fixture = try LoadFixture()
    defer { fixture.end() }
    let numbers = try fixture.numbers()
    let store = fixture.store
    struct Refused: Error {}
    for round in 0..<8 * proofFactor {
      let last = Watched<LoadState<Int>>(.loading)
      let loops = (0..<4).map { _ in
        Task {
          for await state in numbers.states(for: "a", load: { _ in .value(-1, tags: ["t"]) }) {
            last.change { $0 = state }
          }
        }
      }
      await withTaskGroup { group in
        for writer in 0..<6 {
          group.addTask { [store] in
            for step in 0..<20 {
              do {
                switch (writer + step) % 6 {
                case 0: try numbers.save(step, for: "a", tags: ["t"])
                case 1: try numbers.remove("a")
                case 2: try store.invalidate(tag: "t")
                case 3: _ = try await numbers.refresh("a") { _ in .value(step) }
                case 4: _ = try await numbers.refresh("a") { _ in throw Refused() }
                default: _ = try await numbers.value(for: "a") { _ in .unsaved(step) }
                }
              } catch is Refused {
              } catch {
                Issue.record(error)
              }
            }
          }
        }
      }
      try numbers.save(1000 + round, for: "a")
      await last.wait { $0.value == 1000 + round && !$0.isLoading }
      for loop in loops { loop.cancel() }
      for loop in loops { await loop.value }
    }
    #expect(fixture.store.context.observations.isEmpty && !numbers.core.loads.isWatched)
  }
}
