import Foundation
import LarderTestSupport
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import LarderShared

/// Ports for servers of tests.
enum Ports {
  private static let given = Mutex<Set<Int>>([])

  /// A port that was free a moment ago, and that no other call returns.
  ///
  /// It is below those that the system gives to connections.
  static func free() async throws -> Int {
    while true {
      let port = Int.random(in: 10_000..<32_768)
      guard given.withLock({ $0.insert(port).inserted }) else { continue }
      do {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
          .bind(host: "127.0.0.1", port: port).get().close()
        return port
      } catch let error as IOError where error.errnoCode == EADDRINUSE {
      }
    }
  }
}

extension SharedTier.Options {
  /// Options whose times only tests about late replies reach: the machine may be busy.
  static var patient: Self {
    var options = Self()
    options.security = .plain
    (options.requestTimeout, options.connectTimeout) = (.seconds(60), .seconds(60))
    return options
  }
}

extension RedisServer {
  /// Sends a command by the server's own client program, and returns the lines of the reply.
  @discardableResult func command(_ words: [String]) throws -> [String] {
    let program = (Self.program ?? "").replacing("-server", with: "-cli")
    var process = try ChildProcess(program, ["-s", path] + words)
    var lines: [String] = []
    while let line = process.readLine() { lines.append(line) }
    return lines
  }
}

/// Nodes of a cluster on this machine, or in networks inside it.
final class RedisCluster {
  private(set) var nodes: [RedisServer] = []
  /// The slots of each primary at the beginning.
  let slots: [Range<Int>]
  private(set) var ports: [Int] = []
  private var failovers = 0
  private let directory: TemporaryDirectory

  /// Starts primaries, each with an equal part of the slots, and replicas of each in turn.
  ///
  /// - Parameters:
  ///   - primaries: The number of primaries.
  ///   - replicas: The number of replicas.
  ///   - timeout: The milliseconds after which a node that does not answer has failed.
  ///   - certificates: With them, all connections use TLS, and the nodes are named `localhost`.
  ///   - networks: The network of each node; this machine's own by default.
  /// - Throws: The error of a node that does not start.
  init(
    primaries: Int, replicas: Int = 0, timeout: Int = 60_000,
    with certificates: Certificates? = nil,
    in networks: [TwoNetworks.Network] = []
  ) async throws {
    directory = try TemporaryDirectory()
    slots = (0..<primaries).map {
      KeySlot.count * $0 / primaries..<KeySlot.count * ($0 + 1) / primaries
    }
    for number in 0..<primaries + replicas {
      let (port, bus) = (try await Ports.free(), try await Ports.free())
      ports.append(port)
      nodes.append(
        try RedisServer(
          [
            "--port", certificates == nil ? "\(port)" : "0", "--cluster-enabled", "yes",
            "--cluster-port", "\(bus)",
            "--cluster-config-file", directory.path("nodes \(number).conf"),
            "--cluster-node-timeout", "\(timeout)", "--repl-diskless-sync-delay", "0",
            "--user", "shop", "on", ">secret", "~ld1:test:*", "-@all", "+client|info",
            "+client|tracking", "+client|kill", "+get", "+set", "+getrange", "+del", "+eval",
            "+cluster|info", "+cluster|slots", "+asking",
          ] + (networks.isEmpty ? [] : Self.forNetworks)
            + (certificates.map { $0.serverOptions(port: port) + Self.forTLS } ?? []),
          start: networks.isEmpty ? [] : networks[number].start))
      if number < primaries {
        let slots = slots[number]
        try run(
          number, "CLUSTER", "ADDSLOTSRANGE", "\(slots.lowerBound)", "\(slots.upperBound - 1)")
      }
      try run(number, "CLUSTER", "SET-CONFIG-EPOCH", "\(number + 1)")
      if number > 0 {
        let host = networks.first?.address ?? "127.0.0.1"
        try run(number, "CLUSTER", "MEET", host, "\(ports[0])", self.bus(of: 0))
      }
    }
    let all = primaries + replicas
    for node in nodes {
      while try !node.command(["CLUSTER", "INFO"]).contains("cluster_known_nodes:\(all)\r") {
        await Task.yield()
      }
    }
    for replica in 0..<replicas {
      let primary = try id(of: replica % primaries)
      try run(primaries + replica, "CLUSTER", "REPLICATE", primary)
    }
    for node in nodes {
      while try !node.command(["CLUSTER", "INFO"]).contains("cluster_state:ok\r") {
        await Task.yield()
      }
    }
    for number in 0..<min(primaries, replicas) {
      let own = (replicas - number - 1) / primaries + 1
      // It replies with the number of replicas that are connected.
      while try nodes[number].command(["WAIT", "\(own)", "0"]) != ["\(own)"] { await Task.yield() }
    }
  }

