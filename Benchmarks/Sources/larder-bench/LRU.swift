/// A cache that evicts the least recently used key.
struct LRU {
  private let capacity: Int
  private var times: [Int: Int] = [:]
  /// All uses in order; a key has an entry for each use.
  private var queue: [(key: Int, time: Int)] = []
  private var head = 0
  private var now = 0

  init(capacity: Int) { self.capacity = capacity }

  /// Uses a key, and adds it if it is missing; returns whether it was there.
  mutating func use(_ key: Int) -> Bool {
    now += 1
    let wasHeld = times.updateValue(now, forKey: key) != nil
    queue.append((key, now))
    while times.count > capacity {
      let oldest = queue[head]
      head += 1
      if times[oldest.key] == oldest.time { times[oldest.key] = nil }
    }
    return wasHeld
  }
}
