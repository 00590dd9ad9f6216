import Foundation
import Larder
import LarderShared
import LarderTestSupport
import Testing

/// Shared caches over a real network, as a user's program has them.
@Suite(.withRedisServer, .timeLimit(.minutes(10)))
struct NetworkTests {
  private struct Machine {
    let store: Store
    let tier: SharedTier
    let shared: SharedCache<Int, Data>

    init(_ address: SharedTier.Address, _ options: SharedTier.Options) throws {
      store = try Store.inMemory()
      tier = try SharedTier(address, namespace: "test", options)
      shared = try SharedCache(
        try store.cache("values", of: Data.self, keyedBy: Int.self), in: tier)
    }
  }

  private static func failure(
    _ address: SharedTier.Address, _ options: SharedTier.Options = .patient
  ) async throws -> SharedFailure? {
    let tier = try SharedTier(address, namespace: "test", options)
    defer { tier.close() }
    do {
      try await tier.waitUntilConnected()
      return nil
    } catch let failure as SharedFailure {
      return failure
    }
  }

  @Test("What many tasks load on a machine, another one finds, and hears when it changes.")
  func shared() async throws {
    let server = try RedisServer()
    let address = SharedTier.Address.socket(path: server.path)
    let first = try Machine(address, .patient)
    let second = try Machine(address, .patient)
    for machine in [first, second] { try await machine.tier.waitUntilConnected() }
    let values = (0..<64).map { number in
      var random = SplitMix64(seed: UInt64(number))
      return Data(random.bytes([1, 100, 20_000][number % 3]))
    }
    try await withThrowingTaskGroup { group in
      for (key, value) in values.enumerated() {
        group.addTask {
          #expect(try await first.shared.value(for: key) { value } == value)
          let entry = try await second.shared.entry(for: key)
          #expect(entry?.value == value)
          #expect(entry?.origin == .shared)
          #expect(entry?.isConfirmed == true)
        }
      }
      try await group.waitForAll()
    }
    #expect(second.tier.statistics.values == 64)
    #expect(first.tier.statistics.writes == 64)
    #expect(try await second.shared.save(Data([1]), for: 0) == .shared)
    // They hear of it soon, or are cancelled by the time limit.
    while try await first.shared.value(for: 0) != Data([1]) { await Task.yield() }
    #expect(try await first.shared.remove(0) == .shared)
    while try await second.shared.value(for: 0) != nil { await Task.yield() }
    for machine in [first, second] {
      #expect(machine.tier.statistics.connections == 1)
      #expect(machine.tier.statistics.failedReads == 0)
      try machine.store.close()
    }
  }

  @Test("Without an answer, reads and changes go on here, and are made good once it answers.")
  func stopped() async throws {
    // Over TCP, where the server ends the former connection.
    let port = try await Ports.free()
    let server = try RedisServer("--port", "\(port)")
    var options = SharedTier.Options.patient
    options.requestTimeout = .milliseconds(200)
    let address = SharedTier.Address.server(host: "127.0.0.1", port: port)
    let (first, second) = (try Machine(address, options), try Machine(address, .patient))
    let states = first.tier.states
    // The machine may be so busy that a reply is late.
    while try await first.shared.save(Data([1]), for: 1) != .shared { await Task.yield() }
    try await second.tier.waitUntilConnected()
    #expect(try await second.shared.value(for: 1) == Data([1]))

    server.setStopped(true)
    // The value in memory is confirmed until the lease ends; then it is served unconfirmed.
    while try await first.shared.entry(for: 1)?.isConfirmed == true { await Task.yield() }
    #expect(try await first.shared.value(for: 1) == Data([1]))
    guard case .localOnly = try await first.shared.save(Data([2]), for: 1) else {
      Issue.record("a server that is stopped has acknowledged a value")
      return
    }
    #expect(try await first.shared.value(for: 1) == Data([2]))
    for await state in first.tier.states {
      if case .degraded = state { break }
    }
    server.setStopped(false)
    for await state in states where state == .connected { break }
    // The value that the server had is removed.
    while try await second.shared.value(for: 1) == Data([1]) { await Task.yield() }
    for machine in [first, second] { try machine.store.close() }
  }

  @Test("A caller that is cancelled does not wait, and a closed tier ends its states.")
  func closed() async throws {
    let server = try RedisServer()
    let machine = try Machine(.socket(path: server.path), .patient)
    try await machine.tier.waitUntilConnected()
    server.setStopped(true)
    let shared = machine.shared
    let task = Task { try await shared.value(for: 1) { Data() } }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    let other = Task { try await shared.value(for: 2) { Data([2]) } }
    let states = machine.tier.states
    machine.tier.close()
    #expect(try await other.value == Data([2]))
    for await _ in states {}
    #expect(machine.tier.state == .closed)
    #expect(try await shared.save(Data([3]), for: 1) == .localOnly(.closed))
    #expect(try await shared.value(for: 1) == Data([3]))
    await #expect(throws: SharedFailure.closed) { try await machine.tier.waitUntilConnected() }
    server.setStopped(false)
    try machine.store.close()
  }

