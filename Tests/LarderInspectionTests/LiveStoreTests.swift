import Foundation
import LarderTestSupport
import LarderTesting
import Larder
import LarderEngine
import Testing

@testable import LarderInspection

/// A store that another process is writing to, and one that it left behind when it was killed.
@Suite struct LiveStoreTests {
  /// The worker that writes for ever; what it says goes to a file, so that it never has to wait.
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

    /// The whole lines so far: of each batch the sequence, what it put, what it removed.
    func lines() throws -> [[Substring]] {
      let text = String(decoding: try Data(contentsOf: URL(filePath: log)), as: UTF8.self)
      let whole = text.prefix(upTo: text.lastIndex(of: "\n") ?? text.startIndex)
      return whole.split(separator: "\n").map { $0.split(separator: " ") }
    }

    /// Waits until so many batches are acknowledged.
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
        let isIntact = Stamp.isIntact(value, key: key)
        #expect(isIntact)
        state[name] = Stamp.sequence(of: value)
      }
    }
    return state
  }

  /// What the worker's store held after its first batches, by the sequence of the last of them.
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

  @Test(arguments: [true, false])
  func everySnapshotIsTheStoreAsItWasAtOneMoment(linking: Bool) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let worker = try Worker(writingTo: path, log: directory.path("log"))
    _ = try worker.waitForLines(2000)

    var captures: [(acknowledged: Int, state: [String: UInt64])] = []
    for _ in 0..<15 {
      let acknowledged = try worker.lines().count
      let inspection = try Inspection(at: path, now: Specimen.now, linking: linking)
      _ = try inspection.told()
      captures.append((acknowledged, try state(of: inspection.engine)))
    }
    // The batch that a snapshot may have one line before its worker says so.
    let last = try worker.lines().count
    let lines = try worker.waitForLines(last + 1)
    worker.kill()

    // First of all, the store has come to no harm.
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
    #expect(Set(captures.map(\.acknowledged)).count > 1, "the worker wrote all the time")
  }

  @Test func aStoreThatCrashedIsReadAndItsOwnerIsTold() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    let worker = try Worker(writingTo: path, log: directory.path("log"))
    _ = try worker.waitForLines(2000)
    worker.kill()
    let lines = try worker.lines()
    let before = try FileFacts.all(in: path)

    let inspection = try Inspection(at: path, now: Specimen.now)

    #expect(try inspection.told().text.contains("which ended without closing the store"))
    let state = try state(of: inspection.engine)
    let sequence = try #require(state.values.max())
    #expect(sequence >= UInt64(try #require(lines.last)[0]) ?? 0)
    #expect(try FileFacts.all(in: path) == before)
  }

  @Test func recordsOfABatchAreSeenTogetherWhileTheyAreWritten() throws {
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    let pairs = try store.cache("pairs", of: Int.self)
    let isEnough = Flag()
    let hasEnded = Flag()
    let writer = Thread {
      var number = 0
      while !isEnough.isRaised {
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
    for _ in 0..<20 {
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
