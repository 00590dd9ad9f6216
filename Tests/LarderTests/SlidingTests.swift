import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Caches whose reads restart the lifetimes of entries.
@Suite struct SlidingTests {
  private func open(
    _ fixture: Fixture, _ lifetime: Lifetime = .seconds(160), expiry: Expiry = .sliding
  ) throws -> Cache<String, Int> {
    try fixture.store.cache("n", of: Int.self, lifetime: lifetime, expiry: expiry)
  }

  @Test(
    "A read after a 16th of the fresh time restarts the lifetime, at the date of the read.",
    arguments: StoreKind.allCases)
  func restart(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    var numbers = try open(fixture)
    try numbers.save(1, for: "a", validator: "v", tags: ["t"])
    let version = try numbers.entry(for: "a")?.version
    let savedAt = fixture.clock.now()
    for (age, restartedAt) in [(9.5, 0.0), (10, 10), (19, 10), (150, 150), (309, 309)] {
      fixture.clock.set(savedAt + age)
      #expect(try numbers.value(for: "a") == 1)
      numbers.core.slides?.waitUntilIdle()
      #expect(try numbers.entry(for: "a")?.savedAt == savedAt + restartedAt, "\(age)")
      numbers.core.slides?.waitUntilIdle()
    }
    try fixture.reopen()
    numbers = try open(fixture)
    let entry = try #require(try numbers.entry(for: "a"))
    #expect(entry.savedAt == savedAt + 309 && entry.version == version)
    #expect(entry.validator == "v" && entry.tags == ["t"])
    fixture.clock.set(savedAt + 309 + 160)
    #expect(try numbers.value(for: "a") == nil)
    fixture.clock.advance(by: .seconds(3))
    #expect(try fixture.store.sweep() == 1)
  }

