import Foundation
import LarderEngineSupport
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Budgets hold while other threads write.
@Suite struct BudgetRaceTests {
  /// A change to the entry that is about to be evicted.
  enum Change: CaseIterable {
    case save, touch, remove, removeAndSave, clear
  }

  /// A store on an engine of a test, and a cache with room for three values of 200 bytes.
  private func open(
    _ engine: any StorageEngine, of fixture: Fixture
  ) throws -> (Store, Cache<String, Data>) {
    var options = Store.Options()
    options.clock = fixture.clock
    let store = try Store(engine: engine, options: options, origin: .disk)
    let cache = try store.cache(
      "cache", of: Data.self, coder: .bytes, byteBudget: 900, memory: .none)
    return (store, cache)
  }

  @Test(
    "An entry written just before its eviction is not evicted.", arguments: StoreKind.allCases,
    Change.allCases)
  func writtenMeanwhile(kind: StoreKind, change: Change) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let engine = InterruptedEngine(fixture.engine)
    let (store, cache) = try open(engine, of: fixture)
    for key in ["a", "b", "c"] {
      try cache.save(bytes(200), for: key)
      fixture.clock.advance(by: .seconds(3 * 3600))
    }
    // The first write is the new entry, which does not fit; the second one evicts `a`.
    engine.beforeNextWrite = {
      engine.beforeNextWrite = {
        switch change {
        case .save: try cache.save(bytes(200, 2), for: "a")
        case .touch: try cache.touch("a")
        case .remove: try cache.remove("a")
        case .removeAndSave:
          try cache.remove("a")
          try cache.save(bytes(200, 2), for: "a")
          // Otherwise it would be the next one to go, as a new entry that nobody reads.
          for _ in 0..<2 { #expect(try cache.value(for: "a") != nil) }
        case .clear: try cache.removeAll()
        }
      }
    }
    try cache.save(bytes(200), for: "d")
    // A save that is under way during a clear takes effect before the clear.
    #expect(try cache.value(for: "d") == (change == .clear ? nil : bytes(200)))
    switch change {
    case .save, .removeAndSave:
      #expect(try cache.value(for: "a") == bytes(200, 2))
      #expect(try cache.value(for: "b") == nil)
    case .touch:
      #expect(try cache.value(for: "a") == bytes(200))
      #expect(try cache.value(for: "b") == nil)
    case .remove:
      #expect(try cache.value(for: "a") == nil)
      #expect(try cache.value(for: "b") == bytes(200))
    case .clear: #expect(try cache.value(for: "b") == nil)
    }
    let account = try #require(store.context.budgets.accounting.count(cache.core.id))
    #expect(try fixture.heldBytes()[cache.core.id] ?? 0 == account.bytes)
    #expect(account.bytes <= 900)
  }

