import LarderEngineSupport
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// While writes fail, observers are told of each acknowledged write once, of no other write, and
/// when to read again.
@Suite(.timeLimit(.minutes(2))) struct ChangesFaultTests {
  /// What an observer is to be told; `isCertain` is false for a clear that failed.
  private struct Expected {
    let change: String
    var isCertain = true
  }

  private static func text(_ change: Change<Int, Int>) -> String {
    switch change.kind {
    case .set(let entry): "\(change.key ?? -1)=\(entry.value)"
    case .removed: "\(change.key ?? -1) removed"
    case .cleared: "cleared"
    case .expired, .evicted, .invalidated, .missed: "\(change.kind)"
    }
  }

  /// What a reader of the changes knows of a cache.
  private struct View {
    private var values: [Int: Int] = [:]
    /// The keys whose value it knows, since it was told to read again; nil for all keys.
    private var known: Set<Int>?
    var changes: [String] = []

    mutating func note(_ change: Change<Int, Int>) {
      if case .missed = change.kind {
        (values, known) = ([:], [])
        return
      }
      changes.append(ChangesFaultTests.text(change))
      guard let key = change.key else {
        (values, known) = ([:], nil)
        return
      }
      if case .set(let entry) = change.kind { values[key] = entry.value } else { values[key] = nil }
      known?.insert(key)
    }

    /// The keys whose value is another than the reader knows.
    func differences(from contents: [Int: Int]) -> [Int] {
      (0...5).filter { known?.contains($0) != false && contents[$0] != values[$0] }
    }
  }

  /// The first change that differs from what is expected; nil if there is none.
  private static func difference(_ found: [String], from expected: [Expected]) -> String? {
    /// Adds the places that are reached without the changes that may be missing.
    func reached(from places: Set<Int>) -> Set<Int> {
      var places = places
      for place in expected.indices where places.contains(place) && !expected[place].isCertain {
        places.insert(place + 1)
      }
      return places
    }
    var places = reached(from: [0])
    for (index, change) in found.enumerated() {
      let next = places.filter { $0 < expected.count && expected[$0].change == change }
      if next.isEmpty {
        let wanted = places.sorted().prefix { $0 < expected.count }.map { expected[$0].change }
        return "\(change) after \(found[..<index].suffix(3)), not one of \(wanted)"
      }
      places = reached(from: Set(next.map { $0 + 1 }))
    }
    return places.contains(expected.count) ? nil : "the end after \(found.suffix(3))"
  }

  /// Changes the cache of one thread, and returns what its observers are told.
  private func run(
    in store: Store, _ cache: Cache<Int, Int>, _ random: inout SplitMix64
  ) throws -> [Expected] {
    var expected: [Expected] = []
    for step in 0..<60 {
      let key = Int(random.next() % 5)
      let durability: Durability? = step % 7 == 0 ? .powerLoss : nil
      let isClear = random.next() % 20 == 0
      do {
        switch random.next() % 10 {
        case _ where isClear:
          try cache.removeAll()
          expected.append(Expected(change: "cleared"))
        case 0:
          if try cache.remove(key) { expected.append(Expected(change: "\(key) removed")) }
        case 1:
          try store.write(durability: durability) { batch in
            batch.save(step, for: key, in: cache)
            batch.save(step + 1, for: key + 1, in: cache)
          }
          expected.append(Expected(change: "\(key)=\(step)"))
          expected.append(Expected(change: "\(key + 1)=\(step + 1)"))
        case 2:
          try cache.update(key, durability: durability) { $0 = step }
          expected.append(Expected(change: "\(key)=\(step)"))
        default:
          try cache.save(step, for: key, durability: durability)
          expected.append(Expected(change: "\(key)=\(step)"))
        }
      } catch let error as StoreError where error.isWriteFailure {
        if isClear { expected.append(Expected(change: "cleared", isCertain: false)) }
      }
    }
    return expected
  }

  @Test(
    "Observers are told of acknowledged writes though a write fails, or all from then on.",
    arguments: [SimulatedDisk.Fault.eio, .shortWrite, .failedSync])
  func failingWrites(fault: SimulatedDisk.Fault) async throws {
    var failures = 0
    for number in 1...40 {
      let disk = SimulatedDisk()
      var options = Store.Options()
      options.sweepInterval = nil
      let store = try Store(on: disk, options: options)
      let caches = try (0..<4).map { try store.cache("\($0)", of: Int.self, keyedBy: Int.self) }
      let other = try store.cache("other", of: Int.self, keyedBy: Int.self)
      let changes = caches.map { $0.changes(buffered: 1000) }
      disk.fail(inRound: number, fault, every: 5)
      let expected = Mutex<[Int: [Expected]]>([:])
      onThreads(4) { thread in
        #expect(throws: Never.self) {
          var random = SplitMix64(seed: UInt64(number * 4 + thread))
          let told = try self.run(in: store, caches[thread], &random)
          expected.withLock { $0[thread] = told }
        }
      }
      failures += disk.counts.failed
      disk.heal()
      // Opens the files again, if that is needed; the first one may report a failed compaction.
      do { try other.save(0, for: 0) } catch { try other.save(0, for: 0) }
      let contents = try caches.map { cache in
        try Dictionary(
          uniqueKeysWithValues: (0...5).compactMap { key in
            try cache.value(for: key).map { (key, $0) }
          })
      }
      try store.close()
      for thread in 0..<4 {
        var view = View()
        for await change in changes[thread] { view.note(change) }
        let told = expected.withLock { $0[thread] ?? [] }
        let difference = Self.difference(view.changes, from: told)
        #expect(difference == nil, "\(fault) at \(number), thread \(thread)")
        let unread = view.differences(from: contents[thread])
        #expect(unread == [], "\(fault) at \(number), thread \(thread)")
      }
    }
    #expect(failures > 20)
  }

  @Test("When a failed write may have taken effect, observers are told to read again.")
  func inDoubt() async throws {
    let disk = SimulatedDisk()
    let store = try Store(on: disk, options: Store.Options())
    let cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
    try cache.save(1, for: 1)
    let changes = cache.changes()
    var states = cache.states(for: 1) { _ in .absent }.makeAsyncIterator()
    #expect(await states.next()?.entry?.value == 1)
    disk.fail(inCalls: 1, .failedSync)
    #expect(throws: StoreError.self) { try cache.save(2, for: 1, durability: .powerLoss) }
    disk.heal()
    try cache.save(3, for: 3)
    #expect(try cache.value(for: 1) == 2)
    #expect(await states.next()?.entry?.value == 2)
    try store.close()
    var found: [String] = []
    for await change in changes { found.append(Self.text(change)) }
    #expect(found == ["missed(1)", "3=3"])
  }
}
