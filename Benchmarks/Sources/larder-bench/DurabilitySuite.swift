import Foundation
import Larder
import Synchronization

/// Writes that survive a power loss.
struct DurabilitySuite {
  private static let goal = 1.1
  /// The goal is that eight threads write at eight times the rate of one.
  private static let sharedGoal = 1.0 / 8
  private static let threads = 8
  /// The goal is that tasks write at 0.9 times the rate of threads.
  private static let tasksGoal = 1 / 0.9
  private static let tasks = 16

  private let workspace: Workspace
  private let plan: Plan

  init(_ scale: BenchScale, in workspace: Workspace) {
    self.workspace = workspace
    let synced = scale.hasGoals ? 4000 : 400
    plan = Plan(records: synced, order: Plan.sequence(synced))
  }

  var contests: [Contest] {
    [
      filling("fillsync", threads: 1), filling("fillsync, 8 threads", threads: Self.threads),
      Contest(
        name: "fillsync, 8 threads to 1", operations: plan.order.count, goal: Self.sharedGoal,
        a: { try fill(plan, threads: Self.threads) }, b: { try fill(plan, threads: 1) }),
      saving("durable saves, 16 tasks by run to threads") { share in
        for number in share.numbers { try await share.store.run { try share.save(number) } }
      },
      saving("durable saves, 16 tasks by run(durability:) to threads") { share in
        for number in share.numbers {
          try await share.store.run(durability: .powerLoss) {
            try share.cache.save(number, for: number)
          }
        }
      },
      saving("durable saves, 16 tasks on the executor to threads") { share in
        try await withTaskExecutorPreference(share.store.executor) {
          for number in share.numbers { try share.save(number) }
        }
      },
    ]
  }

  private func filling(_ name: String, threads: Int) -> Contest {
    Contest(
      name: name, operations: plan.order.count, goal: Self.goal,
      a: { try fill(plan, threads: threads) },
      b: {
        try workspace.remove("synced-raw")
        let side = RawSide(at: workspace.directory("synced-raw"))
        let time = try timed(expecting: plan.order.count) {
          side.putSynced(plan, threads: threads)
        }
        side.close()
        return time
      })
  }

  private func fill(_ plan: Plan, threads: Int) throws -> Duration {
    try workspace.remove("synced")
    let engine = try LevelDBEngine(
      at: workspace.directory("synced").path(percentEncoded: false), options: LevelDBOptions())
    let written = Mutex(0)
    let failure = Mutex<StoreError?>(nil)
    let share = plan.order.count / threads
    let time = try timed(expecting: share * threads) {
      let group = DispatchGroup()
      for thread in 0..<threads {
        group.enter()
        Thread.detachNewThread {
          defer { group.leave() }
          do throws(StoreError) {
            for record in plan.order[(thread * share)..<((thread + 1) * share)] {
              var batch = WriteBatch()
              plan.withKey(record) { key in
                plan.withValue(record) { value in batch.put(key, value) }
              }
              try engine.write(&batch, synced: true)
              written.withLock { $0 += 1 }
            }
          } catch {
            failure.withLock { $0 = error }
          }
        }
      }
      group.wait()
      if let error = failure.withLock({ $0 }) { throw error }
      return written.withLock { $0 }
    }
    try engine.close()
    return time
  }

  // MARK: - Tasks and threads

  /// The saves of one task or thread.
  private struct Share {
    let store: Store
    let cache: Cache<Int, Int>
    let numbers: Range<Int>

    func save(_ number: Int) throws {
      try cache.save(number, for: number, durability: .powerLoss)
    }
  }

  private func saving(
    _ name: String, task: @escaping @Sendable (Share) async throws -> Void
  ) -> Contest {
    Contest(
      name: name, operations: plan.order.count, goal: Self.tasksGoal,
      a: {
        try inShares { shares, ended in
          for share in shares {
            Task {
              do {
                try await task(share)
                ended(.success(()))
              } catch {
                ended(.failure(error))
              }
            }
          }
        }
      },
      b: {
        try inShares { shares, ended in
          for share in shares {
            Thread.detachNewThread {
              ended(Result { for number in share.numbers { try share.save(number) } })
            }
          }
        }
      })
  }

  /// Measures the time in which `start` saves all shares of a new store.
  private func inShares(
    _ start: ([Share], _ ended: @escaping @Sendable (Result<Void, any Error>) -> Void) -> Void
  ) throws -> Duration {
    try workspace.remove("saved")
    let store = try Store(at: workspace.directory("saved"))
    let cache = try store.cache("numbers", of: Int.self, keyedBy: Int.self)
    let size = plan.order.count / Self.tasks
    let shares = (0..<Self.tasks).map { index in
      Share(store: store, cache: cache, numbers: (index * size)..<((index + 1) * size))
    }
    let group = DispatchGroup()
    let outcomes = Mutex<[Result<Void, any Error>]>([])
    let time = try timed(expecting: shares.count) {
      for _ in shares { group.enter() }
      start(shares) { outcome in
        outcomes.withLock { $0.append(outcome) }
        group.leave()
      }
      group.wait()
      return try outcomes.withLock { try $0.map { try $0.get() }.count }
    }
    try store.close()
    return time
  }
}
