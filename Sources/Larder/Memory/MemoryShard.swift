/// A part of a ``MemoryCache``: a hash table of objects, and the queues that decide which one goes
/// when there is no more room.
///
/// The policy is S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction",
/// SOSP 2023):
///
/// - A new object enters the *small* queue, which has a tenth of the room. If it was read twice
///   when it reaches the end, it moves to the *main* queue; otherwise it is evicted, and its hash
///   is kept as a *ghost*. There are at most as many ghosts as objects in the main queue.
/// - An object whose hash is a ghost enters the main queue at once. An object that reaches the end
///   of the main queue goes to the front again if it was read since, up to three times.
/// - Until the first eviction, objects enter the main queue while the small one is full: a cache
///   that fills for the first time has no reason to prefer newer objects.
///
/// A read changes a counter and moves nothing. A shard has no lock of its own, and releases no
/// object: it returns those that its caller has to release, outside the lock.
struct MemoryShard: ~Copyable {
  // Unmanaged, so that a slot is moved without counting references.
  typealias Object = Unmanaged<Resident>

  private enum Queue: UInt8 {
    case small, main
  }

  private struct Slot {
    var cacheID: UInt64
    /// The words of the key.
    var words: MemoryKey.Words
    /// A copy of a key that is not short; nil for a short one.
    var longKey: UnsafeMutableRawPointer?
    var object: Object
    var weight: Int
    var keyCount: UInt32
    /// The lower half of the key's hash.
    var hash: UInt32
    // The neighbours in the queue. A free slot has the next free one in `older`.
    var newer: UInt32
    var older: UInt32
    var queue: Queue
    /// The number of reads since the object entered its queue, or went to the front: 0 to 3.
    var reads: UInt8
    /// Whether the object was read since the last ``MemoryShard/takeRead(_:)``.
    var wasRead: Bool

    @inline(__always)
    func has(_ key: MemoryKey) -> Bool {
      guard Int(keyCount) == key.bytes.count, cacheID == key.cacheID else { return false }
      guard let longKey else { return words == key.words }
      return isEqual(UnsafeRawBufferPointer(start: longKey, count: key.bytes.count), key.bytes)
    }
  }

  /// A queue of slots.
  private struct Line {
    var newest = noSlot
    var oldest = noSlot
    var count = 0
    var weight = 0
  }

  private static let noSlot = UInt32.max

  // The slots: the first `usedSlots` have been in use, some of which may be free.
  private var slots: UnsafeMutablePointer<Slot>
  private var slotCapacity = 16
  private var usedSlots = 0
  private var firstFree = noSlot

  // Open addressing with linear probing. An entry has a hash in its upper half. Its lower half is
  // the number of a slot plus 1, or the number of a ghost with the highest bit; 0 if it is empty.
  private var table: UnsafeMutablePointer<UInt64>
  private var tableCount = 64
  private var tableUsed = 0

  private var small = Line()
  private var main = Line()
  private let smallLimit: Int
  private var hasEvicted = false
  private var ghosts = Ghosts()
  private var owners = 0
  // The hits of each owner, apart from what other shards change. There is room for more owners.
  private var hits: UnsafeMutableBufferPointer<Int>

  /// - Parameter limit: The shard's share of the room of the cache.
  init(limit: Int) {
    smallLimit = max(1, limit / 10)
    slots = .allocate(capacity: slotCapacity)
    table = .allocate(capacity: tableCount)
    table.initialize(repeating: 0, count: tableCount)
    hits = UnsafeMutableBufferPointer(start: nil, count: 0)
  }

  deinit {
    precondition(count == 0, "a shard with objects, which nobody would release")
    slots.deallocate()
    table.deallocate()
    hits.deallocate()
  }

  var count: Int { small.count + main.count }

  // MARK: Reading

