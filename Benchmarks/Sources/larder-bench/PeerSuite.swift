import Foundation
import Larder

/// Larder against other stores on this system, each used as a cache.
///
/// Every store keeps the expiry date of each record, and an index by date for sweeps. Raw bytes
/// never expire. In all stores a save survives a crash of the process.
struct PeerSuite {
  static let lifetime = 7 * day
  static let now = Date().timeIntervalSinceReferenceDate
  private static let day = 86_400.0
  private static let goal = 1.0
  private static let rawReadGoal = 1.5
  /// One of this many records has expired.
  private static let expiredShare = 10

  private let scale: BenchScale
  private let workspace: Workspace
  private let small: [Small]

  init(_ scale: BenchScale, in workspace: Workspace) {
    (self.scale, self.workspace) = (scale, workspace)
    var random = WorkloadRandom(seed: Scale.seed)
    small = (0..<scale.small).map { _ in Small(&random) }
  }

  var contests: [Contest] {
    let records = PeerRecords(
      name: "small", values: small, operations: small.count,
      expires: Self.now + Self.lifetime, isSame: ==, workspace: workspace)
    return (typed(records) + typed(feeds) + raw + sweeping).limited(toRounds: scale.peerRounds)
  }

  private var feeds: PeerRecords<[FeedItem]> {
    var random = WorkloadRandom(seed: Scale.seed)
    let feeds = (0..<CodingSuite.variants).map { _ in (0..<100).map { _ in FeedItem(&random) } }
    return PeerRecords(
      name: "100 feed items", values: feeds, operations: max(feeds.count, scale.visited / 400),
      batchSize: 16, expires: Self.now + Self.lifetime,
      isSame: { $0.count == $1.count && $0.last == $1.last }, workspace: workspace)
  }

  /// Each store with JSON and with Larder's coder; files with JSON only.
  private func typed<Value: Codable & Sendable>(_ records: PeerRecords<Value>) -> [Contest] {
    let json = PeerCoder.json(records.isSame)
    let coders = [json, .binary(records.isSame)]
    let stores = PeerKind.databases.flatMap { kind in coders.map { (kind, $0) } }
    let single = (stores + [(.files, json)]).map { kind, coder in
      records.limited(for: kind).saving("save \(records.name)", kind, coder, goal: Self.goal)
    }
    // Files cannot be written in batches.
    let batched = stores.map { kind, coder in
      records.saving("save \(records.name) in batches", kind, coder, goal: Self.goal, .batched)
    }
    let retrieving = (stores + [(.files, json)]).map { kind, coder in
      records.limited(for: kind).retrieving(
        "retrieve \(records.name)", kind, coder, goal: coder.name == json.name ? Self.goal : nil)
    }
    return single + batched + retrieving
  }

  /// Raw values of 100 bytes.
  private var raw: [Contest] {
    let plan = Plan(records: scale.small, order: [])
    let values = (0..<UInt32(scale.small)).map { record in
      plan.withValue(record) { $0.withUnsafeBytes { Data($0) } }
    }
    let records = PeerRecords(
      name: "100 bytes", values: values, operations: values.count, coder: .bytes, isSame: ==,
      workspace: workspace)
    let all = (PeerKind.databases + [.files]).map { ($0, records.limited(for: $0)) }
    return all.map { $1.saving("save 100 bytes", $0, .bytes, goal: Self.goal) }
      + PeerKind.databases.map {
        records.saving("save 100 bytes in batches", $0, .bytes, goal: Self.goal, .batched)
      }
      + all.map { $1.retrieving("retrieve 100 bytes", $0, .bytes, goal: Self.rawReadGoal) }
  }

  // MARK: - Sweeping

  /// Sweeps with the compaction that frees space, as callers see them, and without it, because no
  /// other store waits for a compaction.
  private var sweeping: [Contest] {
    (PeerKind.databases + [.files]).flatMap { kind in
      let count = min(small.count, kind.mostRecords)
      return [true, false].map { compacts in
        Contest(
          name: "sweep\(compacts ? "" : ", compaction left out"), to \(kind.name)",
          operations: count / Self.expiredShare, goal: Self.goal,
          a: { try sweepLarder(count, compacts: compacts) }, b: { try sweep(kind, count) })
      }
    }
  }

