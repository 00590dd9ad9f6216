import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@testable import LarderInspection

/// Commands for a store that is open: what they do, and who may give them.
@Suite(.timeLimit(.minutes(10))) struct ControlTests {
  /// A store that accepts commands, with values in memory and on disk.
  final class Running {
    let directory: TemporaryDirectory
    let clock = ManualClock(Specimen.now)
    let timer = HandLoadTimer()
    let store: Store
    let cache: Cache<String, Int>
    var path: String { directory.path("store") }
    var socket: String { "\(path)/LARDER.control" }

    init(accepting: Bool = true) throws {
      directory = try TemporaryDirectory()
      store = try Self.open(directory.path("store"), clock, timer, accepting: accepting)
      cache = try store.cache("numbers", of: Int.self)
      for number in 0..<10 { try cache.save(number, for: "\(number)", tags: ["t\(number % 2)"]) }
    }

    static func open(
      _ path: String, _ clock: ManualClock, _ timer: HandLoadTimer, accepting: Bool = true
    ) throws -> Store {
      var options = Store.Options()
      options.control = accepting
      options.clock = clock
      options.loadTimer = timer.schedule
      options.sweepInterval = nil
      return try Store(at: URL(filePath: path), options: options)
    }

    func report(_ report: () throws -> Report) throws -> String {
      var text = ""
      _ = try report().write(to: &text)
      return text
    }

    func remove(_ key: String) throws -> String {
      try report {
        try Inspection.remove(
          key, cache: nil, from: path, in: .process, now: Specimen.now, style: Style())
      }
    }
  }

  /// Keeps a connection, which is closed with it.
  private final class Client {
    private var client: ControlClient

    init(_ path: String) throws { client = try ControlClient(in: path, waiting: 60) }

    func send(_ text: String) throws(ControlClient.Failure) {
      try client.send(Array(text.utf8))
    }

    func receive() throws(ControlClient.Failure) -> ControlReply? {
      ControlReply(line: try client.receive())
    }

    /// Reads the rest of a connection that is being closed.
    func isClosed() -> Bool {
      do throws(ControlClient.Failure) {
        while true { _ = try client.receive() }
      } catch {
        if case .ended = error { return true }
        return false
      }
    }
  }

  /// The number of open descriptors of a process; 0 where the system does not show them.
  private func openDescriptors(of process: Int32) throws -> Int {
    #if os(Linux)
      try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
    #else
      0
    #endif
  }

  private static let ready = ControlReply.ready(version: 1)

  /// A process that has a store open and accepts commands.
  private final class Worker {
    let directory: TemporaryDirectory
    var process: ChildProcess
    var path: String { directory.path("store") }

    init() throws {
      directory = try TemporaryDirectory()
      process = try ChildProcess("CrashWorker", ["control", directory.path("store")])
      #expect(process.readLine() == "ready")
    }

    /// Has it done what a line says.
    func run(_ line: String) {
      process.send(line + "\n")
      #expect(process.readLine() == "done")
    }
  }

  // MARK: - What commands do

  @Test("A record is removed from memory, too, and observers see it.")
  func remove() async throws {
    let running = try Running()
    #expect(try running.cache.value(for: "3") == 3)
    var changes = running.cache.changes(for: "3").makeAsyncIterator()
    #expect(try running.remove("3").contains("3 of cache numbers: removed, "))
    #expect(try running.cache.value(for: "3") == nil)
    let change = await changes.next()
    if case .removed? = change?.kind {} else { Issue.record("\(String(describing: change))") }
    #expect(running.store.statistics.caches["numbers"]?.removals == 1)
    #expect { try running.remove("3") } throws: {
      ($0 as? InspectionError)?.status == .notFound
    }
    try running.store.close()
  }

  @Test("A tag is invalidated, expired records are swept, and memory is released.")
  func others() throws {
    let running = try Running()
    let path = running.path
    for number in 0..<10 { _ = try running.cache.value(for: "\(number)") }
    let text = try running.report {
      try Inspection.invalidate(
        "t1", in: path, in: .process, now: Specimen.now, style: Style())
    }
    #expect(text.contains("5 records ended, "))
    #expect(try running.cache.value(for: "1") == nil)
    #expect(try running.cache.value(for: "2") == 2)

    #expect(running.store.statistics.memory.entries > 0)
    let freed = try running.report {
      try Inspection.releaseMemory(of: path, to: 0, style: Style(.jsonl))
    }
    #expect(freed.contains("\"bytesAfter\":0"))
    #expect(running.store.statistics.memory.entries == 0)

    running.clock.set(Specimen.now + 8 * 86_400)
    let swept = try running.report {
      try Inspection.sweep(path, in: .process, now: Specimen.now, style: Style())
    }
    #expect(swept.hasSuffix("\n10 records deleted\n"))
    let sizes = try running.report {
      try Inspection.compact(path, in: .process, style: Style(.jsonl))
    }
    #expect(sizes.contains("\"bytesBefore\":"))
    #expect { try Inspection.releaseMemory(of: path, to: -1, style: Style()) } throws: {
      ($0 as? InspectionError)?.status == .usage
    }
    try running.store.close()
  }

  @Test("The failure of a command has the status that it would have as a call.")
  func failures() throws {
    let running = try Running()
    #expect {
      try Inspection.invalidate(
        String(repeating: "t", count: 65), in: running.path, in: .process, now: Specimen.now,
        style: Style())
    } throws: {
      ($0 as? InspectionError)?.status == .usage
    }
    let client = RunningStore(path: running.path, patience: 60)
    #expect(try client.ask(.remove(cache: "unknown", key: Data())) == .removed(false))
    #expect { try client.ask(.invalidate(tag: "")) } throws: {
      ($0 as? InspectionError)?.status == .usage
    }
    let long = Data(repeating: 7, count: 65_536)
    #expect(try client.ask(.remove(cache: "numbers", key: long)) == .removed(false))
    #expect { try client.ask(.remove(cache: "numbers", key: long + [7])) } throws: {
      ($0 as? InspectionError)?.status == .usage
    }
    try running.store.close()
  }

  @Test("A load under way is not saved after a command has removed its key, or ended its tag.")
  func loads() async throws {
    let running = try Running()
    let (path, cache) = (running.path, running.cache)
    for (key, request) in [
      ("3", ControlRequest.remove(cache: "numbers", key: Data("3".utf8))),
      ("4", .invalidate(tag: "t0")),
    ] {
      let (begun, mayEnd) = (Watched(false), Watched(false))
      let load = Task {
        try await cache.refresh(key) { _ in
          begun.change { $0 = true }
          await mayEnd.wait { $0 }
          return .value(100, tags: ["t0"])
        }
      }
      await begun.wait { $0 }
      _ = try RunningStore(path: path, patience: 60).ask(request)
      mayEnd.change { $0 = true }
      let entry = try await load.value
      #expect(entry?.value == 100 && entry?.isSaved == false)
      #expect(try cache.value(for: key) == nil)
    }
    try running.store.close()
  }

  // MARK: - When there is a socket

  @Test("Without the option there is no socket; a closed store has none.")
  func absent() throws {
    let off = try Running(accepting: false)
    #expect(!FileManager.default.fileExists(atPath: off.socket))
    #expect { try off.remove("1") } throws: {
      let error = $0 as? InspectionError
      return error?.status == .unavailable
        && error?.description.contains("accepts no commands") == true
    }
    try off.store.close()
    #expect { try off.remove("1") } throws: {
      ($0 as? InspectionError)?.description.contains("use --write") == true
    }
    let on = try Running()
    var status = stat()
    #expect(stat(on.socket, &status) == 0)
    #expect(status.st_mode == S_IFSOCK | 0o600)
    try on.store.suspend()
    #expect(!FileManager.default.fileExists(atPath: on.socket))
    try on.store.resume()
    #expect(try on.remove("1").contains("removed"))
    try on.store.close()
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: on.path).count {
        $0.hasPrefix("LARDER.c")
      } == 0)
  }

  @Test("A store in memory, and a snapshot, accept no commands.")
  func withoutSocket() throws {
    let running = try Running()
    var options = Store.Options()
    (options.control, options.access) = (true, .readOnly)
    let snapshot = try Store(at: URL(filePath: running.path), options: options)
    #expect(try running.remove("1").contains("removed"))
    try snapshot.close()
    #expect(try running.remove("2").contains("removed"))
    options.access = .readWrite
    try Store.inMemory(options: options).close()
    try running.store.close()
  }

  @Test("A socket that a killed process left is replaced, and its owner said to have ended.")
  func leftOver() throws {
    let worker = try Worker()
    let path = worker.path
    #expect(try RunningStore(path: path, patience: 60).ask(.sweep) == .swept(entries: 0))
    worker.process.kill()
    #expect(FileManager.default.fileExists(atPath: "\(path)/LARDER.control"))
    #expect { try RunningStore(path: path, patience: 60).ask(.sweep) } throws: {
      ($0 as? InspectionError)?.description.contains("no process has the store open") == true
    }
    let text = try Inspection.files(in: path, style: Style())
    var files = ""
    _ = try text.write(to: &files)
    #expect(files.contains("socket for commands"))
    let store = try Running.open(path, ManualClock(Specimen.now), HandLoadTimer())
    #expect(try RunningStore(path: path, patience: 60).ask(.sweep) == .swept(entries: 0))
    try store.backup(to: URL(filePath: worker.directory.path("backup")))
    #expect(!FileManager.default.fileExists(atPath: worker.directory.path("backup/LARDER.control")))
    try store.close()
    #expect(!FileManager.default.fileExists(atPath: "\(path)/LARDER.control"))
  }

  @Test("A store in a path that is longer than an address accepts commands.")
  func longPath() throws {
    #if os(Linux)
      let directory = try TemporaryDirectory()
      let parent = directory.path(String(repeating: "long", count: 50))
      try FileManager.default.createDirectory(
        atPath: parent, withIntermediateDirectories: false)
      let store = try Running.open(
        parent + "/store", ManualClock(Specimen.now), HandLoadTimer())
      #expect(
        try RunningStore(path: parent + "/store", patience: 60).ask(.sweep) == .swept(entries: 0))
      try store.close()
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: parent + "/store").allSatisfy {
          !$0.hasPrefix("LARDER.control")
        })
    #endif
  }

  @Test("A directory that was moved keeps its socket, and a new store gets its own.")
  func moved() throws {
    let running = try Running()
    let other = running.directory.path("other")
    try FileManager.default.moveItem(atPath: running.path, toPath: other)
    #expect(try RunningStore(path: other, patience: 60).ask(.releaseMemory(bytes: 0)) != Self.ready)
    let second = try Running.open(running.path, running.clock, HandLoadTimer())
    // The first store must not remove the second one's socket.
    try running.store.close()
    #expect(try RunningStore(path: running.path, patience: 60).ask(.sweep) == .swept(entries: 0))
    try second.close()
  }

  // MARK: - Hostile clients

  @Test("Requests that are not requests are answered with an error, and the store goes on.")
  func garbage() throws {
    let running = try Running()
    for text in [
      "\n", "{}\n", "sweep\n", "\u{0}\u{1}\n", "{\"sweep\":{}", "[[[[\n", "{\"erase\":{}}\n",
      String(repeating: "[", count: 100_000) + "\n", "{\"remove\":{\"cache\":1,\"key\":\"\"}}\n",
      "{\"releaseMemory\":{\"bytes\":1e400}}\n",
    ] {
      let client = try Client(running.path)
      #expect(try client.receive() == Self.ready)
      try client.send(text)
      if text.hasSuffix("\n") {
        guard case .failed(let failure) = try client.receive() else {
          Issue.record("\(text.prefix(40)) was taken")
          continue
        }
        #expect(failure.kind == .unsupported)
        #expect(client.isClosed())
      }
    }
    let client = try Client(running.path)
    #expect(try client.receive() == Self.ready)
    do throws(ControlClient.Failure) {
      for _ in 0..<100 { try client.send(String(repeating: "x", count: 100_000)) }
      Issue.record("10 MB were taken")
    } catch {
      guard case .ended = error else { throw error }
    }
    #expect(try running.remove("1").contains("removed"))
    try running.store.close()
  }

  @Test(
    "Half-sent requests end after five seconds; meanwhile others are refused, not kept waiting.")
  func halfSent() async throws {
    let running = try Running()
    var clients: [Client] = []
    for _ in 0..<16 {
      let client = try Client(running.path)
      #expect(try client.receive() == Self.ready)
      try client.send("{\"sweep\":")
      clients.append(client)
    }
    #expect { try running.remove("1") } throws: {
      let error = $0 as? InspectionError
      return error?.status == .unavailable && error?.description.contains("too many") == true
    }
    await running.timer.wait(untilRunning: 16)
    #expect(await running.timer.fire(.seconds(5)) == 16)
    for client in clients { #expect(client.isClosed()) }
    #expect(try running.remove("1").contains("removed"))
    #expect(running.timer.running == [])
    try running.store.close()
  }

  @Test("Clients that never read, and 10,000 connections, leave nothing behind.")
  func many() throws {
    let worker = try Worker()
    let path = worker.path
    // The first command and its timer open some for good.
    #expect(try RunningStore(path: path, patience: 60).ask(.sweep) == .swept(entries: 0))
    let most = try openDescriptors(of: worker.process.id) + 8
    for _ in 0..<50 {
      var clients: [Client] = []
      for number in 0..<200 {
        let client = try Client(path)
        clients.append(client)
        guard number % 3 == 0 else { continue }
        do throws(ControlClient.Failure) {
          try client.send("{\"sweep\":{}}\n")
        } catch {
          guard case .ended = error else { throw error }
        }
      }
    }
    worker.run("save a 1")
    // The server closes its ends when it sees that the clients have gone.
    var isTaken = false
    while !isTaken, !Task.isCancelled {
      do throws(InspectionError) {
        isTaken = try RunningStore(path: path, patience: 60).ask(.sweep) == .swept(entries: 0)
      } catch {
        guard error.description.contains("too many") else { throw error }
      }
    }
    while try openDescriptors(of: worker.process.id) > most, !Task.isCancelled { sched_yield() }
  }

  @Test("A client of another user is sent away.")
  func anotherUser() throws {
    guard isSuperuser else { return }
    let running = try Running()
    // Whatever the permissions are.
    chmod(running.directory.path(""), 0o755)
    chmod(running.path, 0o755)
    chmod(running.socket, 0o666)
    var worker = try ChildProcess("CrashWorker", ["--uid", "65534", "connect", running.path])
    #expect(worker.readLine() == "ended")
    #expect(try running.remove("1").contains("removed"))
    try running.store.close()
  }

  // MARK: - What happens meanwhile

  @Test("A command that a closing overtakes fails, and says that the store is closed.")
  func closedMeanwhile() async throws {
    let directory = try TemporaryDirectory()
    let clock = StoppingClock()
    var options = Store.Options()
    (options.control, options.clock, options.sweepInterval) = (true, clock, nil)
    let store = try Store(at: URL(filePath: directory.path("store")), options: options)
    let client = try Client(directory.path("store"))
    #expect(try client.receive() == Self.ready)
    clock.isStopped.change { $0 = true }
    try client.send("{\"sweep\":{}}\n")
    await clock.waiting.wait { $0 == 1 }
    try store.close()
    clock.isStopped.change { $0 = false }
    guard case .failed(let failure) = try client.receive() else {
      Issue.record("it was swept")
      return
    }
    #expect(failure.kind == .closed)
    #expect(client.isClosed())
  }

  @Test("Sixteen threads give commands while others save: each gets its own answer.")
  func concurrent() throws {
    let running = try Running()
    let (path, cache) = (running.path, running.cache)
    onThreads(16) { thread in
      for round in 0..<10 {
        do {
          let key = "thread \(thread)"
          try cache.save(round, for: key)
          let request = ControlRequest.remove(cache: "numbers", key: Data(key.utf8))
          #expect(try RunningStore(path: path, patience: 60).ask(request) == .removed(true))
          #expect(try cache.value(for: key) == nil)
        } catch {
          Issue.record(error)
        }
      }
    }
    try running.store.close()
  }

  @Test("A process that is stopped does not answer, and is waited for no longer than said.")
  func stopped() throws {
    let worker = try Worker()
    let path = worker.path
    kill(worker.process.id, SIGSTOP)
    #expect { try RunningStore(path: path, patience: 1).ask(.sweep) } throws: {
      ($0 as? InspectionError)?.description.contains("does not answer") == true
    }
    worker.process.kill()
  }

  @Test("A forked child that outlives the process is not taken for it.")
  func forked() throws {
    let worker = try Worker()
    let path = worker.path
    var client = try ControlClient(in: path, waiting: 1)
    var greeting: ControlReply?
    while greeting == nil, !Task.isCancelled {
      do throws(ControlClient.Failure) {
        greeting = ControlReply(line: try client.receive())
      } catch {
        // It may take more than a second.
        guard case .silent = error else { throw error }
      }
    }
    #expect(greeting == Self.ready)
    worker.run("fork")
    // The child has the connection, and the socket that listens.
    worker.process.kill()
    let store = RunningStore(path: path, patience: 1)
    do throws(InspectionError) {
      _ = try store.answer(of: &client)
      Issue.record("it was answered")
    } catch {
      #expect(error.status == .unavailable && error.description.contains("its process ended"))
    }
    #expect { try store.ask(.sweep) } throws: {
      ($0 as? InspectionError)?.description.contains("no process has the store open") == true
    }
  }

  @Test("Connections leave a descriptor free, and are accepted again when there are more.")
  func fewFiles() throws {
    let worker = try Worker()
    let path = worker.path
    worker.run("limit 2")
    var clients = try (0..<6).map { _ in try Client(path) }
    #expect(try clients[0].receive() == Self.ready)
    // The last one stays free: libdispatch ends a process in which it cannot open a file. One try
    // would not do: the other connections are accepted later than the first, if they are.
    for _ in 0..<100 { worker.run("open") }
    let last = clients.removeLast()
    clients = []
    // A connection that has said nothing for five seconds is ended, and on a busy machine this test
    // may take that long to say something. Then another one is accepted.
    var client = last
    while !Task.isCancelled {
      do throws(ControlClient.Failure) {
        #expect(try client.receive() == Self.ready)
        try client.send("{\"releaseMemory\":{\"bytes\":0}}\n")
        #expect(try client.receive() == .released(from: 0, to: 0))
        break
      } catch {
        guard case .ended = error else { throw error }
        client = try Client(path)
      }
    }
    worker.run("save a 1")
  }
}

/// A clock whose callers wait while it is stopped.
private final class StoppingClock: WallClock {
  let isStopped = Watched(false)
  let waiting = Watched(0)

  func now() -> Date {
    if isStopped.read({ $0 }) {
      waiting.change { $0 += 1 }
      while isStopped.read({ $0 }) { sched_yield() }
    }
    return Specimen.now
  }

  func uptime() -> Duration { .zero }
}
