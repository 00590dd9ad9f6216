import Foundation
import LarderEngine
import Synchronization

/// What it costs that writes survive a power loss, and that logs are read strictly at opening.
struct DurabilitySuite {
  /// Eight threads write at eight times the rate of one.
  static let sharedGoal = 1.0 / 8
  private static let threads = 8

  private let scale: Scale
  private let workspace: Workspace
  private let killed: URL
  private let logMegabytes: Int

  init(_ scale: Scale, in workspace: Workspace) throws {
    (self.scale, self.workspace) = (scale, workspace)
    let live = workspace.directory("live")
    let engine = try EngineSide(at: live)
    // Less than LevelDB's buffer, so that all of it is in one log.
    let count = min(scale.filled, 20_000)
    _ = try engine.putEach(Plan(records: count, order: Plan.sequence(count)))
    killed = try workspace.copy(of: live, as: "killed")
    try engine.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: killed.path())
    var bytes: UInt64 = 0
    for name in names where name.hasSuffix(".log") {
      let path = killed.appending(path: name).path()
      bytes += try FileManager.default.attributesOfItem(atPath: path)[.size] as? UInt64 ?? 0
    }
    logMegabytes = max(1, Int(bytes >> 20))
  }

  /// Fills by eight threads, to fills by one.
  var sharing: Contest {
    let synced = scale.hasGoals ? 4000 : 400
    let plan = Plan(records: synced, order: Plan.sequence(synced))
    return Contest(
      name: "fillsync, 8 threads to 1", operations: synced, goal: Self.sharedGoal,
      a: { try fill(plan, threads: Self.threads) }, b: { try fill(plan, threads: 1) })
  }

  /// Opening what a killed writer left.
  var opening: Contest {
    Contest(
      name: "open after kill, by MB of log", operations: logMegabytes,
      a: {
        let directory = try workspace.copy(of: killed, as: "open-a")
        var side: EngineSide?
        let time = try timed(expecting: 1) {
          side = try EngineSide(at: directory)
          return 1
        }
        try side?.close()
        return time
      },
      b: {
        let directory = try workspace.copy(of: killed, as: "open-b")
        var side: RawSide?
        let time = try timed(expecting: 1) {
          side = RawSide(at: directory)
          return 1
        }
        side?.close()
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