  /// Finds an object, and counts the read for it and for an owner; nil if there is none.
  @inline(__always)
  mutating func read(_ key: MemoryKey, by owner: Int) -> Object? {
    guard let found = find(key) else { return nil }
    let slot = slots + found
    // Most objects that are read often have their most already: then nothing is written.
    if slot.pointee.reads < 3 { slot.pointee.reads &+= 1 }
    if !slot.pointee.wasRead { slot.pointee.wasRead = true }
    hits[owner] &+= 1
    return slot.pointee.object
  }

  /// Whether an object was read since the last call; false if there is none.
  mutating func takeRead(_ key: MemoryKey) -> Bool {
    guard let slot = find(key), slots[slot].wasRead else { return false }
    slots[slot].wasRead = false
    return true
  }

  /// The number of an owner's hits.
  func hits(of owner: Int) -> Int { hits[owner] }

  mutating func takeBackHit(by owner: Int) { hits[owner] &-= 1 }

  mutating func addOwner() {
    owners += 1
    guard owners > hits.count else { return }
    let larger = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(Self.lineBytes, 2 * hits.count * MemoryLayout<Int>.stride),
      alignment: Self.lineBytes
    ).bindMemory(to: Int.self)
    larger.initialize(repeating: 0)
    for owner in hits.indices { larger[owner] = hits[owner] }
    hits.deallocate()
    hits = larger
  }

  /// The bytes of a cache line.
  private static let lineBytes = 64

  // MARK: Changing

  /// Adds an object under a key that has none.
  ///
  /// - Parameters:
  ///   - object: The object.
  ///   - weight: Its weight.
  ///   - key: Its key.
  ///   - wasGhost: Whether ``removeGhost(of:)`` has found one, before objects were evicted for it.
  mutating func insert(_ object: Object, weight: Int, under key: MemoryKey, wasGhost: Bool) {
    makeRoomInTable()
    let slot = takeSlot()
    var longKey: UnsafeMutableRawPointer?
    if !key.isShort, let bytes = key.bytes.baseAddress {
      let copy = UnsafeMutableRawPointer.allocate(byteCount: key.bytes.count, alignment: 1)
      copy.copyMemory(from: bytes, byteCount: key.bytes.count)
      longKey = copy
    }
    (slots + slot).initialize(
      to: Slot(
        cacheID: key.cacheID, words: key.words, longKey: longKey, object: object, weight: weight,
        keyCount: UInt32(key.bytes.count), hash: key.tableHash, newer: Self.noSlot,
        older: Self.noSlot, queue: .small, reads: 0, wasRead: false))
    addEntry(UInt64(key.tableHash) << 32 | UInt64(slot + 1))
    let fillsMain = !hasEvicted && small.weight >= smallLimit
    push(slot, to: wasGhost || fillsMain ? .main : .small)
  }

  /// Puts an object in the place of the one that a key has, and returns that with its weight; nil
  /// if there is none.
  mutating func replace(
    _ key: MemoryKey, by object: Object, weight: Int
  ) -> (object: Object, weight: Int)? {
    guard let slot = find(key) else { return nil }
    let old = (slots[slot].object, slots[slot].weight)
    slots[slot].object = object
    slots[slot].weight = weight
    switch slots[slot].queue {
    case .small: small.weight += weight - old.1
    case .main: main.weight += weight - old.1
    }
    return old
  }

  /// Removes an object, and returns it with its weight; nil if there is none.
  mutating func remove(_ key: MemoryKey) -> (object: Object, weight: Int)? {
    guard let slot = find(key) else { return nil }
    return take(slot)
  }

  /// Frees the memory of the table and the slots, and forgets the ghosts, if there is no object.
  mutating func shrink() {
    guard count == 0 else { return }
    slots.deallocate()
    table.deallocate()
    (slotCapacity, usedSlots, firstFree) = (16, 0, Self.noSlot)
    (tableCount, tableUsed) = (64, 0)
    slots = .allocate(capacity: slotCapacity)
    table = .allocate(capacity: tableCount)
    table.initialize(repeating: 0, count: tableCount)
    ghosts = Ghosts()
  }

  /// Evicts an object, and returns it with its weight; nil if the shard is empty.
  mutating func evict() -> (object: Object, weight: Int)? {
    while count > 0 {
      hasEvicted = true
      if small.weight >= smallLimit || main.count == 0 {
        let slot = Int(small.oldest)
        if slots[slot].reads >= 2 {
          unlink(slot)
          slots[slot].reads = 0
          push(slot, to: .main)
        } else {
          let hash = slots[slot].hash
          let evicted = take(slot)
          addGhost(hash)
          return evicted
        }
      } else {
        let slot = Int(main.oldest)
        guard slots[slot].reads > 0 else { return take(slot) }
        slots[slot].reads -= 1
        unlink(slot)
        push(slot, to: .main)
      }
    }
    return nil
  }
}

