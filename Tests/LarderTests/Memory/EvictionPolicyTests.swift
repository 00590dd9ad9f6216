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
    var requests = Requests(seed: seed, capacity: capacity)
    var random = SplitMix64(seed: seed)
    var model = Model(capacity: capacity)
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

/// S3-FIFO with arrays of keys, the oldest first.
private struct Model {
  private let capacity: Int
  private var small: [Int] = []
  private var main: [Int] = []
  private var ghosts: [Int] = []
  /// The reads of each key in a queue.
  private var reads: [Int: Int] = [:]
  private var hasEvicted = false

  init(capacity: Int) { self.capacity = capacity }

  private var isSmallFull: Bool { small.count >= max(1, capacity / 10) }

  /// Returns whether the key is in a queue, and adds it to one.
  mutating func use(_ key: Int) -> Bool {
    if let count = reads[key] {
      reads[key] = min(count + 1, 3)
      return true
    }
    let ghost = ghosts.firstIndex(of: key)
    if let ghost { ghosts.remove(at: ghost) }
    if reads.count == capacity { evict() }
    reads[key] = 0
    if ghost != nil || (!hasEvicted && isSmallFull) { main.append(key) } else { small.append(key) }
    return false
  }

  /// Removes a key from its queue; its ghost stays.
  mutating func remove(_ key: Int) {
    guard reads.removeValue(forKey: key) != nil else { return }
    small.removeAll { $0 == key }
    main.removeAll { $0 == key }
  }

  private mutating func evict() {
    hasEvicted = true
    while true {
      if isSmallFull || main.isEmpty {
        let key = small.removeFirst()
        if reads[key, default: 0] < 2 {
          reads[key] = nil
          ghosts = (ghosts + [key]).suffix(main.count)
          return
        }
        reads[key] = 0
        main.append(key)
      } else {
        let key = main.removeFirst()
        let count = reads[key, default: 0]
        if count == 0 {
          reads[key] = nil
          return
        }
        reads[key] = count - 1
        main.append(key)
      }
    }
  }
}

/// Keys as caches get them: skewed ones, loops, scans, and all of these mixed.
private struct Requests {
  private enum Pattern: CaseIterable {
    case skewed, loop, scan, mixed
  }

  private let capacity: Int
  private var random: SplitMix64
  private var pattern = Pattern.skewed
  private var remaining = 0
  private var loopLength = 1
  private var position = 0
  private var lastScanned = 1 << 21

  init(seed: UInt64, capacity: Int) {
    self.capacity = capacity
    random = SplitMix64(seed: seed ^ UInt64(capacity))
  }

  mutating func next() -> Int {
    if remaining == 0 {
      pattern = Pattern.allCases.randomElement(using: &random) ?? .mixed
      remaining = Int.random(in: 1...20 * capacity, using: &random)
      loopLength = Int.random(in: 1...3 * capacity, using: &random)
    }
    remaining -= 1
    guard pattern == .mixed else { return key(by: pattern) }
    return key(by: [.skewed, .skewed, .loop, .scan].randomElement(using: &random) ?? .skewed)
  }

  private mutating func key(by pattern: Pattern) -> Int {
    switch pattern {
    case .skewed, .mixed:
      // About Zipf's law: numbers of 1 bit are as frequent in all as those of each greater length.
      let most = Int.bitWidth - (8 * capacity).leadingZeroBitCount
      let bits = Int.random(in: 0..<most, using: &random)
      return Int.random(in: (1 << bits)..<(2 << bits), using: &random)
    case .loop:
      position = (position + 1) % loopLength
      return (1 << 20) + position
    case .scan:
      lastScanned += 1
      return lastScanned
    }
  }
}
