import LarderTestSupport

/// S3-FIFO with arrays of keys, the oldest first: a model of what the memory tier and a byte budget
/// do.
struct EvictionModel {
  private let capacity: Int
  /// The weight of each entry.
  private let weight: Int
  /// Whether it is a byte budget's: its entries are queued when the first one is evicted, and a
  /// ghost is looked for after there is room for its entry.
  private let isBudget: Bool
  private var small: [Int] = []
  private var main: [Int] = []
  private var ghosts: [Int] = []
  /// The reads of each key in a queue.
  private var reads: [Int: Int] = [:]
  private var hasEvicted = false

  init(capacity: Int, weight: Int = 1, isBudget: Bool = false) {
    self.capacity = capacity
    self.weight = weight
    self.isBudget = isBudget
  }

  private var isSmallFull: Bool { small.count * weight >= max(1, capacity * weight / 10) }

  /// Returns whether the key is in a queue, and adds it to one.
  mutating func use(_ key: Int) -> Bool {
    if let count = reads[key] {
      reads[key] = min(count + 1, 3)
      return true
    }
    if isBudget, reads.count == capacity { evict() }
    let ghost = ghosts.firstIndex(of: key)
    if let ghost { ghosts.remove(at: ghost) }
    if reads.count == capacity { evict() }
    reads[key] = 0
    let fillsMain = !hasEvicted && (isBudget || isSmallFull)
    if ghost != nil || fillsMain { main.append(key) } else { small.append(key) }
    return false
  }

  /// Removes a key from its queue; its ghost stays.
  mutating func remove(_ key: Int) {
    guard reads.removeValue(forKey: key) != nil else { return }
    small.removeAll { $0 == key }
    main.removeAll { $0 == key }
  }

  private mutating func evict() {
    if isBudget, !hasEvicted { main.sort() }
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
struct EvictionRequests {
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
