import Foundation
import LarderTestSupport
import Testing

@testable import SharedWorker

/// Three processes that share a cache, while the server and they themselves are stopped, cut off
/// and killed.
@Suite(.withRedisServer, .serialized, .timeLimit(.minutes(30)))
struct SharedProcessTests {
  enum Fault: CaseIterable {
    case none
    case serverStopped
    case connectionsKilled
    case demoted
    case writesRefused
    case machineStopped
    case machineKilled
    // From here on, the server loses what it has acknowledged.
    case flushed
    case serverKilled
    case memoryFull

    var losesValues: Bool { [.flushed, .serverKilled, .memoryFull].contains(self) }
  }

  @Test(
    "Whatever fails, no confirmed value is too old, and in the end no machine has an old one.",
    arguments: [false, true])
  func faults(losesValues: Bool) throws {
    let faults = Fault.allCases.filter { $0.losesValues == losesValues || $0 == .none }
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let cluster = try Cluster(machines: 3, serverKeeps: !losesValues, &random, "seed \(seed)")
    for _ in 0..<(isProof ? 60 : 1) {
      for fault in faults.shuffled(using: &random) {
        try cluster.meet(fault, &random)
        try cluster.letWork(isProof ? 2000 : 500)
      }
    }
    try cluster.end()
  }
}

/// A server and the processes that use it.
private final class Cluster {
  private let directory: TemporaryDirectory
  private let server: RedisServer
  private let originPath: String
  private let serverKeeps: Bool
  private let comment: Comment
  private var machines: [Machine] = []

  private final class Machine {
    var process: ChildProcess
    init(_ process: consuming ChildProcess) { self.process = process }
  }

  init(
    machines count: Int, serverKeeps: Bool, _ random: inout SplitMix64, _ comment: Comment
  ) throws {
    directory = try TemporaryDirectory()
    server = try RedisServer()
    originPath = directory.path("origin")
    (self.serverKeeps, self.comment) = (serverKeeps, comment)
    try Data(count: 4096).write(to: URL(filePath: originPath))
    for number in 0..<count { machines.append(try start(number, of: count, random.next())) }
    for machine in machines { try expectNoFault(of: machine, before: "ready") }
  }

  private func start(_ number: Int, of count: Int, _ seed: UInt64) throws -> Machine {
    let place = directory.path("machine \(number)")
    let arguments = [place, server.path, originPath] + [number, count].map { "\($0)" }
    return Machine(
      try ChildProcess("SharedWorker", arguments + ["\(seed)", "\(serverKeeps)"]))
  }

  /// Waits until a machine, of all but one, has made so many more calls.
  func letWork(_ calls: Int, besides stopped: Int? = nil) throws {
    let machine = machines[stopped == 0 ? 1 : 0]
    machine.process.send("\(calls)\n")
    try expectNoFault(of: machine, before: "worked")
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

  func meet(_ fault: SharedProcessTests.Fault, _ random: inout SplitMix64) throws {
    let number = Int.random(in: 0..<machines.count, using: &random)
    let machine = machines[number]
    // In calls: shorter and longer than a late reply and a lease.
    let span = [1, 100, isProof ? 10_000 : 1000].randomElement(using: &random) ?? 1
    switch fault {
    case .none: break
    case .serverStopped:
      server.setStopped(true)
      try letWork(span)
      server.setStopped(false)
    case .connectionsKilled: try command("CLIENT", "KILL", "TYPE", "normal")
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
      while let line = machine.process.readLine() { #expect(!line.hasPrefix("fault"), "\(line)") }
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

  private func command(_ words: String...) throws {
    let program = (RedisServer.program ?? "").replacing("-server", with: "-cli")
    var process = try ChildProcess(program, ["-s", server.path] + words)
    while let line = process.readLine() {
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
