import Foundation
import Synchronization

/// The time in which `work` is done as by ``inTasks(_:_:_:)``; it must always return true.
func timedInTasks(
  _ tasks: Int, _ count: Int, _ work: @escaping @Sendable (Int) async throws -> Bool
) throws -> Duration {
  try timed(expecting: count) { try inTasks(tasks, count, work) }
}

/// Does `work` for the numbers below `count`, an equal share of them in each task; returns how
/// often it returned true.
func inTasks(
  _ tasks: Int, _ count: Int, _ work: @escaping @Sendable (Int) async throws -> Bool
) throws -> Int {
  let outcome = Mutex<Result<Int, any Error>>(.success(0))
  let ended = DispatchSemaphore(value: 0)
  Task {
    let result: Result<Int, any Error>
    do {
      result = .success(
        try await withThrowingTaskGroup(of: Int.self) { group in
          for task in 0..<tasks {
            group.addTask {
              var right = 0
              for number in stride(from: task, to: count, by: tasks) {
                if try await work(number) { right += 1 }
              }
              return right
            }
          }
          return try await group.reduce(0, +)
        })
    } catch {
      result = .failure(error)
    }
    outcome.withLock { $0 = result }
    ended.signal()
  }
  ended.wait()
  return try outcome.withLock { try $0.get() }
}
