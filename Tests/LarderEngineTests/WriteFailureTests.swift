import Foundation
import LarderBytes
import LarderEngine
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

/// What is acknowledged stays, whatever the disk refuses before and after.
@Suite struct WriteFailureTests {
  /// A store on `disk` that writes tables soon.
  static func open(_ disk: SimulatedDisk) throws(EngineError) -> LevelDBEngine {
    var options = LevelDBOptions()
    options.files = SimulatedFiles(disk)
    options.writeBufferBytes = 64 << 10
    options.cursorSliceEntries = 5
    return try LevelDBEngine(at: "/store", options: options)
  }

  /// What a process that is killed now leaves.
  static func killedImage(of disk: SimulatedDisk) -> SimulatedDisk {
    let replay = disk.replay()
    while replay.step() != nil {}
    return replay.image(.everything)
  }

  /// Whether a write may fail like that when the disk does.
  static func isWriteFailure(_ error: EngineError) -> Bool {
    switch error {
    case .diskFull, .io, .writesDisabled: true
    default: false
    }
  }

  // MARK: - Many threads

  /// What the threads of one run were told.
  private struct Told {
    /// The sequence of each key that was acknowledged.
    var sequences: [String: UInt64] = [:]
    var errors: [EngineError] = []
    var unexpected: [String] = []
  }

  @Test(arguments: [SimulatedDisk.Fault.eio, .enospc, .shortWrite])
  func acknowledgedWritesOfEightThreadsStay(fault: SimulatedDisk.Fault) throws {
    var number = 1
    var failures = 0
    while number < 300, let errors = try run(fault, atWrite: number) {
      failures += errors
      number += 1
    }
    // Each write failed in turn, until there were no more.
    #expect(number > 20 && number < 300)
    #expect(failures > 20)
  }

  /// Returns how many errors there were; nil when there were fewer calls than `number`.
  private func run(_ fault: SimulatedDisk.Fault, atWrite number: Int) throws -> Int? {
    let disk = SimulatedDisk()
    let engine = try Self.open(disk)
    for index in 0..<12 { try engine.put("base\(index)", "old") }
    let cursor = try engine.cursor(over: EngineRange(prefix: bytes("base")))
    #expect(try cursor.next())

    disk.fail(atCall: disk.counts.writes + number, fault, of: .writes)
    let told = writeOnEightThreads(engine)
    let note: Comment = "\(fault) at write \(number)"
    #expect(told.unexpected == [], note)
    let hit = disk.counts.failed > 0
    disk.heal()

    // The first write may be told of a table that failed in the background, the second may not.
    do throws(EngineError) {
      try engine.put("later", "works")
    } catch {
      #expect(Self.isWriteFailure(error), note)
      #expect(throws: Never.self, note) { try engine.put("later", "works") }
    }
    try expect(told, in: engine, note)
    do throws(EngineError) {
      var count = 1
      while try cursor.next() { count += 1 }
      #expect(count == 12, note)
    } catch {
      #expect(Self.isWriteFailure(error), note)
    }
    let image = Self.killedImage(of: disk)
    for disk in [image, disk] {
      if disk === image {} else { try engine.close() }
      let again = try Self.open(disk)
      try expect(told, in: again, note)
      #expect(try again.value("later") == "works", note)
      try again.close()
    }
    return hit ? told.errors.count : nil
  }

  private func writeOnEightThreads(_ engine: LevelDBEngine) -> Told {
    let told = Box(Told())
    onThreads(8) { thread in
      for index in 0..<10 {
        // Every other thread leaves it at what it was told.
        let attempts = thread.isMultiple(of: 2) ? 1 : 100_000
        self.put("t\(thread)-\(index)", attempts, synced: index == 5, in: engine, told)
      }
    }
    return told.state.withLock { $0 }
  }

  private func put(
    _ key: String, _ attempts: Int, synced: Bool, in engine: LevelDBEngine, _ told: Box
  ) {
    for attempt in 1...attempts {
      do throws(EngineError) {
        var batch = WriteBatch()
        batch.put(bytes(key).span.bytes, stamped: true) {
          $0.append(stampedValue(UInt8(truncatingIfNeeded: attempt), tail: 2000))
        }
        let commit = try engine.write(&batch, synced: synced)
        let isThere = try sequence(of: engine.value(bytes(key)) ?? []) == commit.sequence
        return told.state.withLock { told in
          told.sequences[key] = commit.sequence
          if !isThere { told.unexpected.append("\(key) is not there at once") }
        }
      } catch {
        told.state.withLock { told in
          told.errors.append(error)
          if !Self.isWriteFailure(error) { told.unexpected.append("\(error)") }
        }
      }
    }
    if attempts > 1 { told.state.withLock { $0.unexpected.append("\(key): never written") } }
  }

  private func expect(_ told: Told, in engine: LevelDBEngine, _ note: Comment) throws {
    let entries = try engine.entries(in: EngineRange(prefix: bytes("t")))
    var found: [String: UInt64] = [:]
    for entry in entries {
      #expect(isIntact(entry.value, key: entry.key), note)
      found[String(decoding: entry.key, as: UTF8.self)] = sequence(of: entry.value)
    }
    for (key, sequence) in told.sequences {
      // The value is what was acknowledged last: who retries stops at the first success.
      #expect(found[key] == sequence, "\(key), \(note)")
    }
  }

  private final class Box: Sendable {
    let state: Mutex<Told>
    init(_ told: Told) { state = Mutex(told) }
  }

  // MARK: - One thread

  @Test(arguments: [SimulatedDisk.Fault.enospc, .shortWrite, .eio])
  func writesAreDisabledUntilTheDiskIsHealed(fault: SimulatedDisk.Fault) throws {
    let disk = SimulatedDisk()
    let engine = try Self.open(disk)
    try engine.put("a", "old")
    disk.fail(atCall: disk.counts.writes + 1, fault, of: .writes, forever: true)
    do throws(EngineError) {
      try engine.put("a", "new")
      Issue.record("written to a disk that refuses")
    } catch {
      if fault == .eio {
        #expect(Self.isWriteFailure(error) && error != .diskFull)
      } else {
        #expect(error == .diskFull)
      }
    }
    #expect(try engine.value("a") == "old")
    for _ in 0..<3 {
      do throws(EngineError) {
        try engine.put("b", "new")
        Issue.record("written to a disk that refuses")
      } catch {
        if fault == .eio {
          #expect(Self.isWriteFailure(error))
        } else {
          guard case .writesDisabled = error else {
            Issue.record("\(error)")
            continue
          }
          // There is no room even to try: the database stays open.
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