// @unchecked: it owns its memory, and changes only through a `mutating` call.
extension MemoryShard: @unchecked Sendable {}

// MARK: - Slots and queues

extension MemoryShard {
  private mutating func takeSlot() -> Int {
    if firstFree != Self.noSlot {
      let slot = Int(firstFree)
      firstFree = slots[slot].older
      return slot
    }
    if usedSlots == slotCapacity {
      let larger = UnsafeMutablePointer<Slot>.allocate(capacity: 2 * slotCapacity)
      larger.moveInitialize(from: slots, count: slotCapacity)
      slots.deallocate()
      slots = larger
      slotCapacity *= 2
    }
    usedSlots += 1
    return usedSlots - 1
  }

  /// Takes an object out of the table and its queue, and frees its slot.
  private mutating func take(_ slot: Int) -> (object: Object, weight: Int) {
    let taken = (slots[slot].object, slots[slot].weight)
    removeEntry(UInt64(slots[slot].hash) << 32 | UInt64(slot + 1))
    unlink(slot)
    slots[slot].longKey?.deallocate()
    slots[slot].older = firstFree
    firstFree = UInt32(slot)
    return taken
  }

  private mutating func push(_ slot: Int, to queue: Queue) {
    slots[slot].queue = queue
    var line = queue == .small ? small : main
    slots[slot].newer = Self.noSlot
    slots[slot].older = line.newest
    if line.newest == Self.noSlot {
      line.oldest = UInt32(slot)
    } else {
      slots[Int(line.newest)].newer = UInt32(slot)
    }
    line.newest = UInt32(slot)
    line.count += 1
    line.weight += slots[slot].weight
    if queue == .small { small = line } else { main = line }
  }

  private mutating func unlink(_ slot: Int) {
    let (newer, older, queue) = (slots[slot].newer, slots[slot].older, slots[slot].queue)
    var line = queue == .small ? small : main
    if newer == Self.noSlot { line.newest = older } else { slots[Int(newer)].older = older }
    if older == Self.noSlot { line.oldest = newer } else { slots[Int(older)].newer = newer }
    line.count -= 1
    line.weight -= slots[slot].weight
    if queue == .small { small = line } else { main = line }
  }
}

// MARK: - The table

extension MemoryKey {
  /// The part of the hash that a table has.
  @inline(__always)
  fileprivate var tableHash: UInt32 { UInt32(truncatingIfNeeded: hash) }
}

extension MemoryShard {
  private static let ghostBit: UInt64 = 1 << 31

  private func next(_ place: Int) -> Int { (place + 1) & (tableCount - 1) }

  private func home(of entry: UInt64) -> Int { Int(entry >> 32) & (tableCount - 1) }

