import Foundation
import Larder

/// Plays the keys of standard input through a cache of objects of equal weight.
struct HitRatio {
  /// How the cache decides which object is evicted.
  enum Policy: String, CaseIterable {
    case larder
    case lru
    case optimal

    static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
  }

  let policy: Policy
  /// The number of objects that the cache has room for.
  let capacity: Int

  /// Prints the counts, and on the last line the share of hits in per cent.
  func run(_ print: (String) -> Void) throws {
    let (requests, hits) = try count()
    print("\(policy.rawValue), capacity \(capacity): \(hits) hits of \(requests) requests")
    print(percent(hits, of: requests))
  }

  private func count() throws -> (requests: Int, hits: Int) {
    var (requests, hits) = (0, 0)
    switch policy {
    case .larder:
      let cache = ShippedCache(capacity: capacity)
      try forEachLine { key in
        requests += 1
        if cache.use(key) { hits += 1 }
      }
    case .lru:
      var numbers = KeyNumbers()
      var cache = LRU(capacity: capacity)
      try forEachLine { key in
        requests += 1
        if cache.use(numbers.number(of: key)) { hits += 1 }
      }
    case .optimal:
      var numbers = KeyNumbers()
      var keys: [Int] = []
      try forEachLine { keys.append(numbers.number(of: $0)) }
      (requests, hits) = (keys.count, optimalHits(of: keys, capacity: capacity))
    }
    return (requests, hits)
  }
}

/// The share of hits in per cent, with two decimals.
func percent(_ hits: Int, of requests: Int) -> String {
  decimals(requests == 0 ? 0 : 100 * Double(hits) / Double(requests), 2)
}

/// Calls `body` with each line of standard input, without its newline.
///
/// A line is any bytes, also none. A carriage return before the newline is part of the line. The
/// last line may lack a newline.
func forEachLine(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
  let newline = UInt8(ascii: "\n")
  var unfinished: [UInt8] = []
  while let chunk = try FileHandle.standardInput.read(upToCount: 1 << 18), !chunk.isEmpty {
    try chunk.withUnsafeBytes { chunk in
      var rest = chunk[...]
      while let end = rest.firstIndex(of: newline) {
        let line = UnsafeRawBufferPointer(rebasing: rest[..<end])
        rest = rest[(end + 1)...]
        if unfinished.isEmpty {
          try body(line)
        } else {
          unfinished.append(contentsOf: line)
          try unfinished.withUnsafeBytes(body)
          unfinished.removeAll(keepingCapacity: true)
        }
      }
      unfinished.append(contentsOf: rest)
    }
  }
  if !unfinished.isEmpty { try unfinished.withUnsafeBytes(body) }
}

/// Numbers keys in the order of their first use.
struct KeyNumbers {
  private var numbers: [[UInt8]: Int] = [:]

  mutating func number(of key: UnsafeRawBufferPointer) -> Int {
    let key = Array(key)
    if let number = numbers[key] { return number }
    numbers[key] = numbers.count
    return numbers.count - 1
  }
}

/// The memory tier's cache with one shard, in which every object has the weight 1.
private struct ShippedCache {
  private let cache: MemoryCache
  private let owner: Int
  private let object = Resident()
  private let hash: KeyHash

  init(capacity: Int) {
    cache = MemoryCache(limit: capacity, shardCount: 1)
    owner = cache.newOwner()
    // The same hashes in each run, so that the hits are the same.
    var random = WorkloadRandom(seed: Scale.seed)
    hash = KeyHash(using: &random)
  }

  /// Reads a key, and adds it if it is missing; returns whether it was there.
  func use(_ key: UnsafeRawBufferPointer) -> Bool {
    let key = hash.key(key)
    if cache.read(key, by: owner) != nil { return true }
    cache.insert(object, weight: 1, under: key) { true }
    return false
  }
}

/// Counts the hits of a cache that evicts the object whose next use is the latest (Belady, 1966).
private func optimalHits(of keys: [Int], capacity: Int) -> Int {
  // The time of each use's next one. Keys without one have times after the last use.
  var nextUse = [Int](repeating: 0, count: keys.count)
  var later = [Int](repeating: 0, count: (keys.max() ?? 0) + 1)
  for key in later.indices { later[key] = keys.count + key }
  for time in keys.indices.reversed() {
    nextUse[time] = later[keys[time]]
    later[keys[time]] = time
  }
  var isHeld = [Bool](repeating: false, count: later.count)
  var held = 0
  var hits = 0
  // A hit leaves the key's former time in the heap. It is not after the present, so it never is the
  // latest: those of the held keys are.
  var heap = LatestUse()
  for (time, key) in keys.enumerated() {
    if isHeld[key] {
      hits += 1
    } else {
      if held == capacity {
        isHeld[heap.removeLatest().key] = false
      } else {
        held += 1
      }
      isHeld[key] = true
    }
    heap.insert((nextUse[time], key))
  }
  return hits
}

/// A binary heap that has the latest time at its top.
private struct LatestUse {
  typealias Use = (time: Int, key: Int)

  private var uses: [Use] = []

  mutating func insert(_ use: Use) {
    uses.append(use)
    var child = uses.count - 1
    while child > 0, uses[child].time > uses[(child - 1) / 2].time {
      uses.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func removeLatest() -> Use {
    uses.swapAt(0, uses.count - 1)
    let latest = uses.removeLast()
    var parent = 0
    while 2 * parent + 1 < uses.count {
      var child = 2 * parent + 1
      if child + 1 < uses.count, uses[child + 1].time > uses[child].time { child += 1 }
      guard uses[child].time > uses[parent].time else { break }
      uses.swapAt(parent, child)
      parent = child
    }
    return latest
  }
}
