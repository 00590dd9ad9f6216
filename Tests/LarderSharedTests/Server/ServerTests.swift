import LarderShared
import LarderTestSupport
import Testing

/// A link to a real server, which is stopped, killed and set up wrongly.
@Suite(.withRedisServer, .timeLimit(.minutes(5)))
struct ServerTests {
  private static func string(_ text: String) -> RESPValue { .string(Array(text.utf8)) }

  @Test("A link reads, writes, and hears of what another one changes.")
  func pushes() async throws {
    let server = try RedisServer()
    let (link, other) = (SocketLink(server.path), SocketLink(server.path))
    defer { for link in [link, other] { link.close() } }
    for link in [link, other] { await link.waitUntilUp() }
    #expect(await link.ask("GET", "k") == .success(.null))
    #expect(await other.ask("SET", "k", "v") == .success(Self.string("OK")))
    await link.wait { $0 == .invalidated([Array("k".utf8)]) }
    #expect(await link.ask("GET", "k") == .success(Self.string("v")))
    #expect(await other.ask("FLUSHALL") == .success(Self.string("OK")))
    await link.wait { $0 == .invalidated(nil) }
  }

  @Test("Values of all sizes arrive, for 16 tasks at once.")
  func sizes() async throws {
    let server = try RedisServer()
    let link = SocketLink(server.path)
    defer { link.close() }
    await link.waitUntilUp()
    await withTaskGroup { group in
      for task in 0..<16 {
        group.addTask {
          for count in [0, 1, 100, 20_000, 1_000_000] {
            var random = SplitMix64(seed: UInt64(task * 1_000_000 + count))
            let value = random.bytes(count)
            let saved = await link.ask("SET", .number(task), .bytes(value))
            #expect(saved == .success(Self.string("OK")))
            #expect(await link.ask("GET", .number(task)) == .success(.string(value)))
          }
        }
      }
    }
  }

  @Test("A lease is renewed, and ends with a server that is stopped; the link comes up again.")
  func stopped() async throws {
    let server = try RedisServer()
    let link = SocketLink(server.path) { options in
      options.renewal = .milliseconds(20)
      options.longestSilence = .milliseconds(500)
    }
    defer { link.close() }
    for _ in 0..<3 { await link.waitUntilUp() }
    server.setStopped(true)
    await link.wait { $0 == .leaseEnded(1) }
    await link.waitForFailure { if case .unreachable = $0 { true } else { false } }
    await #expect(throws: SharedFailure.self) { try await link.ask("GET", "k").get() }
    server.setStopped(false)
    await link.waitUntilUp()
    #expect(await link.ask("GET", "k") == .success(.null))
  }

  @Test("A link comes up again after its server was killed, and after its connection was.")
  func killed() async throws {
    let server = try RedisServer()
    let link = SocketLink(server.path)
    defer { link.close() }
    await link.waitUntilUp()
    #expect(await link.ask("SET", "k", "v") == .success(Self.string("OK")))
    server.kill()
    await link.wait { $0 == .leaseEnded(1) }
    await link.waitForFailure { $0 == .unreachable("refused") }
    try server.restart()
    await link.waitUntilUp()
    #expect(await link.ask("GET", "k") == .success(.null))

    let other = SocketLink(server.path)
    defer { other.close() }
    await other.waitUntilUp()
    _ = await other.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await link.waitForFailure { $0 == .unreachable("it has ended") }
    await link.waitUntilUp()
  }

  @Test("A wrong password, a missing right and a full server are named; the right ones do.")
  func access() async throws {
    let server = try RedisServer(
      "--requirepass", "secret", "--user", "larder", "on", ">pass", "~*", "+@all", "-del")
    func expect(_ problem: String, _ login: SharedTier.Login?) async {
      let link = SocketLink(server.path) { $0.login = login }
      await link.waitForFailure { failure in
        if case .misconfigured(let text) = failure { text.contains(problem) } else { false }
      }
      link.close()
    }
    await expect("it wants a user and a password", nil)
    await expect("it knows no such user with this password", .init(password: "guess"))
    await expect(
      "it knows no such user with this password", .init(user: "nobody", password: "secret"))
    await expect("'del'", .init(user: "larder", password: "pass"))
    let link = SocketLink(server.path) { $0.login = .init(password: "secret") }
    defer { link.close() }
    await link.waitUntilUp()
    // The right that was missing is given.
    let other = SocketLink(server.path) { $0.login = .init(user: "larder", password: "pass") }
    defer { other.close() }
    await other.waitForFailure { if case .misconfigured = $0 { true } else { false } }
    #expect(await link.ask("ACL", "SETUSER", "larder", "+del") == .success(Self.string("OK")))
    await other.waitUntilUp()
  }

  @Test("A link to a server that has no room for it comes up once there is.")
  func full() async throws {
    let server = try RedisServer("--maxclients", "1")
    let first = SocketLink(server.path)
    await first.waitUntilUp()
    let second = SocketLink(server.path)
    defer { second.close() }
    await second.waitForFailure { failure in
      if case .refused(let error) = failure { error.hasPrefix("ERR ") } else { false }
    }
    first.close()
    await second.waitUntilUp()
  }

  @Test("A primary that becomes a replica ends the lease, and is used once it is primary again.")
  func demoted() async throws {
    let server = try RedisServer()
    let link = SocketLink(server.path) { $0.renewal = .milliseconds(20) }
    defer { link.close() }
    await link.waitUntilUp()
    // The server waits for a primary that is not there.
    #expect(await link.ask("REPLICAOF", "127.0.0.1", "1") == .success(Self.string("OK")))
    await link.wait { $0 == .leaseEnded(1) }
    await link.waitForFailure {
      $0 == .misconfigured("it is no primary; connect to the primary")
    }
    try server.restart()
    await link.waitUntilUp()
  }
}