  /// The slot of a key; nil if there is none.
  @inline(__always)
  private func find(_ key: MemoryKey) -> Int? {
    let hash = UInt64(key.tableHash)
    let mask = tableCount &- 1
    var place = Int(hash) & mask
    while true {
      let entry = table[place]
      if entry >> 32 == hash, entry & Self.ghostBit == 0, entry != 0 {
        let slot = Int(entry & 0xFFFF_FFFF) &- 1
        if slots[slot].has(key) { return slot }
      } else if entry == 0 {
        return nil
      }
      place = (place &+ 1) & mask
    }
  }

  private func hasEntry(_ entry: UInt64) -> Bool {
    var place = home(of: entry)
    while table[place] != 0 {
      if table[place] == entry { return true }
      place = next(place)
    }
    return false
  }

  private mutating func addEntry(_ entry: UInt64) {
    var place = home(of: entry)
    while table[place] != 0 { place = next(place) }
    table[place] = entry
    tableUsed += 1
  }

  /// Removes an entry; false if it is not in the table.
  @discardableResult
  private mutating func removeEntry(_ entry: UInt64) -> Bool {
    var hole = home(of: entry)
    while table[hole] != entry {
      if table[hole] == 0 { return false }
      hole = next(hole)
    }
    // Moves the following entries back, so that no probe for them ends at the hole.
    var place = next(hole)
    while table[place] != 0 {
      let home = home(of: table[place])
      if (place - home) & (tableCount - 1) >= (place - hole) & (tableCount - 1) {
        table[hole] = table[place]
        hole = place
      }
      place = next(place)
    }
    table[hole] = 0
    tableUsed -= 1
    return true
  }

  /// Keeps at least half of the table empty.
  private mutating func makeRoomInTable() {
    guard 2 * (tableUsed + 1) > tableCount else { return }
    let (old, oldCount) = (table, tableCount)
    tableCount *= 2
    table = .allocate(capacity: tableCount)
    table.initialize(repeating: 0, count: tableCount)
    tableUsed = 0
    for place in 0..<oldCount where old[place] != 0 { addEntry(old[place]) }
    old.deallocate()
  }
}

// MARK: - Ghosts

extension MemoryShard {
  /// The ghosts in the order of their evictions.
  ///
  /// Those whose objects came back are not in the table, and do not count.
  private struct Ghosts {
    var entries: [UInt64] = []
    var start = 0
    /// The number of those in the table.
    var count = 0
    var lastNumber: UInt64 = 0
  }

  /// Keeps a hash as a ghost, and forgets the oldest ghosts beyond the limit.
  private mutating func addGhost(_ hash: UInt32) {
    removeGhost(hash)
    while ghosts.count > 0, ghosts.count >= main.count { dropOldestGhost() }
    guard main.count > 0 else { return }
    ghosts.lastNumber = (ghosts.lastNumber + 1) & (Self.ghostBit - 1)
    let entry = UInt64(hash) << 32 | Self.ghostBit | ghosts.lastNumber
    makeRoomInTable()
    addEntry(entry)
    ghosts.entries.append(entry)
    ghosts.count += 1
    guard ghosts.entries.count > 4 * ghosts.count + 1024 else { return }
    ghosts.entries = ghosts.entries[ghosts.start...].filter { hasEntry($0) }
    ghosts.start = 0
  }

  private mutating func dropOldestGhost() {
    if removeEntry(ghosts.entries[ghosts.start]) { ghosts.count -= 1 }
    ghosts.start += 1
  }

  /// Forgets a key's ghost; false if it has none.
  mutating func removeGhost(of key: MemoryKey) -> Bool { removeGhost(key.tableHash) }

  /// Forgets a ghost; false if no ghost has the hash.
  @discardableResult
  private mutating func removeGhost(_ hash: UInt32) -> Bool {
    var place = Int(hash) & (tableCount - 1)
    while table[place] != 0 {
      if table[place] >> 32 == UInt64(hash), table[place] & Self.ghostBit != 0 {
        removeEntry(table[place])
        ghosts.count -= 1
        return true
      }
      place = next(place)
    }
    return false
  }
}
