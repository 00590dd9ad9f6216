import Foundation
import LarderTestSupport
import Testing

@testable import SharedWorker

/// The network fails between two sides: one has the primary and a machine, the other one the
/// replicas, the Sentinel and another machine, and goes on with a new primary.
@Suite(.withRedisServer, .withNetworks, .serialized, .timeLimit(.minutes(10)))
struct CutOffTests {
  private static let (primaryPort, sentinelPort) = (7001, 7003)

  /// The primary and one machine are in the first network; two replicas, the Sentinel and a machine
  /// that changes values are in the second one.
  ///
  /// - Returns: What the machine in the first network says of values that it should not have
  ///   confirmed.
  private static func faults(minimumReplicas: Int) async throws -> [String] {
    let networks = try TwoNetworks()
    let (near, far) = (networks.first, networks.second)
    let common = [
      "--bind", "0.0.0.0", "--protected-mode", "no", "--min-replicas-to-write",
      "\(minimumReplicas)", "--min-replicas-max-lag", "1", "--repl-ping-replica-period", "1",
    ]
    let primary = try RedisServer(common + ["--port", "\(primaryPort)"], start: near.start)
    let replicas = try (0..<2).map { number in
      try RedisServer(
        common + [
          "--port", "\(primaryPort + 10 + number)", "--replicaof",
          "\(near.address) \(primaryPort)",
        ], start: far.start)
    }
    // The primary refuses writes after one to two seconds, and is replaced after five.
    let sentinel = try await Sentinel(
      of: primaryPort, at: near.address, port: sentinelPort, patience: 5000, in: far)
    #expect(sentinel.wait(for: "+slave", times: 2))
    let server = "sentinel \(far.address) \(sentinelPort)"
    return try await faults(
      across: networks, servers: (server, server), former: primary, new: replicas[0],
      untilReplaced: { #expect(sentinel.wait(for: "+switch-master")) },
      untilDemoted: { #expect(sentinel.wait(for: "+convert-to-slave")) })
  }

  /// A machine in the first network, and one in the second that changes values, before, while and
  /// after the networks are apart.
  ///
  /// - Parameters:
  ///   - networks: The networks.
  ///   - servers: What each machine connects to, in the words of `SharedWorker`.
  ///   - former: The primary in the first network.
  ///   - new: The replica in the second network that takes its place.
  ///   - untilReplaced: Waits until it has.
  ///   - untilDemoted: Waits until the former primary knows.
  /// - Returns: What the machine in the first network says of values that it should not have
  ///   confirmed.
  /// - Throws: The error of a process that does not start.
  private static func faults(
    across networks: TwoNetworks, servers: (near: String, far: String), former: RedisServer,
    new: RedisServer, untilReplaced: () async throws -> Void,
    untilDemoted: () async throws -> Void
  ) async throws -> [String] {
    let directory = try TemporaryDirectory()
    let origin = directory.path("origin")
    try Data(count: 4096).write(to: URL(filePath: origin))
    var reader = try machine(
      "reader", in: networks.first, servers.near, directory, origin, number: 7)
    var writer = try machine(
      "writer", in: networks.second, servers.far, directory, origin, number: 0)
    var said = lines(of: &reader, before: "ready") + lines(of: &writer, before: "ready")
    #expect(said == [])
    work(&writer, calls: 500)
    work(&reader, calls: 500)

    try networks.setConnected(false)
    try await untilReplaced()
    // This waits until it has found the new primary.
    _ = check(&writer)
    work(&writer, calls: 3000)
    said = lines(of: &reader, afterCalls: 3000)
    // The primary that is cut off still answers, with other values than the new one.
    let values = try (0..<Origin.keys).map { key in
      try [former, new].map { try $0.command(["GET", Self.key(key)]) }
    }
    #expect(values.contains { $0[0] != $0[1] && $0[0].first?.contains("MOVED") == false })

    try networks.setConnected(true)
    try await untilDemoted()
    writer.send("stop\n")
    reader.send("stop\n")
    #expect(lines(of: &writer, before: "stopped") == [])
    said += lines(of: &reader, before: "stopped")
    // A machine may be settling its changes while another one is asked.
    for _ in 0..<2 { _ = (check(&writer), check(&reader)) }
    let (theirs, ours) = (check(&writer), check(&reader))
    #expect(theirs.count == Origin.keys && theirs == ours)
    return said
  }

  @Test("No machine confirms what a node of a cluster has that was cut off and has been replaced.")
  func cluster() async throws {
    let networks = try TwoNetworks()
    let (near, far) = (networks.first, networks.second)
    // The first node and one machine are in the first network. The second one has most primaries,
    // a replica of the first node, and a machine that changes values.
    let cluster = try await RedisCluster(
      primaries: 3, replicas: 1, timeout: 2000, in: [near, far, far, far])
    let servers = zip([near, far], cluster.ports).map { "cluster \($0.address) \($1)" }
    let faults = try await Self.faults(
      across: networks, servers: (servers[0], servers[1]), former: cluster.nodes[0],
      new: cluster.nodes[3],
      untilReplaced: { while try !cluster.isPrimary(3) { await Task.yield() } },
      untilDemoted: { while try cluster.isPrimary(0) { await Task.yield() } })
    #expect(faults == [])
  }

  @Test("No machine confirms what a primary has that was cut off and has been replaced.")
  func withMinimum() async throws {
    #expect(try await Self.faults(minimumReplicas: 1) == [])
  }

  @Test(
    "Without min-replicas-to-write, such a primary counts as owner until it is demoted.",
    .enabled(if: isProof, "`make proof PART=shared` shows that the test finds what it looks for"))
  func withoutMinimum() async throws {
    #expect(try await !Self.faults(minimumReplicas: 0).isEmpty)
  }

  // MARK: - Machines

  /// The server's key of an entry.
  private static func key(_ key: Int) -> String { "ld1:test:values:\(Origin.name(of: key))" }

  private static func machine(
    _ name: String, in network: TwoNetworks.Network, _ server: String,
    _ directory: borrowing TemporaryDirectory, _ origin: String, number: Int
  ) throws -> ChildProcess {
    let words =
      network.start + [
        try #require(ChildProcess.path(of: "SharedWorker")), directory.path(name),
        server, origin, "\(number)", "1",
        "\(testSeed())", "false",
      ]
    return try ChildProcess(words[0], Array(words.dropFirst()))
  }

  private static func lines(of machine: inout ChildProcess, before word: String) -> [String] {
    var lines: [String] = []
    while let line = machine.readLine(), !line.hasPrefix(word) { lines.append(line) }
    return lines
  }

  private static func lines(of machine: inout ChildProcess, afterCalls count: Int) -> [String] {
    machine.send("\(count)\n")
    return lines(of: &machine, before: "worked")
  }

  private static func work(_ machine: inout ChildProcess, calls: Int) {
    #expect(lines(of: &machine, afterCalls: calls) == [])
  }

  private static func check(_ machine: inout ChildProcess) -> [String] {
    machine.send("check\n")
    return lines(of: &machine, before: "checked")
  }
}

/// Two networks inside this machine, and a cable between them.
final class TwoNetworks {
  struct Network {
    fileprivate let name: String
    /// The address of its only machine.
    let address: String
    /// The words in front of a program that start it in the network.
    var start: [String] { [TwoNetworks.program ?? "", "netns", "exec", name] }
  }

  fileprivate static let program = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  /// The error of a command that failed.
  struct Failure: Error {
    let words: [String]
  }

  let first: Network
  let second: Network
  private let cable: String

  init() throws {
    let id = "\(getpid())"
    first = Network(name: "larder-first-\(id)", address: "10.213.7.1")
    second = Network(name: "larder-second-\(id)", address: "10.213.7.2")
    cable = "lf\(id)"
    let other = "ls\(id)"
    for network in [first, second] { try Self.run("netns", "add", network.name) }
    try Self.run("link", "add", cable, "type", "veth", "peer", "name", other)
    for (network, end) in [(first, cable), (second, other)] {
      try Self.run("link", "set", end, "netns", network.name)
      try Self.run("-n", network.name, "address", "add", network.address + "/24", "dev", end)
      try Self.run("-n", network.name, "link", "set", end, "up")
      try Self.run("-n", network.name, "link", "set", "lo", "up")
    }
  }

  deinit {
    for network in [first, second] {
      do {
        try Self.run("netns", "delete", network.name)
      } catch {
        Issue.record(error)
      }
    }
  }

  /// Plugs the cable in, or pulls it out.
  func setConnected(_ isConnected: Bool) throws {
    try Self.run("-n", first.name, "link", "set", cable, isConnected ? "up" : "down")
  }

  private static func run(_ words: String...) throws {
    let process = Process()
    process.executableURL = URL(filePath: program ?? "")
    process.arguments = words
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failure(words: words) }
  }

  /// Whether this process may make networks.
  fileprivate static let isPossible: Bool = {
    guard program != nil else { return false }
    let name = "larder-probe-\(getpid())"
    do {
      try run("netns", "add", name)
      try run("netns", "delete", name)
      return true
    } catch {
      return false
    }
  }()
}

extension Trait where Self == ConditionTrait {
  /// Skips tests where no networks can be made.
  static var withNetworks: Self {
    .enabled(
      if: TwoNetworks.isPossible, "networks inside this machine need Linux, root and `ip netns`")
  }
}
