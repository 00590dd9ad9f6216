import Foundation
import Larder
import Synchronization

/// Backups of a store under full load, and the delays of its writers.
///
/// The duration of a backup is reported but not compared, because it depends on the device. The
/// writers' delays are compared with those in the same time without a backup.
struct BackupSuite {
  static let heading = """
    | | seconds | writes/s | longest write ms | longest synced write ms | 99.9 % synced ms |
    |---|---:|---:|---:|---:|---:|
    """

  /// The writes of all threads in one measured time.
  private struct Load {
    var writes = 0
    var longest = Duration.zero
    var synced: [Duration] = []
  }

  private static let payloadBytes = 1000
  private static let batchCount = 256

  private let records: Int
  private let rounds: Int
  private let workspace: Workspace
  private let store: Store
  private let items: Cache<Int, Data>
  private let payloads: [Data]

  init(_ scale: BenchScale, rounds: Int?, in workspace: Workspace) throws {
    (records, self.rounds, self.workspace) = (scale.records, rounds ?? scale.rounds, workspace)
    var random = WorkloadRandom(seed: Scale.seed)
    payloads = (0..<64).map { _ in
      Data((0..<Self.payloadBytes).map { _ in UInt8.random(in: 0...255, using: &random) })
    }
    store = try Store(at: workspace.directory("backed-up"))
    items = try store.cache("items", of: Data.self, keyedBy: Int.self, coder: .bytes)
    for first in stride(from: 0, to: records, by: Self.batchCount) {
      try store.write { batch in
        for id in first..<min(first + Self.batchCount, records) {
          batch.save(payloads[id % payloads.count], for: id, in: items)
        }
      }
    }
  }

  /// Measures alternately with and without a backup, and prints each round.
  func run(_ print: (String) -> Void) throws {
    print("\(records) records of \(Self.payloadBytes) bytes\n\n\(Self.heading)")
    for round in 0..<rounds {
      let (time, with) = try underLoad {
        try store.backup(to: workspace.directory("backup-\(round)"))
      }
      print(line("with a backup", time, with))
      let (other, without) = try underLoad {
        let span = DispatchTimeInterval.nanoseconds(Int(time / .nanoseconds(1)))
        _ = DispatchSemaphore(value: 0).wait(timeout: .now() + span)
      }
      print(line("without", other, without))
      let restoring = try ContinuousClock().measure {
        try Store.restore(
          from: workspace.directory("backup-\(round)"), to: workspace.directory("restored"))
      }
      print("| restoring | \(seconds(restoring)) | | | | |")
      try check()
      print("| size | \(try megabytes(of: "backup-\(round)")) MB | | | | |")
      try workspace.remove("restored")
      try workspace.remove("backup-\(round)")
    }
    try store.close()
  }

  /// Checks that every record was restored, with one of the saved payloads.
  private func check() throws {
    let restored = try Store(at: workspace.directory("restored"))
    let copies = try restored.cache("items", of: Data.self, keyedBy: Int.self, coder: .bytes)
    let cursor = try copies.entries()
    var right = 0
    while let item = try cursor.next(), try payloads.contains(item.entry.get().value) { right += 1 }
    guard right == records else {
      throw WrongResults(description: "\(right) of \(records) records were right")
    }
    try restored.close()
  }

  /// Runs `body` while two threads write at full speed and a third writes with an fsync each.
  private func underLoad(_ body: () throws -> Void) throws -> (Duration, Load) {
    let isOver = Mutex(false)
    let total = Mutex(Load())
    let failures = Mutex<[String]>([])
    let group = DispatchGroup()
    for thread in 0..<3 {
      group.enter()
      Thread.detachNewThread {
        defer { group.leave() }
        do {
          let load = try write(on: thread) { isOver.withLock { $0 } }
          total.withLock { total in
            total.writes += load.writes
            total.longest = max(total.longest, load.longest)
            total.synced += load.synced
          }
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    let time = try ContinuousClock().measure(body)
    isOver.withLock { $0 = true }
    group.wait()
    if let failure = failures.withLock({ $0.first }) { throw WrongResults(description: failure) }
    return (time, total.withLock { $0 })
  }

  private func write(on thread: Int, until isOver: () -> Bool) throws -> Load {
    var random = WorkloadRandom(seed: UInt64(thread))
    var load = Load()
    let clock = ContinuousClock()
    while !isOver() {
      let id = Int.random(in: 0..<records, using: &random)
      let payload = payloads[Int.random(in: 0..<payloads.count, using: &random)]
      let start = clock.now
      try items.save(payload, for: id, durability: thread == 2 ? .powerLoss : .processCrash)
      let time = clock.now - start
      if thread == 2 { load.synced.append(time) } else { load.longest = max(load.longest, time) }
      load.writes += 1
    }
    return load
  }

  private func line(_ name: String, _ time: Duration, _ load: Load) -> String {
    let synced = load.synced.sorted()
    let last = synced.last ?? .zero
    let high = synced.isEmpty ? .zero : synced[min(synced.count - 1, synced.count * 999 / 1000)]
    let rate = Int(Double(load.writes) / (time / .seconds(1)))
    return "| \(name) | \(seconds(time)) | \(rate) | \(milliseconds(load.longest)) "
      + "| \(milliseconds(last)) | \(milliseconds(high)) |"
  }

  private func megabytes(of name: String) throws -> Int {
    try FileManager.default.contentsOfDirectory(
      at: workspace.directory(name), includingPropertiesForKeys: [.fileSizeKey]
    ).reduce(0) { try $0 + ($1.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0) } >> 20
  }

  private func seconds(_ time: Duration) -> String { String(format: "%.2f", time / .seconds(1)) }

  private func milliseconds(_ time: Duration) -> String {
    String(format: "%.1f", time / .milliseconds(1))
  }
}
