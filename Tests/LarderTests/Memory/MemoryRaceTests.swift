import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Values in memory agree with the disk, whatever threads do at once.
@Suite struct MemoryRaceTests {
  @Test("No read returns a value that is older than the last save that had returned before.")
  func readsAfterWrites() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let (store, keys) = (fixture.store, 16)
    let shared = try store.cache("shared", of: Int.self, keyedBy: Int.self)
    // Room for a part of the keys, so that values are evicted meanwhile.
    let own = try store.cache("own", of: Int.self, keyedBy: Int.self, memory: .bytes(4_000))
    let acknowledged = Mutex([Int](repeating: 0, count: keys))
    let failures = Mutex<[String]>([])
    let rounds = 300 * proofFactor
    // Raised when a thread has saved each of its keys. Reads of nothing would keep nothing.
    let haveSaved = (0..<4).map { _ in Flag() }

    onThreads(8) { thread in
      var random = SplitMix64(seed: UInt64(thread))
      if thread >= 4 { for flag in haveSaved { flag.wait() } }
      for round in 1...rounds {
        do {
          if thread < 4 {
            // Each of four threads has four keys, whose values grow.
            let key = thread * 4 + round % 4
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
              try store.write { batch in
                batch.save(round, for: key, in: shared)
                batch.save(round, for: key, in: own)
              }
            case 1:
              for cache in [shared, own] { try cache.update(key) { $0 = round } }
            case 2:
              for cache in [shared, own] {
                try cache.remove(key)
                if try cache.value(for: key) != nil { throw Old(key: key) }
                try cache.save(round, for: key)
              }
            default: for cache in [shared, own] { try cache.save(round, for: key) }
            }
            acknowledged.withLock { $0[key] = round }
          } else {
            let key = Int.random(in: 0..<keys, using: &random)
            let least = acknowledged.withLock { $0[key] }
            for cache in [shared, own] {
              if let value = try cache.value(for: key), value < least { throw Old(key: key) }
            }
            if round % 50 == 0 { store.releaseMemory(to: 1_000) }
          }
        } catch {
          failures.withLock { $0.append("thread \(thread), round \(round): \(error)") }
        }
        if thread < 4, round == 4 { haveSaved[thread].raise() }
      }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(store.statistics.caches["shared"]?.reads.memory ?? 0 > 0)
    #expect(store.statistics.memory.evictions > 0)
  }

  @Test("After a tag was invalidated, no read returns an entry that was saved with it before.")
  func invalidations() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let store = fixture.store
    let cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
    let invalidated = Atomic<Int>(0)
    let failures = Mutex<[String]>([])

    onThreads(4) { thread in
      for round in 1...(200 * proofFactor) {
        do {
          if thread == 0 {
            for key in 0..<4 { try cache.save(round, for: key, tags: ["t"]) }
            try store.invalidate(tag: "t", durability: .processCrash)
            invalidated.store(round, ordering: .sequentiallyConsistent)
            if round % 20 == 0 { _ = try store.sweep() }
          } else {
            let least = invalidated.load(ordering: .sequentiallyConsistent)
            if let value = try cache.value(for: round % 4), value <= least {
              throw Old(key: round % 4)
            }
          }
        } catch {
          failures.withLock { $0.append("thread \(thread), round \(round): \(error)") }
        }
      }
    }
    #expect(failures.withLock { $0 } == [])
  }

  @Test("A value that was read before a write of its key is not kept.")
  func readBeforeWrite() throws {
    let memory = StoreMemory(limit: 1 << 20)
    let shared = try #require(memory.shared)
    let owner = shared.newOwner()
    let record = RecordKey(cacheID: 1, userKey: [7])
    var write = WriteBatch()
    write.put(record.bytes.span.bytes, [1].span.bytes)
    try record.withUserKey { (bytes) throws in
      let key = memory.key(bytes, in: 1)
      func add(_ reading: StoreMemory.Reading) -> Bool {
        memory.add(
          Resident(validUntil: .infinity, tagEpoch: nil), weight: 1, under: key, reading,
          to: shared)
        return shared.read(key, by: owner) != nil
      }
      let before = try #require(memory.beginReading(hash: key.hash, tagEpoch: 0))
      memory.willWrite(write)
      #expect(!add(before))
      #expect(memory.beginReading(hash: key.hash, tagEpoch: 0) == nil)
      memory.didWrite(write)
      #expect(!add(before))
      let after = try #require(memory.beginReading(hash: key.hash, tagEpoch: 0))
      #expect(add(after))
      memory.willWrite(write)
      #expect(shared.read(key, by: owner) == nil)
      memory.didWrite(write)
      let reopened = try #require(memory.beginReading(hash: key.hash, tagEpoch: 0))
      memory.reopened()
      #expect(!add(reopened))
    }
  }
}

/// A read returned a value that it must not.
private struct Old: Error {
  let key: Int
}
