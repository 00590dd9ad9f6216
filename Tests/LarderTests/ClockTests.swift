import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// A clock that jumps or drifts never makes a store show expired entries or quietly lose live ones.
///
/// A background sweep waits for ten minutes after a jump; sweeps and validations on request do not.
@Suite struct ClockTests {
  private static let day = 86_400.0
  /// Fresh for five days, then stale for two; in buckets of 9,450 seconds.
  private static let lifetime = Lifetime.fresh(for: .days(5), thenStaleFor: .days(2))

  /// An entry was saved at one date, and the clock is set to another one.
  struct Turn: CustomTestStringConvertible {
    let testDescription: String
    let saved: Date
    let now: Date
    /// The state of the entry at `now`.
    let kind: String
    /// Whether its bucket has ended at `now`, so that a sweep deletes it.
    let isDue: Bool

    init(_ name: String, _ saved: Date, _ now: Date, _ kind: String, isDue: Bool = false) {
      (testDescription, self.saved, self.now, self.kind) = (name, saved, now, kind)
      self.isDue = isDue
    }

    var isDate: Bool { now.timeIntervalSinceReferenceDate.isFinite }
  }

  private static func seconds(_ count: Double) -> Date {
    Date(timeIntervalSinceReferenceDate: count)
  }
  private static let start = seconds(788_918_400)
  /// A signed 32-bit count of seconds since 1970 has no next one.
  private static let end2038 = Date(timeIntervalSince1970: 0x7FFF_FFFF)
  /// And an unsigned one.
  private static let end2106 = Date(timeIntervalSince1970: 0xFFFF_FFFF)

  static let turns = [
    Turn("not at all", start, start, "fresh"),
    Turn("an hour back", start, start - 3600, "fresh"),
    Turn("ten years back", start, start - 3652 * day, "fresh"),
    Turn("to the last fresh second", start, start + 5 * day - 1, "fresh"),
    Turn("to the first stale second", start, start + 5 * day, "stale"),
    Turn("to the last stale second", start, start + 7 * day - 1, "stale"),
    Turn("to the second where it expires", start, start + 7 * day, "expired"),
    Turn("eight days forth", start, start + 8 * day, "expired", isDue: true),
    Turn("ten years forth", start, start + 3652 * day, "expired", isDue: true),
    Turn("from the end of 2038's seconds on", end2038, end2038 + 1, "fresh"),
    Turn("back over 2038's end", end2038 + 1, end2038, "fresh"),
    Turn("five days past 2038's end", end2038, end2038 + 5 * day, "stale"),
    Turn("eight days past 2038's end", end2038, end2038 + 8 * day, "expired", isDue: true),
    Turn("from the end of 2106's seconds on", end2106, end2106 + 1, "fresh"),
    Turn("back over 2106's end", end2106 + 1, end2106, "fresh"),
    Turn("five days past 2106's end", end2106, end2106 + 5 * day, "stale"),
    Turn("eight days past 2106's end", end2106, end2106 + 8 * day, "expired", isDue: true),
    Turn("to the distant future", start, .distantFuture, "expired", isDue: true),
    Turn("in the distant future", .distantFuture, .distantFuture + day, "fresh"),
    Turn("back from the distant future", .distantFuture, start, "fresh"),
    Turn("to the distant past", start, .distantPast, "fresh"),
    Turn("in the distant past", .distantPast, .distantPast + day, "fresh"),
    Turn("forth from the distant past", .distantPast, start, "expired", isDue: true),
    Turn("to what is not a number", start, seconds(.nan), "expired"),
    Turn("to what is past all dates", start, seconds(.infinity), "expired"),
    Turn("to what is before all dates", start, seconds(-.infinity), "fresh"),
  ]

  @Test(
    "Every read judges an entry by the clock's current date.", arguments: StoreKind.allCases, turns)
  func reads(kind: StoreKind, turn: Turn) throws {
    let bench = try Bench(kind, turn)
    defer { bench.end() }
    try bench.expectRead(turn.kind, 1, savedAt: turn.saved)
    bench.clock.set(turn.saved)
    try bench.expectRead("fresh", 1, savedAt: turn.saved)
  }

