import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// Work that may wait for the disk runs on the store's own threads.
@Suite(.timeLimit(.minutes(30))) struct ExecutorTests {
  @Test("Pieces of work that wait for each other all get through.", arguments: [16, 64])
  func barrier(count: Int) async throws {
    let store = Store.inMemory()
    let (arrived, all) = (Watched(0), Flag())
    await withTaskGroup { group in
      for _ in 0..<count {
        group.addTask {
          await store.run {
            arrived.change { $0 += 1 }
            if arrived.read({ $0 == count }) { all.raise() } else { all.wait() }
          }
        }
      }
    }
    #expect(arrived.read { $0 } == count)
  }

  @Test("A load reads and saves on the store's threads, and its closure runs elsewhere.")
  func load() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: String.self)
    let mayEnd = Watched(false)
    // The caller waits when this returns, and continues on the thread that resumes it.
    let load = Task(executorPreference: ImmediateExecutor()) {
      let closure: String = try await notes.value(for: "a") {
        await mayEnd.wait { $0 }
        return threadName()
      }
      return (closure: closure, caller: threadName())
    }
    mayEnd.change { $0 = true }
    let names = try await load.value
    #expect(names.closure != storeThread)
    // No change of thread is between the save and the caller.
    #expect(names.caller == storeThread)
  }

  @Test("1,000 tasks save for power loss, and none holds a thread of the pool.")
  func manySaves() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let store = fixture.store
    let numbers = try store.cache("numbers", of: Int.self, keyedBy: Int.self)
    try await withThrowingTaskGroup { group in
      for number in 0..<1000 {
        group.addTask {
          try await store.run {
            try numbers.save(number, for: number, durability: .powerLoss)
            return threadName()
          }
        }
      }
      for try await name in group { #expect(name == storeThread) }
    }
    for number in 0..<1000 { #expect(try numbers.value(for: number) == number) }
  }

  @Test("The calls of a task that prefers the executor run on the store's threads.")
  func preference() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: String.self)
    let recorder = Recorder()
    #expect(threadName() != storeThread)
    let value = try await withTaskExecutorPreference(fixture.store.executor) {
      try notes.save("a", for: "a")
      #expect(threadName() == storeThread)
      async let child = threadName()
      #expect(await child == storeThread)
      #expect(await recorder.threadName() == storeThread)
      // Already there: no change of thread.
      let thread = pthread_self()
      #expect(await fixture.store.run { pthread_equal(pthread_self(), thread) != 0 })
      return try notes.value(for: "a")
    }
    #expect(value == "a" && threadName() != storeThread)
  }

  @MainActor @Test("Work leaves the main actor.")
  func mainActor() async {
    #expect(await Store.inMemory().run { threadName() } == storeThread)
  }

  @Test("The error of the work is thrown, with its type.")
  func typedError() async {
    struct Refusal: Error, Equatable { var number: Int }
    let store = Store.inMemory()
    do throws(Refusal) {
      try await store.run { () throws(Refusal) in throw Refusal(number: 7) }
      Issue.record("nothing was thrown")
    } catch {
      #expect(error == Refusal(number: 7))
    }
  }

  @Test("Work of a cancelled task takes effect.")
  func cancelled() async throws {
    let store = Store.inMemory()
    let notes = try store.cache("notes", of: String.self)
    let cancelled = Flag()
    let task = Task {
      cancelled.wait()
      try await store.run { try notes.save("a", for: "a") }
    }
    task.cancel()
    cancelled.raise()
    try await task.value
    #expect(try notes.value(for: "a") == "a")
  }

  @Test("Work that waits for a thread while the store is closed runs, in order.")
  func close() async throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let store = fixture.store
    let notes = try store.cache("notes", of: String.self)
    let (first, others, busy) = (Flag(), Flag(), Watched(0))
    // One thread waits for `first`, all others for `others`.
    let blocked = (0..<BlockingThreads.limit).map { index in
      Task(executorPreference: store.executor) {
        busy.change { $0 += 1 }
        if index == 0 { first.wait() } else { others.wait() }
      }
    }
    await busy.wait { $0 == BlockingThreads.limit }
    let order = Watched<[Int]>([])
    let waiting = (0..<100).map { index in
      Task(executorPreference: store.executor) {
        order.change { $0.append(index) }
        try notes.save("a", for: "\(index)")
      }
    }
    try store.close()
    first.raise()
    for task in waiting {
      do {
        try await task.value
        Issue.record("it was saved after the close")
      } catch StoreError.closed {
      }
    }
    #expect(order.read { $0 } == Array(0..<100))
    others.raise()
    for task in blocked { await task.value }
    #expect(await store.run { true })
  }

  @Test("The last reference to a store may go on one of its threads.")
  func lastReference() async throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"))
    for number in 0..<20 {
      let task = try {
        let store = try Store(at: place)
        let numbers = try store.cache("numbers", of: Int.self)
        return Task(executorPreference: store.executor) {
          try numbers.save(number, for: "last")
          return threadName()
        }
      }()
      #expect(try await task.value == storeThread)
      // The task's closure, with the last reference, is freed before its result is there.
      let store = try Store(at: place)
      #expect(try store.cache("numbers", of: Int.self).value(for: "last") == number)
      try store.close()
    }
  }
}

