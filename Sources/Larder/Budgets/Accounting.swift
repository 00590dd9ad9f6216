import Synchronization

/// A cache that is counted.
struct CountedCache {
  let name: String
  var id: UInt64
  let keyKind: KeyKind
  let lifetime: Lifetime
  /// How often its entries were read; nil while none of them is to be evicted.
  let recentReads: RecentReads?
  /// Indexes into the list of budgets.
  let budgets: [Int]
  /// Where decoded values of its entries are in memory; nil for nowhere.
  ///
  /// Not its `CacheMemory`, which holds the engine: the engine holds the accounting.
  var residents: MemoryCache?
}

/// The bytes that the counted caches of a store hold, and the budgets.
///
/// Counted are the keys and values of a cache's records. The count of a cache is a row of the
/// store, written in the same batch as the rows that change it. So it is right whenever the store
/// is opened, and nothing has to be counted again.
///
/// A count is in doubt if the size of a row that was replaced could not be read. It is then at
/// least as large as what can be read. Such a count is not kept on disk; the cache is counted again
/// when it is next opened.
final class Accounting: Sendable {
  /// The bytes of a counted cache.
  final class Account {
    let cache: CountedCache
    fileprivate let countKey: [UInt8]
    fileprivate var bytes: Int
    fileprivate(set) var isExact: Bool
    /// Whether the count on disk differs from ``bytes``, or is missing.
    fileprivate var isChanged = false
    /// What the batch changes whose rows are being added.
    fileprivate var batch = Change()
    /// What all batches change that were admitted to the write.
    fileprivate var write = Change()

    init(_ cache: CountedCache, bytes: Int, isExact: Bool = true) {
      self.cache = cache
      self.bytes = bytes
      self.isExact = isExact
      countKey = Metadata.bytes(cache.id)
    }
  }

  fileprivate struct Change {
    var growth = 0
    /// Whether anything is put.
    var puts = false
    /// Whether the size of a replaced row is unknown.
    ///
    /// It is taken as 0, so a count is never too low.
    var isDoubtful = false
  }

  /// A limit for one cache, or for all caches of the store.
  private struct Budget {
    let limit: Int
    var used = 0
    let queue: EvictionQueue
  }

  /// An entry that a write adds.
  private struct AddedEntry {
    let account: Account
    let entry: EvictionQueue.Entry
  }

  private struct State {
    var accounts: [UInt64: Account] = [:]
    var budgets: [Budget] = []
    /// The accounts that the batch, and the write, change.
    var inBatch: [Account] = []
    var inWrite: [Account] = []
    /// The entries that the batch, and the write, add, of budgets whose queue is in use.
    var addedInBatch: [AddedEntry] = []
    var addedInWrite: [AddedEntry] = []
  }

  private let state = Lock(State())
  private let accountCount = Atomic<Int>(0)
  private let smallestLimit = Atomic<Int>(.max)
}

// @unchecked: its variables are used only under the lock of its accounting.
extension Accounting.Account: @unchecked Sendable {}

// MARK: - Budgets and accounts

extension Accounting {
  /// Adds a budget of `limit` bytes; returns its index in the list.
  ///
  /// `expected` is the number of bytes from which on entries are evicted, if that is not the limit.
  func addBudget(_ limit: Int, expecting expected: Int? = nil) -> Int {
    smallestLimit.min(limit, ordering: .relaxed)
    return state.withLock { state in
      let queue = EvictionQueue(limit: expected ?? limit)
      state.budgets.append(Budget(limit: limit, queue: queue))
      return state.budgets.count - 1
    }
  }

  /// The smallest budget; `Int.max` if there is none.
  var smallestBudget: Int { smallestLimit.load(ordering: .relaxed) }

  /// Counts a cache from now on, or continues with other settings.
  func open(_ account: Account) {
    state.withLock { state in
      Self.close(account.cache.id, in: &state)
      state.accounts[account.cache.id] = account
      for budget in account.cache.budgets {
        state.budgets[budget].used += account.bytes
        // It may lack entries of the cache.
        state.budgets[budget].queue.restart()
      }
      accountCount.store(state.accounts.count, ordering: .releasing)
    }
  }

  /// Also counts what is written under `id`, the new id of a cache that is being cleared.
  func open(_ id: UInt64, inPlaceOf old: UInt64) {
    state.withLock { state in
      guard var cache = state.accounts[old]?.cache else { return }
      cache.id = id
      let new = Account(cache, bytes: 0)
      new.isChanged = true
      state.accounts[id] = new
      accountCount.store(state.accounts.count, ordering: .releasing)
    }
  }

