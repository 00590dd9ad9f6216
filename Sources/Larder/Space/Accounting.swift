import Foundation
import LarderBytes
import LarderEngine
import Synchronization

/// How many bytes the caches of a store hold that have a budget, and what the budgets are.
///
/// What counts is what stands in a cache's records and its index: keys and values. The count of a
/// cache is a row of the store, written together with whatever changes it; so it is there when the
/// store is opened, however it was left, and nothing has to be counted again.
///
/// A count that is in doubt, because what a write replaced could not be read, is at least as large
/// as what is there. It is not kept on disk, and so is counted again when the cache is next opened.
final class Accounting: Sendable {
  /// What is known of a cache that is counted.
  struct Account {
    let name: String
    fileprivate(set) var id: UInt64
    let lifetime: Lifetime
    /// Which of its entries were read; nil while nothing of it is to be evicted.
    let marks: ReadMarks?
    /// By their place in the list of budgets.
    let budgets: [Int]
    fileprivate(set) var bytes: Int
    fileprivate(set) var isExact: Bool
    /// Whether another count is on disk, or none.
    fileprivate var isChanged = false

    init(
      _ name: String, id: UInt64, lifetime: Lifetime, marks: ReadMarks?, budgets: [Int],
      bytes: Int, isExact: Bool = true
    ) {
      self.name = name
      self.id = id
      self.lifetime = lifetime
      self.marks = marks
      self.budgets = budgets
      self.bytes = bytes
      self.isExact = isExact
    }
  }

  /// So many bytes for one cache, or for all caches of the store.
  struct Budget {
    let limit: Int
    fileprivate(set) var used = 0
  }

  fileprivate struct State {
    var accounts: [UInt64: Account] = [:]
    var budgets: [Budget] = []
    /// What the rows of the batch that is being told of change.
    var batch: [Change] = []
    /// The same for the batches of a write that were admitted.
    var write: [Change] = []
  }

  /// What a row changes.
  fileprivate struct Change {
    let id: UInt64
    let written: Int
    /// Nil when it cannot be told.
    let replaced: Int?

    /// What cannot be told is at least nothing: so a count is never too low.
    var growth: Int { written - (replaced ?? 0) }
  }

  private let state = Mutex(State())
  private let accountCount = Atomic<Int>(0)

  private func withState<R>(_ body: (inout sending State) -> sending R) -> sending R {
    state.withLock { state in
      defer { accountCount.store(state.accounts.count, ordering: .releasing) }
      return body(&state)
    }
  }
}

// MARK: - Budgets and accounts

extension Accounting {
  /// Adds a budget of so many bytes; answers its place in the list.
  func addBudget(_ limit: Int) -> Int {
    withState { state in
      state.budgets.append(Budget(limit: limit))
      return state.budgets.count - 1
    }
  }

  /// Counts a cache from now on, or goes on counting it with these settings.
  func open(_ account: Account) {
    withState { state in
      state.close(account.id)
      state.accounts[account.id] = account
      for budget in account.budgets { state.budgets[budget].used += account.bytes }
    }
  }

  /// Counts what is written under `id`, too, as the same cache: it is cleared by that.
  func open(_ id: UInt64, inPlaceOf old: UInt64) {
    withState { state in
      guard let account = state.accounts[old] else { return }
      var new = account
      new.id = id
      new.bytes = 0
      new.isExact = true
      new.isChanged = true
      state.accounts[id] = new
    }
  }

  /// Counts what is under these numbers no longer.
  func close(_ ids: [UInt64]) {
    withState { state in for id in ids { state.close(id) } }
  }

  func account(_ id: UInt64) -> Account? { state.withLock { $0.accounts[id] } }

  /// The caches that a budget is for.
  func accounts(of budget: Int) -> [Account] {
    state.withLock { $0.accounts.values.filter { $0.budgets.contains(budget) } }
  }

  func budget(_ place: Int) -> Budget { state.withLock { $0.budgets[place] } }

  /// The first budget that is smaller than what `rows` puts, and how much that is.
  func budgetBelow(_ rows: borrowing WriteBatch) -> (limit: Int, bytes: Int)? {
    var sizes: [(id: UInt64, bytes: Int)] = []
    rows.bytes.withBytes { bytes in
      for row in rows.rows where row.kind != .remove {
        guard let id = Self.cache(of: UnsafeRawBufferPointer(rebasing: bytes[row.key])) else {
          continue
        }
        let size = row.keyCount + row.valueCount
        if let index = sizes.firstIndex(where: { $0.id == id }) {
          sizes[index].bytes += size
        } else {
          sizes.append((id, size))
        }
      }
    }
    return state.withLock { state in
      var needs = state.budgets.map { _ in 0 }
      for (id, bytes) in sizes {
        for budget in state.accounts[id]?.budgets ?? [] { needs[budget] += bytes }
      }
      for (budget, need) in zip(state.budgets, needs) where need > budget.limit {
        return (budget.limit, need)
      }
      return nil
    }
  }