  /// The expired records among the first `count`.
  private func expired(_ count: Int) -> [Int] {
    (0..<count).filter { $0.isMultiple(of: Self.expiredShare) }
  }

  private func expiry(_ key: Int) -> Double {
    let second = Double(UInt32(key) &* 2_654_435_761 % 86_400)
    let isOld = key.isMultiple(of: Self.expiredShare)
    return Self.now + (isOld ? second - 2 * Self.day : Self.lifetime - second)
  }

  private func sweepLarder(_ count: Int, compacts: Bool) throws -> Duration {
    let original = workspace.directory("unswept-\(count)")
    let clock = StandingClock(Date(timeIntervalSinceReferenceDate: Self.now))
    if !FileManager.default.fileExists(atPath: original.path(percentEncoded: false)) {
      let (store, cache) = try larder(at: original, clock, compacts: true)
      for key in 0..<count {
        clock.set(Date(timeIntervalSinceReferenceDate: expiry(key) - Self.lifetime))
        try cache.save(small[key], for: key)
      }
      try store.close()
      clock.set(Date(timeIntervalSinceReferenceDate: Self.now))
    }
    let (store, cache) = try larder(
      at: workspace.copy(of: original, as: "swept"), clock, compacts: compacts)
    let time = try timed(expecting: expired(count).count) { try store.sweep() }
    try expectSwept(count) { key in try cache.lookup(for: key).isStored }
    try store.close()
    return time
  }

  private func larder(
    at directory: URL, _ clock: StandingClock, compacts: Bool
  ) throws -> (Store, Cache<Int, Small>) {
    let engine = try LevelDBEngine(
      at: directory.path(percentEncoded: false), options: LevelDBOptions())
    var options = Store.Options()
    options.clock = clock
    let store = try Store(
      engine: compacts ? engine : UncompactedEngine(engine), options: options, origin: .disk)
    return (store, try store.cache("records", of: Small.self, keyedBy: Int.self))
  }

  private func sweep(_ kind: PeerKind, _ count: Int) throws -> Duration {
    let original = workspace.directory("unswept-\(kind.name)")
    let isFilled = FileManager.default.fileExists(atPath: original.path(percentEncoded: false))
    if !isFilled {
      try FileManager.default.createDirectory(at: original, withIntermediateDirectories: true)
    }
    func put(_ keys: some Sequence<Int>) throws {
      let peer = try kind.open(original)
      for key in keys {
        try withUnsafeBytes(of: key) { try peer.put(key, $0.bytes, expires: expiry(key)) }
      }
    }
    if !isFilled { try put(0..<count) }
    // Copying files takes long, so only the expired ones are written again.
    let isFiles = kind.name == PeerKind.files.name
    if isFiles { try put(expired(count)) }
    let directory = isFiles ? original : try workspace.copy(of: original, as: "swept-peer")
    let peer = try kind.open(directory)
    let time = try timed(expecting: expired(count).count) { try peer.sweep(at: Self.now) }
    try expectSwept(count) { key in try peer.get(key) { _ in true } }
    return time
  }

  /// Checks that all expired records are deleted, and as many fresh ones are not.
  private func expectSwept(_ count: Int, _ exists: (Int) throws -> Bool) throws {
    for key in expired(count) where try exists(key) || !exists(key + 1) {
      throw WrongResults(description: "the sweep left key \(key), or deleted key \(key + 1)")
    }
  }
}

extension Lookup {
  /// Whether a record is stored, expired or not.
  fileprivate var isStored: Bool {
    if case .missing = self { false } else { true }
  }
}

extension [Contest] {
  /// The same contests with at most this many rounds.
  fileprivate func limited(toRounds rounds: Int) -> [Contest] {
    map { contest in
      var contest = contest
      contest.mostRounds = Swift.min(contest.mostRounds, rounds)
      return contest
    }
  }
}