  /// Stops counting what is under these ids.
  func close(_ ids: [UInt64]) {
    state.withLock { state in
      for id in ids { Self.close(id, in: &state) }
      accountCount.store(state.accounts.count, ordering: .releasing)
    }
  }

  private static func close(_ id: UInt64, in state: inout State) {
    guard let account = state.accounts.removeValue(forKey: id) else { return }
    for budget in account.cache.budgets { state.budgets[budget].used -= account.bytes }
  }

  /// The bytes that a cache holds, and whether that is exact; nil if it is not counted.
  func count(_ id: UInt64) -> (bytes: Int, isExact: Bool)? {
    state.withLock { state in state.accounts[id].map { ($0.bytes, $0.isExact) } }
  }

  /// The accounts of the caches that share a budget.
  func accounts(of budget: Int) -> [Account] {
    state.withLock { $0.accounts.values.filter { $0.cache.budgets.contains(budget) } }
  }

  /// The account of a cache; nil if it is not counted.
  func account(_ id: UInt64) -> Account? { state.withLock { $0.accounts[id] } }

  /// The entries of a budget, in the order in which to evict them.
  func queue(of budget: Int) -> EvictionQueue { state.withLock { $0.budgets[budget].queue } }

  /// The bytes of a budget that are used.
  func used(of budget: Int) -> Int { state.withLock { $0.budgets[budget].used } }

  /// A budget that is smaller than what `rows` puts, and how many bytes that is.
  ///
  /// The rows of each condition are judged by themselves: most replace a row that exists, and a
  /// slice of a migration may name more entries than fit at once.
  func budgetBelow(_ rows: borrowing WriteBatch) -> (limit: Int, bytes: Int)? {
    guard rows.bytes.count > smallestBudget else { return nil }
    return state.withLock { state in
      // What the rows without a condition need together, and what the rows of each condition need.
      var needs: [Int?: [Int]] = [:]
      rows.bytes.withBytes { bytes in
        for row in rows.rows where row.kind != .remove {
          let id = Self.cache(of: UnsafeRawBufferPointer(rebasing: bytes[row.key]))
          for budget in id.flatMap({ state.accounts[$0]?.cache.budgets }) ?? [] {
            needs[row.requirement, default: state.budgets.map { _ in 0 }][budget] +=
              row.keyCount + row.valueCount
          }
        }
      }
      for need in needs.values {
        for (budget, bytes) in zip(state.budgets, need) where budget.limit < bytes {
          return (budget.limit, bytes)
        }
      }
      return nil
    }
  }

  /// The id of the cache that a record belongs to; nil for all other rows.
  private static func cache(of key: UnsafeRawBufferPointer) -> UInt64? {
    guard key.first == KeySpace.records.rawValue else { return nil }
    var offset = 1
    return readVarint(key.bytes, at: &offset)
  }
}

// MARK: - Counting

extension Accounting {
  var isCounting: Bool { accountCount.load(ordering: .acquiring) > 0 }

  /// Counts the rows of a batch, and admits it to the write unless it would exceed a budget.
  ///
  /// - Returns: The budget that it would exceed; nil if it was admitted.
  func admit(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, replacedBytes: (_ row: Int) -> Int?
  ) -> Shortage? {
    batch.bytes.withBytes { bytes in
      for (index, row) in batch.rows.enumerated() where row.isKept(without: failed) {
        let key = UnsafeRawBufferPointer(rebasing: bytes[row.key])
        guard let id = Self.cache(of: key), counts(id) else { continue }
        // Not under the lock, because it may read from the disk.
        add(row.size, inPlaceOf: replacedBytes(index), under: key.bytes, to: id)
      }
    }
    return endBatch(mayGrow: batch.isAlwaysAdmitted)
  }

  private func counts(_ id: UInt64) -> Bool { state.withLock { $0.accounts[id] != nil } }

  private func add(
    _ written: Int, inPlaceOf replaced: Int?, under key: RawSpan, to id: UInt64
  ) {
    state.withLock { state in
      guard let account = state.accounts[id] else { return }
      if !state.inBatch.contains(where: { $0 === account }) { state.inBatch.append(account) }
      account.batch.growth += written - (replaced ?? 0)
      if written > 0 { account.batch.puts = true }
      if replaced == nil { account.batch.isDoubtful = true }
      let isQueued = account.cache.budgets.contains { state.budgets[$0].queue.isInUse }
      if written > 0, replaced == 0, isQueued, let key = RecordKey(key) {
        let entry = EvictionQueue.Entry(key: key, bytes: written)
        state.addedInBatch.append(AddedEntry(account: account, entry: entry))
      }
    }
  }