  @Test(
    "A save waits for removals that can be seen before they are counted.",
    arguments: StoreKind.allCases.filter(\.isOnDisk))
  func removedMeanwhile(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let engine = HeldCommitEngine(fixture.engine)
    let (store, cache) = try open(engine, of: fixture)
    for key in ["a", "b", "c"] { try cache.save(bytes(200), for: key) }
    let failures = Mutex<[String]>([])
    onThreads(2) { thread in
      do {
        if thread == 0 {
          // Does not fit. Once it begins to evict, the other thread has removed all entries.
          defer { engine.endHolding() }
          engine.holdsCommitBeforeCursor = true
          try cache.save(bytes(200), for: "d")
        } else {
          engine.mayCommit.wait()
          try store.write { batch in
            for key in ["a", "b", "c"] { batch.remove(key, from: cache) }
          }
        }
      } catch {
        failures.withLock { $0.append("thread \(thread): \(error)") }
      }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(try fixture.rows(in: .records).count == 1)
    #expect(try cache.value(for: "d") != nil)
    #expect(store.statistics.caches["cache"]?.deletions.cacheBudget.entries == 0)
    let account = try #require(store.context.budgets.accounting.count(cache.core.id))
    #expect(try fixture.heldBytes()[cache.core.id] == account.bytes)
  }

  @Test("Counts are right and budgets are kept with eight threads.", arguments: StoreKind.allCases)
  func eightThreads(kind: StoreKind) throws {
    let fixture = try Fixture(kind, byteBudget: 60_000)
    defer { fixture.end() }
    let small = try fixture.store.cache("small", of: Data.self, coder: .bytes, byteBudget: 20_000)
    let large = try fixture.store.cache(
      "large", of: Data.self, lifetime: .seconds(1000), coder: .bytes)
    let seed = testSeed()
    let failures = Mutex<[String]>([])
    let most = Atomic(0)
    let (store, clock) = (fixture.store, fixture.clock)
    onThreads(8) { thread in
      var random = SplitMix64(seed: seed &+ UInt64(thread))
      do {
        for step in 0..<(250 * proofFactor) {
          let cache = Bool.random(using: &random) ? small : large
          let key = "k\(Int.random(in: 0..<300, using: &random))"
          switch Int.random(in: 0..<20, using: &random) {
          case 0..<11:
            try cache.save(bytes(Int.random(in: 0...800, using: &random)), for: key)
          case 11, 12: try cache.remove(key)
          case 13: try cache.touch(key)
          case 14..<18: _ = try cache.value(for: key)
          case 18: clock.advance(by: .seconds(1))
          default:
            if thread == 0, step.isMultiple(of: 5) {
              try store.sweep()
            } else if thread == 1, step.isMultiple(of: 9) {
              try cache.removeAll()
            }
          }
          let used = store.context.budgets.accounting.used(of: 0)
          most.max(used, ordering: .relaxed)
        }
      } catch {
        failures.withLock { $0.append("thread \(thread): \(error)") }
      }
    }
    #expect(failures.withLock { $0 } == [], "seed \(seed)")
    #expect(most.load(ordering: .relaxed) <= 60_000, "seed \(seed)")
    #expect(most.load(ordering: .relaxed) > 50_000, "seed \(seed)")
    for cache in [small, large] { #expect(try fixture.miscount(of: cache) == nil, "seed \(seed)") }
    #expect(try #require(fixture.countedBytes(small)) <= 20_000, "seed \(seed)")
  }
}

/// An engine that holds a commit of another thread, once, when it is seen and not counted yet.
private final class HeldCommitEngine: ForwardingEngine, @unchecked Sendable {
  let base: any StorageEngine
  /// Whether the thread that makes the next cursor first lets another one commit.
  var holdsCommitBeforeCursor = false
  /// Raised when the other thread is to commit.
  let mayCommit = Flag()
  private let isHeld = Flag()
  private let isReleased = Flag()

  init(_ base: any StorageEngine) { self.base = base }

  /// Lets the other thread commit, and does not hold it.
  func endHolding() {
    mayCommit.raise()
    isReleased.raise()
  }

  func headCursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    if holdsCommitBeforeCursor {
      holdsCommitBeforeCursor = false
      mayCommit.raise()
      isHeld.wait()
    }
    return try base.headCursor(over: range)
  }

  // A write has to wait for the one that is held.
  func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    if isHeld.isRaised { isReleased.raise() }
    return try base.write(&batch, synced: synced)
  }

  func join(_ participant: any CommitParticipant) {
    base.join(Participant(base: participant, engine: self))
  }

  private final class Participant: ForwardingParticipant {
    let base: (any CommitParticipant)?
    // Unowned: the engine holds its participant.
    private unowned let engine: HeldCommitEngine

    init(base: any CommitParticipant, engine: HeldCommitEngine) {
      (self.base, self.engine) = (base, engine)
    }

    func ended(didCommit: Bool) {
      if engine.mayCommit.isRaised, !engine.isHeld.isRaised {
        engine.isHeld.raise()
        engine.isReleased.wait()
      }
      base?.ended(didCommit: didCommit)
    }
  }
}
