import Foundation
import Larder
import LarderShared
import LarderTestSupport
import Testing

/// Machines that share a cache on a real server.
@Suite(.withRedisServer, .timeLimit(.minutes(10)))
final class SharedServerTests {
  private struct Machine {
    let store: Store
    let tier: SharedTier
    let shared: SharedCache<Int, String>
  }

  private let directory: TemporaryDirectory
  private let server: RedisServer

  init() throws {
    directory = try TemporaryDirectory()
    server = try RedisServer()
  }

  private func machine(
    _ number: Int, namespace: String = "test", loadWait: Duration? = nil,
    _ change: (inout LinkOptions) -> Void = { _ in }
  ) throws -> Machine {
    let store = try Store(at: URL(filePath: directory.path("machine \(number)")))
    let cache = try store.cache("texts", of: String.self, keyedBy: Int.self)
    var options = SharedTier.Options()
    options.loadWait = loadWait
    let tier = try SharedTier(namespace: namespace, options) { [server] link, observer in
      SocketLink(server.path, leaseKey: link.leaseKeys[0], change) { observer($0, 0) }
    }
    return Machine(store: store, tier: tier, shared: try SharedCache(cache, in: tier))
  }

  private func connectedMachine(
    _ number: Int, loadWait: Duration? = nil
  ) async throws -> Machine {
    let machine = try machine(number, loadWait: loadWait)
    try await machine.tier.waitUntilConnected()
    return machine
  }

  @Test("The rights in the guide suffice, and none of them can be left out.")
  func rights() async throws {
    let rights = try Self.rights()
    let admin = SocketLink(server.path)
    await admin.waitUntilUp()
    _ = await admin.ask("ACL", "SETUSER", "default", "off")
    func machine(_ number: Int, without missing: String?) async throws -> Machine {
      let arguments = rights.filter { $0 != missing }.map { RESPArgument.text($0) }
      var command = RESPCommands()
      command.append(["ACL", "SETUSER", .text("user\(number)")] + arguments)
      #expect(await admin.ask(command) == .success([.string(Array("OK".utf8))]))
      return try self.machine(number, namespace: "shop", loadWait: .seconds(1)) {
        $0.login = .init(user: "user\(number)", password: "PASSWORD")
      }
    }
    let all = try await machine(0, without: nil)
    try await all.tier.waitUntilConnected()
    try await Self.useEachCommand(all.shared)
    #expect(all.tier.statistics.failedReads + all.tier.statistics.failedWrites == 0)
    // That to CLIENT KILL is needed over a network only.
    for (number, right) in rights.enumerated()
    where right.hasPrefix("+") && right != "+client|kill" {
      let other = try await machine(number + 1, without: right)
      var failure: SharedFailure?
      do {
        try await other.tier.waitUntilConnected()
        try await Self.useEachCommand(other.shared)
      } catch let error as SharedFailure {
        failure = error
      }
      if case .misconfigured = failure {
      } else {
        let statistics = other.tier.statistics
        #expect(statistics.failedReads + statistics.failedWrites > 0, "\(right)")
      }
      try other.store.close()
    }
    try all.store.close()
  }

  private static func useEachCommand(_ shared: SharedCache<Int, String>) async throws {
    try await shared.save("a", for: 1)
    try await shared.remove(1)
    _ = try await shared.value(for: 1)
    _ = try await shared.value(for: 1) { "b" }
    _ = try await shared.value(for: 2) { "c" }
  }

