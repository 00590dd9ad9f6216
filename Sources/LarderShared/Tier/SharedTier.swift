package import Larder
import Synchronization

/// A Redis or Valkey server behind the caches of many machines: memory, disk, tier, source.
///
/// What it promises for ``SharedCache``:
///
/// *A value that `SharedCache` returns as confirmed is what the server that owned the key held at
/// some moment no more than 2 s (the lease) before the call returned. While the tier is degraded,
/// and only with `.serveLocal`, a local value within its lifetime is returned, marked unconfirmed.
/// A load that began before an acknowledged save or remove never replaces it on the server while
/// that value or its tombstone is there. Failover may lose acknowledged writes. A primary that is
/// cut off counts as owner until it refuses writes: in a cluster after the node timeout; with
/// replication after `min-replicas-max-lag` if `min-replicas-to-write` is set, else not before it
/// is demoted.*
///
/// A machine asks before it uses a copy on its disk: the version of a record is 8 bytes. Values in
/// memory are used without asking while the lease of the connection runs that has confirmed them:
/// the server pushes what others change over the same connection, behind the reply.
public final class SharedTier: Sendable {
  let namespace: String
  let options: Options
  /// The clock that leases run by; nil if the stores have the same one anyway.
  let clock: (any WallClock)?
  let counts: TierCounts
  private let news: TierNews
  private let link: any ServerLink

  /// - Parameters:
  ///   - namespace: What the keys of this application begin with; see ``SharedKeys``.
  ///   - options: How the tier is used.
  ///   - clock: The clock that leases run by; nil, the default, if the stores have the same one
  ///     anyway.
  ///   - makeLink: Makes the link, which gives its effects to the observer, in their order.
  /// - Throws: ``StoreError/invalidArgument(_:)`` if the namespace or an option is not allowed.
  package init(
    namespace: String, _ options: Options = Options(), clock: (any WallClock)? = nil,
    makeLink: (
      _ options: LinkOptions,
      _ observer: @escaping @Sendable (_ effect: LinkMachine.Effect, _ server: Int) -> Void
    ) -> any ServerLink
  ) throws(StoreError) {
    try options.check()
    let leaseKey = try SharedKeys.leaseKey(ofNamespace: namespace)
    (self.namespace, self.options, self.clock) = (namespace, options, clock)
    let counts = TierCounts(ofNamespace: namespace)
    let news = TierNews(counts)
    (self.counts, self.news) = (counts, news)
    link = makeLink(options.link(leaseKey: leaseKey)) { news.heard($0, from: $1) }
  }

  deinit { link.close() }

  /// Closes the tier for good.
  ///
  /// Its caches go on as if the server could not be asked. A tier that nobody refers to is closed,
  /// too; the caches that are shared in it refer to it.
  public func close() { link.close() }

  /// Whether the server can be asked, and if not, why.
  public var state: State { news.tierState }

  /// The states of the tier: the current one first, then each change.
  ///
  /// ```swift
  /// for await state in tier.states { logger.info("shared tier: \(state)") }
  /// ```
  ///
  /// If several changes happen before the next one is asked for, it is the last of them. The
  /// sequence ends when the tier is closed, or the task is cancelled.
  public var states: AsyncStream<State> { news.states() }

  /// Waits until the tier is connected, or the attempt that is under way has failed.
  ///
  /// ```swift
  /// do {
  ///   try await tier.waitUntilConnected()
  /// } catch SharedFailure.misconfigured(let what) {
  ///   fatalError("the shared tier is not set up: \(what)")
  /// } catch {
  ///   logger.warning("begins without the shared tier: \(error)")
  /// }
  /// ```
  ///
  /// A program need not call this: reads and changes do not fail because of the tier. It helps to
  /// notice at once that something is set up wrongly, and to begin with a tier that answers.
  ///
  /// - Throws: The ``SharedFailure`` of the last attempt to connect, after
  ///   ``Options/connectTimeout`` at most. The tier goes on trying. `CancellationError` if the task
  ///   is cancelled.
  public func waitUntilConnected() async throws {
    for await state in states {
      switch state {
      case .connecting: continue
      case .connected: return
      case .degraded(let failure): throw failure
      case .closed: throw SharedFailure.closed
      }
    }
    throw CancellationError()
  }

