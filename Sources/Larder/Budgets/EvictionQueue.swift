import Synchronization

/// The entries of a budget, in the order in which they may be evicted.
///
/// The policy is S3-FIFO, as ``MemoryShard`` explains it: a *small* queue for new entries, a *main*
/// queue for those that were read twice before they came to the end of the small one, and *ghosts*,
/// the hashes of entries that were evicted from the small queue.
///
/// The queue is in memory, and not in use until something is evicted for the first time. From then
/// on every entry that a commit adds is added here. The entries that were there before are added by
/// a scan, a slice at a time, and enter the main queue in the order of their keys.
///
/// An entry may be in the queue although it was removed or deleted since, or twice if it was saved
/// again after that. So the one that evicts looks each entry up.
final class EvictionQueue: Sendable {
  /// An entry, and the size of its record when it was added, the key included.
  struct Entry {
    let key: RecordKey
    let bytes: Int
  }

  /// An entry that may be evicted.
  struct Candidate {
    let entry: Entry
    /// Whether it was in the small queue.
    let isNew: Bool
    /// The hash by which its reads are counted.
    var hash: UInt32 { RecentReads.hash(entry.key.bytes.span.bytes) }
  }

  /// A scan that adds the entries which were there before the queue was in use.
  struct Scan {
    /// The record key to continue from; nil if the scan has ended.
    var place: [UInt8]? = []
    /// A number that no earlier scan of the queue has.
    fileprivate var number = 0
  }

  private struct State {
    var small = Line()
    var main = Line()
    var ghosts = Ghosts()
    var scan = Scan()

    mutating func restart() {
      (small, main) = (Line(), Line())
      scan = Scan(number: scan.number + 1)
    }
  }

  private let limit: Int
  private let inUse = Atomic(false)
  private let state = Lock(State())

  /// - Parameter limit: The budget in bytes.
  init(limit: Int) { self.limit = limit }

  /// Whether entries are to be added.
  var isInUse: Bool { inUse.load(ordering: .relaxed) }

  /// The number of entries, of which some may be gone.
  var count: Int { state.withLock { $0.small.count + $0.main.count } }

  /// Uses the queue from now on; returns how far the scan has come.
  func use() -> Scan {
    inUse.store(true, ordering: .relaxed)
    return state.withLock { $0.scan }
  }

  /// Empties the queue; the next eviction begins another scan.
  func restart() { state.withLock { $0.restart() } }
}

// MARK: - Adding

extension EvictionQueue {
  /// Adds an entry that a commit has added.
  ///
  /// - Parameters:
  ///   - entry: The entry.
  ///   - used: The bytes of the budget that are used.
  func add(_ entry: Entry, used: Int) {
    state.withLock { state in
      if state.ghosts.remove(RecentReads.hash(entry.key.bytes.span.bytes)) {
        state.main.append(entry)
      } else {
        state.small.append(entry)
      }
      // Most of its entries are gone: removed, swept, or of a cache that was cleared.
      if state.small.bytes + state.main.bytes > 2 * max(used, limit / 8) { state.restart() }
    }
  }

  /// Adds entries that a scan has found, after which it has come to another place.
  func add(_ found: [Entry], from scan: Scan, to place: [UInt8]?) {
    state.withLock { state in
      guard state.scan.number == scan.number else { return }
      for entry in found { state.main.append(entry) }
      state.scan.place = place
    }
  }
}

// MARK: - Evicting

extension EvictionQueue {
  /// Takes the next candidate out of the queue; nil if the queue is empty.
  func next() -> Candidate? {
    state.withLock { state in
      if state.small.bytes >= limit / 10 || state.main.count == 0 {
        return state.small.removeFirst().map { Candidate(entry: $0, isNew: true) }
      }
      return state.main.removeFirst().map { Candidate(entry: $0, isNew: false) }
    }
  }

  /// Adds a candidate that was not evicted to the end of the main queue.
  func keep(_ candidate: Candidate) {
    state.withLock { $0.main.append(candidate.entry) }
  }

  /// Notes that a candidate was evicted.
  func noteEviction(of candidate: Candidate) {
    guard candidate.isNew else { return }
    state.withLock { $0.ghosts.add(candidate.hash, limit: $0.main.count) }
  }
}

/// A queue of entries, packed in chunks of memory.
private struct Line {
  private static var chunkBytes: Int { 1 << 16 }

  private var chunks: [[UInt8]] = []
  /// Where the first entry begins in the first chunk.
  private var start = 0
  private(set) var count = 0
  /// The sum of the sizes of the entries' records.
  private(set) var bytes = 0

  mutating func append(_ entry: EvictionQueue.Entry) {
    if chunks.last.map({ $0.count >= Self.chunkBytes }) ?? true { chunks.append([]) }
    let last = chunks.count - 1
    appendVarint(UInt64(entry.bytes), to: &chunks[last])
    appendVarint(UInt64(entry.key.bytes.count), to: &chunks[last])
    chunks[last] += entry.key.bytes
    count += 1
    bytes += entry.bytes
  }

  mutating func removeFirst() -> EvictionQueue.Entry? {
    guard count > 0 else { return nil }
    let first = chunks[0]
    let chunk = first.span.bytes
    guard let size = readVarint(chunk, at: &start), let keyCount = readVarint(chunk, at: &start),
      let key = RecordKey(chunk.extracting(start..<start + Int(keyCount)))
    else { return nil }
    start += Int(keyCount)
    if start == chunk.byteCount {
      chunks.removeFirst()
      start = 0
    }
    count -= 1
    bytes -= Int(size)
    return EvictionQueue.Entry(key: key, bytes: Int(size))
  }
}

/// The hashes of the last entries that were evicted from the small queue.
private struct Ghosts {
  /// The place of each hash in `order`.
  private var places: [UInt32: Int32] = [:]
  /// The hashes in the order of their evictions.
  ///
  /// Some of them were removed since, or added again.
  private var order: [UInt32] = []
  /// The number of hashes at the start of `order` that are not needed any more.
  private var start = 0

  /// Adds a hash, and forgets the oldest ones beyond the limit.
  mutating func add(_ hash: UInt32, limit: Int) {
    places[hash] = Int32(order.count)
    order.append(hash)
    while places.count > limit {
      if isCurrent(start) { places[order[start]] = nil }
      start += 1
    }
    guard order.count > 4 * places.count + 1024 else { return }
    order = (start..<order.count).filter(isCurrent).map { order[$0] }
    for (place, hash) in order.enumerated() { places[hash] = Int32(place) }
    start = 0
  }

  private func isCurrent(_ place: Int) -> Bool {
    places[order[place]].map(Int.init) == place
  }

  /// Forgets a hash; returns whether it was there.
  mutating func remove(_ hash: UInt32) -> Bool { places.removeValue(forKey: hash) != nil }
}
