import LarderEngine
import LarderTestSupport
import Synchronization
import Testing

/// Conditions of batches that are written together are checked as if they came one by one.
extension WriteFailureTests {
  @Test func oneOfEightThreadsWinsEachAbsentKey() throws {
    try withEngine(.levelDB) { engine in
      let winners = Tally()
      onThreads(8) { thread in
        for index in 0..<200 {
          winners.note { () throws(EngineError) in
            var batch = WriteBatch()
            let isAbsent = batch.require("key\(index)", .absent)
            batch.put("key\(index)", "\(thread)", if: isAbsent)
            let commit = try engine.write(&batch, synced: false)
            return commit.failed.isEmpty ? "key\(index)=\(thread)" : nil
          }
        }
      }
      let found = try engine.entries().map { entry in
        String(decoding: entry.key + bytes("=") + entry.value, as: UTF8.self)
      }
      let (names, errors) = winners.state.withLock { $0 }
      #expect(errors == [])
      #expect(found.count == 200)
      #expect(names.sorted() == found.sorted())
    }
  }

  @Test func noIncrementOfEightThreadsIsLost() throws {
    try withEngine(.levelDB) { engine in
      let counter = bytes("counter")
      try engine.put(counter, stampedValue(0, tail: 0) + [0, 0], stamped: true)
      let done = Tally()
      onThreads(8) { _ in
        for _ in 0..<100 {
          done.note { () throws(EngineError) in
            while try !Self.increment(counter, in: engine) {}
            return "done"
          }
        }
      }
      let (names, errors) = done.state.withLock { $0 }
      #expect(errors == [])
      #expect(names.count == 800)
      let value = try #require(try engine.value(counter))
      #expect(isIntact(value, key: counter))
      #expect(Array(value.suffix(2)) == [UInt8(800 >> 8), UInt8(800 & 0xFF)])
    }
  }

  /// Adds one to a counter of two bytes; false when somebody else was faster.
  private static func increment(
    _ key: [UInt8], in engine: any StorageEngine
  ) throws(EngineError) -> Bool {
    guard let value = try engine.value(key), let since = sequence(of: value) else {
      throw .corrupt("there is no counter")
    }
    let count = Int(value[value.count - 2]) << 8 + Int(value[value.count - 1]) + 1
    var batch = WriteBatch()
    let isUnchanged = batch.require(key.span.bytes, .unchanged(since: since))
    batch.put(key.span.bytes, stamped: true, if: isUnchanged) {
      $0 += stampedValue(0, tail: 0) + [UInt8(count >> 8), UInt8(count & 0xFF)]
    }
    return try engine.write(&batch, synced: false).failed.isEmpty
  }
}

/// What threads did, and what went wrong.
private final class Tally: Sendable {
  let state = Mutex<(names: [String], errors: [EngineError])>(([], []))

  /// Notes the name that `body` returns, or its error.
  func note(_ body: () throws(EngineError) -> String?) {
    do throws(EngineError) {
      if let name = try body() { state.withLock { $0.names.append(name) } }
    } catch {
      state.withLock { $0.errors.append(error) }
    }
  }
}