  /// The settings of a node that others reach over a network.
  ///
  /// Where it is cut off, it goes on answering reads, which is the harder case.
  private static let forNetworks = [
    "--bind", "0.0.0.0", "--protected-mode", "no", "--cluster-allow-reads-when-down", "yes",
  ]

  private static let forTLS = [
    "--tls-cluster", "yes", "--cluster-announce-hostname", "localhost",
    "--cluster-preferred-endpoint-type", "hostname",
  ]

  func address(of number: Int, host: String = "127.0.0.1") -> SharedTier.Address {
    .server(host: host, port: ports[number])
  }

  private func id(of number: Int) throws -> String {
    try #require(try nodes[number].command(["CLUSTER", "MYID"]).first)
  }

  private func bus(of number: Int) throws -> String {
    try #require(try nodes[number].command(["CONFIG", "GET", "cluster-port"]).last)
  }

  private func run(_ number: Int, _ words: String...) throws {
    #expect(try nodes[number].command(words) == ["OK"], "\(words)")
  }

  func beginMove(of slot: Int, from source: Int, to target: Int) throws {
    try run(target, "CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", try id(of: source))
    try run(source, "CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", try id(of: target))
  }

  /// Moves a key, and returns what the source replies.
  func migrate(_ key: String, from source: Int, to target: Int) throws -> [String] {
    try nodes[source].command(["MIGRATE", "127.0.0.1", "\(ports[target])", key, "0", "60000"])
  }

  func endMove(of slot: Int, to target: Int) throws {
    let others = try nodes.indices.filter { try $0 != target && isPrimary($0) }
    for number in [target] + others {
      try run(number, "CLUSTER", "SETSLOT", "\(slot)", "NODE", try id(of: target))
    }
  }
}

extension RedisCluster {
  /// Moves the slots of keys, all at once, each to another primary, with what is in them.
  func move(_ keys: [String]) throws {
    let primaries = try nodes.indices.filter { try isPrimary($0) }
    var moves: [Int: (source: Int, target: Int)] = [:]
    for key in keys {
      let source = try #require(
        try primaries.first {
          try nodes[$0].command(["EXISTS", key]).first?.contains("MOVED") == false
        })
      let target = try #require(primaries.first { $0 != source })
      moves[KeySlot.slot(of: Array(key.utf8))] = (source, target)
    }
    for (slot, move) in moves { try beginMove(of: slot, from: move.source, to: move.target) }
    for (slot, (source, target)) in moves {
      while try nodes[source].command(["CLUSTER", "COUNTKEYSINSLOT", "\(slot)"]) != ["0"] {
        for key in try nodes[source].command(["CLUSTER", "GETKEYSINSLOT", "\(slot)", "10"]) {
          // It may be gone by now: NOKEY.
          _ = try migrate(key, from: source, to: target)
        }
      }
    }
    for (slot, move) in moves { try endMove(of: slot, to: move.target) }
  }

  /// Lets a replica take the place of its primary, without losing what was acknowledged.
  ///
  /// Writes are paused while the replica takes over, without an election. Redis 7 keeps the votes
  /// of an election after a node has won it, and counts them again if that node is to be elected
  /// within twice the `timeout`. There are two primaries for a moment then, and what one of them
  /// has acknowledged is lost.
  ///
  /// - Parameter replica: The node; each replica in turn by default.
  /// - Returns: The node that was the primary.
  /// - Throws: The error of a node that does not reply as expected.
  @discardableResult func failOver(to replica: Int? = nil) async throws -> Int {
    let replicas = try nodes.indices.filter { try !isPrimary($0) }
    try #require(!replicas.isEmpty)
    let replica = replica ?? replicas[failovers % replicas.count]
    failovers += 1
    let port = try role(of: replica)[2]
    let primary = try #require(ports.firstIndex { "\($0)" == port })
    // One that was just started is sent all data first.
    while try role(of: replica)[3] != "connected" { await Task.yield() }
    try run(primary, "CLIENT", "PAUSE", "600000", "WRITE")
    let written = try #require(Int(try role(of: primary)[1]))
    while try #require(Int(try role(of: replica)[4])) < written { await Task.yield() }
    try run(replica, "CLUSTER", "FAILOVER", "TAKEOVER")
    while try isPrimary(primary) { await Task.yield() }
    try run(primary, "CLIENT", "UNPAUSE")
    #expect(try isPrimary(replica))
    return primary
  }

  func isPrimary(_ number: Int) throws -> Bool { try role(of: number)[0] == "master" }

  /// The lines "master" and what it has written, or "slave", the host and port of its primary, the
  /// state of their connection, and what it has received.
  private func role(of number: Int) throws -> [String] {
    let lines = try nodes[number].command(["ROLE"])
    try #require(lines.first == "master" && lines.count > 1 || lines.count > 4, "\(lines)")
    return lines
  }
}
