import Foundation
import Larder

/// Saves over random ones of more and more live entries, with a lifetime and without.
final class LiveEntriesSuite {
  /// Fewer than the entries of a write buffer, and enough for some packs of notes.
  private static let saves = 20_000
  private static let lifetime = Lifetime.days(7)
  private static let now = Date(timeIntervalSinceReferenceDate: 788_918_400)
  /// The dates of the entries are spread over so many moments of the lifetime.
  private static let moments = 1000

  private let counts: [Int]
  private let workspace: Workspace
  private let values: [Data]
  private var random = WorkloadRandom(seed: Scale.seed)
  /// The stores of the contest that is measured.
  private var open: [Lifetime: (store: Store, cache: Cache<Int, Data>)] = [:]
  private var openCount = 0

  init(_ scale: BenchScale, in workspace: Workspace) {
    (counts, self.workspace) = (scale.live, workspace)
    let plan = Plan(records: 256, order: Plan.sequence(256))
    values = plan.order.map { record in
      plan.withValue(record) { $0.withUnsafeBytes { Data($0) } }
    }
  }

  var contests: [Contest] {
    counts.map { count in
      Contest(
        name: "save with a lifetime among \(count), to without", operations: Self.saves,
        mostRounds: 6,
        a: { try self.save(among: count, lifetime: Self.lifetime) },
        b: { try self.save(among: count, lifetime: .unlimited) })
    }
  }

  func close() throws {
    for (store, _) in open.values { try store.close() }
    open = [:]
    for lifetime in [Self.lifetime, .unlimited] { try workspace.remove(name(of: lifetime)) }
  }

  private func name(of lifetime: Lifetime) -> String {
    lifetime == .unlimited ? "live-unlimited" : "live-expiring"
  }

  private func save(among count: Int, lifetime: Lifetime) throws -> Duration {
    let cache = try cache(of: count, lifetime)
    let keys = (0..<Self.saves).map { _ in Int.random(in: 0..<count, using: &random) }
    return try timed(expecting: keys.count) {
      for (step, key) in keys.enumerated() {
        try cache.save(values[step % values.count], for: key)
      }
      return keys.count
    }
  }

  /// The cache of `count` live entries, filled in random order if there is none yet.
  private func cache(of count: Int, _ lifetime: Lifetime) throws -> Cache<Int, Data> {
    if count != openCount {
      try close()
      openCount = count
    }
    if let (_, cache) = open[lifetime] { return cache }
    let directory = workspace.directory(name(of: lifetime))
    let engine = try LevelDBEngine(
      at: directory.path(percentEncoded: false), options: LevelDBOptions())
    let clock = StandingClock(Self.now)
    var options = Store.Options()
    options.clock = clock
    let store = try Store(engine: engine, options: options, origin: .disk)
    let cache = try store.cache(
      "items", of: Data.self, keyedBy: Int.self, lifetime: lifetime, coder: .bytes)
    for (step, key) in (0..<count).shuffled(using: &random).enumerated() {
      let moment = step * Self.moments / count
      clock.set(Self.now - 7 * 86_400 * Double(Self.moments - moment) / Double(Self.moments + 1))
      try cache.save(values[step % values.count], for: key)
    }
    clock.set(Self.now)
    // The debts of the filling are not a part of what is measured.
    try engine.compact(EngineRange())
    open[lifetime] = (store, cache)
    return cache
  }
}
