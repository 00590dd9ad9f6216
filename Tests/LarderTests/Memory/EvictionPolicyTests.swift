import LarderTestSupport
import Testing

@testable import Larder

/// The memory tier evicts as a plain model of S3-FIFO does.
///
/// A failure names its seed. To run it again, set `LARDER_SEED`.
@Suite struct EvictionPolicyTests {
  @Test(
    "Each of many requests, with removals, is a hit exactly if S3-FIFO's model has one.",
    arguments: [1, 2, 7, 10, 19, 20, 64, 128])
  func agree(capacity: Int) {
    let seed = testSeed()
    var requests = EvictionRequests(seed: seed, capacity: capacity)
    var random = SplitMix64(seed: seed)
    var model = EvictionModel(capacity: capacity)
    let cache = UnitCache(capacity: capacity)
    var hits = 0
    let count = isProof ? 125_000 : 40_000
    for number in 0..<count {
      let key = requests.next()
      let isHit = cache.use(key)
      guard isHit == model.use(key) else {
        Issue.record("seed \(seed): request \(number), key \(key), is a hit: \(isHit)")
        return
      }
      if isHit { hits += 1 }
      if Int.random(in: 0..<16, using: &random) == 0 {
        let key = requests.next()
        cache.remove(key)
        model.remove(key)
      }
    }
    // Requests without hits, or without misses, would show nothing.
    #expect(hits > count / 100 && hits < count * 99 / 100, "seed \(seed)")
  }

  @Test("A short trace has the hits that the rules give by hand.")
  func shortTrace() {
    // The small queue has room for one object, the main one for three.
    let cache = UnitCache(capacity: 4)
    let requests: [(keys: String, hits: String, reason: String)] = [
      ("abcd", "....", "until the first eviction, all but the first enter the main queue"),
      ("a", "+", "a hit"),
      ("e", ".", "evicts a, which was read once only, and keeps its ghost"),
      ("a", ".", "evicts e and keeps its ghost; a has a ghost and enters the main queue"),
      ("e", ".", "evicts b, the oldest of the main queue; e enters it too"),
      ("b", ".", "evicts c; the main queue keeps no ghosts, so b enters the small queue"),
      ("bb", "++", "two reads"),
      ("f", ".", "b was read twice and moves to the main queue, whose oldest, d, is evicted"),
      ("b", "+", "a hit in the main queue"),
      ("d", ".", "evicts f"),
      ("a", "+", "in the main queue since its ghost was found"),
      ("c", ".", "evicts d"),
      ("eb", "++", "both are in the main queue"),
      ("g", ".", "evicts c"),
      ("b", "+", "a hit"),
      ("f", ".", "f has a ghost; g is evicted from the small queue first"),
      ("g", ".", "a ghost, too; a, e and b were read and go to the front, and f is evicted"),
      ("aebg", "++++", "the four that are left"),
    ]
    for (keys, hits, reason) in requests {
      let actual = keys.unicodeScalars.map { cache.use(Int($0.value)) ? "+" : "." }
      #expect(actual.joined() == hits, "\(keys): \(reason)")
    }
  }

  @Test(
    "A loop over 60 keys, ten times, has known numbers of hits.",
    arguments: [(5, 36), (10, 81), (20, 162), (50, 303), (60, 540)])
  func loop(capacity: Int, hits: Int) {
    let cache = UnitCache(capacity: capacity)
    #expect((0..<600).count { cache.use($0 % 60) } == hits)
  }
}

/// The memory tier's cache in one shard, with objects of the weight 1.
private struct UnitCache {
  private let cache: MemoryCache
  private let owner: Int
  private let object = Resident()

  init(capacity: Int) {
    cache = MemoryCache(limit: capacity, shardCount: 1)
    owner = cache.newOwner()
  }

  /// Reads a key, and adds it if it is missing; returns whether it was there.
  func use(_ key: Int) -> Bool {
    withKey(key) { key in
      if cache.read(key, by: owner) != nil { return true }
      cache.insert(object, weight: 1, under: key) { true }
      return false
    }
  }

  func remove(_ key: Int) { withKey(key) { cache.remove($0) } }

  /// No two keys have the same hash, because the factor is odd.
  private func withKey<Result>(_ number: Int, _ body: (MemoryKey) -> Result) -> Result {
    withUnsafeBytes(of: number) { bytes in
      body(
        MemoryKey(
          cacheID: 0, bytes: bytes, words: (UInt64(number), 0, 0),
          hash: UInt64(UInt32(truncatingIfNeeded: number) &* 0x9E37_79B1)))
    }
  }
}
