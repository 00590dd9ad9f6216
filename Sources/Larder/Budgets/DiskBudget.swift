import Dispatch
import Synchronization

/// What ``Store/Options/diskBudget`` has led to since the store was opened.
public struct DiskStatistics: Sendable, Hashable, Codable {
  /// The size of the store's files when they were last measured, in bytes; 0 before that.
  public var byteCount = 0
  /// How often they were found too large.
  public var overruns = 0
  /// How often all tables were compacted because of that.
  public var compactions = 0
  /// How often entries were evicted because of that.
  public var evictions = 0

  init() {}
}

/// The budget of a store's files: when they are measured, and what they should take.
///
/// A write only counts its bytes. Once they are many, a thread of Dispatch measures the files, and
/// makes them smaller; see ``Store/keepDiskBudget()``.
final class DiskBudget: Sendable {
  /// The size from which on files are made smaller, so that they stay below the budget meanwhile.
  let start: Int
  /// The size that they are then brought to.
  let goal: Int
  private let step: Int
  /// The bytes that may be written while files are made smaller.
  private let slack: Int
  private let bytesLeft = Atomic<Int>(0)
  private let isUnderWay = Atomic<Bool>(false)
  private let hasEnded = Atomic<Bool>(false)
  private let totals = Mutex(DiskStatistics())
  /// The bytes of files for each byte of entries after the last compaction; 0 before the first.
  let overhead = Mutex(0.0)
  private let work = DispatchGroup()
  private let queue = DispatchQueue(label: "larder.disk-budget", qos: .utility)
  private let queueKey = DispatchSpecificKey<Bool>()
  private let keep = Mutex<(@Sendable () -> Void)?>(nil)
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
    self.activity = activity
    queue.setSpecific(key: queueKey, value: true)
  }

  /// Sets what measures the files; called once.
  func begin(_ keep: @escaping @Sendable () -> Void) { self.keep.withLock { $0 = keep } }

  /// Whether the work under way is to end.
  var isEnding: Bool { hasEnded.load(ordering: .relaxed) }

  /// Ends the work under way and waits for its end, unless it is this work that calls.
  func end() {
    hasEnded.store(true, ordering: .relaxed)
    // A forked child does not have the thread.
    guard owner.isCurrent, DispatchQueue.getSpecific(key: queueKey) == nil else { return }
    queue.sync {}
  }

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
      keep?()
      bytesLeft.store(step, ordering: .relaxed)
      isUnderWay.store(false, ordering: .releasing)
      work.leave()
      for waiter in activity.end() { waiter.resume() }
    }
  }

  private static var longestWait: DispatchTimeInterval { .milliseconds(100) }

  var statistics: DiskStatistics { totals.withLock { $0 } }

  func count(_ body: (inout DiskStatistics) -> Void) { totals.withLock { body(&$0) } }
}

// MARK: - Making files smaller

extension Store {
  /// Measures the files, and if they are too large, collects segments, compacts tables and evicts
  /// entries, as much of this as is needed.
  func keepDiskBudget() {
    guard let budget = context.diskBudget else { return }
    do throws(StoreError) {
      try keep(budget)
    } catch {
      // No caller waits for it. Reads or writes that meet the same failure throw it, and the next
      // time tries again.
    }
  }

  private func keep(_ budget: DiskBudget) throws(StoreError) {
    guard try measure(budget) > budget.start else { return }
    budget.count { $0.overruns += 1 }
    try context.engine.collectSegments(.routine) { _, _ in !budget.isEnding }
    // Compacting tells the overhead of the files, evicting makes them smaller by it, and
    // compacting again gives back the room. Entries that compress worse need another round.
    for _ in 0..<4 {
      guard !budget.isEnding, try measure(budget) > budget.start else { return }
      let overhead = budget.overhead.withLock { $0 }
      let held = context.budgets.bytesOfStore
      // Only compacting would soon be due again if it brought little.
      if overhead > 0, Double(held) * overhead > Double((budget.start + budget.goal) / 2) {
        budget.count { $0.evictions += 1 }
        try context.evict(upTo: Int(Double(budget.goal) / overhead))
      }
      budget.count { $0.compactions += 1 }
      guard try compactFiles(while: { _ in !budget.isEnding }) else { return }
      let files = try measure(budget)
      let left = context.budgets.bytesOfStore
      budget.overhead.withLock { $0 = left > 0 ? Double(files) / Double(left) : 0 }
    }
  }

  private func measure(_ budget: DiskBudget) throws(StoreError) -> Int {
    let bytes = try context.engine.storedBytes()
    budget.count { $0.byteCount = bytes }
    return bytes
  }
}
