import Larder
import LarderShared
import LarderTestSupport
import Testing

/// Reads and writes of records on a real server.
@Suite(.withRedisServer, .timeLimit(.minutes(5)))
struct RequestTests {
  private static let key = Array("ld1:n:c:k".utf8)

  private static func record(_ version: UInt64) -> SharedRecord {
    .tombstone(version: version, under: key)
  }

  private func write(
    _ version: UInt64, if condition: TierCondition, for stay: Duration? = nil,
    over link: SocketLink
  ) async throws -> SharedWrite.Outcome {
    let write = SharedWrite(Self.record(version), under: Self.key, if: condition, for: stay)
    return try write.outcome(of: try await link.ask(write.commands).get())
  }

  private func version(over link: SocketLink) async throws -> UInt64? {
    let read = SharedRead(Self.key)
    let version = try read.version(in: try await link.ask(read.versionCommand).get()[0])
    // Both ways of reading say the same.
    switch try read.content(of: try await link.ask(read.command).get()[0]) {
    case .record(let record): #expect(record.version == version)
    case .absent: #expect(version == nil)
    case .unusable(let what): Issue.record("\(what)")
    }
    return version
  }

  @Test(
    "A record is written if there is nothing, if there is the version that was seen, or always.")
  func conditions() async throws {
    let server = try RedisServer()
    let link = SocketLink(server.path)
    defer { link.close() }
    await link.waitUntilUp()
    #expect(try await version(over: link) == nil)
    #expect(try await write(1, if: .version(1), over: link) == .refused)
    #expect(try await write(1, if: .absent, over: link) == .confirmed)
    #expect(try await write(2, if: .absent, over: link) == .refused)
    #expect(try await write(2, if: .version(7), over: link) == .refused)
    #expect(try await version(over: link) == 1)
    #expect(try await write(2, if: .version(1), over: link) == .confirmed)
    #expect(try await write(3, if: .version(1), over: link) == .refused)
    #expect(try await version(over: link) == 2)
    #expect(try await write(.max, if: .always, over: link) == .confirmed)
    #expect(try await version(over: link) == .max)
    #expect(try await write(4, if: .version(.max), over: link) == .confirmed)
  }

  @Test("A record stays as long as asked, at most 30 days, and a lifetime is always set.")
  func stay() async throws {
    let server = try RedisServer()
    let link = SocketLink(server.path)
    defer { link.close() }
    await link.waitUntilUp()
    let month = 30 * 86_400_000
    for (stay, milliseconds) in [
      (nil, month), (.seconds(31 * 86_400), month), (.seconds(100), 100_000),
      (.nanoseconds(5_000_000_001), 5001), (.seconds(Int64.max), month),
    ] as [(Duration?, Int)] {
      for condition in [TierCondition.always, .version(1), .absent] {
        if condition == .absent { _ = await link.ask(["DEL", .bytes(Self.key)]) }
        #expect(try await write(1, if: condition, for: stay, over: link) == .confirmed)
        guard case .success(.integer(let left)) = await link.ask("PTTL", .bytes(Self.key)) else {
          Issue.record("no time is set")
          return
        }
        #expect(left <= milliseconds && Int(left) > milliseconds - 60_000)
      }
    }
    for stay in [Duration.zero, .seconds(-5), .nanoseconds(1)] {
      _ = try await write(1, if: .always, for: stay, over: link)
    }
  }

  @Test("After its own write and after a refused one, a link hears of what others write.")
  func tracked() async throws {
    let server = try RedisServer()
    let (link, other) = (SocketLink(server.path), SocketLink(server.path))
    defer { for link in [link, other] { link.close() } }
    for link in [link, other] { await link.waitUntilUp() }
    for (isThere, condition, outcome) in [
      (false, .absent, .confirmed), (false, .always, .confirmed), (true, .always, .confirmed),
      (true, .version(50), .confirmed), (true, .absent, .refused), (true, .version(9), .refused),
      (false, .version(9), .refused),
    ] as [(Bool, TierCondition, SharedWrite.Outcome)] {
      for wasRead in [false, true] {
        _ = await other.ask(["DEL", .bytes(Self.key)])
        if isThere { _ = try await write(50, if: .always, over: other) }
        if wasRead { _ = try await version(over: link) }
        #expect(try await write(60, if: condition, over: link) == outcome)
        await link.drain()
        #expect(try await write(70, if: .always, over: other) == .confirmed)
        await link.wait { $0 == .invalidated([Self.key]) }
      }
    }
  }

