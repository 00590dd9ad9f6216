import Foundation
import Larder

/// A cache that is filled far beyond its byte budget: the budget, disk use, hit rate, and times.
struct BudgetSuite {
  static let valueBytes = 400
  /// How many times per run the byte count is compared with the stored rows.
  private static let checks = 8
  private static let diskGoals = (afterCompaction: 1.1, atAnyTime: 3.0)
  /// The percentage points by which LRU may be better.
  private static let hitGoal = 3.0

  private let scale: BenchScale
  private let workspace: Workspace
  private let payloads: [Data]
  private let budget: Int
  private let records: Int

  init(_ scale: BenchScale, in workspace: Workspace) {
    (self.scale, self.workspace) = (scale, workspace)
    // 64 MB and 1 GB at full scale.
    budget = scale.records * 64
    records = scale.records * 1000 / Self.valueBytes
    var random = WorkloadRandom(seed: Scale.seed)
    // Random bytes do not compress, so the disk use is comparable with the budget.
    payloads = (0..<4096).map { _ in
      Data((0..<Self.valueBytes).map { _ in UInt8.random(in: 0...255, using: &random) })
    }
  }

  func run(_ print: (String) -> Void) throws {
    try fill(print)
    try readByZipf(print)
    for valueBytes in [400, 20_000] { try keepFiles(ofValuesOf: valueBytes, print) }
  }

  private func payload(_ number: Int) -> Data { payloads[number % payloads.count] }

  private func open(_ name: String) throws -> BudgetedStore {
    try BudgetedStore(at: workspace.directory(name), budget: budget)
  }

  // MARK: - Filling

  /// Saves several times the budget, and checks the count and the disk use regularly.
  private func fill(_ print: (String) -> Void) throws {
    let name = "budget"
    let directory = workspace.directory(name)
    var opened = try open(name)
    var random = WorkloadRandom(seed: Scale.seed)
    var most = (counted: 0, disk: 0)
    var time = Duration.zero
    var times: [Duration] = []
    print(
      "\n\(records) records of \(Self.valueBytes) bytes into a budget of \(budget) bytes\n\n"
        + "| records | count / budget | disk / budget |\n|---:|---:|---:|")
    let step = records / Self.checks
    for check in 0..<Self.checks {
      // Checks the disk use a hundred times per comparison with the rows.
      for part in 0..<100 {
        let numbers = (check * step + part * step / 100)..<(check * step + (part + 1) * step / 100)
        time += try ContinuousClock().measure {
          for number in numbers {
            let key = Int.random(in: 0...Int.max, using: &random)
            times.append(
              try ContinuousClock().measure { try opened.cache.save(payload(number), for: key) })
          }
        }
        let counted = try opened.countedBytes()
        guard counted <= budget else {
          throw WrongResults(description: "\(counted) bytes exceed the budget of \(budget)")
        }
        most = (max(most.counted, counted), max(most.disk, try diskBytes(in: directory)))
      }
      let held = try opened.heldBytes()
      let counted = try opened.countedBytes()
      guard held == counted else {
        throw WrongResults(description: "the count is \(counted) bytes, but \(held) are stored")
      }
      let disk = try diskBytes(in: directory)
      print("| \((check + 1) * step) | \(share(counted)) | \(share(disk)) |")
    }
    times.sort()
    let percentiles = [0.5, 0.99, 0.999, 1].map { share in
      Int(times[Int(share * Double(times.count - 1))] / .microseconds(1))
    }
    try opened.engine.compact(EngineRange())
    try opened.store.close()
    let after = try diskBytes(in: directory)
    print(
      """

      shares of the budget: at most \(share(most.counted)) counted; at most \(share(most.disk)) on \
      disk (goal \(Self.diskGoals.atAnyTime)); after compaction \(share(after)) (goal \
      \(Self.diskGoals.afterCompaction)); \(Int(time / .nanoseconds(records))) ns per save; \
      microseconds for 50, 99, 99.9 and 100 % of the saves: \(percentiles)
      """)
    opened = try open(name)
    guard try opened.countedBytes() == opened.heldBytes() else {
      throw WrongResults(description: "the count changed when the store was reopened")
    }
    try opened.store.close()
    try workspace.remove(name)
  }

  private func share(_ bytes: Int) -> String {
    String(format: "%.3f", Double(bytes) / Double(budget))
  }

  // MARK: - Files