  /// The rights of a user in the guide.
  private static func rights() throws -> [String] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let guide = try String(
      contentsOf: root.appending(
        path: "Sources/LarderShared/Documentation.docc/LarderShared.md"), encoding: .utf8)
    let start = try #require(guide.firstRange(of: "ACL SETUSER larder "))
    let end = try #require(guide[start.upperBound...].firstRange(of: "```"))
    return guide[start.upperBound..<end.lowerBound].split(whereSeparator: \.isWhitespace)
      .map(String.init)
  }

  @Test("What a machine loads, saves and removes, another one finds.")
  func found() async throws {
    let (first, second) = (try await connectedMachine(0), try await connectedMachine(1))
    #expect(try await first.shared.value(for: 1) { "a" } == "a")
    #expect(try await second.shared.value(for: 1) { "b" } == "a")
    try await second.shared.save("c", for: 1)
    // They hear of it soon, or are cancelled by the time limit.
    while try await first.shared.value(for: 1, load: { "d" }) != "c" { await Task.yield() }
    try await first.shared.remove(1)
    while try await second.shared.entry(for: 1, load: { _ in .unsaved("none") })?.value != "none" {
      await Task.yield()
    }
    for machine in [first, second] { try machine.store.close() }
  }

  @Test("Machines load a key once, and no longer wait for one whose lock has ended.")
  func oneLoad() async throws {
    var machines: [Machine] = []
    for number in 0..<3 {
      machines.append(try await connectedMachine(number, loadWait: .seconds(60)))
    }
    let source = Watched((begun: 0, isOpen: false))
    func load(_ key: Int, on machines: some Sequence<Machine>) -> [Task<String, any Error>] {
      machines.map { machine in
        Task {
          try await machine.shared.value(for: key) {
            source.change { $0.begun += 1 }
            await source.wait { $0.isOpen }
            return "text"
          }
        }
      }
    }
    func waitForLoads(_ machines: some Sequence<Machine>, _ count: Int) async {
      for machine in machines {
        while machine.tier.statistics.awaitedLoads < count { await Task.yield() }
      }
    }
    let first = load(1, on: machines.prefix(1))
    await source.wait { $0.begun == 1 }
    let others = load(1, on: machines.dropFirst())
    await waitForLoads(machines.dropFirst(), 1)
    source.change { $0.isOpen = true }
    for task in first + others { #expect(try await task.valueUnlessCancelled == "text") }
    #expect(source.read { $0.begun } == 1)

    // After a removal, on the server's own time.
    try await machines[0].shared.remove(1)
    let admin = SocketLink(server.path)
    await admin.waitUntilUp()
    guard case .array(let keys) = try await admin.ask("KEYS", "*").get(),
      case .string(let key)? = keys.first
    else {
      Issue.record("no tombstone")
      return
    }
    let lock = RESPArgument.bytes(SharedKeys.lock(of: key))
    _ = try await admin.ask("SET", lock, "1").get()
    let waiting = load(1, on: machines.prefix(2))
    await waitForLoads(machines.prefix(1), 1)
    await waitForLoads(machines[1...1], 2)
    _ = try await admin.ask("PEXPIRE", lock, "1").get()
    for task in waiting { #expect(try await task.valueUnlessCancelled == "text") }
    for machine in machines { try machine.store.close() }
  }

  @Test("After races of loads, saves and removals, all machines have what the server has.")
  func races() async throws {
    let seed = testSeed()
    var machines: [Machine] = []
    // The second half of them waits for the loads of the others.
    for number in 0..<4 {
      let loadWait = number < 2 ? nil : Duration.milliseconds(20)
      machines.append(try await connectedMachine(number, loadWait: loadWait))
    }
    let shared = machines.map(\.shared)
    await withTaskGroup { group in
      for task in 0..<12 {
        group.addTask {
          var random = SplitMix64(seed: seed &+ UInt64(task))
          for step in 0..<300 {
            let (cache, key) = (shared[task % 4], random.below(3))
            let value = "\(task).\(step)"
            do {
              switch random.below(8) {
              case 0: try await cache.save(value, for: key)
              case 1: try await cache.remove(key)
              default: _ = try await cache.value(for: key) { value }
              }
            } catch {
              Issue.record(error)
            }
          }
        }
      }
    }
    // Each machine has heard of all writes once its own question is answered.
    for machine in machines { try await machine.shared.save("last", for: 100) }
    for key in 0..<3 {
      var values: Set<String> = []
      for machine in machines {
        _ = try await machine.shared.entry(for: -1) { _ in .absent }
        let entry = try await machine.shared.entry(for: key) { _ in .unsaved("none") }
        #expect(entry?.isConfirmed == true || entry?.value == "none", "seed \(seed)")
        values.insert(entry?.value ?? "nil")
        machine.store.releaseMemory()
        let asked = try await machine.shared.entry(for: key) { _ in .unsaved("none") }
        #expect(asked?.value == entry?.value, "seed \(seed)")
      }
      #expect(values.count == 1, "seed \(seed): \(values)")
    }
    for machine in machines { try machine.store.close() }
  }
}
