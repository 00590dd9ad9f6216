import LarderEngine
import LarderTestSupport
import Testing

/// A process that is killed loses nothing that it was told was written, and no batch is torn.
@Suite struct CrashTests {
  @Test(arguments: [.random(in: 0 ... .max)] as [UInt64])
  func noAcknowledgedWriteIsLostInTwoHundredKillsOrMore(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let directory = try TemporaryDirectory()
    // The sequence of each key that is there.
    var model: [String: UInt64] = [:]
    var last: UInt64 = 0

    for round in 0..<(200 * proofFactor) {
      var worker = try ChildProcess("CrashWorker", ["write", directory.path, "\(random.next())"])
      for _ in 0..<Int.random(in: 1...400, using: &random) {
        let answer = worker.readLine()
        let line = try #require(answer)
        try apply(line, to: &model, after: &last)
      }
      worker.kill()
      // It may have got further than we have read.
      while let line = worker.readLine() { try apply(line, to: &model, after: &last) }

      let engine = try LevelDBEngine(at: directory.path)
      let found = try sequences(in: engine)
      if let batch = try unacknowledgedBatch(in: engine, after: last) {
        if let key = batch.removed { model[key] = nil }
        for key in batch.put { model[key] = batch.sequence }
        last = batch.sequence
      }
      try #require(found == model, "seed \(seed), round \(round)")
      try engine.close()
    }
  }

  /// Applies what the worker says about a batch that is committed.
  private func apply(
    _ line: String, to model: inout [String: UInt64], after last: inout UInt64
  ) throws {
    var words = line.split(separator: " ")
    let sequence = try #require(UInt64(words.removeFirst()), "\(line)")
    #expect(sequence > last)
    last = sequence
    for word in words {
      if word.hasPrefix("-") {
        model[String(word.dropFirst())] = nil
      } else {
        model[String(word)] = sequence
      }
    }
  }

  private func sequences(in engine: LevelDBEngine) throws -> [String: UInt64] {
    var sequences: [String: UInt64] = [:]
    for entry in try engine.entries() {
      #expect(isIntact(entry.value, key: entry.key))
      sequences[String(decoding: entry.key, as: UTF8.self)] = sequence(of: entry.value)
    }
    return sequences
  }

  /// The batch that was committed without its author's hearing of it, if there is one.
  ///
  /// Each of its values says what else is in it, so that it can be seen to be whole.
  private func unacknowledgedBatch(
    in engine: LevelDBEngine, after last: UInt64
  ) throws -> (sequence: UInt64, put: [String], removed: String?)? {
    let entries = try engine.entries().filter { sequence(of: $0.value) ?? 0 > last }
    guard let first = entries.first, let sequence = sequence(of: first.value) else { return nil }
    let put = entries.map { String(decoding: $0.key, as: UTF8.self) }
    // By bytes: the random ones behind the bar could join it to one character.
    let listed = first.value[Stamp.byteCount...].prefix { $0 != UInt8(ascii: "|") }
    let contents = String(decoding: listed, as: UTF8.self).split(separator: " ").map(String.init)

    #expect(put.sorted() == contents.filter { !$0.hasPrefix("-") }.sorted())
    #expect(entries.allSatisfy { LarderEngineTests.sequence(of: $0.value) == sequence })
    return (sequence, put, contents.first { $0.hasPrefix("-") }.map { String($0.dropFirst()) })
  }
}
