import Foundation
import LarderTestSupport
import LarderTesting
import Larder
import Synchronization
import Testing

@testable import LarderInspection

/// A store is inspected consistently while another process writes to it, and after its crash.
@Suite struct LiveStoreTests {
  /// A worker that writes forever, with its output in a file so that it never blocks.
  private final class Worker {
    private let process = Process()
    private let log: String
    private let watch: ChildWatch

    init(writingTo path: String, log: String) throws {
      self.log = log
      try Data().write(to: URL(filePath: log))
      process.executableURL = URL(filePath: try #require(ChildProcess.path(of: "CrashWorker")))
      process.arguments = ["write", path, "7"]
      process.standardOutput = try FileHandle(forWritingTo: URL(filePath: log))
      try process.run()
      watch = ChildWatch(process.processIdentifier, "CrashWorker write")
    }

    func kill() {
      Foundation.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
      watch.end()
    }

    deinit { if process.isRunning { kill() } }

    /// The complete lines so far, with each batch's sequence, its puts and its removals.
    func lines() throws -> [[Substring]] {
      let text = String(decoding: try Data(contentsOf: URL(filePath: log)), as: UTF8.self)
      let whole = text.prefix(upTo: text.lastIndex(of: "\n") ?? text.startIndex)
      return whole.split(separator: "\n").map { $0.split(separator: " ") }
    }

    /// Waits until `count` batches are acknowledged.
    func waitForLines(_ count: Int) throws -> [[Substring]] {
      while true {
        let lines = try lines()
        if lines.count >= count { return lines }
        #expect(process.isRunning, "the worker ended: \(lines.suffix(2))")
        guard process.isRunning else { return lines }
      }
    }
  }

  /// The commit sequence under each of the worker's keys.
  private func state(of engine: LevelDBEngine) throws -> [String: UInt64] {
    var state: [String: UInt64] = [:]
    let cursor = try engine.cursor(over: EngineRange(prefix: Array("t0-".utf8)))
    while try cursor.next() {
      cursor.withEntry { key, value in
        let name = key.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        let isIntact = Record.stamp.isIntact(value, key: key)
        #expect(isIntact)
        state[name] = Record.stamp.sequence(of: value)
      }
    }
    return state
  }

  /// The state of the worker's store after each batch, by the batch's sequence.
  private func states(after lines: [[Substring]]) -> [UInt64: [String: UInt64]] {
    var state: [String: UInt64] = [:]
    var states: [UInt64: [String: UInt64]] = [:]
    for line in lines {
      let sequence = line.first.flatMap { UInt64($0) } ?? 0
      for word in line.dropFirst() {
        if word.hasPrefix("-") {
          state[String(word.dropFirst())] = nil
        } else {
          state[String(word)] = sequence
        }
      }
      states[sequence] = state
    }
    return states
  }

  @Test("Every snapshot is the store after some commit.", arguments: [true, false])
  func snapshots(linking: Bool) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let worker = try Worker(writingTo: path, log: directory.path("log"))
    _ = try worker.waitForLines(2000)

    var captures: [(acknowledged: Int, state: [String: UInt64])] = []
    let count = isProof ? 15 : 5
    for _ in 0..<count {
      // The worker, which may be slow, writes between the snapshots.
      let acknowledged = try worker.waitForLines((captures.last?.acknowledged ?? 0) + 1).count
      let inspection = try Inspection(at: path, now: Specimen.now, linking: linking)
      _ = try inspection.infoReport()
      captures.append((acknowledged, try state(of: inspection.engine)))
    }
    // A snapshot may have one batch that the worker has not yet acknowledged.
    let last = try worker.lines().count
    let lines = try worker.waitForLines(last + 1)
    worker.kill()

    // The store itself is undamaged.
    let engine = try LevelDBEngine(at: path)
    let states = states(after: try worker.lines())
    let final = try state(of: engine)
    try engine.close()
    #expect(states[try #require(final.values.max())] ?? final == final)
    for (acknowledged, state) in captures {
      let sequence = try #require(state.values.max())
      #expect(states[sequence] == state)
      #expect(sequence >= UInt64(lines[acknowledged - 1][0]) ?? 0)
    }
    #expect(Set(captures.map(\.acknowledged)).count == count)
  }

  @Test("A store whose owner crashed is read, and the crash is reported.")
  func crashedStore() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let worker = try Worker(writingTo: path, log: directory.path("log"))
    _ = try worker.waitForLines(2000)
    worker.kill()
    let lines = try worker.lines()
    let before = try FileFacts.all(in: path)

    let inspection = try Inspection(at: path, now: Specimen.now)

    #expect(try inspection.infoReport().text.contains("which exited without closing the store"))
    let state = try state(of: inspection.engine)
    let sequence = try #require(state.values.max())
    #expect(sequence >= UInt64(try #require(lines.last)[0]) ?? 0)
    #expect(try FileFacts.all(in: path) == before)
  }

  @Test("A snapshot has all records of a batch or none of them.")
  func batches() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let pairs = try store.cache("pairs", of: Int.self)
    let isEnough = Flag()
    let hasEnded = Flag()
    let written = Atomic(0)
    let writer = Thread {
      var number = 0
      while !isEnough.isRaised {
        written.store(number, ordering: .releasing)
        number += 1
        do {
          try store.write { batch in
            batch.save(number, for: "a", in: pairs)
            batch.save(number, for: "b", in: pairs)
          }
        } catch {
          Issue.record(error)
          break
        }
      }
      hasEnded.raise()
    }
    writer.start()

    var seen: Set<[UInt8]> = []
    for round in 0..<20 {
      // The writer may be slow.
      while written.load(ordering: .acquiring) < round, !hasEnded.isRaised { sched_yield() }
      let inspection = try specimen.inspect()
      let payloads = try ["a", "b"].map { key in
        do {
          return try inspection.payload(of: key, cache: "pairs", keys: .auto).bytes
        } catch let error as InspectionError where error.status == .notFound {
          return []
        }
      }
      #expect(payloads[0] == payloads[1])
      seen.insert(payloads[0])
    }
    isEnough.raise()
    hasEnded.wait()
    try store.close()

    #expect(seen.count > 1)
  }
}