  /// The number of the cache that a row belongs to; nil for the store's own rows.
  private static func cache(of key: UnsafeRawBufferPointer) -> UInt64? {
    guard let space = key.first,
      space == KeySpace.records.rawValue || space == KeySpace.expiry.rawValue
    else { return nil }
    var offset = 1
    return readVarint(key.bytes, at: &offset)
  }
}

// MARK: - Counting

extension Accounting: CommitMeter {
  var isCounting: Bool { accountCount.load(ordering: .acquiring) > 0 }

  func counts(_ key: UnsafeRawBufferPointer) -> Bool {
    guard let id = Self.cache(of: key) else { return false }
    return state.withLock { $0.accounts[id] != nil }
  }

  func add(_ key: UnsafeRawBufferPointer, written: Int, replaced: Int?) {
    guard let id = Self.cache(of: key) else { return }
    state.withLock { $0.batch.append(Change(id: id, written: written, replaced: replaced)) }
  }

  func admit(mayGrow: Bool) -> Shortage? {
    state.withLock { state in
      defer { state.batch.removeAll(keepingCapacity: true) }
      if !mayGrow, let shortage = state.shortage { return shortage }
      state.write += state.batch
      return nil
    }
  }

  func putCounts(in rows: inout WriteBatch) {
    let counts = state.withLock { state in state.counts }
    for (id, bytes) in counts {
      let key = Metadata.bytes(id)
      if let bytes {
        rows.putMetadata(UInt64(bytes), under: key)
      } else {
        rows.remove(key.span.bytes)
      }
    }
  }

  func end(didCommit: Bool) {
    state.withLock { state in
      if didCommit {
        for change in state.write {
          state.add(change.growth, to: change.id)
          if change.replaced == nil { state.accounts[change.id]?.isExact = false }
        }
        for id in state.accounts.keys where state.accounts[id]?.isChanged == true {
          state.accounts[id]?.isChanged = false
        }
      }
      state.write.removeAll(keepingCapacity: true)
    }
  }

  /// Reads the counts again after the database was opened anew: a write that had failed may have
  /// taken effect by that.
  ///
  /// Of open caches, only the numbers that they have now are in use.
  func readAgain(_ open: OpenCaches, by read: LevelDBEngine.Reader) {
    let accounts = state.withLock { $0.accounts }
    for (id, account) in accounts {
      if let cache = open.cache(named: account.name), cache.id != id {
        close([id])
        continue
      }
      var count: UInt64?
      do throws(EngineError) {
        let key = Metadata.bytes(id)
        count = try read(key).flatMap { Metadata.number(in: $0, under: key) }
      } catch {
        count = nil
      }
      state.withLock { state in
        if let count {
          state.add(Int(clamping: count) - account.bytes, to: id)
        } else {
          state.accounts[id]?.isExact = false
        }
      }
    }
  }
}

extension Accounting.State {
  fileprivate mutating func add(_ bytes: Int, to id: UInt64) {
    guard let account = accounts[id] else { return }
    accounts[id]?.bytes += bytes
    for budget in account.budgets { budgets[budget].used += bytes }
  }

  fileprivate mutating func close(_ id: UInt64) {
    guard let account = accounts.removeValue(forKey: id) else { return }
    for budget in account.budgets { budgets[budget].used -= account.bytes }
  }

  /// What the batch is short of, behind all that were admitted before it; nil for nothing.
  ///
  /// What only removes is never short of anything.
  fileprivate var shortage: Shortage? {
    // The store's own budget is the first one: what makes room in a cache does so in the store.
    for place in budgets.indices.reversed() {
      func isConcerned(_ change: Accounting.Change) -> Bool {
        accounts[change.id]?.budgets.contains(place) == true
      }
      guard batch.contains(where: { $0.written > 0 && isConcerned($0) }) else { continue }
      let growth = batch.lazy.filter(isConcerned).map(\.growth).reduce(0, +)
      let before = budgets[place].used + write.lazy.filter(isConcerned).map(\.growth).reduce(0, +)
      let limit = budgets[place].limit
      guard before + growth > limit else { continue }
      return Shortage(
        budget: place, limit: limit, growth: growth, excess: before + growth - limit)
    }
    return nil
  }

  /// The counts that are other than on disk once the write is done; nil for one that is in doubt.
  fileprivate var counts: [(id: UInt64, bytes: Int?)] {
    var sums: [UInt64: Int] = [:]
    var doubtful: Set<UInt64> = []
    for change in write {
      sums[change.id, default: 0] += change.growth
      if change.replaced == nil { doubtful.insert(change.id) }
    }
    return accounts.values.compactMap { account in
      guard account.isChanged || sums[account.id] != nil else { return nil }
      guard account.isExact, !doubtful.contains(account.id) else { return (account.id, nil) }
      return (account.id, account.bytes + (sums[account.id] ?? 0))
    }
  }
}