  @Test("Something else under a key is no record, is not replaced by a load, and by a save it is.")
  func unusable() async throws {
    let server = try RedisServer()
    let link = SocketLink(server.path)
    defer { link.close() }
    await link.waitUntilUp()
    let read = SharedRead(Self.key)
    var bytes = Self.record(5).bytes
    bytes[30] ^= 1
    for command in [
      ["LPUSH", .bytes(Self.key), "a"], ["SET", .bytes(Self.key), "short"],
      ["SET", .bytes(Self.key), .bytes(bytes)],
      ["SET", .bytes(Self.key), .bytes(SharedRecord.tombstone(version: 5, under: [1]).bytes)],
    ] as [RESPCommands] {
      _ = await link.ask(["DEL", .bytes(Self.key)])
      guard case .success = await link.ask(command) else { return }
      let content = try read.content(of: try await link.ask(read.command).get()[0])
      guard case .unusable = content else {
        Issue.record("\(content) after \(command)")
        return
      }
      #expect(try await write(6, if: .absent, over: link) == .refused)
      #expect(try await write(6, if: .version(6), over: link) == .refused)
      #expect(try await write(6, if: .always, over: link) == .confirmed)
    }
  }

  @Test("A claim is granted once, not for a key that has changed, and again after its release.")
  func claims() async throws {
    let server = try RedisServer()
    let links = [SocketLink(server.path), SocketLink(server.path)]
    for link in links { await link.waitUntilUp() }
    let claim = SharedClaim(of: Self.key, for: .seconds(60))
    func outcome(_ link: SocketLink, seen: UInt64?) async throws -> SharedClaim.Outcome {
      try claim.outcome(of: try await link.ask(claim.commands).get(), seen: seen)
    }
    #expect(try await outcome(links[0], seen: nil) == .granted)
    #expect(try await outcome(links[1], seen: nil) == .held)
    #expect(try await write(1, if: .always, over: links[0]) == .confirmed)
    #expect(try await outcome(links[1], seen: nil) == .changed(hasLock: false))
    _ = try await links[0].ask(claim.release).get()
    #expect(try await outcome(links[1], seen: 2) == .changed(hasLock: true))
    _ = try await links[1].ask(claim.release).get()
    #expect(try await outcome(links[1], seen: 1) == .granted)
    for link in links { link.close() }
  }

  @Test("A server without memory refuses records, and still deletes.")
  func full() async throws {
    let server = try RedisServer("--maxmemory-policy", "noeviction")
    let link = SocketLink(server.path)
    defer { link.close() }
    await link.waitUntilUp()
    #expect(try await write(1, if: .always, over: link) == .confirmed)
    _ = await link.ask(["CONFIG", "SET", "maxmemory", "1"])
    for condition in [TierCondition.always, .version(1)] {
      #expect(try await write(2, if: condition, over: link) == .full)
    }
    #expect(try await version(over: link) == 1)
    #expect(await link.ask("DEL", .bytes(Self.key)) == .success(.integer(1)))
    #expect(try await write(2, if: .absent, over: link) == .full)
    _ = await link.ask(["CONFIG", "SET", "maxmemory", "0"])
    #expect(try await write(2, if: .absent, over: link) == .confirmed)
    // An error that is not about the key is a failure.
    #expect(throws: SharedFailure.self) {
      try SharedRead(Self.key).content(of: .error(RESPError(Array("READONLY x".utf8))))
    }
  }
}
