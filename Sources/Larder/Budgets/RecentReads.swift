/// How often entries were read while the store is open, up to three times.
///
/// Only entries that were read take memory: 4 bytes, and as many that are free. Entries are known
/// by 30 bits of a hash of their key. Two entries with the same bits share a count, which is rare:
/// a million entries have about 500 such pairs.
final class RecentReads: Sendable {
  // A class, because an array cannot hold locks.
  private final class Shard: Sendable {
    let table: Lock<Table>
    init(limit: Int) { table = Lock(Table(limit: limit)) }
  }

  /// The bytes of a budget for each entry whose reads are remembered.
  private static var bytesForAnEntry: Int { 64 }
  private static var shardBits: UInt32 { 4 }

  private let shards: [Shard]

  /// - Parameter budget: The most bytes that the entries may take together.
  init(budget: Int) {
    let count = 1 << Self.shardBits
    let limit = max(64, budget / Self.bytesForAnEntry / count)
    shards = (0..<count).map { _ in Shard(limit: limit) }
  }

  /// Counts a read of the entry with this record key.
  func add(_ recordKey: RawSpan) { change(Self.hash(recordKey)) { min($0 + 1, 3) } }

  /// Returns the number of reads, and counts one less from now on.
  func decrement(_ hash: UInt32) -> Int { change(hash) { max($0 - 1, 0) } }

  /// Returns the number of reads, and counts from 0 again.
  func take(_ hash: UInt32) -> Int { change(hash) { _ in 0 } }

  static func hash(_ recordKey: RawSpan) -> UInt32 { recordKey.withUnsafeBytes { crc32c($0) } }

  @discardableResult
  private func change(_ hash: UInt32, _ body: (Int) -> Int) -> Int {
    shards[Int(hash >> (32 - Self.shardBits))].table.withLock { $0.change(hash, body) }
  }
}

extension RecentReads {
  /// A hash table with linear probing.
  ///
  /// A slot is a hash whose lowest two bits are replaced by the count, or 0 if it is free.
  fileprivate struct Table {
    private let limit: Int
    private var slots: [UInt32] = []
    private var used = 0

    /// - Parameter limit: The number of entries from which on all counts become one less.
    init(limit: Int) { self.limit = limit }

    /// Changes a count; returns what it was.
    mutating func change(_ hash: UInt32, _ body: (Int) -> Int) -> Int {
      if slots.isEmpty { slots = [UInt32](repeating: 0, count: 16) }
      var place = home(of: hash)
      while slots[place] != 0, slots[place] & ~3 != hash & ~3 { place = next(place) }
      let old = Int(slots[place] & 3)
      let new = body(old)
      guard new != old else { return old }
      if new == 0 {
        free(place)
      } else {
        slots[place] = hash & ~3 | UInt32(new)
        if old == 0 { didAdd() }
      }
      return old
    }

    private func next(_ place: Int) -> Int { (place + 1) & (slots.count - 1) }

    private func home(of slot: UInt32) -> Int { Int(slot >> 2) & (slots.count - 1) }

    private mutating func free(_ freed: Int) {
      var hole = freed
      // Moves the following slots back, so that no probe for them ends at the hole.
      var place = next(hole)
      while slots[place] != 0 {
        let home = home(of: slots[place])
        if (place - home) & (slots.count - 1) >= (place - hole) & (slots.count - 1) {
          slots[hole] = slots[place]
          hole = place
        }
        place = next(place)
      }
      slots[hole] = 0
      used -= 1
    }

    /// Keeps at least half of the slots free, and the number of entries within the limit.
    private mutating func didAdd() {
      used += 1
      if used > limit {
        // Each count becomes one less, and those of 0 are forgotten.
        rebuild(slots.lazy.filter { $0 & 3 > 1 }.map { $0 - 1 }, count: slots.count)
      } else if 2 * used > slots.count {
        rebuild(slots.lazy.filter { $0 != 0 }, count: 2 * slots.count)
      }
    }

    private mutating func rebuild(_ kept: some Sequence<UInt32>, count: Int) {
      let kept = Array(kept)
      slots = [UInt32](repeating: 0, count: count)
      used = kept.count
      for slot in kept {
        var place = home(of: slot)
        while slots[place] != 0 { place = next(place) }
        slots[place] = slot
      }
    }
  }
}
