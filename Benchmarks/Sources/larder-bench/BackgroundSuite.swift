import Foundation
import Larder
import Synchronization

/// Delays of saves beside a backup, a sweep and a collection of segments, and beside none of them.
///
/// Two threads save at full speed, and a third one for power loss. How long the works take is
/// reported but not compared, because it depends on the device.
struct BackgroundSuite {
  private static let heading = """
    | values | beside | seconds | saves/s | 50 % \u{B5}s | 99 % \u{B5}s | 99.9 % \u{B5}s \
    | longest ms | synced 50 % ms | synced 99.9 % ms | longest synced ms |
    |---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
    """

  private enum Work: String, CaseIterable {
    case nothing, backup, sweep, collection
  }

  /// The saves of all threads while a work ran, in all rounds.
  private struct Load {
    var duration = Duration.zero
    var times: [Duration] = []
    var synced: [Duration] = []
  }

  private let scale: BenchScale
  private let rounds: Int
  private let workspace: Workspace

  init(_ scale: BenchScale, rounds: Int?, in workspace: Workspace) {
    (self.scale, self.rounds, self.workspace) = (scale, rounds ?? scale.rounds, workspace)
  }

  /// Measures the works alternately, and prints a row for each.
  func run(_ print: (String) -> Void) throws {
    print("\(rounds) rounds\n\n\(Self.heading)")
    for (bytes, records) in [(1000, scale.records), (20_000, scale.records / 20)] {
      let bench = try Bench(in: workspace, records, of: bytes)
      // Values of 1,000 bytes are not in segments.
      let works = Work.allCases.filter { bytes > 4096 || $0 != .collection }
      var loads: [Work: Load] = [:]
      for _ in 0..<rounds {
        for work in works { try measure(work, bench, &loads[work, default: Load()]) }
      }
      for work in works {
        print(Self.line(bytes, work, loads[work, default: Load()]))
      }
      try bench.close()
      try workspace.remove("busy")
    }
  }

  private func measure(_ work: Work, _ bench: Bench, _ load: inout Load) throws {
    switch work {
    case .nothing:
      try bench.save(beside: { Thread.sleep(forTimeInterval: 0.5) }, &load)
    case .backup:
      try bench.save(beside: { try bench.store.backup(to: workspace.directory("backup")) }, &load)
      try bench.checkBackup(at: workspace.directory("backup"))
      try workspace.remove("backup")
    case .sweep:
      let count = try bench.addDueEntries()
      try bench.save(
        beside: {
          guard try bench.store.sweep() == count else {
            throw WrongResults(description: "the sweep did not remove all of \(count) entries")
          }
        }, &load)
    case .collection:
      try bench.overwriteAll()
      try bench.save(beside: { try bench.engine.collectSegments() }, &load)
    }
    // What the saves have left must not burden the next work.
    try bench.engine.collectSegments()
  }

  private static func line(_ bytes: Int, _ work: Work, _ load: Load) -> String {
    let (times, synced) = (load.times.sorted(), load.synced.sorted())
    func cell(_ times: [Duration], _ share: Double, _ unit: Duration) -> String {
      guard let last = times.last else { return "-" }
      let index = Int(Double(times.count) * share)
      return decimals((index < times.count ? times[index] : last) / unit, 1)
    }
    let cells = [
      "\(bytes)", work.rawValue, decimals(load.duration / .seconds(1), 2),
      decimals(Double(times.count + synced.count) / (load.duration / .seconds(1)), 0),
      cell(times, 0.5, .microseconds(1)), cell(times, 0.99, .microseconds(1)),
      cell(times, 0.999, .microseconds(1)), cell(times, 1, .milliseconds(1)),
      cell(synced, 0.5, .milliseconds(1)), cell(synced, 0.999, .milliseconds(1)),
      cell(synced, 1, .milliseconds(1)),
    ]
    return "| \(cells.joined(separator: " | ")) |"
  }
}

// MARK: - The measured store

extension BackgroundSuite {
  /// A store that collects its segments only when it is told to.
  private final class Bench: Sendable {
    private static let lifetime = 60.0
    private static let dueShare = 10