  @Test("Scans, stale reads, and reads of other caches restart nothing.")
  func others() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let sliding = try open(fixture, .fresh(for: .seconds(100), thenStaleFor: .seconds(100)))
    let plain = try fixture.store.cache("p", of: Int.self, lifetime: .seconds(100))
    let endless = try fixture.store.cache(
      "e", of: Int.self, lifetime: .unlimited, expiry: .sliding)
    let savedAt = fixture.clock.now()
    for cache in [sliding, plain, endless] { try cache.save(1, for: "a") }
    fixture.clock.advance(by: .seconds(50))
    #expect(try plain.value(for: "a") == 1)
    #expect(try endless.value(for: "a") == 1)
    #expect(try sliding.contains("a"))
    #expect(try sliding.count() == 1)
    fixture.clock.advance(by: .seconds(60))
    #expect(try sliding.lookup(for: "a").kind == "stale")
    endless.core.slides?.waitUntilIdle()
    sliding.core.slides?.waitUntilIdle()
    #expect(plain.core.slides == nil)
    for row in try fixture.rows(in: .records) {
      #expect(try Record(row.value.span.bytes, under: row.key.span.bytes).savedAt == savedAt)
    }
  }

  @Test("A read slides by the entry's own lifetime.")
  func ownLifetime() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try open(fixture, .days(7))
    try numbers.save(1, for: "a", lifetime: .seconds(16))
    for _ in 0..<20 {
      fixture.clock.advance(by: .seconds(15))
      #expect(try numbers.value(for: "a") == 1)
      numbers.core.slides?.waitUntilIdle()
    }
    fixture.clock.advance(by: .seconds(16))
    #expect(try numbers.value(for: "a") == nil)
  }

  @Test("A read before an invalidation or a removal brings nothing back.")
  func invalidated() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let numbers = try open(fixture)
    for round in 0..<50 {
      try numbers.save(round, for: "a", tags: ["t"])
      try numbers.save(round, for: "b")
      fixture.clock.advance(by: .seconds(20))
      #expect(try numbers.values(for: ["a", "b"]) == [round, round])
      // The queue may write before, between, or after these.
      try fixture.store.invalidate(tag: "t", durability: .processCrash)
      try numbers.remove("b")
      #expect(try numbers.values(for: ["a", "b"]) == [nil, nil])
      numbers.core.slides?.waitUntilIdle()
      #expect(try numbers.values(for: ["a", "b"]) == [nil, nil])
    }
  }

  @Test("Observers are not notified when a read restarts a lifetime.")
  func observation() async throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try open(fixture)
    let changes = numbers.changes()
    try numbers.save(1, for: "a")
    fixture.clock.advance(by: .seconds(20))
    #expect(try numbers.value(for: "a") == 1)
    numbers.core.slides?.waitUntilIdle()
    #expect(try numbers.entry(for: "a")?.age == .zero)
    try numbers.save(2, for: "b")
    try fixture.store.close()
    var found: [String] = []
    for await change in changes { found.append("\(change.key ?? "*") \(change.kind)") }
    #expect(found == ["a set(1)", "b set(2)"])
  }

  @Test("A read-only store slides nothing, and another expiry is another setting.")
  func settings() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try open(fixture).save(1, for: "a")
    #expect(throwsInvalidArgument { try open(fixture, expiry: .sinceSaved) })
    fixture.clock.advance(by: .seconds(20))
    var options = Store.Options()
    options.clock = fixture.clock
    options.access = .readOnly
    try fixture.store.close()
    let store = try Store(at: fixture.directory, options: options)
    let numbers = try store.cache(
      "n", of: Int.self, lifetime: .seconds(160), expiry: .sliding)
    #expect(try numbers.value(for: "a") == 1)
    #expect(numbers.core.slides == nil)
    try store.close()
  }

  @Test("A store that is released after a read can be opened again at once.")
  func release() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.store.close()
    var options = Store.Options()
    options.clock = fixture.clock
    for round in 0..<30 {
      let numbers = try Store(at: fixture.directory, options: options).cache(
        "n", of: Int.self, lifetime: .seconds(160), expiry: .sliding)
      if round > 0 { #expect(try numbers.value(for: "a") == round - 1) }
      try numbers.save(round, for: "a")
      fixture.clock.advance(by: .seconds(20))
      #expect(try numbers.value(for: "a") == round)
    }
  }

  /// Keeps the queue that writes restarts waiting until the returned flag is raised.
  private func hold(_ slides: Slides, at date: Date) -> Flag {
    let (isHeld, isReleased) = (Flag(), Flag())
    slides.add([0].span.bytes, at: date) { _ in
      isHeld.raise()
      isReleased.wait()
    }
    isHeld.wait()
    return isReleased
  }

  @Test("Every entry that is read at half its life stays, however many restarts wait.")
  func manyReads() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let numbers = try fixture.store.cache(
      "n", of: Int.self, keyedBy: Int.self, lifetime: .seconds(160), expiry: .sliding)
    let count = 2500 * proofFactor
    for start in stride(from: 0, to: count, by: 500) {
      try fixture.store.write { batch in
        for key in start..<start + 500 { batch.save(key, for: key, in: numbers) }
      }
    }
    fixture.clock.advance(by: .seconds(80))
    let slides = try #require(numbers.core.slides)
    let queue = hold(slides, at: fixture.clock.now())
    for key in 0..<count where try numbers.value(for: key) != key { Issue.record("\(key)") }
    // The queue has written nothing: the reads have, all but those that may wait.
    func restarted() throws -> Int {
      try fixture.rows(in: .records).count { row in
        let record = try Record(row.value.span.bytes, under: row.key.span.bytes)
        return record.savedAt == fixture.clock.now()
      }
    }
    #expect(try restarted() >= count - Slides.capacity)
    queue.raise()
    slides.waitUntilIdle()
    #expect(try restarted() == count)
    fixture.clock.advance(by: .seconds(159))
    #expect(try numbers.count() == count)
    #expect(try fixture.store.sweep() == 0)
  }

  @Test("An entry that cannot be read any more prevents no other restart.")
  func damagedBetween() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let numbers = try open(fixture)
    let keys = (0..<30).map { "key \($0)" }
    for key in keys { try numbers.save(1, for: key) }
    fixture.clock.advance(by: .seconds(80))
    let slides = try #require(numbers.core.slides)
    let queue = hold(slides, at: fixture.clock.now())
    #expect(try numbers.values(for: keys).allSatisfy { $0 == 1 })
    let damaged = try fixture.rows(in: .records).prefix(3)
    for row in damaged { try fixture.put([1, 2, 3], under: row.key) }
    queue.raise()
    slides.waitUntilIdle()
    fixture.clock.advance(by: .seconds(100))
    let found = numbers.lookups(for: keys).map { found -> String in
      switch found {
      case .success(let lookup): lookup.kind
      case .failure: "damaged"
      }
    }
    #expect(found.count { $0 == "fresh" } == keys.count - damaged.count, "\(found)")
  }
}