  @Test(
    "After a jump of the clock, a background sweep deletes nothing for ten minutes.",
    arguments: StoreKind.allCases, turns)
  func unaskedSweep(kind: StoreKind, turn: Turn) throws {
    let bench = try Bench(kind, turn)
    defer { bench.end() }
    for seconds in [0.0, 300, 299] {
      bench.clock.advance(by: .seconds(seconds))
      bench.timer.fire()
      #expect(try bench.records() == 1)
    }
    bench.clock.advance(by: .seconds(1))
    bench.timer.fire()
    #expect(try bench.records() == (turn.isDue ? 0 : 1))
  }

  @Test(
    "A sweep on request uses the clock's current date at once.", arguments: StoreKind.allCases,
    turns
  )
  func sweep(kind: StoreKind, turn: Turn) throws {
    let bench = try Bench(kind, turn)
    defer { bench.end() }
    #expect(try bench.fixture.store.sweep() == (turn.isDue ? 1 : 0))
    #expect(try bench.records() == (turn.isDue ? 0 : 1))
    if turn.isDate { #expect(try bench.fixture.disagreement(at: turn.now) == nil) }
    bench.clock.set(turn.saved)
    #expect(try bench.cache.value(for: "a") == (turn.isDue ? nil : 1))
  }

  @Test("A validation uses the clock's current date at once.", arguments: StoreKind.allCases, turns)
  func validation(kind: StoreKind, turn: Turn) throws {
    let bench = try Bench(kind, turn)
    defer { bench.end() }
    let report = try bench.cache.validate()
    let isDeleted = turn.kind == "expired" && turn.isDate
    #expect(report.expired == (isDeleted ? 1 : 0))
    #expect(report.unreadable == 0)
    #expect(try bench.records() == (isDeleted ? 0 : 1))
  }

  @Test(
    "A save and a touch stamp the entry with the clock's current date.",
    arguments: StoreKind.allCases, turns)
  func stamps(kind: StoreKind, turn: Turn) throws {
    for isTouch in [false, true] {
      let bench = try Bench(kind, turn)
      defer { bench.end() }
      if isTouch {
        #expect(try bench.cache.touch("a"))
      } else {
        try bench.cache.save(2, for: "a")
      }
      try bench.expectRead(
        turn.isDate ? "fresh" : "expired", isTouch ? 1 : 2, savedAt: turn.now)
      #expect(try bench.fixture.store.sweep() == 0)
      #expect(try bench.records() == 1)
      // The entry expires by the new date, and the rows of both dates are swept.
      bench.clock.set(max(turn.saved, turn.isDate ? turn.now : turn.saved) + 8 * Self.day)
      #expect(try bench.fixture.store.sweep() == 1)
      #expect(try bench.fixture.rows(in: .notes).isEmpty)
    }
  }

  @Test("A migration keeps the dates of entries.", arguments: StoreKind.allCases, turns)
  func migration(kind: StoreKind, turn: Turn) throws {
    let bench = try Bench(kind, turn)
    defer { bench.end() }
    try bench.reopen(coder: .json)
    let report = try bench.fixture.store.migrate(bench.cache)
    #expect(report.migrated == (turn.kind == "expired" ? 0 : 1))
    #expect(report.expired == (turn.kind == "expired" ? 1 : 0))
    try bench.expectRead(turn.kind, 1, savedAt: turn.saved)
    #expect(try bench.fixture.store.sweep() == (turn.isDue ? 1 : 0))
    if turn.isDate { #expect(try bench.fixture.disagreement(at: turn.now) == nil) }
  }
}

// MARK: - Several jumps

extension ClockTests {
  @Test("A clock set eight days ahead and back within ten minutes loses nothing.")
  func forthAndBack() throws {
    let bench = try Bench(.memory)
    defer { bench.end() }
    let right = bench.clock.now()
    // Even if the timer fires many times meanwhile.
    bench.clock.set(right + 8 * Self.day)
    for _ in 0..<9 {
      bench.timer.fire()
      bench.clock.advance(by: .seconds(60))
    }
    #expect(try bench.records() == 1)
    bench.clock.set(right + 540)
    for _ in 0..<20 {
      bench.timer.fire()
      bench.clock.advance(by: .seconds(60))
    }
    try bench.expectRead("fresh", 1, savedAt: right)
  }

  @Test("A jump back delays background sweeps, too.")
  func jumpBack() throws {
    let bench = try Bench(.memory)
    defer { bench.end() }
    bench.clock.advance(by: .seconds(8 * Self.day))
    bench.clock.set(bench.clock.now() - 3601)
    bench.timer.fire()
    bench.clock.advance(by: .seconds(599))
    bench.timer.fire()
    #expect(try bench.records() == 1)
    bench.clock.advance(by: .seconds(1))
    bench.timer.fire()
    #expect(try bench.records() == 0)
  }

  @Test("A change of up to an hour does not count as a jump.")
  func smallJump() throws {
    let bench = try Bench(.memory)
    defer { bench.end() }
    bench.clock.advance(by: .seconds(8 * Self.day))
    bench.clock.set(bench.clock.now() + 1800)
    bench.clock.set(bench.clock.now() + 1800)
    bench.timer.fire()
    #expect(try bench.records() == 0)
  }

  /// Each is less than an hour, and two of them are more.
  @Test("Many small jumps add up to a large one.", arguments: [3000.0, -3000])
  func manySmallJumps(seconds: Double) throws {
    let bench = try Bench(.memory)
    defer { bench.end() }
    bench.clock.set(bench.clock.now() + 8 * Self.day)
    bench.timer.fire()
    for _ in 0..<8 {
      bench.clock.advance(by: .seconds(599))
      for _ in 0..<2 {
        bench.clock.set(bench.clock.now() + seconds)
        bench.timer.fire()
      }
      #expect(try bench.records() == 1)
    }
    bench.clock.advance(by: .seconds(600))
    bench.timer.fire()
    #expect(try bench.records() == 0)
  }

  @Test("A sweep uses the date that it read first, even if the clock jumps afterwards.")
  func jumpWhileSweeping() throws {
    let clock = JumpingClock()
    let timer = HandTimer()
    let engine = InMemoryEngine()
    var options = Store.Options()
    options.clock = clock
    options.sweepInterval = .seconds(60)
    options.sweepTrigger = timer.trigger
    let store = try Store(engine: engine, options: options, origin: .disk)
    let cache = try store.cache("cache", of: Int.self, lifetime: Self.lifetime)
    clock.base.advance(by: .seconds(700))
    try cache.save(1, for: "a")
    clock.jumpAfterNextReading(by: 8 * Self.day)
    timer.fire()
    #expect(try cache.lookup(for: "a").kind == "expired")
    clock.base.set(clock.now() - 8 * Self.day)
    #expect(try cache.value(for: "a") == 1)
  }

  @Test("Many saves in one tick of the clock keep their order.", arguments: StoreKind.allCases)
  func oneTick(kind: StoreKind) throws {
    let bench = try Bench(kind)
    defer { bench.end() }
    let now = bench.clock.now()
    for value in 0..<1000 { try bench.cache.save(value, for: "\(value % 3)") }
    #expect(try bench.fixture.store.sweep() == 0)
    for key in 0..<3 {
      let entry = try #require(try bench.cache.entry(for: "\(key)"))
      #expect(entry.value == (key == 0 ? 999 : 996 + key))
      #expect(entry.savedAt == now)
    }
    // One row for each: they were all in one bucket.
    #expect(try bench.fixture.notes().count == 4)
    bench.clock.set(now + 8 * Self.day)
    #expect(try bench.fixture.store.sweep() == 4)
    #expect(try bench.fixture.rows(in: .notes).isEmpty)
  }

  /// The clock gains or loses a minute each hour: four hours in ten days.
  @Test(
    "With a drifting clock, entries are deleted soon after they expire, and not before.",
    arguments: [61.0 / 60, 59.0 / 60])
  func drift(rate: Double) throws {
    let bench = try Bench(.memory)
    defer { bench.end() }
    let start = bench.clock.now()
    var date = start
    var goneAt: Double?
    for _ in 0..<(10 * 144) where goneAt == nil {
      bench.clock.advance(by: .seconds(600))
      date += 600 * rate
      bench.clock.set(date)
      bench.timer.fire()
      if try bench.records() == 0 { goneAt = date.timeIntervalSince(start) }
    }
    let age = try #require(goneAt)
    // Late by up to a bucket, and by the sweeps that notice the drift.
    #expect(age >= 7 * Self.day)
    #expect(age <= 7 * Self.day + 9450 + 4 * 600)
  }

  @Test(
    "Sweeps find every index row although the clock was set back and forth.",
    arguments: StoreKind.allCases)
  func backAndForth(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(100))
    let start = fixture.clock.now()
    try cache.save(1, for: "a")
    fixture.clock.set(start + 100_000)
    #expect(try fixture.store.sweep() == 1)
    fixture.clock.set(start - 5000)
    try cache.save(1, for: "b")
    try fixture.store.write { batch in
      for key in 0..<300 { batch.save(key, for: "\(key)", in: cache) }
    }
    #expect(try fixture.store.sweep() == 0)
    #expect(try cache.value(for: "b") == 1)
    fixture.clock.set(start)
    #expect(try fixture.store.sweep() == 301)
    #expect(try fixture.rows(in: .notes).isEmpty)
    // Touches are noted, too.
    try cache.save(1, for: "c")
    fixture.clock.set(start + 50_000)
    try cache.touch("c")
    #expect(try fixture.store.sweep() == 0)
    fixture.clock.set(start - 50_000)
    try cache.touch("c")
    fixture.clock.set(start - 40_000)
    #expect(try fixture.store.sweep() == 1)
  }
}

/// A clock that is set to another date just after it was read.
private final class JumpingClock: WallClock {
  let base = ManualClock()
  private let jump = Mutex<Double?>(nil)

