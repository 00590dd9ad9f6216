import Foundation
import LarderTestSupport
import Testing

@testable import SharedWorker

/// Three processes that share a cache, while the server and they themselves are stopped, cut off
/// and killed.
@Suite(.withRedisServer, .serialized, .timeLimit(.minutes(60)))
struct SharedProcessTests {
  enum Servers {
    /// One that keeps what it has acknowledged, one that loses it, and a cluster that keeps it.
    case keeping, losing, cluster
  }

  enum Fault: CaseIterable {
    case none
    case serverStopped
    case connectionsKilled
    case machineStopped
    case machineKilled
    // Of one server.
    case demoted
    case writesRefused
    // The server loses what it has acknowledged.
    case flushed
    case serverKilled
    case memoryFull
    // Of a cluster.
    case slotMoved
    case failedOver
    case nodeRestarted

    func happens(to servers: Servers) -> Bool {
      switch self {
      case .none, .machineStopped, .machineKilled: true
      case .serverStopped, .connectionsKilled: servers != .losing
      case .demoted, .writesRefused: servers == .keeping
      case .flushed, .serverKilled, .memoryFull: servers == .losing
      case .slotMoved, .failedOver, .nodeRestarted: servers == .cluster
      }
    }
  }

  @Test(
    "Whatever fails, no confirmed value is too old, and in the end no machine has an old one.",
    arguments: [Servers.keeping, .losing])
  func faults(servers: Servers) async throws {
    try await meetFaults(of: servers, rounds: isProof ? 60 : 1)
  }

  @Test("The same with a cluster of three primaries and three replicas.")
  func clusterFaults() async throws {
    try await meetFaults(of: .cluster, rounds: isProof ? 100 : 20)
  }

  private func meetFaults(of servers: Servers, rounds: Int) async throws {
    let faults = Fault.allCases.filter { $0.happens(to: servers) }
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let world = try await World(machines: 3, servers, &random, "seed \(seed)")
    for _ in 0..<rounds {
      for fault in faults.shuffled(using: &random) {
        try await world.meet(fault, &random)
        // In a cluster many failovers say more than many calls after each.
        try world.letWork(isProof && servers != .cluster ? 2000 : 500)
      }
    }
    try world.end()
  }

  @Test(
    "Machines and servers use no more memory, descriptors and threads after ten minutes of work.",
    .enabled(if: isProof, "`make proof PART=shared-cluster` runs it"))
  func soak() async throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let world = try await World(machines: 3, .cluster, &random, "seed \(seed)")
    // LevelDB's cache of blocks grows to its 8 MiB first.
    try world.letWork(for: .seconds(120))
    var usages = [try world.usages()]
    for _ in 0..<10 {
      try world.letWork(for: .seconds(60))
      usages.append(try world.usages())
    }
    for (place, process) in usages[0].enumerated() {
      let course = usages.map { $0[place] }
      print("\(process.name): \(course)")
      let (first, last) = (course.prefix(3), course.suffix(3))
      for (name, figure, slack) in Usage.figures {
        let (before, after) = (first.map(figure).max() ?? 0, last.map(figure).min() ?? 0)
        #expect(after <= before + slack, "\(process.name): \(name), \(course), seed \(seed)")
      }
    }
    try world.end()
  }
}

/// What a process uses.
private struct Usage: CustomStringConvertible {
  let name: String
  /// The bytes that it has allocated, by its own account.
  ///
  /// The resident size would not do: the allocator keeps free memory between what is used.
  let bytes: Int
  let descriptors: Int
  let threads: Int

  var description: String { "\(bytes >> 10) KiB, \(descriptors) files, \(threads) threads" }

  /// Each figure, and by how much more of it may be used at the end.
  static var figures: [(name: String, figure: (Usage) -> Int, slack: Int)] {
    [
      ("bytes", \.bytes, 1 << 20), ("descriptors", \.descriptors, 0), ("threads", \.threads, 0),
    ]
  }

  init(_ name: String, _ process: Int32, bytes: Int?) throws {
    self.name = name
    self.bytes = try #require(bytes)
    let files = FileManager.default
    descriptors = try files.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
    threads = try files.contentsOfDirectory(atPath: "/proc/\(process)/task").count
  }
}

/// Servers and the processes that use them.
private final class World {
  private let directory: TemporaryDirectory
  private let cluster: RedisCluster?
  private let servers: [RedisServer]
  /// The servers as an argument of the worker.
  private let places: String
  private let originPath: String
  private let serverKeeps: Bool
  private let comment: Comment
  private var machines: [Machine] = []

  private final class Machine {
    var process: ChildProcess
    init(_ process: consuming ChildProcess) { self.process = process }
  }

  init(
    machines count: Int, _ kind: SharedProcessTests.Servers, _ random: inout SplitMix64,
    _ comment: Comment
  ) async throws {
    directory = try TemporaryDirectory()
    if kind == .cluster {
      let cluster = try await RedisCluster(primaries: 3, replicas: 3)
      (self.cluster, servers) = (cluster, cluster.nodes)
      places = cluster.ports.map { "\($0)" }.joined(separator: ",")
    } else {
      servers = [try RedisServer()]
      (cluster, places) = (nil, servers[0].path)
    }
    originPath = directory.path("origin")
    (serverKeeps, self.comment) = (kind != .losing, comment)
    try Data(count: 4096).write(to: URL(filePath: originPath))
    for number in 0..<count { machines.append(try start(number, of: count, random.next())) }
    for machine in machines { try expectNoFault(of: machine, before: "ready") }
  }

  private func start(_ number: Int, of count: Int, _ seed: UInt64) throws -> Machine {
    let place = directory.path("machine \(number)")
    let arguments = [place, places, originPath] + [number, count].map { "\($0)" }
    return Machine(
      try ChildProcess("SharedWorker", arguments + ["\(seed)", "\(serverKeeps)"]))
  }

