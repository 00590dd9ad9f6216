public import Larder
public import LarderShared
import Synchronization

/// A server in memory, for tests of programs that share caches.
///
/// It does what a Redis server does for a `SharedTier`, without a process, a network and the trait
/// `Shared`. A tier of its own is what another machine has:
///
/// ```swift
/// let server = InMemoryServer()
/// let here = try SharedTier(server, namespace: "shop")
/// let there = try SharedTier(server, namespace: "shop")
/// let prices = try SharedCache(try store.cache("prices", of: Int.self), in: here)
/// let others = try SharedCache(try otherStore.cache("prices", of: Int.self), in: there)
///
/// try await prices.save(3, for: "bread")
/// #expect(try await others.value(for: "bread") == 3)
///
/// server.isReachable = false
/// #expect(try await prices.save(4, for: "bread") != .shared)
/// ```
///
/// It keeps a value as long as a server does, by its clock, and answers at once. All tiers and
/// tests of a process can use one server at the same time. A store in memory keeps no decoded
/// values, so each read of its caches asks the server.
public final class InMemoryServer: Sendable {
  private struct Client {
    let observer: @Sendable (LinkMachine.Effect) -> Void
    let lease: Duration
  }

  private struct State {
    var server = SimulatedServer()
    /// The tiers that were not closed.
    var clients: [Int: Client] = [:]
    var isReachable = true
  }

  private enum Event {
    case joined(Int, Client)
    case asked(Int, RESPCommands, @Sendable (Int?) -> Void, CheckedContinuation<Answer, Never>)
    case left(Int)
    case reachable(Bool)
    case emptied
  }

  private struct Inbox {
    var events: [Event] = []
    var isHandling = false
    var clientCount = 0
  }

  fileprivate typealias Answer = Result<[RESPValue], SharedFailure>

  fileprivate let clock: any WallClock
  private let state = Mutex(State())
  private let inbox = Mutex(Inbox())

  /// Creates a server that has nothing.
  ///
  /// - Parameter clock: The clock of the stores, by which values stay and leases run;
  ///   `SystemClock` by default. `SharedCache` refuses a store with a clock of another type.
  public init(clock: any WallClock = SystemClock()) { self.clock = clock }

  /// Whether the tiers can ask the server; true at first.
  ///
  /// With false, each tier loses its connection, and its state becomes `degraded`. With true, each
  /// tier is connected again at once, and what it could not tell the server follows.
  public var isReachable: Bool {
    get { state.withLock { $0.isReachable } }
    set { add(.reachable(newValue)) }
  }

  /// Removes all values, as `FLUSHALL` does, or a server that has restarted.
  public func removeAll() { add(.emptied) }

  // MARK: - Events

  /// Handles an event, after those before it.
  ///
  /// An observer may lead to further events, of this thread or another one. They are handled by the
  /// call that handles events already, so that no lock is held while an observer is called.
  private func add(_ event: Event) {
    let isFirst = inbox.withLock { inbox in
      inbox.events.append(event)
      defer { inbox.isHandling = true }
      return !inbox.isHandling
    }
    guard isFirst else { return }
    while let next = nextEvents() {
      for event in next { handle(event) }
    }
  }

  private func nextEvents() -> [Event]? {
    inbox.withLock { inbox in
      defer { inbox.events = [] }
      inbox.isHandling = !inbox.events.isEmpty
      return inbox.isHandling ? inbox.events : nil
    }
  }

  private func handle(_ event: Event) {
    switch event {
    case .joined(let number, let client):
      let isReachable = state.withLock { state in
        state.clients[number] = client
        if state.isReachable { state.server.connect(number) }
        return state.isReachable
      }
      tell(client, isReachable)
    case .asked(let number, let commands, let arrived, let caller):
      let answer = execute(commands, by: number)
      if case .success = answer { arrived(0) }
      caller.resume(returning: answer)
    case .left(let number):
      let client = state.withLock { state in
        state.server.forget(number)
        return state.clients.removeValue(forKey: number)
      }
      client?.observer(.leaseEnded(1))
      client?.observer(.changed(.closed))
    case .reachable(let isReachable):
      let clients = state.withLock { state in
        guard state.isReachable != isReachable else { return [Client]() }
        state.isReachable = isReachable
        for number in state.clients.keys {
          if isReachable { state.server.connect(number) } else { state.server.forget(number) }
        }
        return Array(state.clients.values)
      }
      for client in clients { tell(client, isReachable) }
    case .emptied: execute([Array("FLUSHALL".utf8)], by: 0)
    }
  }

  /// Tells a client whether it has a connection now.
  private func tell(_ client: Client, _ isReachable: Bool) {
    if isReachable {
      client.observer(.changed(.up))
      extendLease(of: client)
    } else {
      client.observer(.leaseEnded(1))
      client.observer(.changed(.waiting(Self.unreachable)))
    }
  }

  private static var unreachable: SharedFailure {
    .unreachable("InMemoryServer.isReachable is false")
  }

  private func extendLease(of client: Client) {
    client.observer(.leased(1, until: clock.uptime() + client.lease))
  }

  private func execute(_ commands: RESPCommands, by number: Int) -> Answer {
    let (client, isReachable) = state.withLock { ($0.clients[number], $0.isReachable) }
    guard let client else { return .failure(.closed) }
    guard isReachable else { return .failure(Self.unreachable) }
    extendLease(of: client)
    return .success(commands.arguments.map { execute($0, by: number) })
  }

  /// Executes a command, and tells the clients which keys it has changed.
  @discardableResult private func execute(_ command: [[UInt8]], by number: Int) -> RESPValue {
    let now = clock.uptime()
    let (outcome, clients) = state.withLock { state in
      (state.server.execute(command, by: number, at: now), state.clients)
    }
    for (reader, keys) in outcome.pushes {
      for key in keys { clients[reader]?.observer(.invalidated(key.map { [$0] })) }
    }
    return outcome.reply
  }

  // MARK: - Links

  fileprivate func link(
    _ lease: Duration, _ observer: @escaping @Sendable (LinkMachine.Effect) -> Void
  ) -> any ServerLink {
    let number = inbox.withLock { inbox in
      inbox.clientCount += 1
      return inbox.clientCount
    }
    add(.joined(number, Client(observer: observer, lease: lease)))
    return Link(server: self, number: number)
  }

  private struct Link: ServerLink {
    let server: InMemoryServer
    let number: Int

    func ask(
      _ commands: RESPCommands, for key: [UInt8], arrived: @escaping @Sendable (Int?) -> Void
    ) async -> Answer {
      await withCheckedContinuation { server.add(.asked(number, commands, arrived, $0)) }
    }

    func close() { server.add(.left(number)) }
  }
}

extension SharedTier {
  /// Creates a tier with a server in memory, for tests.
  ///
  /// - Parameters:
  ///   - server: The server. The tiers of several machines have the same one.
  ///   - namespace: As for a tier with a server elsewhere.
  ///   - options: How the tier is used. There is no network, so that security, login and time
  ///     limits mean nothing.
  /// - Throws: `StoreError.invalidArgument` for a namespace or an option outside its limits.
  public convenience init(
    _ server: InMemoryServer, namespace: String, _ options: Options = Options()
  ) throws {
    try self.init(namespace: namespace, options, clock: server.clock) { _, observer in
      server.link(options.lease) { observer($0, 0) }
    }
  }
}
