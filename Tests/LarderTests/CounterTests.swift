import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// Numbers, claims and windows that many writers change at once.
@Suite(.timeLimit(.minutes(10))) struct CounterTests {
  private static let minute = Lifetime.seconds(60)

  @Test("A count lasts one lifetime from its first increment.", arguments: StoreKind.allCases)
  func window(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let counts = try fixture.store.cache("counts", of: Int.self, lifetime: Self.minute)
    for second in 0..<60 {
      #expect(try counts.increment("a") == second + 1)
      fixture.clock.advance(by: .seconds(1))
    }
    #expect(try counts.value(for: "a") == nil)
    #expect(try counts.increment("a", by: 5) == 5)
    #expect(try counts.increment("a", by: -7) == -2)
    fixture.clock.advance(by: .seconds(59))
    #expect(try counts.increment("a", by: 0, lifetime: .restart) == -2)
    fixture.clock.advance(by: .seconds(59))
    #expect(try counts.value(for: "a") == -2)
    #expect(try counts.increment("a", lifetime: .set(.seconds(600))) == -1)
    fixture.clock.advance(by: .seconds(599))
    #expect(try counts.value(for: "a") == -1)
    try fixture.reopen()
    fixture.clock.advance(by: .seconds(1))
    let again = try fixture.store.cache("counts", of: Int.self, lifetime: Self.minute)
    #expect(try again.value(for: "a") == nil)
    #expect(try fixture.store.sweep() == (kind.isOnDisk ? 1 : 0))
  }

  @Test("A sum that the type cannot hold is an error, and changes nothing.")
  func overflow() throws {
    let store = Store.inMemory()
    let counts = try store.cache("counts", of: UInt8.self)
    try counts.save(250, for: "a")
    #expect(try counts.increment("a", by: 5) == 255)
    #expect {
      try counts.increment("a")
    } throws: {
      "\($0)".contains("255 and 1 are more than UInt8 can hold")
    }
    #expect(try counts.value(for: "a") == 255)
  }

  @Test("An update keeps what it is told to keep.", arguments: StoreKind.allCases)
  func kept(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let texts = try fixture.store.cache(
      "texts", of: String.self, lifetime: .fresh(for: .seconds(60), thenStaleFor: .seconds(60)))
    let (start, etag) = (fixture.clock.now(), Validator("v1"))
    try texts.save("one", for: "a", lifetime: .seconds(100), validator: etag, tags: ["t"])
    fixture.clock.advance(by: .seconds(40))
    let before = try #require(try texts.entry(for: "a"))
    try texts.update("a", lifetime: .keep, keepsValidator: true) { $0 = "two" }
    let kept = try #require(try texts.entry(for: "a"))
    #expect(kept.value == "two" && kept.savedAt == start && kept.validator == etag)
    #expect(kept.tags == ["t"] && kept.lifetime == .seconds(100) && kept.version != before.version)
    #expect(try !texts.save("x", for: "a", if: .unchanged(since: before)))
    try texts.update("a", lifetime: .keep) { $0 = "three" }
    #expect(try texts.entry(for: "a")?.validator == nil)
    // Its window ends as if there had been no update.
    fixture.clock.advance(by: .seconds(60))
    #expect(try texts.value(for: "a") == nil)
    // Without a fresh value it begins anew, with the cache's lifetime.
    try texts.update("a", lifetime: .keep, keepsValidator: true) { value in
      #expect(value == nil)
      value = "four"
    }
    let new = try #require(try texts.entry(for: "a"))
    #expect(new.savedAt == fixture.clock.now() && new.lifetime == nil && new.tags == [])
    try texts.update("a", lifetime: .set(.hours(1))) { $0 = "five" }
    #expect(try texts.entry(for: "a")?.lifetime == .hours(1))
    try fixture.store.invalidate(tag: "t")
    #expect(try texts.value(for: "a") == "five")
  }

  @Test("A kept entry still ends with its tag, and with a clear.")
  func keptAndEnded() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("n", of: Int.self)
    try numbers.save(1, for: "a", tags: ["t"])
    try numbers.increment("a")
    try fixture.store.invalidate(tag: "t")
    #expect(try numbers.value(for: "a") == nil)
    #expect(try numbers.increment("a") == 1)
    try numbers.removeAll()
    #expect(try numbers.increment("a") == 1)
    try fixture.reopen()
    #expect(try fixture.store.cache("n", of: Int.self).value(for: "a") == 1)
  }

  @Test("In a sliding cache, a kept count ends sooner than a restarted one.")
  func sliding() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let counts = try fixture.store.cache(
      "n", of: Int.self, lifetime: Self.minute, expiry: .sliding)
    try counts.increment("a")
    fixture.clock.advance(by: .seconds(50))
    try counts.increment("a")
    counts.core.slides?.waitUntilIdle()
    fixture.clock.advance(by: .seconds(10))
    #expect(try counts.value(for: "a") == nil, "an update is no read that restarts")
  }

  @Test("Of many writers that claim a key, one wins, and all others get its entry.")
  func claims() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let claims = try fixture.store.cache("claims", of: Int.self)
    for round in 0..<100 * proofFactor {
      let found = Watched<[Int?]>([])
      DispatchQueue.concurrentPerform(iterations: 16) { thread in
        do {
          let earlier = try claims.saveIfAbsent(thread, for: "\(round)", validator: Validator("v"))
          found.change { $0.append(earlier?.value) }
        } catch {
          Issue.record(error)
        }
      }
      let winner = try #require(try claims.entry(for: "\(round)"))
      let results = found.read { $0 }
      #expect(results.count { $0 == nil } == 1)
      #expect(results.count { $0 == winner.value } == 15)
    }
  }

  @Test("A stale entry is a winner, and an expired or invalidated one is not.")
  func winners() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let claims = try fixture.store.cache(
      "claims", of: Int.self, lifetime: .fresh(for: .seconds(10), thenStaleFor: .seconds(10)))
    #expect(try claims.saveIfAbsent(1, for: "a", tags: ["t"]) == nil)
    fixture.clock.advance(by: .seconds(15))
    let winner = try #require(try claims.saveIfAbsent(2, for: "a"))
    #expect(winner.value == 1 && winner.age == .seconds(15) && winner.tags == ["t"])
    fixture.clock.advance(by: .seconds(5))
    #expect(try claims.saveIfAbsent(3, for: "a", tags: ["t"]) == nil)
    try fixture.store.invalidate(tag: "t")
    #expect(try claims.saveIfAbsent(4, for: "a", lifetime: .hours(1)) == nil)
    #expect(try claims.entry(for: "a")?.lifetime == .hours(1))
    #expect(claims.statistics.saves == 3)
  }

  @Test("No increment is lost: sixteen threads, and two reopenings.")
  func races() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    // More than a million changes in the proof.
    let each = isProof ? 12_500 : 250
    for round in 1...3 {
      let counts = try fixture.store.cache("counts", of: Int.self, lifetime: .unlimited)
      let keys = ["a", "b"]
      DispatchQueue.concurrentPerform(iterations: 16) { thread in
        do {
          for step in 0..<each {
            try counts.increment(keys[(thread + step) % 2])
            try counts.update("both", lifetime: .keep) { $0 = ($0 ?? 0) + 1 }
          }
        } catch {
          Issue.record(error)
        }
      }
      let sum = try keys.reduce(0) { try $0 + (counts.value(for: $1) ?? 0) }
      #expect(sum == 16 * each * round)
      #expect(try counts.value(for: "both") == 16 * each * round)
      try fixture.reopen()
    }
  }

  @Test("An increment during a load of its key wins, and the loaded number is not saved.")
  func load() async throws {
    let store = Store.inMemory()
    let counts = try store.cache("n", of: Int.self)
    let loaded = try await counts.entry(for: "a") { _ in
      try counts.increment("a", by: 5)
      return .value(100)
    }
    #expect(loaded?.value == 100 && loaded?.isSaved == false)
    #expect(try counts.value(for: "a") == 5)
  }

  @Test("On a full disk, an increment counts exactly if it returns.")
  func fullDisk() throws {
    let disk = SimulatedDisk()
    disk.setCapacity(8 << 20)
    var store = try Store(on: disk, options: Store.Options())
    var counts = try store.cache("n", of: Int.self)
    let pictures = try store.cache("p", of: Data.self, keyedBy: Int.self, coder: .bytes)
    var random = SplitMix64(seed: 1)
    let picture = Data(random.bytes(3000))
    var (counted, refused) = (0, 0)
    for step in 0..<20_000 where refused < 20 {
      do {
        if step % 3 == 0 { try pictures.save(picture, for: step) }
        try counts.increment("a")
        counted += 1
      } catch StoreError.diskFull {
        refused += 1
      } catch StoreError.writesDisabled {
        refused += 1
      }
    }
    #expect(refused == 20 && counted > 1000)
    #expect(try counts.value(for: "a") == counted)
    try store.close()
    store = try Store(on: disk, options: Store.Options())
    counts = try store.cache("n", of: Int.self)
    #expect(try counts.value(for: "a") == counted)
    try store.close()
  }

  @Test("Each claim has one winner: sixteen threads, and two reopenings.")
  func claims() throws {
    let fixture = try Fixture(.segments)
    defer { fixture.end() }
    let each = isProof ? 20_000 : 100
    let winners = Mutex([Int?](repeating: nil, count: 3 * each))
    for round in 0..<3 {
      let claims = try fixture.store.cache("claims", of: Int.self, keyedBy: Int.self)
      DispatchQueue.concurrentPerform(iterations: 16) { thread in
        do {
          // Also the claims of the rounds before, which have winners.
          for claim in 0..<((round + 1) * each) {
            let claimer = 100 * round + thread
            let earlier = try claims.saveIfAbsent(claimer, for: claim)?.value
            let known = winners.withLock { winners in
              if winners[claim] == nil { winners[claim] = earlier ?? claimer }
              return winners[claim]
            }
            if known != earlier ?? claimer || earlier == claimer {
              Issue.record("claim \(claim) has \(claimer), \(earlier as Any), \(known as Any)")
            }
          }
        } catch {
          Issue.record(error)
        }
      }
      try fixture.reopen()
    }
    let claims = try fixture.store.cache("claims", of: Int.self, keyedBy: Int.self)
    for claim in 0..<(3 * each) {
      let winner = winners.withLock { $0[claim] }
      #expect(try claims.value(for: claim) == winner && winner.map { $0 / 100 } == claim / each)
    }
  }

  @Test("A store that is closed or read only changes no count.")
  func hardship() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let counts = try fixture.store.cache("counts", of: Int.self)
    try counts.increment("a")
    try fixture.store.close()
    #expect(throws: StoreError.closed) { try counts.increment("a") }
    var options = Store.Options()
    (options.access, options.clock) = (.readOnly, fixture.clock)
    let store = try Store(at: fixture.directory, options: options)
    let readOnly = try store.cache("counts", of: Int.self)
    #expect {
      try readOnly.increment("a")
    } throws: {
      if case .readOnly? = $0 as? StoreError { true } else { false }
    }
    #expect(try readOnly.value(for: "a") == 1)
    try store.close()
  }

  @Test("An open cache can be had again by its name and types.")
  func openCache() throws {
    let store = Store.inMemory()
    #expect(try store.openCache("n", of: Int.self) == nil)
    var loading = Loading()
    loading.concurrent = 3
    let numbers = try store.cache("n", of: Int.self, lifetime: .hours(2), loading: loading)
    let again = try #require(try store.openCache("n", of: Int.self))
    try numbers.save(1, for: "a")
    #expect(try again.value(for: "a") == 1)
    #expect(again.lifetime == .hours(2) && again.loading == loading)
    #expect(again.statistics == store.statistics.caches["n"] && again.statistics.saves == 1)
    for wrong in [
      { _ = try store.openCache("n", of: String.self) },
      { _ = try store.openCache("n", of: Int.self, keyedBy: UUID.self) },
    ] {
      #expect {
        try wrong()
      } throws: {
        "\($0)".contains("is open with keys of String and values of Int")
      }
    }
    try store.drop(cache: "n")
    #expect(try store.openCache("n", of: Int.self) == nil)
    try store.close()
    #expect(throws: StoreError.closed) { try store.openCache("n", of: Int.self) }
  }
}