    let engine: LevelDBEngine
    let store: Store
    private let clock = SteppingClock()
    private let items: Cache<Int, Data>
    private let due: Cache<Int, Data>
    private let records: Int
    private let payloads: [Data]

    init(in workspace: Workspace, _ records: Int, of bytes: Int) throws {
      self.records = records
      var random = WorkloadRandom(seed: Scale.seed)
      payloads = (0..<64).map { _ in
        Data((0..<bytes).map { _ in UInt8.random(in: 0...255, using: &random) })
      }
      var options = Store.Options.withoutMemory
      options.clock = clock
      options.sweepInterval = nil
      var engineOptions = options.engineOptions
      engineOptions.collectsInBackground = false
      engine = try LevelDBEngine(
        at: workspace.directory("busy").path(percentEncoded: false), options: engineOptions)
      store = try Store(engine: engine, options: options, origin: .disk)
      items = try store.cache(
        "items", of: Data.self, keyedBy: Int.self, lifetime: .unlimited, coder: .bytes)
      due = try store.cache(
        "due", of: Data.self, keyedBy: Int.self, lifetime: .seconds(Self.lifetime), coder: .bytes)
      try overwriteAll()
    }

    func overwriteAll() throws {
      for id in 0..<records { try items.save(payloads[id % payloads.count], for: id) }
    }

    /// Saves entries that are expired afterwards, and returns their number.
    func addDueEntries() throws -> Int {
      let count = records / Self.dueShare
      for id in 0..<count { try due.save(payloads[id % payloads.count], for: id) }
      clock.advance(by: Self.lifetime)
      return count
    }

    /// Runs `work`, and saves on three threads until it is done.
    func save(beside work: () throws -> Void, _ load: inout Load) throws {
      let isOver = Atomic(false)
      let results = Mutex((load: load, failure: String?.none))
      let group = DispatchGroup()
      for thread in 0..<3 {
        group.enter()
        Thread.detachNewThread {
          defer { group.leave() }
          do {
            let times = try self.save(on: thread) { isOver.load(ordering: .relaxed) }
            results.withLock {
              if thread == 2 { $0.load.synced += times } else { $0.load.times += times }
            }
          } catch {
            results.withLock { $0.failure = "\(error)" }
          }
        }
      }
      defer {
        isOver.store(true, ordering: .relaxed)
        group.wait()
      }
      let duration = try ContinuousClock().measure(work)
      isOver.store(true, ordering: .relaxed)
      group.wait()
      let failure: String?
      (load, failure) = results.withLock { $0 }
      if let failure { throw WrongResults(description: failure) }
      load.duration += duration
    }

    private func save(on thread: Int, until isOver: () -> Bool) throws -> [Duration] {
      var random = WorkloadRandom(seed: UInt64(thread))
      var times: [Duration] = []
      let clock = ContinuousClock()
      while !isOver() {
        let id = Int.random(in: 0..<records, using: &random)
        let payload = payloads[Int.random(in: 0..<payloads.count, using: &random)]
        let start = clock.now
        try items.save(payload, for: id, durability: thread == 2 ? .powerLoss : .processCrash)
        times.append(clock.now - start)
      }
      return times
    }

    /// Checks that a backup has every record, with one of the saved payloads.
    func checkBackup(at backup: URL) throws {
      let copy = backup.deletingLastPathComponent().appending(path: "restored")
      try Store.restore(from: backup, to: copy)
      let restored = try Store(at: copy)
      let copies = try restored.cache(
        "items", of: Data.self, keyedBy: Int.self, lifetime: .unlimited, coder: .bytes)
      let known = Set(payloads)
      let cursor = try copies.entries()
      var right = 0
      while let item = try cursor.next(), try known.contains(item.entry.get().value) { right += 1 }
      guard right == records else {
        throw WrongResults(description: "\(right) of \(records) records were right")
      }
      try restored.close()
      try FileManager.default.removeItem(at: copy)
    }

    func close() throws { try store.close() }
  }
}
