import Foundation
import Larder
import LarderEngineSupport
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

/// Failing calls of the disk never lose an acknowledged write.
@Suite struct WriteFailureTests {
  /// Opens a store on `disk` with a small write buffer.
  static func open(_ disk: SimulatedDisk) throws(StoreError) -> LevelDBEngine {
    var options = LevelDBOptions()
    options.files = SimulatedFiles(disk)
    options.writeBufferBytes = 64 << 10
    options.cursorSliceEntries = 5
    return try LevelDBEngine(at: "/store", options: options)
  }

  /// The disk as a process that is killed now leaves it.
  static func killedImage(of disk: SimulatedDisk) -> SimulatedDisk {
    let replay = disk.replay()
    while replay.step() != nil {}
    return replay.image(.everything)
  }

  @Test("No write is acknowledged into a log that could not be replaced after a failure.")
  func unrenewedLog() throws {
    var failures = 0
    for distance in 1...12 {
      let disk = SimulatedDisk()
      let engine = try Self.open(disk)
      try engine.put("a", "before")
      let next = disk.counts.mutating + 1
      // The append of a row, and then a call that replaces the log.
      disk.fail(atCall: next, .shortWrite)
      disk.fail(atCall: next + distance, .eio)
      var acknowledged: [String] = []
      for number in 0..<12 {
        do throws(StoreError) {
          try engine.put("key \(number)", "value")
          acknowledged.append("key \(number)")
        } catch {
          #expect(error.isWriteFailure)
          failures += 1
        }
      }
      let killed = try Self.open(Self.killedImage(of: disk))
      for key in acknowledged { #expect(try killed.value(key) == "value", "\(key), \(distance)") }
      try killed.close()
      try engine.close()
    }
    #expect(failures > 12)
  }

  // MARK: - Many threads

  /// The acknowledgements and errors of one run's threads.
  private struct Outcomes {
    /// The commit sequence of each acknowledged key.
    var sequences: [String: UInt64] = [:]
    var errors: [StoreError] = []
    var unexpected: [String] = []
  }

  @Test(
    "Acknowledged writes of eight threads survive a failed write.",
    arguments: [SimulatedDisk.Fault.eio, .enospc, .shortWrite])
  func threads(fault: SimulatedDisk.Fault) throws {
    var number = 1
    var failures = 0
    while number < 300, let errors = try run(fault, atWrite: number) {
      failures += errors
      number += 1
    }
    // Each write call has failed in turn.
    #expect(number > 20 && number < 300)
    #expect(failures > 20)
  }

  /// Returns the number of errors; nil if there were fewer than `number` calls.
  private func run(_ fault: SimulatedDisk.Fault, atWrite number: Int) throws -> Int? {
    let disk = SimulatedDisk()
    let engine = try Self.open(disk)
    for index in 0..<12 { try engine.put("base\(index)", "old") }
    let cursor = try engine.cursor(over: EngineRange(prefix: bytes("base")))
    #expect(try cursor.next())

    disk.fail(atCall: disk.counts.writes + number, fault, of: .writes)
    let outcomes = writeOnEightThreads(engine)
    let note: Comment = "\(fault) at write \(number)"
    #expect(outcomes.unexpected == [], note)
    let hit = disk.counts.failed > 0
    disk.heal()

    // Only the first write may report a table that failed in the background.
    do throws(StoreError) {
      try engine.put("later", "works")
    } catch {
      #expect(error.isWriteFailure, note)
      #expect(throws: Never.self, note) { try engine.put("later", "works") }
    }
    try expect(outcomes, in: engine, note)
    do throws(StoreError) {
      var count = 1
      while try cursor.next() { count += 1 }
      #expect(count == 12, note)
    } catch {
      #expect(error.isWriteFailure, note)
    }
    let image = Self.killedImage(of: disk)
    for disk in [image, disk] {
      if disk === image {} else { try engine.close() }
      let again = try Self.open(disk)
      try expect(outcomes, in: again, note)
      #expect(try again.value("later") == "works", note)
      try again.close()
    }
    return hit ? outcomes.errors.count : nil
  }

  private func writeOnEightThreads(_ engine: LevelDBEngine) -> Outcomes {
    let outcomes = Box(Outcomes())
    onThreads(8) { thread in
      for index in 0..<10 {
        // Every other thread does not retry.
        let attempts = thread.isMultiple(of: 2) ? 1 : 100_000
        self.put("t\(thread)-\(index)", attempts, synced: index == 5, in: engine, outcomes)
      }
    }
    return outcomes.state.withLock { $0 }
  }

  private func put(
    _ key: String, _ attempts: Int, synced: Bool, in engine: LevelDBEngine, _ outcomes: Box
  ) {
    for attempt in 1...attempts {
      do throws(StoreError) {
        var batch = WriteBatch()
        batch.put(bytes(key).span.bytes, stamp: .test) {
          $0.append(stampedValue(UInt8(truncatingIfNeeded: attempt), tail: 2000))
        }
        let commit = try engine.write(&batch, synced: synced)
        let isThere = try sequence(of: engine.value(bytes(key)) ?? []) == commit.sequence
        return outcomes.state.withLock { outcomes in
          outcomes.sequences[key] = commit.sequence
          if !isThere { outcomes.unexpected.append("\(key) is missing right after its write") }
        }
      } catch {
        outcomes.state.withLock { outcomes in
          outcomes.errors.append(error)
          if !error.isWriteFailure { outcomes.unexpected.append("\(error)") }
        }
      }
    }
    if attempts > 1 {
      outcomes.state.withLock { $0.unexpected.append("\(key): all attempts failed") }
    }
  }

  private func expect(_ outcomes: Outcomes, in engine: LevelDBEngine, _ note: Comment) throws {
    let entries = try engine.entries(in: EngineRange(prefix: bytes("t")))
    var found: [String: UInt64] = [:]
    for entry in entries {
      #expect(isIntact(entry.value, key: entry.key), note)
      found[String(decoding: entry.key, as: UTF8.self)] = sequence(of: entry.value)
    }
    for (key, sequence) in outcomes.sequences {
      // The value is the last acknowledged one, because a retry stops at its first success.
      #expect(found[key] == sequence, "\(key), \(note)")
    }
  }

  private final class Box: Sendable {
    let state: Mutex<Outcomes>
    init(_ outcomes: Outcomes) { state = Mutex(outcomes) }
  }

  @Test("Calls wait while the database is reopened.")
  func callsWhileReopening() throws {
    let disk = SimulatedDisk()
    let engine = try Self.open(disk)
    try engine.put("b", "kept")
    let hasEnded = Atomic(false)
    let met = Atomic(0)
    onThreads(4) { thread in
      if thread == 0 {
        // The other threads may start late, and meet no reopening for a while.
        var number = 0
        while number < 100 || number < 10_000 && met.load(ordering: .relaxed) < 10 {
          number += 1
          disk.fail(atCall: disk.counts.mutating + 1, .eio, forever: true)
          // The write fails, and then the replacement of its log.
          for _ in 0..<2 {
            #expect(throws: StoreError.self) { try engine.put("a", "\(number)") }
          }
          disk.heal()
          #expect(throws: Never.self) { try engine.put("a", "\(number)") }
        }
        hasEnded.store(true, ordering: .relaxed)
      } else {
        while !hasEnded.load(ordering: .relaxed) {
          if !engine.isUp { met.add(1, ordering: .relaxed) }
          #expect(throws: Never.self) { try #require(try engine.value("b") == "kept") }
        }
      }
    }
    #expect(met.load(ordering: .relaxed) >= 10)
    try engine.close()
  }

  @Test("An engine can be closed while it is reopened and calls wait for that.")
  func closeWhileReopening() throws {
    for round in 0..<16 {
      let disk = SimulatedDisk()
      let engine = try Self.open(disk)
      try engine.put("b", "kept")
      let reopenings = Atomic(0)
      onThreads(4) { thread in
        if thread == 0 {
          while reopenings.load(ordering: .relaxed) <= round {}
          #expect(throws: Never.self) { try engine.close() }
        } else if thread == 1 {
          let errors = self.failAndReopen(engine, disk, counting: reopenings)
          #expect(errors.allSatisfy { $0.isWriteFailure })
        } else {
          do throws(StoreError) {
            while true { _ = try engine.value("b") }
          } catch {
            #expect(error == .closed)
          }
        }
      }
    }
  }

  /// Makes the database be reopened again and again until the engine is closed; returns the errors.
  private func failAndReopen(
    _ engine: LevelDBEngine, _ disk: SimulatedDisk, counting reopenings: borrowing Atomic<Int>
  ) -> [StoreError] {
    var errors: [StoreError] = []
    while true {
      disk.fail(atCall: disk.counts.mutating + 1, .eio, forever: true)
      for attempt in 0..<3 {
        if attempt == 2 { disk.heal() }
        do throws(StoreError) {
          try engine.put("a", "value")
        } catch .closed {
          disk.heal()
          return errors
        } catch {
          errors.append(error)
        }
      }
      reopenings.add(1, ordering: .relaxed)
    }
  }

  // MARK: - One thread

  @Test(
    "Writes are disabled until the disk is healed.",
    arguments: [SimulatedDisk.Fault.enospc, .shortWrite, .eio])
  func disabledWrites(fault: SimulatedDisk.Fault) throws {
    let disk = SimulatedDisk()
    let engine = try Self.open(disk)
    try engine.put("a", "old")
    disk.fail(atCall: disk.counts.writes + 1, fault, of: .writes, forever: true)
    do throws(StoreError) {
      try engine.put("a", "new")
      Issue.record("a write to a failing disk succeeded")
    } catch {
      if fault == .eio {
        #expect(error.isWriteFailure && error != .diskFull)
      } else {
        #expect(error == .diskFull)
      }
    }
    #expect(try engine.value("a") == "old")
    for _ in 0..<3 {
      do throws(StoreError) {
        try engine.put("b", "new")
        Issue.record("a write to a failing disk succeeded")
      } catch {
        if fault == .eio {
          #expect(error.isWriteFailure)
        } else {
          guard case .writesDisabled = error else {
            Issue.record("\(error)")
            continue
          }
          // The engine does not reopen the database without room, so reads still succeed.
          #expect(try engine.entries() == [Entry("a", "old")])
        }
      }
    }
    disk.heal()
    try engine.put("c", "new")
    let expected = [Entry("a", "old"), Entry("c", "new")]
    #expect(try engine.entries() == expected)
    let killed = try Self.open(Self.killedImage(of: disk))
    #expect(try killed.entries() == expected)
    try killed.close()
    try engine.close()
    let again = try Self.open(disk)
    #expect(try again.entries() == expected)
    try again.close()
  }
}
