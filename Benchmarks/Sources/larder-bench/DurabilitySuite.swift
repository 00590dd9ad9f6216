import Foundation
import LarderEngine
import Synchronization

/// Writes that survive a power loss.
struct DurabilitySuite {
  private static let goal = 1.1
  /// The goal is that eight threads write at eight times the rate of one.
  private static let sharedGoal = 1.0 / 8
  private static let threads = 8

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
    let failure = Mutex<EngineError?>(nil)
    let share = plan.order.count / threads
    let time = try timed(expecting: share * threads) {
      let group = DispatchGroup()
      for thread in 0..<threads {
        group.enter()
        Thread.detachNewThread {
          defer { group.leave() }
          do throws(EngineError) {
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
}