  func jumpAfterNextReading(by seconds: Double) { jump.withLock { $0 = seconds } }

  func now() -> Date {
    let now = base.now()
    let seconds = jump.withLock { jump in
      defer { jump = nil }
      return jump
    }
    if let seconds { base.set(now + seconds) }
    return now
  }

  func uptime() -> Duration { base.uptime() }
}

/// A store that was opened more than ten minutes ago, and an entry that was saved now.
private final class Bench {
  let fixture: Fixture
  let timer = HandTimer()
  private(set) var cache: Cache<String, Int>

  var clock: ManualClock { fixture.clock }

  init(_ kind: StoreKind, saved: Date = ManualClock().now()) throws {
    fixture = try Fixture(kind, clock: ManualClock(saved - 3600), timer: timer)
    cache = try Self.open(in: fixture.store, coder: .binary)
    clock.advance(by: .seconds(3600))
    clock.set(saved)
    try cache.save(1, for: "a")
  }

  /// As the other initializer, and then sets the clock to another date.
  convenience init(_ kind: StoreKind, _ turn: ClockTests.Turn) throws {
    try self.init(kind, saved: turn.saved)
    clock.set(turn.now)
  }

  func reopen(coder: Coder<Int>) throws {
    try fixture.reopen()
    cache = try Self.open(in: fixture.store, coder: coder)
  }