/// The threads start when they are needed, and end.
@Suite(.timeLimit(.minutes(30))) struct BlockingThreadsTests {
  /// Starts threads, and watches them start and end.
  private final class Starter: Sendable {
    struct Counts {
      var started = 0
      var ended = 0
    }

    let counts = Watched(Counts())

    var start: @Sendable (@escaping @Sendable () -> Void) -> Bool {
      { [counts] body in
        counts.change { $0.started += 1 }
        return startThread {
          body()
          counts.change { $0.ended += 1 }
        }
      }
    }
  }

  private func run(_ count: Int, on threads: BlockingThreads) async -> Int {
    await withTaskGroup { group in
      for _ in 0..<count { group.addTask(executorPreference: threads) { 1 } }
      return await group.reduce(0, +)
    }
  }

  @Test("Idle threads end after their idle time.")
  func idleTime() async {
    let starter = Starter()
    let threads = BlockingThreads(idleTime: .milliseconds(1), startingBy: starter.start)
    #expect(starter.counts.read { $0.started } == 0)
    for _ in 0..<3 {
      #expect(await run(20, on: threads) == 20)
      await starter.counts.wait { $0.started > 0 && $0.ended == $0.started }
    }
  }

  @Test("Idle threads end when the store is closed, and new ones do not idle.")
  func endIdle() async {
    let starter = Starter()
    let threads = BlockingThreads(idleTime: .never, startingBy: starter.start)
    #expect(await run(20, on: threads) == 20)
    threads.endIdle()
    await starter.counts.wait { $0.started > 0 && $0.ended == $0.started }
    #expect(await run(20, on: threads) == 20)
    await starter.counts.wait { $0.ended == $0.started }
  }

  @Test("10,000 jobs that wait start 64 threads, and all run.")
  func manyJobs() async {
    let starter = Starter()
    let threads = BlockingThreads(startingBy: starter.start)
    let flag = Flag()
    let ran = await withTaskGroup { group in
      for _ in 0..<10_000 {
        group.addTask(executorPreference: threads) {
          flag.wait()
          return 1
        }
      }
      await starter.counts.wait { $0.started == BlockingThreads.limit }
      flag.raise()
      return await group.reduce(0, +)
    }
    #expect(ran == 10_000 && starter.counts.read { $0.started } == BlockingThreads.limit)
  }

  @Test("Jobs that arrive together start one thread, and those that it leaves another one.")
  func oneOnItsWay() async {
    let (bodies, isBlocked) = (Watched<[@Sendable () -> Void]>([]), Flag())
    let threads = BlockingThreads(idleTime: .milliseconds(1)) { body in
      bodies.change { $0.append(body) }
      return true
    }
    let hasBegun = Flag()
    let ran = await withTaskGroup { group in
      group.addTask(executorPreference: threads) {
        hasBegun.raise()
        isBlocked.wait()
        return 1
      }
      for _ in 0..<9 { group.addTask(executorPreference: threads) { 1 } }
      #expect(bodies.read { $0.count } == 1)
      let first = bodies.read { $0[0] }
      #expect(startThread(first))
      await bodies.wait { $0.count == 2 }
      // The first job blocks, and the second thread runs the others without any more help.
      hasBegun.wait()
      let second = bodies.read { $0[1] }
      #expect(startThread(second))
      for _ in 0..<9 { _ = await group.next() }
      isBlocked.raise()
      return await group.reduce(9, +)
    }
    #expect(ran == 10)
    // They refer to the threads, which refer to them.
    bodies.change { $0 = [] }
  }

  @Test("A job is not lost when it arrives as its thread's idle time ends.")
  func jobsAtTheEnd() async {
    let threads = BlockingThreads(idleTime: .nanoseconds(0))
    var ran = 0
    for _ in 0..<5000 { ran += await run(1, on: threads) }
    #expect(ran == 5000)
  }

  @Test("Jobs run if the system refuses threads.")
  func refusedThreads() async {
    let refusals = Watched(0)
    let threads = BlockingThreads { _ in
      refusals.change { $0 += 1 }
      return false
    }
    #expect(await run(100, on: threads) == 100)
    #expect(refusals.read { $0 } > 0)
  }
}

private actor Recorder {
  func threadName() -> String { LarderTests.threadName() }
}

/// The name of the threads of stores.
private let storeThread = "larder"

private func threadName() -> String {
  #if canImport(Darwin)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { name in
      guard let start = name.baseAddress, pthread_getname_np(pthread_self(), start, 64) == 0 else {
        return ""
      }
      return String(cString: start)
    }
  #else
    let name = FileManager.default.contents(atPath: "/proc/thread-self/comm") ?? Data()
    return String(decoding: name.dropLast(), as: UTF8.self)
  #endif
}
