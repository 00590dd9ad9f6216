import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// All operations of a store, by eight threads at once, agree on one order of commits.
///
/// Each commit and each read is checked against the order of all commits. With a byte budget for a
/// quarter of the keys, every third save evicts. An eviction is a commit like any other: from it on
/// a read returns nothing, and never an older value.
///
/// `make proof` runs longer: a million calls with a budget, and a million without, also under the
/// thread sanitizer. A failure names its seed. `LARDER_SEED` repeats its calls, with another
/// interleaving.
@Suite struct RaceTests {
  @Test("Eight threads agree on one order of commits.", arguments: StoreKind.allCases, [nil, 600])
  func agree(kind: StoreKind, byteBudget: Int?) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let seed = testSeed()
    let history = CommitHistory(clock: fixture.clock, lifetime: Race.lifetime)
    var totals = Race.Totals()
    var evicted = 0
    var checked = 0
    for round in 0..<4 {
      let place: Comment = "LARDER_SEED=\(seed), round \(round)"
      let coders: [Coder<Int>] = round.isMultiple(of: 2) ? [.json, .binary] : [.binary, .json]
      let race = try Race(
        on: fixture, history, from: coders[0], to: coders[1], byteBudget: byteBudget)
      let readings = race.run(seed: seed &+ UInt64(round), steps: isProof ? 16_000 : 400)
      #expect(race.failures == [], place)
      #expect(history.faults == [], place)
      #expect(history.faults(in: readings).prefix(5) == [], place)
      totals.add(race.totals)
      evicted += race.evicted
      if let byteBudget {
        #expect((byteBudget / 2...byteBudget).contains(race.mostBytes), place)
      }
      checked += readings.count
      try race.expectRecords(of: fixture, toBe: history, place)
      try race.expectAllToBeSwept(from: fixture, place)
    }
    // Of all rounds: an fsync of a clear may be long, and reads during it are not checked.
    #expect(checked > 4 * 1000)
    // Every acknowledged call was committed, and nothing else was removed.
    let counts = history.counts
    #expect(counts.saves == totals.saves)
    #expect(counts.removals <= totals.removals)
    #expect(counts.clears == totals.clears)
    #expect(counts.restamps >= totals.migrated)
    #expect((counts.evictions...counts.evictions + counts.expirations).contains(evicted))
    var done = [totals.swept, totals.validated, totals.migrated, totals.touched]
    // With a budget the first entry is evicted before a background sweep.
    done.append(byteBudget == nil ? totals.unasked : counts.evictions / 500)
    #expect(!done.contains(0), "the race does not do all of it: \(totals), \(counts)")
  }
}

/// One opening of a store, and eight threads on it.
private final class Race: Sendable {
  static let lifetime = 1000.0
  private static let threads = 8
  private static let keys = (0..<32).map { "k\($0)" }

  /// Counts of acknowledged calls.
  struct Totals {
    var saves = 0
    var removals = 0
    var touched = 0
    var clears = 0
    var swept = 0
    var unasked = 0
    var validated = 0
    var migrated = 0

    mutating func add(_ other: Totals) {
      saves += other.saves
      removals += other.removals
      touched += other.touched
      clears += other.clears
      swept += other.swept
      unasked += other.unasked
      validated += other.validated
      migrated += other.migrated
    }
  }

  private struct State {
    var totals = Totals()
    var readings: [CommitHistory.Reading] = []
    var failures: [String] = []
  }

  private let store: Store
  private let cache: Cache<String, Int>
  private let before: Store
  private let clock: ManualClock
  private let timer = HandTimer()
  private let history: CommitHistory
  private let state = Mutex(State())
  private let values: Atomic<Int>
  private let most = Atomic(0)
  private let clearsBegun = Atomic(0)
  private let clearsEnded = Atomic(0)

