import Dispatch
import Synchronization

/// The budget of a store's files: when they are measured, and what they should take.
///
/// A write only counts its bytes. Once they are many, a thread of Dispatch measures the files, and
/// makes them smaller; see ``Store/keepDiskBudget()``.
final class DiskBudget: Sendable {
  /// Larger files are made smaller.
  ///
  /// It is below the budget, because files grow while they are made smaller.
  let start: Int
  /// The size that they are then brought to.
  let goal: Int
  private let step: Int
  /// The bytes that may be written while files are made smaller.
  private let slack: Int
  private let bytesLeft = Atomic<Int>(0)
  private let isUnderWay = Atomic<Bool>(false)
  private let hasEnded = Atomic<Bool>(false)
  private let totals: Lock<DiskStatistics>
  /// The bytes of files for each byte of entries after the last compaction; 0 before the first.
  ///
  /// Without the files that only cursors keep: evicting entries does not make those smaller.
  let overhead = Lock(0.0)
  private let work = DispatchGroup()
  private let queue = DispatchQueue(label: "larder.disk-budget", qos: .utility)
  private let queueKey = DispatchSpecificKey<Bool>()
  private let keep = Lock<(@Sendable () -> Bool)?>(nil)
  /// How often in a row the files stayed too large.
  private let failures = Atomic<Int>(0)
  private let activity: Activity
  private let owner = ProcessOwner()

  /// - Parameters:
  ///   - limit: The budget in bytes.
  ///   - tableBytes: The size of a table. A compaction of LevelDB writes a dozen of them before it
  ///     deletes those that they replace.
  ///   - activity: Counts the work that is under way.
  init(_ limit: Int, tableBytes: Int, _ activity: Activity) {
    start = limit - max(limit / 8, min(limit / 4, 13 * tableBytes))
    goal = start - limit / 16 * 3
    (step, slack) = (limit / 32, limit / 16)
    var totals = DiskStatistics()
    totals.budget = limit
    self.totals = Lock(totals)
    self.activity = activity
    queue.setSpecific(key: queueKey, value: true)
  }

  /// Sets what measures the files and returns whether they are small enough; called once.
  func begin(_ keep: @escaping @Sendable () -> Bool) { self.keep.withLock { $0 = keep } }

  /// Whether the work under way is to end.
  var isEnding: Bool { hasEnded.load(ordering: .relaxed) }

  /// Ends the work under way and waits for its end, unless it is this work that calls.
  func end() {
    hasEnded.store(true, ordering: .relaxed)
    // A forked child does not have the thread.
    guard owner.isCurrent, DispatchQueue.getSpecific(key: queueKey) == nil else { return }
    queue.sync {}
  }

  /// Lets work begin again after ``end()``.
  func restart() { hasEnded.store(false, ordering: .relaxed) }

  /// Counts the bytes of a write, and has the files measured if that is due.
  ///
  /// If much was written while files are made smaller, a caller that `mayWait` waits a moment.
  func noteWrite(of bytes: Int, mayWait: Bool) {
    let left = bytesLeft.wrappingSubtract(bytes, ordering: .relaxed).newValue
    guard left < 0, !isEnding else { return }
    guard !isUnderWay.exchange(true, ordering: .acquiringAndReleasing) else {
      guard mayWait, left < -slack, owner.isCurrent else { return }
      _ = work.wait(timeout: .monotonicNow + Self.longestWait)
      return
    }
    activity.begin()
    work.enter()
    queue.async { [self] in
      let keep = keep.withLock { $0 }
      let isKept = keep?() ?? true
      // Entries that cannot be evicted may be too many; then work is rarer and rarer.
      let failures = isKept ? 0 : min(failures.load(ordering: .relaxed) + 1, Self.mostFailures)
      self.failures.store(failures, ordering: .relaxed)
      bytesLeft.store(step << failures, ordering: .relaxed)
      isUnderWay.store(false, ordering: .releasing)
      work.leave()
      for waiter in activity.end() { waiter.resume() }
    }
  }

  private static var longestWait: DispatchTimeInterval { .milliseconds(100) }
  /// After so many, half of the budget is written between two measurements.
  private static var mostFailures: Int { 4 }

  var statistics: DiskStatistics { totals.withLock { $0 } }

  func count(_ body: (inout DiskStatistics) -> Void) { totals.withLock { body(&$0) } }
}

// MARK: - Making files smaller

extension Store {
  /// Measures the files, and if they are too large, collects segments, compacts tables and evicts
  /// entries, as much of this as is needed.
  ///
  /// - Returns: Whether the files are small enough.
  func keepDiskBudget() -> Bool {
    guard let budget = context.diskBudget else { return true }
    do throws(StoreError) {
      return try keep(budget)
    } catch {
      // No caller waits for it. Reads or writes that meet the same failure throw it, and the next
      // time tries again.
      return false
    }
  }

  private func keep(_ budget: DiskBudget) throws(StoreError) -> Bool {
    guard try measure(budget) > budget.start else { return true }
    budget.count { $0.overruns += 1 }
    try context.engine.collectSegments(.routine) { _, _ in !budget.isEnding }
    var files = try measure(budget)
    // Compacting tells the overhead of the files, evicting makes them smaller by it, and
    // compacting again gives back the room. Entries that compress worse need another round.
    for _ in 0..<4 where files > budget.start && !budget.isEnding {
      let overhead = budget.overhead.withLock { $0 }
      // Only compacting would soon be due again if it brought little.
      let isEvicting =
        Double(context.budgets.bytesOfStore) * overhead > Double((budget.start + budget.goal) / 2)
      if isEvicting {
        budget.count { $0.evictions += 1 }
        try context.evict(upTo: Int(Double(budget.goal) / overhead))
      }
      budget.count { $0.compactions += 1 }
      guard try compactFiles(while: { _ in !budget.isEnding }) else { return false }
      let (before, left) = (files, context.budgets.bytesOfStore)
      files = try measure(budget)
      let needed = max(0, files - (try context.engine.bytesHeldByCursors()))
      budget.overhead.withLock { $0 = left > 0 ? Double(needed) / Double(left) : 0 }
      // The rest is deleted after its cursors are closed.
      if files > budget.start, needed <= budget.start { return false }
      // What is left cannot be evicted.
      if isEvicting, files >= before { return false }
    }
    return files <= budget.start
  }

  private func measure(_ budget: DiskBudget) throws(StoreError) -> Int {
    let bytes = try context.engine.storedBytes()
    budget.count { $0.byteCount = bytes }
    return bytes
  }
}
