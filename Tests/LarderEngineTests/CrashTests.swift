import Larder
import LarderTestSupport
import Testing

/// A killed process loses no acknowledged write and leaves no batch half applied.
@Suite struct CrashTests {
  /// The acknowledged writes of one of the worker's threads.
  private struct Acknowledged {
    /// The commit sequence of each key that exists.
    var model: [String: UInt64] = [:]
    var last: UInt64 = 0
  }

  /// As the worker opens a store, with its flag `--segments` or without.
  static func options(withSegments: Bool) -> LevelDBOptions {
    var options = LevelDBOptions()
    guard withSegments else { return options }
    options.separation = ValueSeparation(
      keySpace: UInt8(ascii: "t"), flagOffset: 20, flag: 0x10, stamp: .test, thresholdBytes: 1)
    options.segmentBytes = 16 << 10
    return options
  }

  /// The worker's arguments for that.
  static func flags(withSegments: Bool) -> [String] { withSegments ? ["--segments"] : [] }

  @Test(
    "No acknowledged write is lost in any of many kills.",
    arguments: [.random(in: 0 ... .max)] as [UInt64], [false, true])
  func noAcknowledgedWriteIsLost(seed: UInt64, withSegments: Bool) throws {
    var random = SplitMix64(seed: seed)
    let directory = try TemporaryDirectory()
    var acknowledged: [Substring: Acknowledged] = [:]
    let rounds = isProof ? 20_000 : 60
    for round in 0..<rounds {
      var worker = try ChildProcess(
        "CrashWorker",
        ["storm", directory.path, "\(random.next())"] + Self.flags(withSegments: withSegments))
      for _ in 0..<Int.random(in: 1...400, using: &random) {
        let answer = worker.readLine()
        let line = try #require(answer)
        try apply(line, to: &acknowledged)
      }
      worker.kill()
      // The worker may have written more lines than were read.
      while let line = worker.readLine() { try apply(line, to: &acknowledged) }

      let engine = try LevelDBEngine(
        at: directory.path, options: Self.options(withSegments: withSegments))
      let found = try sequences(in: engine)
      for thread in (0..<8).map({ "t\($0)" as Substring }) {
        let was = acknowledged[thread, default: Acknowledged()]
        guard let batch = try unacknowledgedBatch(of: thread, in: engine, after: was.last) else {
          continue
        }
        var now = was
        if let key = batch.removed { now.model[key] = nil }
        for key in batch.put { now.model[key] = batch.sequence }
        now.last = batch.sequence
        acknowledged[thread] = now
      }
      let expected = acknowledged.values.reduce(into: [:]) { all, acknowledged in
        all.merge(acknowledged.model) { one, _ in one }
      }
      try #require(found == expected, "seed \(seed), round \(round)")
      try engine.close()
    }
    // Collections have deleted most of what was written.
    let segments = try SeparationTests.segments(of: directory).count
    #expect(withSegments ? (1..<100).contains(segments) : segments == 0)
  }

  /// The worker's thread that a key belongs to.
  private func thread(of key: some StringProtocol) -> Substring {
    Substring(key.drop { $0 == "-" }.prefix { $0 != "-" })
  }

  /// Applies the worker's line about a committed batch.
  private func apply(_ line: String, to all: inout [Substring: Acknowledged]) throws {
    var words = line.split(separator: " ")
    let sequence = try #require(UInt64(words.removeFirst()), "\(line)")
    let thread = thread(of: try #require(words.first, "\(line)"))
    var acknowledged = all[thread, default: Acknowledged()]
    #expect(sequence > acknowledged.last)
    acknowledged.last = sequence
    for word in words {
      if word.hasPrefix("-") {
        acknowledged.model[String(word.dropFirst())] = nil
      } else {
        acknowledged.model[String(word)] = sequence
      }
    }
    all[thread] = acknowledged
  }

  private func sequences(in engine: LevelDBEngine) throws -> [String: UInt64] {
    var sequences: [String: UInt64] = [:]
    for entry in try engine.entries() {
      #expect(isIntact(entry.value, key: entry.key))
      sequences[String(decoding: entry.key, as: UTF8.self)] = sequence(of: entry.value)
    }
    return sequences
  }

  /// The batch that a thread committed without an acknowledgement; nil if there is none.
  ///
  /// Each value lists the batch's other rows, so the check sees whether the batch is complete.
  private func unacknowledgedBatch(
    of thread: Substring, in engine: LevelDBEngine, after last: UInt64
  ) throws -> (sequence: UInt64, put: [String], removed: String?)? {
    let range = EngineRange(prefix: bytes("\(thread)-"))
    let entries = try engine.entries(in: range).filter { sequence(of: $0.value) ?? 0 > last }
    guard let first = entries.first, let sequence = sequence(of: first.value) else { return nil }
    let put = entries.map { String(decoding: $0.key, as: UTF8.self) }
    // By bytes: a random byte behind the bar could combine with it to one character.
    let listed = first.value[Stamp.test.end...].prefix { $0 != UInt8(ascii: "|") }
    let contents = String(decoding: listed, as: UTF8.self).split(separator: " ").map(String.init)

    #expect(put.sorted() == contents.filter { !$0.hasPrefix("-") }.sorted())
    #expect(entries.allSatisfy { LarderEngineTests.sequence(of: $0.value) == sequence })
    return (sequence, put, contents.first { $0.hasPrefix("-") }.map { String($0.dropFirst()) })
  }
}