  @Test("A port where nobody listens, and a name that nobody has, cannot be reached.")
  func unreachable() async throws {
    let addresses: [SharedTier.Address] = [
      .server(host: "127.0.0.1", port: try await Ports.free()),
      .server(host: "nobody.invalid"), .socket(path: "/nowhere"),
    ]
    for address in addresses {
      let failure = try await Self.failure(address)
      guard case .unreachable = failure else {
        Issue.record("\(address): \(String(describing: failure))")
        continue
      }
    }
    for address in [
      SharedTier.Address.server(host: "a", port: 0), .server(host: "a", port: 65_536),
      .server(host: ""), .socket(path: ""), .socket(path: String(repeating: "a", count: 104)),
    ] {
      #expect(throws: StoreError.self) { try SharedTier(address, namespace: "test") }
    }
  }

  @Test(
    "With TLS the server's certificate and name are checked.",
    .enabled(if: Certificates.program != nil, "openssl is not installed"))
  func tls() async throws {
    let port = try await Ports.free()
    let certificates = try Certificates()
    let server = try RedisServer(certificates.serverOptions(port: port))
    var secure = SharedTier.Options.patient
    secure.security = .tls(authorities: certificates.certificate)
    let machine = try Machine(.server(host: "localhost", port: port), secure)
    try await machine.tier.waitUntilConnected()
    let value = Data(repeating: 7, count: 100_000)
    #expect(try await machine.shared.save(value, for: 1) == .shared)
    let other = try Machine(.socket(path: server.path), .patient)
    try await other.tier.waitUntilConnected()
    #expect(try await other.shared.value(for: 1) == value)

    var unknown = secure
    unknown.security = .tls
    var unreadable = secure
    unreadable.security = .tls(authorities: "/nowhere")
    for (host, options) in [
      ("localhost", unknown), ("127.0.0.1", secure), ("localhost", unreadable),
    ] {
      let failure = try await Self.failure(.server(host: host, port: port), options)
      guard case .misconfigured = failure else {
        Issue.record("\(host): \(String(describing: failure))")
        continue
      }
    }
    // A server without TLS waits for the rest of a command; one with TLS ends the connection.
    secure.connectTimeout = .milliseconds(300)
    unknown.security = .plain
    let mixed = [
      try await Self.failure(.socket(path: server.path), secure),
      try await Self.failure(.server(host: "localhost", port: port), unknown),
    ]
    for failure in mixed { #expect("\(String(describing: failure))".contains("TLS")) }
    server.kill()
    for await state in machine.tier.states {
      if case .degraded(let failure) = state {
        guard case .unreachable = failure else {
          Issue.record("a server that was killed: \(failure)")
          break
        }
        break
      }
    }
    for machine in [machine, other] { try machine.store.close() }
  }

  @Test(
    "A server that asks for certificates accepts one that it trusts, and other mistakes are named.",
    .enabled(if: Certificates.program != nil, "openssl is not installed"))
  func clientCertificates() async throws {
    let port = try await Ports.free()
    let (certificates, others) = (try Certificates(), try Certificates())
    let server = try RedisServer(certificates.serverOptions(port: port, asking: true))
    let address = SharedTier.Address.server(host: "localhost", port: port)
    let (authority, key) = (certificates.certificate, certificates.key)
    func options(_ security: SharedTier.Security) -> SharedTier.Options {
      var options = SharedTier.Options.patient
      options.security = security
      return options
    }
    let machine = try Machine(
      address, options(.tls(authorities: authority, certificate: authority, key: key)))
    try await machine.tier.waitUntilConnected()
    #expect(try await machine.shared.save(Data([1]), for: 1) == .shared)
    machine.tier.close()
    for (security, text) in [
      (SharedTier.Security.tls(authorities: authority), "wants a certificate of this machine"),
      (
        .tls(authorities: authority, certificate: others.certificate, key: others.key),
        "ends the TLS connection"
      ),
      (
        .tls(authorities: authority, certificate: authority, key: others.key),
        "the private key does not belong to the certificate"
      ),
      (
        .tls(authorities: authority, certificate: "/nowhere", key: key),
        "this machine's certificate cannot be read"
      ),
      (
        .tls(authorities: authority, certificate: authority, key: authority),
        "the certificate's private key cannot be read"
      ),
      (
        .tls(authorities: key, certificate: authority, key: key), "the authorities cannot be read"
      ),
    ] {
      let failure = try await Self.failure(address, options(security))
      guard case .misconfigured(let reason) = failure, reason.contains(text) else {
        Issue.record("\(text): \(String(describing: failure))")
        continue
      }
    }
    try machine.store.close()
    server.kill()
  }
}
