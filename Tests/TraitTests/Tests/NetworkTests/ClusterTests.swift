import Larder
import LarderTestSupport
import Testing

@testable import LarderShared

/// Caches that are shared in a cluster.
@Suite(.withRedisServer, .serialized, .timeLimit(.minutes(10)))
struct ClusterTests {
  private static func shared(_ tier: SharedTier) throws -> SharedCache<String, String> {
    let store = try Store.inMemory()
    return try SharedCache(store.cache("texts", of: String.self), in: tier)
  }

  /// Options with a user who has the rights that the guide names.
  private static var options: SharedTier.Options {
    var options = SharedTier.Options.patient
    options.login = .init(user: "shop", password: "secret")
    return options
  }

  /// The server's key of an entry.
  private static func key(_ key: String) -> String { "ld1:test:texts:\(key)" }

  /// A key of an entry whose slot is one of some.
  private static func entryKey(in slots: Range<Int>) throws -> String {
    try #require(
      (0...).lazy.map { "k\($0)" }.first { slots.contains(KeySlot.slot(of: Array(key($0).utf8))) })
  }

  @Test("Machines find what others save and load, on whichever node it is, from one node's map.")
  func spread() async throws {
    let cluster = try await RedisCluster(primaries: 3)
    let nobody = try await Ports.free()
    var options = Self.options
    options.loadWait = .seconds(60)
    let tiers = [
      try SharedTier(
        .cluster([cluster.address(of: 1), .server(host: "127.0.0.1", port: nobody)]),
        namespace: "test", options),
      try SharedTier(.cluster([cluster.address(of: 2)]), namespace: "test", options),
    ]
    for tier in tiers { try await tier.waitUntilConnected() }
    let machines = try tiers.map(Self.shared)
    for key in 0..<60 { #expect(try await machines[0].save("a\(key)", for: "\(key)") == .shared) }
    for key in 0..<60 {
      let entry = try await machines[1].entry(for: "\(key)")
      #expect(entry?.value == "a\(key)" && entry?.isConfirmed == true)
      #expect(try await machines[1].save("b\(key)", for: "\(key)") == .shared)
      #expect(try await machines[0].value(for: "\(key)") == "b\(key)")
      #expect(try await machines[1].remove("\(key)") == .shared)
      #expect(
        try await machines[0].entry(for: "\(key)") { _ in .value("c\(key)") }?.isSaved == true)
      #expect(try await machines[1].value(for: "\(key)") == "c\(key)")
    }
    for node in cluster.nodes {
      #expect(try node.command(["DBSIZE"]).first.flatMap { Int($0) } ?? 0 > 5)
    }
    #expect(tiers.map(\.statistics.connections) == [3, 3])
    #expect(tiers.allSatisfy { $0.statistics.failedReads + $0.statistics.failedWrites == 0 })
    for tier in tiers {
      tier.close()
      for await state in tier.states where state == .closed { break }
    }
  }

  @Test(
    "After a failover a tier uses the new primary, and removes what it could not change before.")
  func failover() async throws {
    let cluster = try await RedisCluster(primaries: 3, replicas: 1, timeout: 500)
    let tiers = try (0..<2).map { number in
      try SharedTier(.cluster([cluster.address(of: number)]), namespace: "test", Self.options)
    }
    for tier in tiers { try await tier.waitUntilConnected() }
    let machines = try tiers.map(Self.shared)
    let keys = try cluster.slots.map(Self.entryKey)
    for key in keys {
      #expect(try await machines[0].save("old", for: key) == .shared)
      #expect(try await machines[1].value(for: key) == "old")
    }
    // What has not been passed on to the replica would be lost.
    while try cluster.nodes[3].command(["DBSIZE"]) != cluster.nodes[0].command(["DBSIZE"]) {
      await Task.yield()
    }
    cluster.nodes[0].kill()
    for await state in tiers[0].states { if case .degraded = state { break } }
    #expect(try await machines[0].save("new", for: keys[0]) != .shared)
    #expect(try await machines[0].entry(for: keys[0])?.isConfirmed == false)
    for key in keys.dropFirst() {
      #expect(try await machines[0].save("new", for: key) == .shared)
      #expect(try await machines[1].entry(for: key)?.value == "new")
    }
    for tier in tiers { for await state in tier.states where state == .connected { break } }
    // The former value is gone, or will be: the row is settled on the way.
    while try await machines[1].value(for: keys[0]) == "old" { await Task.yield() }
    #expect(try await machines[0].save("newer", for: keys[0]) == .shared)
    #expect(try await machines[1].entry(for: keys[0])?.value == "newer")
    #expect(try await machines[1].entry(for: keys[0])?.isConfirmed == true)
    for tier in tiers { tier.close() }
  }

  @Test("While a slot is moved, and afterwards, its keys are found, saved, loaded and removed.")
  func move() async throws {
    let cluster = try await RedisCluster(primaries: 3)
    let tiers = try (0..<2).map { number in
      try SharedTier(.cluster([cluster.address(of: number)]), namespace: "test", Self.options)
    }
    for tier in tiers { try await tier.waitUntilConnected() }
    let machines = try tiers.map(Self.shared)
    let key = try Self.entryKey(in: cluster.slots[0])
    let slot = KeySlot.slot(of: Array(Self.key(key).utf8))
    #expect(try await machines[0].save("here", for: key) == .shared)
    #expect(try await machines[1].value(for: key) == "here")

    let absent = try #require(
      (0...).lazy.map { "absent \($0)" }.first {
        KeySlot.slot(of: Array(Self.key($0).utf8)) == slot
      })
    var loading = Loading()
    loading.absentFor = .seconds(3600)
    let options = loading
    func isAbsent() async throws -> Bool {
      try await machines[0].entry(for: absent, loading: options) { _ in .absent } == nil
    }
    #expect(try await isAbsent())

    try cluster.beginMove(of: slot, from: 0, to: 1)
    #expect(try await machines[0].entry(for: key)?.isConfirmed == true)
    #expect(try await machines[1].save("still here", for: key) == .shared)
    #expect(try await machines[0].value(for: key) == "still here")
    #expect(try cluster.migrate(Self.key(key), from: 0, to: 1) == ["OK"])
    // The move may be given up, and then the new owner would not tell of changes.
    let moved = try await machines[0].entry(for: key)
    #expect(moved?.value == "still here" && moved?.isConfirmed == false)
    #expect(try await machines[1].save("there", for: key) == .shared)
    #expect(try await machines[0].value(for: key) == "there")
    #expect(try await machines[0].remove(key) == .shared)
    #expect(try await machines[1].value(for: key) == nil)
    #expect(try await machines[1].value(for: key) { "loaded" } == "loaded")
    #expect(try await machines[0].value(for: key) == "loaded")

    try cluster.endMove(of: slot, to: 1)
    // The first answer is from the former owner, which names the new one.
    #expect(try await machines[0].entry(for: key)?.value == "loaded")
    #expect(try await machines[0].entry(for: key)?.isConfirmed == true)
    #expect(try await machines[1].save("at the end", for: key) == .shared)
    #expect(try await machines[0].value(for: key) == "at the end")
    // What was remembered as absent is forgotten with the map.
    #expect(try await machines[1].save("present", for: absent) == .shared)
    while try await isAbsent() { await Task.yield() }
    #expect(tiers.map(\.state) == [.connected, .connected])
    for tier in tiers { tier.close() }
  }

  @Test(
    "With TLS, nodes are found by their names, before and after a failover and a moved slot.",
    .enabled(if: Certificates.program != nil, "openssl is not installed"))
  func tls() async throws {
    let certificates = try Certificates()
    let cluster = try await RedisCluster(primaries: 2, replicas: 1, with: certificates)
    var options = Self.options
    options.security = .tls(authorities: certificates.certificate)
    let tier = try SharedTier(
      .cluster([cluster.address(of: 1, host: "localhost")]), namespace: "test", options)
    try await tier.waitUntilConnected()
    let shared = try Self.shared(tier)
    let keys = try cluster.slots.map(Self.entryKey)
    let slot = KeySlot.slot(of: Array(Self.key(keys[1]).utf8))
    try cluster.beginMove(of: slot, from: 1, to: 0)
    // The owner, which does not have the key, names the node to ask.
    for key in keys { #expect(try await shared.save("a", for: key) == .shared) }
    try cluster.endMove(of: slot, to: 0)
    #expect(try await shared.entry(for: keys[1])?.value == "a")
    try await cluster.failOver()
    for key in keys {
      while try await shared.save("c", for: key) != .shared { await Task.yield() }
      while try await shared.entry(for: key)?.isConfirmed != true { await Task.yield() }
    }
    tier.close()
    // The certificate has no address.
    let other = try SharedTier(.cluster([cluster.address(of: 1)]), namespace: "test", options)
    let failure = await #expect(throws: SharedFailure.self) { try await other.waitUntilConnected() }
    #expect(failure?.description.contains("certificate") == true, "\(String(describing: failure))")
    other.close()
  }

  @Test("A primary that gives away the slots of its renewals is asked for others.")
  func renewals() async throws {
    let cluster = try await RedisCluster(primaries: 2)
    var options = Self.options
    options.lease = .milliseconds(400)
    let tier = try SharedTier(.cluster([cluster.address(of: 1)]), namespace: "test", options)
    try await tier.waitUntilConnected()
    let shared = try Self.shared(tier)
    let key = try Self.entryKey(in: cluster.slots[0].suffix(1))
    let lease = try SharedKeys.leaseKey(ofNamespace: "test")
    for key in SharedKeys.leaseKeys(like: lease, in: Set(cluster.slots[0])) {
      let slot = KeySlot.slot(of: key)
      try cluster.beginMove(of: slot, from: 0, to: 1)
      try cluster.endMove(of: slot, to: 1)
    }
    while tier.statistics.connections < 3 { await Task.yield() }
    while try await shared.save("a", for: key) != .shared { await Task.yield() }
    for await state in tier.states where state == .connected { break }
    #expect(try await shared.entry(for: key)?.isConfirmed == true)
    tier.close()
  }

  @Test("A cluster that is none, or none that is whole, and a node as a server say so.")
  func setUp() async throws {
    let port = try await Ports.free()
    let single = try RedisServer("--port", "\(port)")
    let cluster = try await RedisCluster(primaries: 1)
    let server = SharedTier.Address.server(host: "127.0.0.1", port: port)
    let nobody = SharedTier.Address.server(host: "127.0.0.1", port: try await Ports.free())
    let half = try await RedisCluster(primaries: 1)
    #expect(try half.nodes[0].command(["CLUSTER", "DELSLOTS", "7"]) == ["OK"])
    while try half.nodes[0].command(["CLUSTER", "INFO"]).contains("cluster_state:ok\r") {
      await Task.yield()
    }
    let plain = SharedTier.Options.patient
    for (address, options, text) in [
      (SharedTier.Address.cluster([server]), plain, "cluster support disabled"),
      (.cluster([nobody]), plain, "no node of the cluster can be asked ("),
      (.cluster([half.address(of: 0)]), plain, "the cluster is down"),
      (.cluster([server]), Self.options, "a node knows no such user"),
      (cluster.address(of: 0), plain, "it is a node of a cluster; use Address.cluster"),
    ] {
      let failure = await #expect(throws: SharedFailure.self) {
        let tier = try SharedTier(address, namespace: "test", options)
        defer { tier.close() }
        try await tier.waitUntilConnected()
      }
      #expect(failure?.description.contains(text) == true, "\(String(describing: failure))")
    }
    for address in [SharedTier.Address.cluster([]), .cluster([.cluster([server])])] {
      #expect(throws: StoreError.self) { try SharedTier(address, namespace: "test") }
    }
    single.kill()
  }
}
