import Larder
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import LarderShared

/// What a tier says about itself.
@Suite(.timeLimit(.minutes(5)))
struct SharedTierTests {
  /// A link that a test drives.
  private struct ManualLink: ServerLink {
    let observer: @Sendable (LinkMachine.Effect) -> Void

    func ask(
      _ commands: RESPCommands, for key: [UInt8], arrived: @escaping @Sendable (Int?) -> Void
    ) async -> Result<[RESPValue], SharedFailure> {
      .failure(.unreachable("no network"))
    }

    func close() { observer(.changed(.closed)) }
  }

  /// A link to servers of which each has the keys that begin with its number.
  private struct ClusterOfTwo: ServerLink {
    func server(of key: [UInt8]) -> Int? { key.first.map { Int($0) } }

    func ask(
      _ commands: RESPCommands, for key: [UInt8], arrived: @escaping @Sendable (Int?) -> Void
    ) async -> Result<[RESPValue], SharedFailure> {
      arrived(server(of: key))
      return .success([.null])
    }

    func close() {}
  }

  private func tier(
    _ options: SharedTier.Options = .init(), namespace: String = "test",
    clock: (any WallClock)? = nil
  ) throws -> (SharedTier, heard: @Sendable (LinkMachine.Effect) -> Void) {
    var heard: @Sendable (LinkMachine.Effect) -> Void = { _ in }
    let tier = try SharedTier(namespace: namespace, options, clock: clock) { _, observer in
      heard = { observer($0, 0) }
      return ManualLink(observer: heard)
    }
    return (tier, heard)
  }

  /// A part in whose first ``connected()`` the connection comes up.
  private final class Part: SharedPart {
    let connections = Atomic<Int>(0)
    let connect: @Sendable () -> Void

    init(_ connect: @escaping @Sendable () -> Void) { self.connect = connect }

    func connected() {
      if connections.add(1, ordering: .relaxed).newValue == 1 { connect() }
    }

    func changedElsewhere(_ userKey: [UInt8]) {}
    func allChangedElsewhere() {}
  }

  @Test("A connection that comes up while a cache is shared is not missed.")
  func added() throws {
    let (tier, heard) = try tier()
    let part = Part { heard(.leased(1, until: .seconds(2))) }
    tier.add(part, of: try SharedKeys(namespace: "test", cache: "texts"))
    #expect(part.connections.load(ordering: .relaxed) == 2)
  }

  @Test("A cluster is connected while all its primaries are, and each of them has its own lease.")
  func servers() async throws {
    let hear = Mutex<(@Sendable (LinkMachine.Effect, Int) -> Void)?>(nil)
    let tier = try SharedTier(namespace: "test") { _, observer in
      hear.withLock { $0 = observer }
      return ClusterOfTwo()
    }
    let heard = try #require(hear.withLock { $0 })
    let part = Part {}
    tier.add(part, of: try SharedKeys(namespace: "test", cache: "texts"))
    func isLeased(_ key: UInt8) async throws -> Bool {
      try await tier.ask(["GET"], for: [key], arrived: {}).get().lease.isRunning(at: .seconds(1))
    }
    let failure = SharedFailure.unreachable("no route")
    heard(.changed(.connecting), 1)
    heard(.changed(.waiting(failure)), 1)
    #expect(tier.state == .degraded(failure))
    // The nodes are known.
    heard(.changed(.closed), 1)
    #expect(tier.state == .connecting)
    for server in 2...3 { heard(.changed(.connecting), server) }
    heard(.leased(1, until: .seconds(2)), 2)
    #expect(tier.state == .connecting)
    #expect(try await isLeased(2))
    #expect(try await !isLeased(3))
    heard(.leased(1, until: .seconds(2)), 3)
    #expect(tier.state == .connected)
    #expect(part.connections.load(ordering: .relaxed) == 3)
    heard(.leaseEnded(1), 3)
    heard(.changed(.waiting(failure)), 3)
    heard(.changed(.connecting), 3)
    #expect(tier.state == .degraded(failure))
    #expect(try await isLeased(2))
    await #expect(throws: failure) { try await isLeased(3) }
    // Another primary has taken its place.
    heard(.changed(.closed), 3)
    #expect(tier.state == .connected)
    #expect(try await !isLeased(3))
    heard(.changed(.closed), 2)
    heard(.changed(.closed), 0)
    #expect(tier.state == .closed)
    await #expect(throws: SharedFailure.closed) { try await isLeased(2) }
  }

