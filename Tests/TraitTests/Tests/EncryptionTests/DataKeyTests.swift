import Crypto
import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderTesting

/// The data keys of a store: when they are replaced, and when they are deleted.
@Suite(.timeLimit(.minutes(5))) struct DataKeyTests {
  private func cache(_ store: Store) throws -> Cache<Int, String> {
    try store.cache("c", of: String.self, keyedBy: Int.self, memory: .none)
  }

  private func fill(_ store: Store, _ range: Range<Int>) throws {
    let cache = try cache(store)
    for key in range { try cache.save("\(key) \(marker)", for: key, validator: "v") }
  }

  private func check(_ store: Store, _ range: Range<Int>) throws {
    let cache = try cache(store)
    for key in range {
      let entry = try #require(try cache.lookup(for: key).entry)
      #expect(entry.value == "\(key) \(marker)" && entry.validator == "v")
    }
  }

  private func ids(in store: Store) throws -> [UInt32] {
    try DataKeys(of: store.engine).keys.map(\.id)
  }

  @Test("Data keys are replaced after so many values, and older values stay readable.")
  func worn() throws {
    let sealed = try SealedStore()
    for round in 1...3 {
      try sealed.with { store in
        try fill(store, (round * 10)..<(round * 10 + 10))
        var rows = WriteBatch()
        rows.putMetadata(StoreSeal.messageLimit, under: Metadata.sealedCount(UInt32(round)))
        try store.engine.write(&rows, synced: true)
      }
      try sealed.with { store in
        try fill(store, 0..<1)
        #expect(try ids(in: store) == (1...UInt32(round + 1)).map { $0 })
        try check(store, 10..<(round * 10 + 10))
      }
    }
  }

  @Test("Once everything is sealed with a new data key, the earlier ones are deleted.")
  func deleted() throws {
    let sealed = try SealedStore()
    for round in 1...5 as ClosedRange<UInt32> {
      try sealed.with { store in
        try fill(store, 0..<20)
        #expect(try ids(in: store) == [round])
        let report = try store.reseal()
        #expect(report.isComplete && report.sealed == 20)
        #expect(try ids(in: store) == [round + 1])
        #expect(try store.engine.get(Metadata.sealedCount(round).span.bytes) == nil)
        try check(store, 0..<20)
      }
      let file = try String(contentsOfFile: "\(sealed.path)/LARDER.keys", encoding: .utf8)
      #expect(file.split(separator: "\n").count == 3)
      try sealed.with { try check($0, 0..<20) }
    }
  }

  @Test("A cursor that was opened before reads what an earlier data key has sealed.")
  func cursor() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      try fill(store, 0..<20)
      let entries = try cache(store).entries()
      for _ in 0..<2 { #expect(try store.reseal().isComplete) }
      var count = 0
      while let item = try entries.next() {
        #expect(try item.entry.get().value == "\(item.key) \(marker)")
        count += 1
      }
      #expect(count == 20)
    }
  }

  @Test("A batch that is not committed yet keeps the data key that sealed its values.")
  func held() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      try fill(store, 0..<10)
      let cache = try cache(store)
      try store.write { batch in
        batch.save("10 \(marker)", for: 10, in: cache, validator: "v")
        do {
          let report = try store.reseal()
          #expect(!report.isComplete && report.sealed == 10)
          #expect(try ids(in: store) == [1, 2])
        } catch {
          Issue.record(error)
        }
      }
      try check(store, 0..<11)
    }
    try sealed.with { store in
      try check(store, 0..<11)
      // This call goes on with data key 2. Only the value of the batch is still to be sealed.
      let report = try store.reseal()
      #expect(report.isComplete && report.sealed == 1 && report.current == 10)
      #expect(try ids(in: store) == [2])
      try check(store, 0..<11)
    }
    try sealed.with { try check($0, 0..<11) }
  }

  @Test("While threads save, and two seal again, no data key is deleted that is needed.")
  func saving() throws {
    let sealed = try SealedStore()
    for round in 1...(3 * proofFactor) {
      let store = try sealed.open(.key(id: "1", key(1)))
      let cache = try cache(store)
      onThreads(5) { thread in
        do {
          if thread < 2 {
            for _ in 0..<20 { try store.reseal() }
          } else {
            for number in 0..<900 {
              let key = number * 3 % 99 + thread - 1
              try cache.save("\(key) \(marker)", for: key, validator: "v")
            }
          }
        } catch {
          Issue.record(error)
        }
      }
      try store.close()
      try sealed.with { store in
        try check(store, 1..<100)
        #expect(try store.reseal().isComplete, "round \(round)")
        #expect(try ids(in: store).count == 1)
      }
    }
  }

  @Test("A save that is committed behind the scan is sealed by a second one.")
  func committedBehind() async throws {
    let sealed = try SealedStore()
    try sealed.with { try fill($0, 0..<10) }
    let (store, engine, faults) = try openWithFaults(sealed)
    let cache = try cache(store)
    // A save on another thread has sealed its value, and is slow to commit it.
    var write = WriteBatch()
    try cache.core.add(
      "10 \(marker)", for: 10, id: cache.core.id, savedAt: sealed.clock.now(),
      fields: Record.Fields(validator: "v"), to: &write)
    // The first write is the new data key, and the second is made in the scan.
    faults.holdWrites(after: 1)
    let sealing = Task { try await store.run { try store.reseal() } }
    try await faults.waitForHeldWrites(1)
    try engine.base.write(&write, synced: false)
    write.reset()
    faults.releaseWrites()
    let report = try await sealing.value
    #expect(report.isComplete && report.sealed == 11 && report.current == 0)
    #expect(try ids(in: store) == [2])
    try check(store, 0..<11)
    try store.close()
    try sealed.with { try check($0, 0..<11) }
  }

  /// The store with key 1, whose writes can be held for 20 seconds.
  private func openWithFaults(
    _ sealed: SealedStore
  ) throws -> (Store, FaultyEngine, StoreFaults) {
    var options = Store.Options()
    options.sweepInterval = nil
    options.clock = sealed.clock
    options.encryption = .key(id: "1", key(1))
    let faults = StoreFaults(holdLimit: .seconds(20))
    let engine = FaultyEngine(
      try LevelDBEngine(at: sealed.path, options: options.engineOptions), faults)
    return (try Store(engine: engine, options: options, origin: .disk), engine, faults)
  }

  @Test("Reads do not wait while a new data key is written.")
  func reading() async throws {
    let sealed = try SealedStore()
    try sealed.with { try fill($0, 0..<10) }
    let (store, _, faults) = try openWithFaults(sealed)
    let cache = try cache(store)
    faults.holdWrites()
    let sealing = Task { try await store.run { try store.reseal() } }
    try await faults.waitForHeldWrites(1)
    #expect(try cache.value(for: 3) == "3 \(marker)")
    // A read that waited would return when the hold has ended.
    #expect(faults.heldWrites == 1)
    faults.releaseWrites()
    #expect(try await sealing.value.isComplete)
    try store.close()
  }

  @Test("While an entry cannot be sealed again, no data key is deleted.")
  func unreadable() throws {
    let sealed = try SealedStore()
    try sealed.with { store in
      try fill(store, 0..<10)
      let cache = try cache(store)
      let place = 5.recordKey(in: cache.core.id).bytes
      var bytes = try #require(try store.engine.get(place.span.bytes))
      bytes[bytes.count - 1] ^= 1
      var rows = WriteBatch()
      rows.put(place.span.bytes, bytes.span.bytes)
      try store.engine.write(&rows, synced: false)
      let report = try store.reseal()
      #expect(!report.isComplete && report.unreadable == 1 && report.sealed == 9)
      #expect(try ids(in: store) == [1, 2])
      try cache.remove(5)
      #expect(try store.reseal().isComplete)
      #expect(try ids(in: store) == [2])
      try check(store, 0..<5)
    }
  }
}