  /// What the tier has asked its server, and heard from it, since it was created.
  ///
  /// With the package trait `Metrics` the counts also go to swift-metrics.
  public var statistics: Statistics { counts.statistics }

  func add(_ part: any SharedPart, of keys: SharedKeys) {
    news.add(part, of: keys)
    // After it was added: a connection that comes up in between is not missed.
    part.connected()
  }

  /// Ends a wait as soon as the server tells of a change of the key, or of the lock of its load.
  func begin(_ wait: KeyWait, for key: [UInt8]) { news.begin(wait, for: key) }

  /// Forgets a wait that is over.
  func end(_ wait: KeyWait, for key: [UInt8]) { news.end(wait, for: key) }

  /// Sends commands about a key; returns their replies, and the lease of their connection.
  func ask(
    _ commands: @autoclosure () -> RESPCommands, for key: [UInt8],
    arrived: @escaping @Sendable () -> Void
  ) async -> Result<(replies: [RESPValue], lease: Lease), SharedFailure> {
    // The link would say so, too, but on its own thread.
    if let failure = news.failure(of: link.server(of: key)) { return .failure(failure) }
    let arrival = Arrival()
    let result = await link.ask(commands(), for: key) { [news] server in
      arrival.lease.withLock { $0 = server.flatMap(news.lease) }
      arrived()
    }
    return result.map { ($0, arrival.lease.withLock { $0 } ?? Lease()) }
  }

  private final class Arrival: Sendable {
    let lease = Mutex<Lease?>(nil)
  }
}

/// What a tier has heard from its server: the lease of its connection, and what others change.
private final class TierNews: Sendable {
  private typealias States = AsyncStream<SharedTier.State>.Continuation

  private struct Part {
    weak var part: (any SharedPart)?
    let keys: SharedKeys
  }

  /// What is known of a server.
  private struct Server {
    var lease: Lease?
    var state = SharedTier.State.connecting
  }

  private struct State {
    /// By their numbers; the servers of a cluster come and go.
    var servers: [Int: Server] = [:]
    var isClosed = false
    /// The sequences of states, by numbers.
    var streams: [Int: States] = [:]
    var streamCount = 0
    /// By what their keys begin with; a process may have several stores.
    var parts: [[UInt8]: [Part]] = [:]
    /// The loads that wait for other machines, by the server's keys.
    var waits: [[UInt8]: [KeyWait]] = [:]

    /// The state of the tier: that of the server, or of all servers together.
    var tierState: SharedTier.State {
      if isClosed { return .closed }
      // That of a server which has been there for longer says more.
      let states = servers.sorted { $0.key < $1.key }.map(\.value.state)
      for case .degraded(let failure) in states { return .degraded(failure) }
      return states.isEmpty || states.contains(.connecting) ? .connecting : .connected
    }
  }

  private let state = Mutex(State())
  private let counts: TierCounts

  init(_ counts: TierCounts) { self.counts = counts }

  var tierState: SharedTier.State { state.withLock { $0.tierState } }

  /// The lease of a server; nil if it has none.
  func lease(of server: Int) -> Lease? { state.withLock { $0.servers[server]?.lease } }

  /// Why a server cannot be asked; nil if it is worth trying.
  func failure(of server: Int?) -> SharedFailure? {
    state.withLock { state in
      if state.isClosed { return .closed }
      guard let server else {
        if case .degraded(let failure) = state.tierState { return failure }
        return nil
      }
      if case .degraded(let failure)? = state.servers[server]?.state { return failure }
      return nil
    }
  }

  func add(_ part: any SharedPart, of keys: SharedKeys) {
    state.withLock { state in
      // Those of stores that were closed.
      state.parts[keys.prefix]?.removeAll { $0.part == nil }
      state.parts[keys.prefix, default: []].append(Part(part: part, keys: keys))
    }
  }