  @Test("The states begin with the current one, keep the last, and end with the tier.")
  func states() async throws {
    let (tier, heard) = try tier()
    #expect(tier.state == .connecting)
    var (first, second) = (tier.states.makeAsyncIterator(), tier.states.makeAsyncIterator())
    #expect(await first.next() == .connecting)
    heard(.changed(.up))
    heard(.leased(1, until: .seconds(2)))
    #expect(await first.next() == .connected)
    // A renewal is no change, nor is that all keys were removed.
    heard(.leased(1, until: .seconds(3)))
    heard(.invalidated(nil))
    let failure = SharedFailure.unreachable("gone")
    heard(.leaseEnded(1))
    heard(.changed(.waiting(failure)))
    #expect(await first.next() == .degraded(failure))
    // The next attempt changes nothing until it succeeds.
    heard(.changed(.connecting))
    heard(.changed(.greeting))
    #expect(tier.state == .degraded(failure))
    #expect("\(tier.state)" == "degraded: the server cannot be reached: gone")
    heard(.changed(.up))
    heard(.leased(2, until: .seconds(4)))
    heard(.invalidated([[1], [2]]))
    #expect(await second.next() == .connected)
    #expect(tier.statistics.connections == 2 && tier.statistics.invalidations == 2)
    tier.close()
    #expect(await first.next() == .closed)
    #expect(await first.next() == nil)
    var late = tier.states.makeAsyncIterator()
    #expect(await late.next() == .closed)
    #expect(await late.next() == nil)
  }

  @Test("Who waits for a connection gets it, or the failure of the attempt.")
  func waiting() async throws {
    let (tier, heard) = try tier()
    let waiting = Task { try await tier.waitUntilConnected() }
    heard(.leased(1, until: .seconds(2)))
    try await waiting.value
    let failure = SharedFailure.misconfigured("it wants a user and a password")
    heard(.changed(.waiting(failure)))
    await #expect(throws: failure) { try await tier.waitUntilConnected() }
    let other = try self.tier().0
    let cancelled = Task { try await other.waitUntilConnected() }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    other.close()
    await #expect(throws: SharedFailure.closed) { try await other.waitUntilConnected() }
  }

  @Test("A namespace or an option outside its limits is refused, and the error names the limits.")
  func limits() throws {
    var options = SharedTier.Options()
    let changes: [(String, (inout SharedTier.Options) -> Void)] = [
      ("requestTimeout", { $0.requestTimeout = .zero }),
      ("requestTimeout", { $0.requestTimeout = .seconds(61) }),
      ("connectTimeout", { $0.connectTimeout = .seconds(-1) }),
      ("lease", { $0.lease = .milliseconds(99) }), ("lease", { $0.lease = .seconds(61) }),
      ("largestRecord", { $0.largestRecord = 0 }),
      ("largestRecord", { $0.largestRecord = 1 + 32 << 20 }),
    ]
    for (name, change) in changes {
      options = SharedTier.Options()
      change(&options)
      let error = #expect(throws: StoreError.self) { try tier(options) }
      #expect("\(try #require(error))".contains("\(name) is "))
    }
    for namespace in ["", "a:b", "{a}", "50%", String(repeating: "n", count: 65)] {
      #expect(throws: StoreError.self) { try tier(namespace: namespace) }
    }
    options = SharedTier.Options()
    options.lease = .seconds(60)
    options.requestTimeout = .milliseconds(1)
    _ = try tier(options, namespace: String(repeating: "n", count: 64))
  }

  @Test("A password appears in no description.")
  func password() {
    var options = SharedTier.Options()
    options.login = SharedTier.Login(user: "larder", password: "secret")
    var dumped = ""
    dump(options, to: &dumped)
    for text in ["\(options)", String(reflecting: options), dumped] {
      #expect(text.contains("larder") && !text.contains("secret"), "\(text)")
    }
  }

  @Test("A store with another clock than the tier is refused: it would believe its lease too long.")
  func clock() throws {
    let (tier, _) = try tier(clock: SystemClock())
    var options = Store.Options()
    options.clock = ManualClock()
    let other = Store.inMemory(options: options)
    let error = #expect(throws: StoreError.self) {
      try SharedCache(other.cache("texts", of: String.self), in: tier)
    }
    #expect("\(try #require(error))".contains("SystemClock"))
    _ = try SharedCache(Store.inMemory().cache("texts", of: String.self), in: tier)
  }

  @Test("Questions and writes are counted by what came of them.")
  func statistics() async throws {
    var options = SharedTier.Options()
    options.largestRecord = 1000
    let machines = try Machines(2, options)
    #expect(try await machines[0].value(for: "k") == nil)
    try await machines[0].save("a", for: "k")
    #expect(try await machines[1].value(for: "k") == "a")
    machines.all[1].store.releaseMemory()
    #expect(try await machines[1].value(for: "k") == "a")
    try await machines[1].save(String(repeating: "x", count: 2000), for: "k")
    machines.network.execute("SET", "ld1:test:texts:k", "x")
    #expect(try await machines[1].entry(for: "k")?.isConfirmed != true)
    machines.network.disconnect(1)
    _ = try await machines[1].value(for: "k")
    let (first, second) = (
      machines.all[0].tier.statistics, machines.all[1].tier.statistics
    )
    #expect(first.absences == 1 && first.writes == 1 && first.values == 0)
    #expect(second.values == 1 && second.confirmedCopies == 1)
    #expect(second.unusable == 1 && second.failedReads == 1 && second.failedWrites == 1)
    try machines.close()
  }
}
