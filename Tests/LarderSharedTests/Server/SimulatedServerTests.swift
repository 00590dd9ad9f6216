import Larder
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// The simulated server beside a real one.
@Suite(.withRedisServer, .timeLimit(.minutes(5)))
struct SimulatedServerTests {
  @Test("A simulated server answers each command, and tells each client of changes, as a real one.")
  func agree() async throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let server = try RedisServer()
    let links = (0..<3).map { _ in SocketLink(server.path) }
    defer { for link in links { link.close() } }
    for link in links { await link.waitUntilUp() }
    var simulated = SimulatedServer(clients: links.indices)
    for _ in 0..<1500 {
      let client = random.below(links.count)
      let commands = random.commands()
      var outcomes: [SimulatedServer.Outcome] = []
      for arguments in commands.arguments {
        outcomes.append(simulated.execute(arguments, by: client))
      }
      let replies = try await links[client].ask(commands).get()
      #expect(replies == outcomes.map(\.reply), "seed \(seed)")
      for (index, link) in links.enumerated() {
        let expected = outcomes.flatMap { $0.pushes[index] ?? [] }
        let pushes = await link.drain()
        #expect(pushes == expected, "seed \(seed), client \(index)")
        guard pushes == expected else { return }
      }
    }
  }
}

extension SplitMix64 {
  /// Commands about one of three keys, as the tier sends them.
  fileprivate mutating func commands() -> RESPCommands {
    let key = [UInt8(ascii: "a") + UInt8(below(3))]
    let record = SharedRecord.tombstone(version: UInt64(below(3) + 1), under: key)
    switch below(12) {
    case 0: return SharedRead(key).command
    case 1: return SharedRead(key).versionCommand
    case 2: return ["DEL", .bytes(key)]
    case 3: return below(4) == 0 ? ["FLUSHALL"] : ["SET", .bytes(key), "short"]
    case 4, 5: return SharedWrite(record, under: key, if: .absent, for: nil).commands
    case 6...8:
      let condition = TierCondition.version(UInt64(below(3) + 1))
      return SharedWrite(record, under: key, if: condition, for: nil).commands
    default: return SharedWrite(record, under: key, if: .always, for: nil).commands
    }
  }
}
