#if Shared
  import NIOCore
  import NIOPosix
  import Synchronization

  /// A link to the primaries of a cluster: a ``SharedLink`` to each of them, on one event loop.
  ///
  /// Some nodes are asked which primary has which slots: at the beginning, when a node says that
  /// another one has a key, while a primary cannot be asked, and each minute.
  final class ClusterLink: ServerLink {
    typealias Observer = @Sendable (_ effect: LinkMachine.Effect, _ server: Int) -> Void

    private final class Node: Sendable {
      let number: Int
      let address: SharedTier.Address
      let link: SharedLink
      let leaseKeys: [[UInt8]]

      init(_ number: Int, _ address: SharedTier.Address, _ link: SharedLink, _ keys: [[UInt8]]) {
        (self.number, self.address, self.link, leaseKeys) = (number, address, link, keys)
      }
    }

    private struct State {
      var nodes: [SharedTier.Address: Node] = [:]
      /// The primary of each slot.
      var owners = [Node?](repeating: nil, count: KeySlot.count)
      /// Number 0 is the cluster, and 1 stands for its nodes as long as none is known.
      var lastNumber = 1
      /// The nodes that cannot be asked.
      var missing: Set<Int> = []
      var isClosed = false
      /// Whether nodes are being asked for the map.
      var isAsking = false
      var lastQuestion: Duration?
      /// The next question.
      var timer: (time: Duration, scheduled: Scheduled<Void>)?
    }

    private let seeds: [SharedTier.Address]
    private let security: SharedTier.Security
    private let options: LinkOptions
    private let uptime: @Sendable () -> Duration
    private let observer: Observer
    private let loop: any EventLoop
    private let state = Mutex(State())

    /// Begins to ask for the nodes.
    ///
    /// - Parameters:
    ///   - seeds: Some nodes, at least one.
    ///   - security: Whether what is sent can be read on its way.
    ///   - options: How the link talks to each node.
    ///   - uptime: As for ``SharedLink``.
    ///   - observer: Is given what happens, on the loop, in its order.
    init(
      to seeds: [SharedTier.Address], _ security: SharedTier.Security, _ options: LinkOptions,
      uptime: @escaping @Sendable () -> Duration, observer: @escaping Observer
    ) {
      var options = options
      options.isInCluster = true
      (self.seeds, self.security, self.options) = (seeds, security, options)
      (self.uptime, self.observer) = (uptime, observer)
      loop = MultiThreadedEventLoopGroup.singleton.next()
      loop.execute { [weak self] in
        observer(.changed(.connecting), Self.unknown)
        self?.askForMap()
      }
    }

    deinit {
      let (observer, timer) = (observer, state.withLock { $0.timer })
      loop.execute {
        timer?.scheduled.cancel()
        observer(.changed(.closed), 0)
      }
    }

    func close() {
      loop.execute { [self] in
        let (nodes, timer) = state.withLock { state in
          state.isClosed = true
          state.owners = [Node?](repeating: nil, count: KeySlot.count)
          defer { (state.nodes, state.timer) = ([:], nil) }
          return (state.nodes, state.timer)
        }
        timer?.scheduled.cancel()
        for node in nodes.values { node.link.close() }
        observer(.changed(.closed), 0)
      }
    }
  }

  // MARK: - Questions of callers

  extension ClusterLink {
    func server(of key: [UInt8]) -> Int? {
      let slot = KeySlot.slot(of: key)
      return state.withLock { $0.owners[slot]?.number }
    }

    func ask(
      _ commands: RESPCommands, for key: [UInt8], arrived: @escaping @Sendable (Int?) -> Void
    ) async -> Result<[RESPValue], SharedFailure> {
      let slot = KeySlot.slot(of: key)
      var owner = state.withLock { $0.owners[slot] }
      var isAsking = false
      for _ in 0...Self.redirections {
        guard let node = owner else {
          refresh()
          return .failure(.unreachable("no node of the cluster is known to have the key"))
        }
        let (number, isTrusted) = (node.number, !isAsking)
        let result = await node.link.ask(
          isAsking ? commands.asking : commands, for: key
        ) { _ in arrived(isTrusted ? number : nil) }
        guard case .success(var replies) = result else { return result }
        if isAsking { replies = replies.indices.filter { $0 % 2 == 1 }.map { replies[$0] } }
        // If the key is moved between two commands, only the second is redirected.
        switch replies.first.flatMap({ ClusterRedirection($0, from: node.address.host) }) {
        case nil: return .success(replies)
        case .moved(let next)?:
          refresh()
          (owner, isAsking) = (state.withLock { $0.nodes[next] }, false)
        case .ask(let next)?: (owner, isAsking) = (state.withLock { $0.nodes[next] }, true)
        }
      }
      return .failure(.unreachable("the nodes of the cluster redirect the question in circles"))
    }
  }

  // MARK: - The map

  extension ClusterLink {
    /// The number that stands for the nodes as long as none is known.
    private static var unknown: Int { 1 }
    /// How often one question may be redirected from a node to another.
    private static var redirections: Int { 5 }
    /// How many nodes are asked for the map at once, of those that are known and of the seeds.
    private static var asked: Int { 2 }
    /// The time to the next question if nothing happens.
    private static var mapAge: Duration { .seconds(60) }
    /// The shortest time between two questions.
    ///
    /// It is shortened at random, by up to a half, so that machines do not all ask at once.
    private static var pause: Duration { .seconds(1) }

    /// Asks for the map soon.
    private func refresh() {
      loop.execute { [weak self] in self?.scheduleQuestion(in: .zero) }
    }

    /// Sets the time of the next question, unless there is one before.
    private func scheduleQuestion(in delay: Duration) {
      let (now, pause) = (uptime(), Self.pause * .random(in: 0.5...1))
      let late = state.withLock { state -> Scheduled<Void>? in
        guard !state.isClosed, !state.isAsking else { return nil }
        let time = max(now + delay, state.lastQuestion.map { $0 + pause } ?? now)
        let former = state.timer
        if let former, former.time <= time { return nil }
        let scheduled = loop.scheduleTask(in: TimeAmount(time - now)) { [weak self] in
          self?.askForMap() ?? ()
        }
        state.timer = (time, scheduled)
        return former?.scheduled
      }
      late?.cancel()
    }

    private func askForMap() {
      let now = uptime()
      let known = state.withLock { state -> [SharedTier.Address]? in
        guard !state.isClosed, !state.isAsking else { return nil }
        (state.isAsking, state.timer, state.lastQuestion) = (true, nil, now)
        return Array(state.nodes.keys)
      }
      guard let known else { return }
      let servers = Set(known.shuffled().prefix(Self.asked) + seeds.shuffled().prefix(Self.asked))
      let answer = ServerRound.ask(
        Array(servers), security, within: TimeAmount(options.greetingDeadline), on: loop,
        failure: "no node of the cluster can be asked"
      ) { ClusterQuery(login: self.options.login, host: $0.host) }
      answer.whenComplete { [weak self] in self?.answered($0) }
    }

    private func answered(_ answer: Result<ClusterMap, any Error>) {
      switch answer {
      case .success(let map): use(map)
      case .failure(let error):
        let isUnknown = state.withLock { !$0.isClosed && $0.nodes.isEmpty }
        if isUnknown { observer(.changed(.waiting(SharedFailure(of: error))), Self.unknown) }
      }
      let isWhole = state.withLock { state in
        state.isAsking = false
        return !state.nodes.isEmpty && state.missing.isEmpty
      }
      scheduleQuestion(in: isWhole ? Self.mapAge : .zero)
    }

    /// Ends the links to nodes that are no primaries any longer, and makes those to new ones.
    private func use(_ map: ClusterMap) {
      let nodes = state.withLock { $0.isClosed ? nil : $0.nodes }
      guard let nodes else { return }
      var new: [SharedTier.Address: Node] = [:]
      var owners = [Node?](repeating: nil, count: KeySlot.count)
      for (address, slots) in map.slots {
        let node = nodes[address].map { renewed($0, slots) } ?? node(at: address, slots)
        new[address] = node
        for slot in slots { owners[slot] = node }
      }
      let isChanged = state.withLock { [new, owners] state in
        defer { (state.nodes, state.owners) = (new, owners) }
        return !state.owners.elementsEqual(owners) { $0?.number == $1?.number }
      }
      // A former owner does not tell who has saved a key that was absent.
      if isChanged, !nodes.isEmpty { observer(.invalidated(nil), 0) }
      for (address, node) in nodes where new[address] == nil { node.link.close() }
      if nodes.isEmpty { observer(.changed(.closed), Self.unknown) }
    }

    /// A node whose renewals are changes of its own keys, although slots may have been moved.
    ///
    /// Its connection stays, because commands may be on their way.
    private func renewed(_ node: Node, _ slots: Set<Int>) -> Node {
      if node.leaseKeys.allSatisfy({ slots.contains(KeySlot.slot(of: $0)) }) { return node }
      let leaseKeys = leaseKeys(in: slots)
      node.link.renew(with: leaseKeys)
      return Node(node.number, node.address, node.link, leaseKeys)
    }

    private func leaseKeys(in slots: Set<Int>) -> [[UInt8]] {
      SharedKeys.leaseKeys(like: options.leaseKeys[0], in: slots)
    }

    private func node(at address: SharedTier.Address, _ slots: Set<Int>) -> Node {
      let number = state.withLock { state in
        state.lastNumber += 1
        return state.lastNumber
      }
      var options = options
      options.leaseKeys = leaseKeys(in: slots)
      let link = SharedLink(to: address, security, options, on: loop, uptime: uptime) {
        [weak self, observer] effect in
        observer(effect, number)
        self?.heard(effect, from: number)
      }
      return Node(number, address, link, options.leaseKeys)
    }

    private func heard(_ effect: LinkMachine.Effect, from number: Int) {
      switch effect {
      case .changed(.waiting):
        _ = state.withLock { $0.missing.insert(number) }
        scheduleQuestion(in: .zero)
      case .leased, .changed(.closed): _ = state.withLock { $0.missing.remove(number) }
      default: break
      }
    }
  }

  extension SharedTier.Address {
    /// The host; nil for a socket.
    var host: String? {
      if case .host(let host, _) = place { host } else { nil }
    }
  }
#endif
