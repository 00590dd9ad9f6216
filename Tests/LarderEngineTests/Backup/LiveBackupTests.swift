import Foundation
import Larder
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

/// A backup of a store under load is the store after some commit, with all acknowledged writes.
@Suite struct LiveBackupTests {
  private static let writers = 4

  /// The rows that a thread writes in one step, derived from the thread and the step's number.
  private struct Step {
    let key: String
    let removed: String?
    let isSynced: Bool

    init(_ number: Int, of thread: Int) {
      var random = SplitMix64(seed: UInt64(thread) << 32 | UInt64(number))
      key = "\(thread)-\(Int.random(in: 0..<40, using: &random))"
      let other = Int.random(in: 0..<40, using: &random)
      removed = Bool.random(using: &random) ? "\(thread)-\(other)" : nil
      isSynced = Int.random(in: 0..<64, using: &random) == 0
    }

    func batch(of thread: Int) -> WriteBatch {
      var batch = WriteBatch()
      let value = [UInt8](repeating: UInt8(thread), count: 400)
      if let removed { batch.remove(Array(removed.utf8).span.bytes) }
      // The second row exists in every state and has the sequence of the thread's last commit.
      for name in [key, "\(thread)-last"] {
        let bytes = Array(name.utf8)
        batch.put(bytes.span.bytes, stamp: .test) { $0.append(value) }
      }
      return batch
    }

    func apply(to state: inout [String: UInt64], _ sequence: UInt64, thread: Int) {
      if let removed { state[removed] = nil }
      state[key] = sequence
      state["\(thread)-last"] = sequence
    }
  }

  private struct Copy {
    let acknowledged: UInt64
    let state: [String: UInt64]
  }

  /// The commit sequence under each key.
  private func state(of engine: LevelDBEngine) throws -> [String: UInt64] {
    var state: [String: UInt64] = [:]
    let cursor = try engine.cursor(over: EngineRange(from: [UInt8(ascii: "0")]))
    while try cursor.next() {
      cursor.withEntry { key, value in
        let isIntact = Stamp.test.isIntact(value, key: key)
        #expect(isIntact)
        let name = key.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        state[name] = Stamp.test.sequence(of: value)
      }
    }
    return state
  }

  @Test("Each backup under load is the store after some commit.", arguments: [true, false])
  func underLoad(linking: Bool) throws {
    let rounds = (proofFactor > 1 ? 10_000 : 50)
    var held: [Int] = []
    for first in stride(from: 0, to: rounds, by: 50) {
      held += try runEpoch(backups: min(50, rounds - first), linking: linking)
    }
    #expect(held.count == rounds)
    #expect(Set(held).count > rounds / 10, "the writers did not write between backups")
  }

  /// Makes backups one after another, and returns the number of commits in each.
  private func runEpoch(backups: Int, linking: Bool) throws -> [Int] {
    let directory = try TemporaryDirectory()
    var options = LevelDBOptions()
    options.writeBufferBytes = 64 << 10
    options.maxFileBytes = 1 << 20
    options.files = DirectFiles(refusesLinks: !linking)
    let engine = try LevelDBEngine(at: directory.path("store"), options: options)
    let isOver = Flag()
    let commits = Mutex<[(sequence: UInt64, thread: Int, number: Int)]>([])
    let acknowledged = Atomic<UInt64>(0)
    let copies = Mutex<[Copy]>([])
    let failures = Mutex<[String]>([])

    onThreads(Self.writers + 2) { [options] thread in
      do {
        switch thread {
        case Self.writers:
          defer { isOver.raise() }
          var last: UInt64 = 0
          for number in 0..<backups {
            // The writers, which may be slow, write between the backups.
            while acknowledged.load(ordering: .acquiring) <= last, !isOver.isRaised {
              sched_yield()
            }
            let before = acknowledged.load(ordering: .acquiring)
            let state = try copy(engine, number, in: directory.path, options)
            last = state.values.max() ?? 0
            copies.withLock { $0.append(Copy(acknowledged: before, state: state)) }
          }
        case Self.writers + 1:
          while !isOver.isRaised { try engine.compact(EngineRange(from: Array("1".utf8))) }
        default:
          var number = 0
          var own: [(sequence: UInt64, thread: Int, number: Int)] = []
          while !isOver.isRaised {
            let step = Step(number, of: thread)
            var batch = step.batch(of: thread)
            let sequence = try engine.write(&batch, synced: step.isSynced).sequence
            own.append((sequence, thread, number))
            _ = acknowledged.max(sequence, ordering: .acquiringAndReleasing)
            number += 1
          }
          commits.withLock { [own] in $0 += own }
        }
      } catch {
        isOver.raise()
        failures.withLock { $0.append("thread \(thread): \(error)") }
      }
    }

    #expect(failures.withLock { $0 } == [])
    let all = commits.withLock { $0.sorted { $0.sequence < $1.sequence } }
    let held = try check(copies.withLock { $0 }, against: all)
    let last = try #require(all.last)
    #expect(try state(of: engine).values.max() == last.sequence, "a backup harmed the store")
    try engine.close()
    let again = try LevelDBEngine(at: directory.path("store"))
    #expect(try state(of: again).values.max() == last.sequence)
    try again.close()
    return held
  }

