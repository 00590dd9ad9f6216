import LarderEngine

extension Loads {
  typealias Outcome = Result<LoadedEntry<Value>?, any Error>

  /// What the task of a flight does next.
  enum Step: Sendable {
    case load([Int])
    case save([Int])
    case end
  }

  struct Flight: Sendable {
    let number: UInt64
    let loading: Loading
    let work: LoadWork<Value>
    /// The members: their keys, the places of the keys in the call, and their tickets.
    var keys: [RecordKey] = []
    var indices: [Int] = []
    var tickets: [WriteTicket] = []
    /// What was there before, for each member; empty until the disk was read.
    var found: [LoadFound<Value>] = []
    var replies: [Int: LoadReply<Value>] = [:]
    var task: Task<Void, Never>?
    var priority = Task.currentPriority
    var isCancelled = false
    var step: Step?
    var awaitsStep: CheckedContinuation<Step, Never>?
    /// The timers that run.
    var cancelDelay: (@Sendable () -> Void)?
    var cancelLimit: (@Sendable () -> Void)?
    /// The mark of the tasks of the closure that runs.
    var chain: LoadChain?
  }

  struct Waiter: Sendable {
    let loading: Loading
    /// The load that waits, and the flight that it waits for.
    var link: (from: LoadChain, to: UInt64)?
    var continuation: CheckedContinuation<Outcome, Never>?
    var outcome: Outcome?
  }

  struct State: Sendable {
    struct Absence: Sendable {
      let key: RecordKey
      let ticket: WriteTicket
    }

    var machine: LoadMachine
    var flights: [Int: Flight] = [:]
    var waiters: [Int: Waiter] = [:]
    /// The keys that are remembered as absent.
    var absences: [[UInt8]: Absence] = [:]
    var lastID = 0
    /// What is to be done without the lock.
    var work: [@Sendable () -> Void] = []

    mutating func newID() -> Int {
      lastID += 1
      return lastID
    }
  }
}