  /// Saves several times a budget of the files, and measures the files regularly.
  private func keepFiles(ofValuesOf count: Int, _ print: (String) -> Void) throws {
    let total = records * Self.valueBytes / count
    // The smallest one that a store takes, in a quick run.
    let budget = max(budget, 4 << 20)
    func share(_ bytes: Int) -> String {
      String(format: "%.3f", Double(bytes) / Double(budget))
    }
    var random = WorkloadRandom(seed: Scale.seed)
    // Some of these bytes for each value: random, and new in each block and segment.
    let noise = (0..<(8 << 20)).map { _ in UInt8.random(in: 0...255, using: &random) }
    var results: [(perSave: Duration, most: Int, last: Int, statistics: DiskStatistics)] = []
    for diskBudget in [nil, budget] {
      let name = "files"
      let directory = workspace.directory(name)
      var options = Store.Options.withoutMemory
      options.diskBudget = diskBudget
      let store = try Store(at: directory, options: options)
      let cache = try store.cache("c", of: Data.self, keyedBy: Int.self, coder: .bytes)
      var (time, most) = (Duration.zero, 0)
      for part in 0..<400 {
        let numbers = (part * total / 400)..<((part + 1) * total / 400)
        time += try ContinuousClock().measure {
          for number in numbers {
            let place = (number * 7919) % (noise.count - count)
            try cache.save(Data(noise[place..<(place + count)]), for: number)
          }
        }
        most = max(most, try diskBytes(in: directory))
      }
      let last = try diskBytes(in: directory)
      results.append((time / total, most, last, store.statistics.disk))
      try store.close()
      try workspace.remove(name)
    }
    let (without, with) = (results[0], results[1])
    print(
      String(
        format: """

          files under a budget of %d bytes, %d values of %d bytes: at most %@ of the budget, at \
          the end %@; %d compactions, %d evictions; %d ns per save, %d without (%.2f), whose files \
          have %@
          """, budget, total, count, share(with.most), share(with.last),
        with.statistics.compactions, with.statistics.evictions,
        Int(with.perSave / .nanoseconds(1)), Int(without.perSave / .nanoseconds(1)),
        with.perSave / without.perSave, share(without.last)))
  }

  // MARK: - Reading

  /// Reads keys by Zipf's law, saves missing ones, and compares the hit rate with an LRU.
  private func readByZipf(_ print: (String) -> Void) throws {
    let entryBytes = try BudgetedStore.entryBytes(of: payload(0), in: workspace)
    let capacity = budget / entryBytes
    let keys = Zipf(count: capacity * 10, exponent: 0.99)
    let reads = capacity * 50
    let zipf = try open("zipf")
    var lru = LRU(capacity: capacity)
    var random = WorkloadRandom(seed: Scale.seed)
    var (hits, lruHits) = (0, 0)
    var time = Duration.zero
    for start in stride(from: 0, to: reads, by: 10_000) {
      let wanted = (start..<min(start + 10_000, reads)).map { _ in keys.next(&random) }
      for key in wanted where lru.use(key) { lruHits += 1 }
      time += try ContinuousClock().measure {
        for key in wanted {
          if let data = try zipf.cache.value(for: key) {
            guard data == payload(key) else {
              throw WrongResults(description: "the value of key \(key) is wrong")
            }
            hits += 1
          } else {
            try zipf.cache.save(payload(key), for: key)
          }
        }
      }
    }
    let (ours, theirs) = (
      100 * Double(hits) / Double(reads), 100 * Double(lruHits) / Double(reads)
    )
    let isGood = ours >= theirs - Self.hitGoal
    print(
      String(
        format: """

          Zipf %.2f over ten times the keys that fit, %d reads: hits %.1f %%, LRU of the same \
          bytes %.1f %% (goal: at most 3 points less, %@); %d ns per read, with saves
          """, 0.99, reads, ours, theirs, isGood ? "met" : "NOT met",
        Int(time / .nanoseconds(reads))))
    try zipf.store.close()
    try workspace.remove("zipf")
  }
}

/// A store with one cache, and its engine, to inspect the rows.
struct BudgetedStore {
  let engine: LevelDBEngine
  let store: Store
  let cache: Cache<Int, Data>

  init(at directory: URL, budget: Int, clock: any WallClock = SystemClock()) throws {
    engine = try LevelDBEngine(
      at: directory.path(percentEncoded: false), options: LevelDBOptions())
    var options = Store.Options.withoutMemory
    options.clock = clock
    store = try Store(engine: engine, options: options, origin: .disk)
    cache = try store.cache(
      "records", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: budget)
  }

  /// The bytes of a budget that an entry takes.
  static func entryBytes(of value: Data, in workspace: Workspace) throws -> Int {
    let name = "entry"
    let opened = try BudgetedStore(at: workspace.directory(name), budget: 1 << 20)
    try opened.cache.save(value, for: 1)
    let bytes = try opened.countedBytes()
    try opened.store.close()
    try workspace.remove(name)
    return bytes
  }

  /// The cache's byte count, from the row that the store writes with every change.
  func countedBytes() throws -> Int {
    let rows = try engine.cursor(over: EngineRange(prefix: Metadata.bytesPrefix))
    guard try rows.next() else { return 0 }
    return rows.withEntry { key, value in
      let (key, value) = (
        key.withUnsafeBytes { Array($0) }, value.withUnsafeBytes { Array($0) }
      )
      return Metadata.count(in: value, under: key) ?? 0
    }
  }

  func heldBytes() throws -> Int {
    var sum = 0
    let records = try engine.cursor(over: EngineRange(prefix: [KeySpace.records.rawValue]))
    while try records.next() {
      sum += records.withEntry { key, value in key.byteCount + value.byteCount }
    }
    return sum
  }
}
