import Foundation
import Larder
import Synchronization

/// Sweeps of expired records, and the cost of a lifetime for saves.
struct SweepSuite {
  private static let name = "items"
  private static let lifetime = Lifetime.days(7)
  private static let day = 86_400.0
  private static let now = Date(timeIntervalSinceReferenceDate: 788_918_400)
  /// One of this many records has expired; they are spread over the keys and over a day.
  private static let share = 10
  private static let emptySweeps = 1000

  private let plan: Plan
  private let keys: [String]
  private let workspace: Workspace
  private let original: URL
  private let saveKeys: [String]
  private let saveValues: [Data]

  init(_ scale: BenchScale, in workspace: Workspace) throws {
    self.workspace = workspace
    plan = Plan(records: scale.records, order: Plan.sequence(scale.records))
    keys = Self.keys(of: plan)
    let saved = Plan(
      records: scale.filled, order: Plan.random(scale.filled, from: scale.filled))
    // Made before the time starts, the keys in the order of their use.
    saveKeys = Self.keys(of: saved)
    saveValues = (0..<256).map { saved.withValue($0) { $0.withUnsafeBytes { Data($0) } } }
    original = workspace.directory("expiring")
    try fill(original, plan.order, now: Self.now)
  }

  var contests: [Contest] { [sweeping, nothingDue, scanning, saving] }

  private var expired: Int { (keys.count + Self.share - 1) / Self.share }

  // MARK: - Contests

  private var sweeping: Contest {
    Contest(
      name: "sweep", operations: expired, goal: 1.2, mostRounds: 6,
      a: {
        let engine = try engine(at: workspace.copy(of: original, as: "swept"))
        let store = try store(on: UncompactedEngine(engine))
        _ = try cache(in: store)
        let time = try timed(expecting: expired) { try store.sweep() }
        try expectFresh(in: .records, of: engine)
        try expectFresh(in: .notes, of: engine) { key, value in
          NotePack(key: key)?.forEachKey(in: value) { _ in } ?? 0
        }
        try store.close()
        return time
      },
      b: {
        let directory = try workspace.copy(of: indexed(), as: "swept-raw")
        let side = RawSide(at: directory)
        let time = try timed(expecting: expired) {
          side.sweep(
            from: row(0), to: row(UInt64(Self.now.timeIntervalSinceReferenceDate) + 1),
            recordPrefix: KeySpace.records.prefix(ofCache: 1), now: Self.now, batchRows: 256)
        }
        side.close()
        let engine = try engine(at: directory)
        try expectFresh(in: .records, of: engine)
        try expectFresh(in: .expiry, of: engine)
        try engine.close()
        return time
      })
  }

  /// Sweeps without due records, in a store and in one of a tenth of the size.
  private var nothingDue: Contest {
    Contest(
      name: "sweep with nothing due", operations: Self.emptySweeps,
      a: { try sweepNothingDue(plan.order.count / 10) },
      b: { try sweepNothingDue(plan.order.count / 100) })
  }

  /// Scans of the fresh records, after a sweep and before it.
  private var scanning: Contest {
    Contest(
      name: "scan after a sweep, to before", operations: keys.count - expired, mostRounds: 6,
      a: {
        let directory = workspace.directory("swept-and-compacted")
        let isSwept = FileManager.default.fileExists(
          atPath: directory.path(percentEncoded: false))
        let store = try store(
          on: engine(at: workspace.copyOnce(of: original, as: "swept-and-compacted")))
        let cache = try cache(in: store)
        if !isSwept { try store.sweep() }
        return try scanned(cache)
      },
      b: {
        try scanned(cache(in: store(on: engine(at: original))))
      })
  }

  private var saving: Contest {
    Contest(
      name: "save with a lifetime, to without", operations: saveKeys.count, goal: 1.1,
      a: { try save(lifetime: Self.lifetime) },
      b: { try save(lifetime: .unlimited) })
  }

  // MARK: - Parts

  private func save(lifetime: Lifetime) throws -> Duration {
    try workspace.remove("saved")
    let store = try store(on: engine(at: workspace.directory("saved")))
    let cache = try cache(in: store, lifetime: lifetime)
    let time = try timed(expecting: saveKeys.count) {
      for (step, key) in saveKeys.enumerated() {
        try cache.save(saveValues[step % saveValues.count], for: key)
      }
      return saveKeys.count
    }
    try store.close()
    return time
  }

  private func sweepNothingDue(_ count: Int) throws -> Duration {
    let directory = workspace.directory("fresh-\(count)")
    if !FileManager.default.fileExists(atPath: directory.path(percentEncoded: false)) {
      let fresh = plan.order.prefix(count).filter { $0 % UInt32(Self.share) != 0 }
      try fill(directory, fresh, now: SystemClock().now())
    }
    let store = try Store(at: directory)
    _ = try cache(in: store)
    try store.sweep()
    var swept = 0
    let time = try timed(expecting: 0) {
      for _ in 0..<Self.emptySweeps { swept += try store.sweep() }
      return swept
    }
    try store.close()
    return time
  }

  private func scanned(_ cache: Cache<String, Data>) throws -> Duration {
    let time = try timed(expecting: keys.count - expired) {
      let cursor = try cache.entries()
      var right = 0
      while let item = try cursor.next() {
        if try item.entry.get().value.count == Scale.valueBytes { right += 1 }
      }
      return right
    }
    return time
  }