  private static func open(in store: Store, coder: Coder<Int>) throws -> Cache<String, Int> {
    try store.cache(
      "cache", of: Int.self, lifetime: .fresh(for: .days(5), thenStaleFor: .days(2)), coder: coder)
  }

  func records() throws -> Int { try fixture.rows(in: .records).count }

  /// Every kind of read must report the entry in this state.
  func expectRead(_ kind: String, _ value: Int, savedAt: Date) throws {
    let isFresh = kind == "fresh"
    let lookup = try cache.lookup(for: "a")
    #expect(lookup.kind == kind)
    switch lookup {
    case .fresh(let entry), .stale(let entry):
      #expect(entry.value == value)
      #expect(entry.savedAt == savedAt)
      #expect(entry.age == Duration(from: savedAt, to: clock.now()))
    case .expired(let metadata):
      let (found, wanted) = (metadata.savedAt, savedAt)
      #expect(
        found.timeIntervalSinceReferenceDate.bitPattern
          == wanted.timeIntervalSinceReferenceDate.bitPattern)
    case .missing: break
    }
    #expect(try cache.value(for: "a") == (isFresh ? value : nil))
    #expect(try cache.entry(for: "a")?.value == (isFresh ? value : nil))
    #expect(try cache.entries().next()?.entry.get().value == (isFresh ? value : nil))
    #expect(try cache.keys().next() == (isFresh ? "a" : nil))
  }

  func end() { fixture.end() }
}