  init(
    on fixture: Fixture, _ history: CommitHistory, from old: Coder<Int>, to coder: Coder<Int>,
    byteBudget: Int?
  ) throws {
    self.history = history
    clock = fixture.clock
    // No value occurs twice, not even in another round.
    values = Atomic(history.place << 24)
    var options = Store.Options()
    options.clock = clock
    options.sweepInterval = .seconds(60)
    options.sweepTrigger = timer.trigger
    let engine = HistoryEngine(fixture.engine, history)
    func open(_ coder: Coder<Int>) throws -> (Store, Cache<String, Int>) {
      let store = try Store(engine: engine, options: options, origin: .disk)
      let cache = try store.cache(
        "cache", of: Int.self, lifetime: .seconds(Self.lifetime), coder: coder,
        byteBudget: byteBudget)
      history.follow(cache)
      return (store, cache)
    }
    // Something to be swept, and something to be migrated.
    let first: Cache<String, Int>
    (before, first) = try open(old)
    try first.save(values.add(1, ordering: .relaxed).newValue, for: "old")
    clock.advance(by: .seconds(2 * Self.lifetime))
    for key in Self.keys { try first.save(values.add(1, ordering: .relaxed).newValue, for: key) }
    (store, cache) = try open(coder)
    // From here on background sweeps delete, too.
    clock.advance(by: .seconds(ClockWatch.steadySeconds))
    let expirations = history.counts.expirations
    timer.fire()
    count {
      $0.saves = Self.keys.count + 1
      $0.unasked = history.counts.expirations - expirations
    }
  }

  var totals: Totals { state.withLock { $0.totals } }
  var failures: [String] { state.withLock { $0.failures } }
  /// The most bytes that the cache was seen to hold.
  var mostBytes: Int { most.load(ordering: .relaxed) }
  /// How many entries had to go for the budget, expired ones too, by the stores' own counts.
  var evicted: Int {
    [before, store].reduce(0) { total, store in
      total + (store.statistics.caches["cache"]?.deletions.cacheBudget.entries ?? 0)
    }
  }

  /// Runs `steps` calls on each thread; returns the results of the reads.
  func run(seed: UInt64, steps: Int) -> [CommitHistory.Reading] {
    let isMigrating = Flag()
    onThreads(Self.threads) { [self] thread in
      var random = SplitMix64(seed: seed &+ UInt64(thread) << 32)
      do {
        // Early enough that some entries to migrate were neither saved again nor have expired.
        if thread == 0 {
          isMigrating.raise()
          try migrate()
        } else {
          isMigrating.wait()
        }
        for step in 0..<steps {
          try call(&random, letsTimePass: step > 50)
          let account = store.context.budgets.accounting.count(cache.core.id)
          most.max(account?.bytes ?? 0, ordering: .relaxed)
        }
      } catch {
        state.withLock { $0.failures.append("thread \(thread): \(error)") }
      }
    }
    return state.withLock { $0.readings }
  }
}

// MARK: - Calls