  private func copy(
    _ engine: LevelDBEngine, _ number: Int, in path: String, _ options: LevelDBOptions
  ) throws -> [String: UInt64] {
    let (backup, restored) = ("\(path)/backup-\(number)", "\(path)/restored-\(number)")
    try engine.backup(to: backup, date: 0)
    try Backup(at: backup).restore(to: restored)
    try FileManager.default.removeItem(atPath: backup)
    let copy = try LevelDBEngine(at: restored, options: options)
    #expect(copy.recovery == nil)
    let state = try state(of: copy)
    try copy.close()
    try FileManager.default.removeItem(atPath: restored)
    return state
  }

  /// Compares each copy with the commits up to its last one, and returns their numbers.
  private func check(
    _ copies: [Copy], against commits: [(sequence: UInt64, thread: Int, number: Int)]
  ) throws -> [Int] {
    var model: [String: UInt64] = [:]
    var next = 0
    return try copies.map { copy in
      let last = copy.state.values.max() ?? 0
      while next < commits.count, commits[next].sequence <= last {
        let commit = commits[next]
        Step(commit.number, of: commit.thread).apply(
          to: &model, commit.sequence, thread: commit.thread)
        next += 1
      }
      try #require(copy.state == model, "the state after commit \(last)")
      try #require(last >= copy.acknowledged)
      return next
    }
  }

  // A table is created between the first listing and the copy of the MANIFEST, and replaced before
  // the second listing. So it can never be linked.
  @Test("A backup starts over if a table is deleted before it is linked.")
  func vanishedTable() throws {
    let directory = try TemporaryDirectory()
    let work = Mutex<(engine: LevelDBEngine?, links: Int, hasComeLate: Bool)>((nil, 0, false))
    var options = LevelDBOptions()
    options.files = DirectFiles(watch: { call in
      let engine: LevelDBEngine? = work.withLock { work in
        if call == .link {
          work.links += 1
          return work.links == 1 ? work.engine : nil
        }
        guard call == .list, work.links > 0, !work.hasComeLate else { return nil }
        work.hasComeLate = true
        return work.engine
      }
      do {
        // Keys below and above all others, so that the compaction replaces every table.
        try engine?.put("0", "\(call)")
        try engine?.put("z", "\(call)")
        try engine?.compact(EngineRange())
      } catch {
        Issue.record(error)
      }
    })
    let engine = try LevelDBEngine(at: directory.path("store"), options: options)
    try fillForBackup(engine)
    work.withLock { $0.engine = engine }
    try engine.backup(to: directory.path("backup"), date: 0)
    work.withLock { $0.engine = nil }
    #expect(work.withLock { $0.links } > 3)
    try Backup(at: directory.path("backup")).restore(to: directory.path("restored"))
    #expect(
      try entriesOfStore(at: directory.path("restored"))
        == [Entry("0", "list")] + entriesForBackup + [Entry("z", "list")])
    try engine.close()
  }
}