  /// Adds the batch to the write, or discards it if it would exceed a budget.
  private func endBatch(mayGrow: Bool) -> Shortage? {
    state.withLock { state in
      let shortage = mayGrow ? nil : Self.shortage(in: state)
      for account in state.inBatch {
        if shortage == nil {
          if !state.inWrite.contains(where: { $0 === account }) { state.inWrite.append(account) }
          account.write.growth += account.batch.growth
          if account.batch.isDoubtful { account.write.isDoubtful = true }
        }
        account.batch = Change()
      }
      state.inBatch.removeAll(keepingCapacity: true)
      if shortage == nil { state.addedInWrite += state.addedInBatch }
      state.addedInBatch.removeAll(keepingCapacity: true)
      return shortage
    }
  }

  /// The budget that the batch would exceed, after all batches that were admitted before it.
  ///
  /// Nil if there is room; a batch that only removes entries exceeds nothing.
  private static func shortage(in state: State) -> Shortage? {
    // The store's own budget is the first one: what makes room in a cache does so in the store.
    for place in state.budgets.indices.reversed() {
      var (growth, puts) = (0, false)
      for account in state.inBatch where account.cache.budgets.contains(place) {
        growth += account.batch.growth
        if account.batch.puts { puts = true }
      }
      guard puts else { continue }
      var used = state.budgets[place].used
      for account in state.inWrite where account.cache.budgets.contains(place) {
        used += account.write.growth
      }
      let limit = state.budgets[place].limit
      guard used + growth > limit else { continue }
      return Shortage(budget: place, limit: limit, growth: growth, excess: used + growth - limit)
    }
    return nil
  }

  /// Adds rows with the counts after all admitted batches.
  func putCounts(in rows: inout WriteBatch) {
    state.withLock { state in
      for account in state.accounts.values where account.isChanged {
        if !state.inWrite.contains(where: { $0 === account }) { state.inWrite.append(account) }
      }
      for account in state.inWrite {
        if account.isExact, !account.write.isDoubtful {
          rows.putCount(account.bytes + account.write.growth, under: account.countKey)
        } else {
          let key = account.countKey
          rows.remove(key.span.bytes)
        }
      }
    }
  }

  /// Ends the write: applies the changes of its admitted batches, or discards them.
  func end(didCommit: Bool) {
    state.withLock { state in
      for account in state.inWrite {
        // A cache that was closed meanwhile is no longer part of what is used.
        if didCommit, state.accounts[account.cache.id] === account {
          account.bytes += account.write.growth
          for budget in account.cache.budgets { state.budgets[budget].used += account.write.growth }
          if account.write.isDoubtful { account.isExact = false }
          account.isChanged = false
        }
        account.write = Change()
      }
      state.inWrite.removeAll(keepingCapacity: true)
      if didCommit {
        for added in state.addedInWrite {
          for budget in added.account.cache.budgets {
            let (queue, used) = (state.budgets[budget].queue, state.budgets[budget].used)
            if queue.isInUse { queue.add(added.entry, used: used) }
          }
        }
      }
      state.addedInWrite.removeAll(keepingCapacity: true)
    }
  }

  /// Reads the counts again after the database was reopened.
  ///
  /// A write that failed may have taken effect. Retired ids are not counted any further, nor ids
  /// that an open cache does not have; see ``OpenCaches/readIDs(by:noting:)``.
  func readAgain(_ open: OpenCaches, by read: EngineReader) {
    let accounts = state.withLock { $0.accounts }
    for (id, account) in accounts {
      if let cache = open.cache(named: account.cache.name), cache.id != id {
        close([id])
        continue
      }
      var count: Int?
      do throws(StoreError) {
        guard try read(Metadata.reclaim(id)) == nil else {
          close([id])
          continue
        }
        count = try read(account.countKey).flatMap {
          Metadata.count(in: $0, under: account.countKey)
        }
      } catch {
        count = nil
      }
      state.withLock { state in
        // A write may have taken effect whose entries were not added.
        for budget in account.cache.budgets { state.budgets[budget].queue.restart() }
        guard let count else { return account.isExact = false }
        for budget in account.cache.budgets {
          state.budgets[budget].used += count - account.bytes
        }
        account.bytes = count
      }
    }
  }
}