extension Race {
  private func call(_ random: inout SplitMix64, letsTimePass: Bool) throws {
    let key = Self.keys.randomElement(using: &random) ?? ""
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<25: try save(key)
    case 25..<32: if try cache.remove(key) { count { $0.removals += 1 } }
    case 32..<42: if try cache.touch(key) { count { $0.touched += 1 } }
    case 42..<50: try saveTogether(key, &random)
    case 50..<78: try read(key)
    case 78..<80: try scan()
    case 80..<83:
      let report = try cache.validate()
      if report.unreadable + report.newer > 0 { throw WrongReport(report: "\(report)") }
      count { $0.validated += report.expired }
    case 83..<87:
      let swept = try store.sweep()
      count { $0.swept += swept }
    case 87..<90: timer.fire()
    case 90..<92: try migrate()
    case 92: if Int.random(in: 0..<16, using: &random) == 0 { try clear() }
    default:
      if letsTimePass { clock.advance(by: .seconds(Double.random(in: 0..<600, using: &random))) }
    }
  }

  private func save(_ key: String) throws {
    try cache.save(newValue(), for: key)
    count { $0.saves += 1 }
  }

  /// The last change of a key counts, whatever was done to it before in the batch.
  private func saveTogether(_ key: String, _ random: inout SplitMix64) throws {
    let others = Self.keys.shuffled(using: &random).prefix(3)
    try store.write { batch in
      for other in others { batch.save(newValue(), for: other, in: cache) }
      batch.remove(key, from: cache)
      batch.save(newValue(), for: key, in: cache)
      batch.remove(others[0], from: cache)
    }
    count {
      $0.saves += 4
      $0.removals += 2
    }
  }

  /// Reads while no clear is under way, because a clear is not reported for each key.
  private func read(_ key: String) throws {
    try reading {
      switch try cache.lookup(for: key) {
      case .fresh(let entry), .stale(let entry): [(key, entry.value)]
      case .expired, .missing: [(key, nil)]
      }
    }
  }

  private func scan() throws {
    try reading {
      let cursor = try cache.entries()
      var found: [String: Int] = [:]
      while let item = try cursor.next() { found[item.key] = try item.entry.get().value }
      return Self.keys.map { ($0, found[$0]) }
    }
  }

  private func reading(_ body: () throws -> [(key: String, value: Int?)]) throws {
    let ended = clearsEnded.load(ordering: .sequentiallyConsistent)
    let (first, began) = (history.place, clock.now())
    let found = try body()
    let (last, now) = (history.place, clock.now())
    guard clearsBegun.load(ordering: .sequentiallyConsistent) == ended else { return }
    state.withLock { state in
      state.readings += found.map {
        CommitHistory.Reading(
          key: $0.key, value: $0.value, first: first, last: last, began: began, ended: now)
      }
    }
  }

  private func migrate() throws {
    let report = try store.migrate(cache)
    if report.unreadable + report.newer > 0 { throw WrongReport(report: "\(report)") }
    count { $0.migrated += report.migrated }
  }

  private func clear() throws {
    clearsBegun.add(1, ordering: .sequentiallyConsistent)
    try cache.removeAll()
    clearsEnded.add(1, ordering: .sequentiallyConsistent)
    count { $0.clears += 1 }
  }

  private func newValue() -> Int { values.add(1, ordering: .relaxed).newValue }

  private func count(_ change: (inout Totals) -> Void) { state.withLock { change(&$0.totals) } }
}

// MARK: - The end

extension Race {
  /// The disk must hold what was committed.
  func expectRecords(of fixture: Fixture, toBe history: CommitHistory, _ place: Comment) throws {
    let core = cache.core
    let prefix = KeySpace.records.prefix(ofCache: core.id)
    var found: [String: Int] = [:]
    for (key, value) in try fixture.rows(in: .records) where key.starts(with: prefix) {
      let record = try core.record(value.span.bytes, under: key.span.bytes)
      found[String(decoding: key[prefix.count...], as: UTF8.self)] =
        try core.value(of: record, in: value.span.bytes, under: key.span.bytes)
    }
    #expect(found == history.values, place)
  }

  /// A sweep must find each record through its index row, and leave no row.
  func expectAllToBeSwept(from fixture: Fixture, _ place: Comment) throws {
    clock.advance(by: .seconds(3 * Self.lifetime))
    try store.sweep()
    for space in [KeySpace.records, .expiry] {
      let prefix = space.prefix(ofCache: cache.core.id)
      #expect(try !fixture.rows(in: space).contains { $0.key.starts(with: prefix) }, place)
    }
    // Saves under an id that was just cleared are reclaimed at the next opening.
    try fixture.reopen()
    #expect(try fixture.rows(in: .records).isEmpty, place)
    #expect(try fixture.rows(in: .notes).isEmpty, place)
  }
}

private struct WrongReport: Error { let report: String }
