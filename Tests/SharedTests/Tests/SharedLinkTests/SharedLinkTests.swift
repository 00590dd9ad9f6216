import LarderShared
import LarderTestSupport
import NIOCore
import NIOPosix
import Testing

/// What a link has said.
final class LinkLog: Sendable {
  let effects = Watched<[LinkMachine.Effect]>([])
  let link: SharedLink

  private static func uptime() -> Duration {
    .nanoseconds(Int64(NIODeadline.now().uptimeNanoseconds))
  }

  init(_ place: LinkPlace, _ change: (inout LinkOptions) -> Void = { _ in }) {
    var options = LinkOptions(leaseKey: Array("lease".utf8))
    options.firstWait = .milliseconds(10)
    // Only tests that are about late replies have them; the machine may be busy.
    (options.deadline, options.longestSilence) = (.seconds(60), .seconds(60))
    options.greetingDeadline = .seconds(60)
    change(&options)
    let effects = effects
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    link = SharedLink(to: place, options, on: loop, uptime: Self.uptime) { effect in
      effects.change { $0.append(effect) }
    }
  }

  deinit { link.close() }

  /// Waits for an effect that `isWanted` accepts, and forgets it and those before it.
  func wait(_ isWanted: @escaping @Sendable (LinkMachine.Effect) -> Bool) async {
    await effects.wait { $0.contains(where: isWanted) }
    effects.change { effects in
      if let index = effects.firstIndex(where: isWanted) { effects.removeFirst(index + 1) }
    }
  }

  /// Waits until the link waits, and returns why.
  func failure() async -> SharedFailure {
    let found = Watched<SharedFailure?>(nil)
    await wait { effect in
      guard case .changed(.waiting(let failure)) = effect else { return false }
      found.change { $0 = $0 ?? failure }
      return true
    }
    return found.read { $0 } ?? .closed
  }

  func waitUntilUp() async { await wait { if case .leased = $0 { true } else { false } } }
}

/// The link over a real network, to a real server.
@Suite(.withRedisServer, .timeLimit(.minutes(5)))
struct SharedLinkTests {
  @Test("Many tasks get their own replies over one connection, and pushes arrive.")
  func tasks() async throws {
    let server = try RedisServer()
    let place = LinkPlace(.socket(path: server.path), .plain)
    let log = LinkLog(place)
    await log.waitUntilUp()
    await withTaskGroup { group in
      for task in 0..<64 {
        group.addTask {
          for count in [1, 100, 20_000] {
            var random = SplitMix64(seed: UInt64(task))
            let value = random.bytes(count)
            _ = await log.link.ask(["SET", .number(task), .bytes(value)])
            #expect(await log.link.ask(["GET", .number(task)]) == .success([.string(value)]))
          }
        }
      }
    }
    let other = LinkLog(place)
    await other.waitUntilUp()
    _ = await other.link.ask(["SET", "7", "new"])
    await log.wait { $0 == .invalidated([Array("7".utf8)]) }
  }
}

extension SharedLinkTests {
  /// A port that was free a moment ago.
  private func freePort() async throws -> Int {
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = server.localAddress?.port ?? 0
    try await server.close()
    return port
  }

  @Test("A server that is stopped answers nobody, and one that continues answers again.")
  func stopped() async throws {
    let server = try RedisServer()
    let log = LinkLog(LinkPlace(.socket(path: server.path), .plain)) {
      $0.longestSilence = .milliseconds(500)
    }
    await log.waitUntilUp()
    server.setStopped(true)
    guard case .failure(.outcomeUnknown) = await log.link.ask(["GET", "a"]) else {
      Issue.record("an answer of a stopped server")
      return
    }
    _ = await log.failure()
    server.setStopped(false)
    await log.waitUntilUp()
    #expect(await log.link.ask(["GET", "a"]) == .success([.null]))
    server.kill()
    #expect(await log.failure() == .unreachable("the connection has ended"))
  }

  @Test("A cancelled caller does not wait, and a closed link answers everybody.")
  func cancelled() async throws {
    let server = try RedisServer()
    let log = LinkLog(LinkPlace(.socket(path: server.path), .plain))
    await log.waitUntilUp()
    server.setStopped(true)
    let link = log.link
    let task = Task { await link.ask(["GET", "a"]) }
    task.cancel()
    #expect(await task.value == .failure(.outcomeUnknown("its caller was cancelled")))
    let other = Task { await link.ask(["GET", "a"]) }
    link.close()
    guard case .failure = await other.value else {
      Issue.record("an answer of a stopped server")
      return
    }
    #expect(await link.ask(["GET", "a"]) == .failure(.closed))
    server.setStopped(false)
  }

  @Test("A port where nobody listens, and a name that nobody has, cannot be reached.")
  func unreachable() async throws {
    let addresses: [LinkPlace.Address] = [
      .host("127.0.0.1", port: try await freePort()), .host("nobody.invalid", port: 6379),
      .socket(path: "/nowhere"),
    ]
    for address in addresses {
      let log = LinkLog(LinkPlace(address, .plain))
      guard case .unreachable = await log.failure() else {
        Issue.record("\(address) was reached")
        return
      }
    }
  }

  @Test(
    "With TLS the server's certificate and name are checked.",
    .enabled(if: Certificates.program != nil, "openssl is not installed"))
  func tls() async throws {
    let port = try await freePort()
    let certificates = try Certificates(port: port)
    let server = try RedisServer(certificates.serverOptions)
    let secure = LinkPlace.Security.tls(authorities: certificates.authority)
    let secureLog = LinkLog(LinkPlace(.host("localhost", port: port), secure))
    await secureLog.waitUntilUp()
    let value = [UInt8](repeating: 7, count: 100_000)
    #expect(
      await secureLog.link.ask(["SET", "a", .bytes(value)]) == .success([.string(Array("OK".utf8))])
    )
    #expect(await secureLog.link.ask(["GET", "a"]) == .success([.string(value)]))

    for place in [
      LinkPlace(.host("localhost", port: port), .tls(authorities: nil)),
      LinkPlace(.host("127.0.0.1", port: port), secure),
      LinkPlace(.host("localhost", port: port), .tls(authorities: "/nowhere")),
    ] {
      let failure = await LinkLog(place).failure()
      guard case .misconfigured = failure else {
        Issue.record("\(place): \(failure)")
        continue
      }
    }
    // A server without TLS waits for the rest of a command, and one with TLS for a handshake.
    for place in [
      LinkPlace(.socket(path: server.path), secure),
      LinkPlace(.host("localhost", port: port), .plain),
    ] {
      let log = LinkLog(place) { $0.greetingDeadline = .milliseconds(300) }
      for _ in 0..<3 {
        let failure = await log.failure()
        #expect("\(failure)".contains("TLS"), "\(failure)")
      }
    }
    // No attempt has left a connection: the links' own, and one that may be in the making.
    let clients = await secureLog.link.ask(["CLIENT", "LIST"])
    guard case .success(let replies) = clients, case .string(let lines)? = replies.first else {
      Issue.record("\(clients)")
      return
    }
    #expect(lines.count { $0 == UInt8(ascii: "\n") } <= 3)
    server.kill()
    guard case .unreachable = await secureLog.failure() else {
      Issue.record("a server that was killed is misconfigured")
      return
    }
  }
}