  /// Waits until a machine, of all but one, has made so many more calls.
  func letWork(_ calls: Int, besides stopped: Int? = nil) throws {
    let machine = machines[stopped == 0 ? 1 : 0]
    machine.process.send("\(calls)\n")
    try expectNoFault(of: machine, before: "worked")
  }

  /// Lets the machines work for at least this time.
  func letWork(for duration: Duration) throws {
    let end = ContinuousClock.now + duration
    while ContinuousClock.now < end { try letWork(2000) }
  }

  /// What each machine and each server uses.
  func usages() throws -> [Usage] {
    try machines.enumerated().map { number, machine in
      machine.process.send("memory\n")
      let bytes = try lines(of: machine, before: "checked").first.flatMap { Int($0) }
      return try Usage("machine \(number)", machine.process.id, bytes: bytes)
    }
      + servers.enumerated().map { number, server in
        let lines = try server.command(["INFO", "memory"])
        let used = lines.first { $0.hasPrefix("used_memory:") }?.split(separator: ":").last
        let bytes = used.flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        return try Usage("server \(number)", server.processID, bytes: bytes)
      }
  }

  /// The error for a machine that has ended by itself.
  private struct Ended: Error {
    let before: String
    let comment: Comment
    let lines: [String]
  }

  /// What a machine says before a line that begins with a word.
  private func lines(of machine: Machine, before word: String) throws -> [String] {
    var lines: [String] = []
    while let line = machine.process.readLine() {
      if line.hasPrefix(word) { return lines }
      lines.append(line)
    }
    throw Ended(before: word, comment: comment, lines: lines)
  }

  private func expectNoFault(of machine: Machine, before word: String) throws {
    let faults = try lines(of: machine, before: word)
    #expect(faults == [], "\(faults), \(comment)")
  }

  func meet(_ fault: SharedProcessTests.Fault, _ random: inout SplitMix64) async throws {
    let server = servers[Int.random(in: 0..<servers.count, using: &random)]
    let number = Int.random(in: 0..<machines.count, using: &random)
    let machine = machines[number]
    // In calls: shorter and longer than a late reply and a lease.
    let span =
      [1, 100, isProof && cluster == nil ? 10_000 : 1000].randomElement(using: &random) ?? 1
    switch fault {
    case .none: break
    case .serverStopped:
      server.setStopped(true)
      try letWork(span)
      server.setStopped(false)
    case .connectionsKilled: try command("CLIENT", "KILL", "TYPE", "normal", to: server)
    case .slotMoved:
      let keys = (0..<Origin.keys).shuffled(using: &random)
      let count = [1, Origin.keys].randomElement(using: &random) ?? 1
      try cluster?.move(keys.prefix(count).map { "ld1:test:values:\(Origin.name(of: $0))" })
    case .failedOver: try await cluster?.failOver()
    case .nodeRestarted:
      // A node that was a primary returns at its old address, and becomes the primary again.
      guard let cluster else { break }
      let node = try await cluster.failOver()
      servers[node].kill()
      try letWork(span)
      try servers[node].restart()
      try letWork(span)
      try await cluster.failOver(to: node)
    case .demoted:
      try command("REPLICAOF", "127.0.0.1", "1")
      try letWork(span)
      try command("REPLICAOF", "NO", "ONE")
    case .writesRefused:
      try command("ACL", "SETUSER", "default", "-set", "-eval")
      try letWork(span)
      try command("ACL", "SETUSER", "default", "+set", "+eval")
    case .machineStopped:
      _ = Foundation.kill(machine.process.id, SIGSTOP)
      try letWork(span, besides: number)
      _ = Foundation.kill(machine.process.id, SIGCONT)
    case .machineKilled:
      machine.process.kill()
      while let line = machine.process.readLine() {
        #expect(!line.hasPrefix("fault"), "machine \(number): \(line), \(comment)")
      }
      machines[number] = try start(number, of: machines.count, random.next())
      try expectNoFault(of: machines[number], before: "ready")
    case .flushed: try command("FLUSHALL")
    case .serverKilled:
      server.kill()
      try letWork(span)
      try server.restart()
    case .memoryFull:
      try command("CONFIG", "SET", "maxmemory", "1")
      try letWork(span)
      try command("CONFIG", "SET", "maxmemory", "0")
    }
  }

  private func command(_ words: String..., to server: RedisServer? = nil) throws {
    for line in try (server ?? servers[0]).command(words) {
      #expect(line == "OK" || Int(line) != nil, "\(words)")
    }
  }

  /// Stops the work, and compares what the machines and the source have.
  func end() throws {
    for machine in machines { machine.process.send("stop\n") }
    for machine in machines { try expectNoFault(of: machine, before: "stopped") }
    // A machine may be settling its changes while another one is asked.
    for machine in machines { _ = try check(machine) }
    let values = try machines.map(check)
    try #require(values.allSatisfy { $0.count == Origin.keys }, comment)
    let origin = try Origin(originPath)
    for key in 0..<Origin.keys {
      let found = Set(values.map { $0[key] })
      #expect(found.count == 1, "key \(key): \(found), \(comment)")
      guard serverKeeps else { continue }
      let allowed: Set = ["none true", "\(origin.value(of: key)) true"]
      #expect(found.isSubset(of: allowed), "key \(key): \(found), \(allowed), \(comment)")
    }
  }

  /// What a machine finds under each key.
  private func check(_ machine: Machine) throws -> [String] {
    machine.process.send("check\n")
    return try lines(of: machine, before: "checked").map {
      String($0.drop { $0 != " " }.dropFirst())
    }
  }
}