  func heard(_ effect: LinkMachine.Effect, from server: Int) {
    switch effect {
    case .leased(_, let end):
      // What was found while there was no lease may have changed since.
      let isNew = lease(of: server) == nil
      if isNew { forgetAll(of: server) }
      state.withLock { state in
        let lease = state.servers[server]?.lease ?? Lease()
        lease.extend(to: end)
        state.servers[server, default: Server()].lease = lease
      }
      if isNew {
        change { $0.servers[server]?.state = .connected }
        for part in parts { part.connected() }
      }
    case .leaseEnded: forgetAll(of: server)
    case .invalidated(nil):
      // The next values may be believed as long as the last ones.
      let end = lease(of: server)?.lastEnd
      forgetAll(of: server)
      if let end { heard(.leased(0, until: end), from: server) }
    case .invalidated(let keys?):
      counts.invalidations.add(keys.count { SharedKeys.key(ofLock: $0) == nil })
      for key in keys { changed(key) }
    case .changed(.up): counts.connections.add()
    case .changed(.waiting(let failure)):
      change { $0.servers[server, default: Server()].state = .degraded(failure) }
    case .changed(.closed):
      change { state in
        state.servers[server] = nil
        if server == 0 { state.isClosed = true }
      }
    case .changed(.connecting):
      // A new one; later attempts leave it degraded.
      change { state in if state.servers[server] == nil { state.servers[server] = Server() } }
    case .connect, .send, .disconnect, .answer, .changed(.greeting): break
    }
  }

  func begin(_ wait: KeyWait, for key: [UInt8]) {
    state.withLock { $0.waits[key, default: []].append(wait) }
  }

  func end(_ wait: KeyWait, for key: [UInt8]) {
    state.withLock { state in
      state.waits[key]?.removeAll { $0 === wait }
      if state.waits[key]?.isEmpty == true { state.waits[key] = nil }
    }
  }

  func states() -> AsyncStream<SharedTier.State> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: SharedTier.State.self, bufferingPolicy: .bufferingNewest(1))
    let number = state.withLock { state in
      state.streamCount += 1
      continuation.yield(state.tierState)
      if state.tierState == .closed {
        continuation.finish()
      } else {
        state.streams[state.streamCount] = continuation
      }
      return state.streamCount
    }
    continuation.onTermination = { [weak self] _ in
      // Released without the lock.
      _ = self?.state.withLock { $0.streams.removeValue(forKey: number) }
    }
    return stream
  }

  private func change(_ body: (inout State) -> Void) {
    let changed = state.withLock { state -> (SharedTier.State, [States])? in
      let old = state.tierState
      body(&state)
      let new = state.tierState
      if new == old { return nil }
      defer { if new == .closed { state.streams = [:] } }
      return (new, Array(state.streams.values))
    }
    guard let (new, streams) = changed else { return }
    // Without the lock, because a task may go on at once. One thread makes the changes, so they
    // come in order.
    counts.note(new)
    for stream in streams {
      stream.yield(new)
      if new == .closed { stream.finish() }
    }
  }

  private var parts: [any SharedPart] {
    state.withLock { $0.parts.values.joined().compactMap(\.part) }
  }

  private func forgetAll(of server: Int) {
    let waits = state.withLock { state in
      state.servers[server]?.lease?.end()
      state.servers[server]?.lease = nil
      return state.waits.values.flatMap { $0 }
    }
    for part in parts { part.allChangedElsewhere() }
    for wait in waits { wait.end(.changed) }
  }

  private func changed(_ key: [UInt8]) {
    let loaded = SharedKeys.key(ofLock: key)
    for wait in state.withLock({ $0.waits[loaded ?? key] ?? [] }) { wait.end(.changed) }
    guard loaded == nil, let prefix = SharedKeys.prefix(of: key).map(Array.init) else { return }
    let parts = state.withLock { $0.parts[prefix, default: []] }
    guard let userKey = parts.first?.keys.userKey(of: key) else { return }
    for part in parts { part.part?.changedElsewhere(userKey) }
  }
}
