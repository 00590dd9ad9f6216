import Foundation
import Larder
import LarderShared
import LarderTestSupport
import NIOPosix
import Testing

/// A tier whose primary is named by Sentinels.
@Suite(.withRedisServer, .timeLimit(.minutes(10)))
struct SentinelTests {
  private static func address(
    _ ports: Int..., login: SharedTier.Login? = nil, of name: String = "shop"
  ) -> SharedTier.Address {
    .sentinels(ports.map { .server(host: "127.0.0.1", port: $0) }, primary: name, login: login)
  }

  private static func shared(_ tier: SharedTier) throws -> SharedCache<Int, String> {
    let store = try Store.inMemory()
    return try SharedCache(store.cache("texts", of: String.self, keyedBy: Int.self), in: tier)
  }

  @Test("Although a Sentinel is gone, a tier finds the primary, and after a failover the new one.")
  func failover() async throws {
    let port = try await Ports.free()
    let nobody = try await Ports.free()
    let primary = try RedisServer("--port", "\(port)")
    let replica = try RedisServer(
      "--port", "\(try await Ports.free())", "--replicaof", "127.0.0.1 \(port)")
    let sentinel = try await Sentinel(of: port)
    #expect(sentinel.wait(for: "+slave"))
    let tier = try SharedTier(
      Self.address(nobody, sentinel.port), namespace: "test", .patient)
    try await expectFailover(of: primary, to: replica, by: sentinel, tier)
  }

  /// Kills the primary, and expects the tier to use the replica afterwards.
  private func expectFailover(
    of primary: RedisServer, to replica: RedisServer, by sentinel: Sentinel, _ tier: SharedTier
  ) async throws {
    try await tier.waitUntilConnected()
    let shared = try Self.shared(tier)
    #expect(try await shared.save("before", for: 1) == .shared)

    primary.kill()
    #expect(sentinel.wait(for: "+switch-master"))
    // The state may be that of the former connection.
    while try await shared.save("after", for: 1) != .shared { await Task.yield() }
    let direct = try SharedTier(.socket(path: replica.path), namespace: "test", .patient)
    try await direct.waitUntilConnected()
    #expect(try await Self.shared(direct).value(for: 1) == "after")
    tier.close()
    direct.close()
  }

  @Test(
    "With TLS, Sentinels and the primaries that they name are asked by their names.",
    .enabled(if: Certificates.program != nil, "openssl is not installed"))
  func tls() async throws {
    let certificates = try Certificates()
    let (port, other) = (try await Ports.free(), try await Ports.free())
    let own = ["--replica-announce-ip", "localhost"]
    let primary = try RedisServer(certificates.serverOptions(port: port) + own)
    let replica = try RedisServer(
      certificates.serverOptions(port: other) + own + ["--replicaof", "localhost \(port)"])
    let sentinel = try await Sentinel(of: port, at: "localhost", with: certificates)
    #expect(sentinel.wait(for: "+slave"))
    var options = SharedTier.Options.patient
    options.security = .tls(authorities: certificates.certificate)
    let tier = try SharedTier(
      .sentinels([.server(host: "localhost", port: sentinel.port)], primary: "shop"),
      namespace: "test", options)
    try await expectFailover(of: primary, to: replica, by: sentinel, tier)
    // The certificate has no address.
    let unnamed = try SharedTier(Self.address(sentinel.port), namespace: "test", options)
    let failure = await #expect(throws: SharedFailure.self) {
      try await unnamed.waitUntilConnected()
    }
    #expect(failure?.description.contains("certificate") == true, "\(String(describing: failure))")
    unnamed.close()
  }

  @Test("Without Sentinels, or with ones that do not know the primary, the tier says so.")
  func unknown() async throws {
    let port = try await Ports.free()
    let primary = try RedisServer("--port", "\(port)")
    let sentinel = try await Sentinel(of: port, "requirepass secret")
    let (nobody, login) = (try await Ports.free(), SharedTier.Login(password: "secret"))
    let wrong = SharedTier.Login(password: "wrong")
    for (address, text) in [
      (Self.address(nobody), "none of its Sentinels can be reached ("),
      (Self.address(nobody, sentinel.port), "a Sentinel wants a login of its own"),
      (Self.address(sentinel.port, login: wrong), "a Sentinel knows no such user"),
      (Self.address(sentinel.port, login: login, of: "ship"), "knows no primary named \"ship\""),
    ] {
      let failure = await #expect(throws: SharedFailure.self) {
        let tier = try SharedTier(address, namespace: "test", .patient)
        defer { tier.close() }
        try await tier.waitUntilConnected()
      }
      #expect(failure?.description.contains(text) == true, "\(String(describing: failure))")
    }
    let tier = try SharedTier(
      Self.address(nobody, sentinel.port, login: login), namespace: "test", .patient)
    try await tier.waitUntilConnected()
    tier.close()
    primary.kill()
    let nested = Self.address(nobody)
    for address in [
      SharedTier.Address.sentinels([], primary: "shop"), .sentinels([nested], primary: "shop"),
      .sentinels([.server(host: "a")], primary: ""),
      .sentinels([.server(host: "a", port: 0)], primary: "shop"),
    ] {
      #expect(throws: StoreError.self) { try SharedTier(address, namespace: "test") }
    }
  }

  @Test("A Sentinel that does not reply is given up, and another one is believed meanwhile.")
  func silent() async throws {
    let port = try await Ports.free()
    let primary = try RedisServer("--port", "\(port)")
    let sentinel = try await Sentinel(of: port)
    // It accepts connections and says nothing.
    let silent = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let other = silent.localAddress?.port ?? 0
    let tier = try SharedTier(Self.address(other, sentinel.port), namespace: "test", .patient)
    try await tier.waitUntilConnected()
    tier.close()
    var options = SharedTier.Options.patient
    options.connectTimeout = .milliseconds(200)
    let alone = try SharedTier(Self.address(other), namespace: "test", options)
    await #expect(throws: SharedFailure.self) { try await alone.waitUntilConnected() }
    alone.close()
    try await silent.close()
    primary.kill()
  }
}

/// A Sentinel that watches a primary named `shop`.
final class Sentinel {
  let port: Int
  private let directory: TemporaryDirectory
  private var process: ChildProcess

  init(
    of primary: Int, at host: String = "127.0.0.1", port chosen: Int? = nil,
    patience milliseconds: Int = 300, in network: TwoNetworks.Network? = nil,
    with certificates: Certificates? = nil, _ lines: String...
  ) async throws {
    if let chosen { port = chosen } else { port = try await Ports.free() }
    directory = try TemporaryDirectory()
    let text =
      """
      port \(certificates == nil ? port : 0)
      dir \(directory.path(""))
      protected-mode no
      sentinel resolve-hostnames yes
      sentinel announce-hostnames yes
      sentinel monitor shop \(host) \(primary) 1
      sentinel down-after-milliseconds shop \(milliseconds)
      sentinel failover-timeout shop 2000

      """ + lines.map { "\($0)\n" }.joined()
    let file = directory.path("sentinel.conf")
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    let words =
      (network?.start ?? []) + [RedisServer.program ?? "", file, "--sentinel"]
      + (certificates?.serverOptions(port: port) ?? [])
    process = try ChildProcess(words[0], Array(words.dropFirst()))
    #expect(wait(for: "+monitor"))
  }

  /// Waits until the Sentinel says a word, so many times.
  func wait(for word: String, times: Int = 1) -> Bool {
    var left = times
    while left > 0, let line = process.readLine() { if line.contains(word) { left -= 1 } }
    return left == 0
  }
}