  /// The records for C++: with an index row for each of them instead of notes.
  private func indexed() throws -> URL {
    let directory = workspace.directory("indexed")
    guard !FileManager.default.fileExists(atPath: directory.path(percentEncoded: false)) else {
      return directory
    }
    let engine = try engine(at: workspace.copy(of: original, as: "indexed"))
    let none: [UInt8] = []
    var rows = WriteBatch()
    let notes = try engine.cursor(over: EngineRange(prefix: [KeySpace.notes.rawValue]))
    while try notes.next() { notes.withEntry { key, _ in rows.remove(key) } }
    let prefix = KeySpace.records.prefix(ofCache: 1)
    let records = try engine.cursor(over: EngineRange(prefix: prefix))
    while try records.next() {
      try records.withEntry { key, bytes in
        guard let expiry = try Record(bytes, under: key).expiresAt else {
          throw WrongResults(description: "a record has no expiry date")
        }
        let userKey = key.extracting(prefix.count...).withUnsafeBytes { Array($0) }
        let index = row(Self.bucket(of: expiry)) + userKey
        rows.put(index.span.bytes, none.span.bytes)
      }
      guard rows.rows.count >= 1000 else { continue }
      _ = try engine.write(&rows, synced: false)
      rows.reset()
    }
    _ = try engine.write(&rows, synced: false)
    try engine.compact(EngineRange())
    try engine.close()
    return directory
  }

  /// The beginning of the index rows in a bucket; the key follows.
  private func row(_ bucket: UInt64) -> [UInt8] {
    KeySpace.expiry.prefix(ofCache: 1) + withUnsafeBytes(of: bucket.bigEndian, Array.init)
  }

  /// The end of a bucket of the index, which is as wide as a 64th of the lifetime.
  private static func bucket(of expiry: Date) -> UInt64 {
    let width = 7 * day / 64
    return UInt64((expiry.timeIntervalSinceReferenceDate / width).rounded(.up) * width)
  }

  /// Expects that a key space has exactly what belongs to the fresh records; `count` counts a row.
  private func expectFresh(
    in space: KeySpace, of engine: any StorageEngine,
    _ count: (_ key: RawSpan, _ value: RawSpan) -> Int = { _, _ in 1 }
  ) throws {
    var left = 0
    let cursor = try engine.cursor(over: EngineRange(prefix: space.prefix(ofCache: 1)))
    while try cursor.next() { left += cursor.withEntry(count) }
    guard left == keys.count - expired else {
      throw WrongResults(
        description: "\(left) are left in the \(space), not \(keys.count - expired)")
    }
  }

  private static func keys(of plan: Plan) -> [String] {
    plan.order.map { record in
      plan.withKey(record) { String(decoding: $0.withUnsafeBytes { Array($0) }, as: UTF8.self) }
    }
  }

  private func value(_ record: UInt32) -> Data {
    plan.withValue(record) { $0.withUnsafeBytes { Data($0) } }
  }

  private func engine(at directory: URL) throws -> LevelDBEngine {
    try LevelDBEngine(at: directory.path(percentEncoded: false), options: LevelDBOptions())
  }

  private func store(
    on engine: any StorageEngine, clock: any WallClock = StandingClock(Self.now)
  ) throws -> Store {
    var options = Store.Options()
    options.clock = clock
    return try Store(engine: engine, options: options, origin: .disk)
  }

  private func cache(
    in store: Store, lifetime: Lifetime = Self.lifetime
  ) throws -> Cache<String, Data> {
    try store.cache(Self.name, of: Data.self, lifetime: lifetime, coder: .bytes)
  }

  /// Saves records, one in ten of them over seven days ago, and compacts the store.
  private func fill(
    _ directory: URL, _ records: some Sequence<UInt32>, now: Date
  ) throws {
    let engine = try engine(at: directory)
    let clock = StandingClock(now)
    let store = try store(on: engine, clock: clock)
    let cache = try cache(in: store)
    for record in records {
      let isOld = record % UInt32(Self.share) == 0
      let second = Double(record &* 2_654_435_761 % 86_400)
      clock.set(isOld ? now - 9 * Self.day + second : now - second)
      try cache.save(value(record), for: keys[Int(record)])
    }
    try engine.compact(EngineRange())
    try store.close()
  }
}

/// A clock that shows a set date.
final class StandingClock: WallClock {
  private let date: Mutex<Date>

  init(_ date: Date) { self.date = Mutex(date) }

  func now() -> Date { date.withLock { $0 } }
  func uptime() -> Duration { .zero }
  func set(_ date: Date) { self.date.withLock { $0 = date } }
}

/// An engine that ignores requests to compact, so that sweeps are measured without compaction.
final class UncompactedEngine: StorageEngine {
  private let base: LevelDBEngine

  init(_ base: LevelDBEngine) { self.base = base }

  var writeCount: Int? { base.writeCount }

  func get(_ key: RawSpan, into buffer: inout ValueBuffer) throws(StoreError) -> Bool {
    try base.get(key, into: &buffer)
  }

  func write(_ batch: inout WriteBatch, synced: Bool) throws(StoreError) -> Commit {
    try base.write(&batch, synced: synced)
  }

  func cursor(over range: EngineRange) throws(StoreError) -> any EngineCursor {
    try base.cursor(over: range)
  }

  func approximateBytes(in range: EngineRange) throws(StoreError) -> UInt64 {
    try base.approximateBytes(in: range)
  }

  func compact(_ range: EngineRange) throws(StoreError) {}

  func property(_ name: String) throws(StoreError) -> String? { try base.property(name) }

  func join(_ participant: any CommitParticipant) { base.join(participant) }

  func checkOpen() throws(StoreError) { try base.checkOpen() }

  func suspend() throws(StoreError) { try base.suspend() }

  func resume() throws(StoreError) { try base.resume() }

  func close() throws(StoreError) { try base.close() }
}
