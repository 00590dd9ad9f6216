#if Shared
  import NIOCore
  import NIOPosix
  import NIOSSL
  import NIOTLS
  import Synchronization

  /// A link to a server over a network: executes what its ``LinkMachine`` decides.
  ///
  /// Everything happens on one event loop. What tasks ask for meanwhile is sent together.
  final class SharedLink: ServerLink {
    fileprivate struct Caller {
      let continuation: CheckedContinuation<Result<[RESPValue], SharedFailure>, Never>
      let arrived: @Sendable (Int?) -> Void
    }

    private struct Inbox {
      var events: [LinkMachine.Event] = []
      var callers: [Int: Caller] = [:]
    }

    private let loop: any EventLoop
    private let inbox = Mutex(Inbox())
    private let lastID = Atomic(0)
    private let driver: NIOLoopBoundBox<LinkDriver>

    /// Begins to connect.
    ///
    /// - Parameters:
    ///   - address: Where the server is.
    ///   - security: Whether what is sent can be read on its way.
    ///   - options: How the link talks to it.
    ///   - loop: The event loop; nil, the default, for any of the process.
    ///   - uptime: The clock by which leases end; it must not stop while the system sleeps.
    ///   - observer: Is given what happens but for answers and sending, on the loop, in its order.
    init(
      to address: SharedTier.Address, _ security: SharedTier.Security, _ options: LinkOptions,
      on loop: (any EventLoop)? = nil, uptime: @escaping @Sendable () -> Duration,
      observer: @escaping @Sendable (LinkMachine.Effect) -> Void
    ) {
      let loop = loop ?? MultiThreadedEventLoopGroup.singleton.next()
      self.loop = loop
      driver = NIOLoopBoundBox.makeBoxSendingValue(
        LinkDriver(address, security, options, loop, uptime, observer), eventLoop: loop)
      add(.opened)
    }

    // If the calling task is cancelled, the commands may have been sent all the same.
    func ask(
      _ commands: RESPCommands, for key: [UInt8], arrived: @escaping @Sendable (Int?) -> Void
    ) async -> Result<[RESPValue], SharedFailure> {
      let id = lastID.add(1, ordering: .relaxed).newValue
      return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          add(.asked(id: id, commands), Caller(continuation: continuation, arrived: arrived), id)
          // The handler may have run before there was anything to leave.
          if Task.isCancelled { add(.left(id: id)) }
        }
      } onCancel: {
        add(.left(id: id))
      }
    }

    deinit {
      let driver = driver
      loop.execute { driver.value.handle([.closed]) }
    }

    func close() { add(.closed) }

    /// Lets renewals delete one of these keys, at least one, from now on.
    func renew(with leaseKeys: [[UInt8]]) { add(.renewsWith(leaseKeys)) }

    private func add(_ event: LinkMachine.Event, _ caller: Caller? = nil, _ id: Int = 0) {
      let isFirst = inbox.withLock { inbox in
        inbox.events.append(event)
        if let caller { inbox.callers[id] = caller }
        return inbox.events.count == 1
      }
      if isFirst { loop.execute { self.takeEvents() } }
    }

    private func takeEvents() {
      let (events, callers) = inbox.withLock { inbox in
        defer { (inbox.events, inbox.callers) = ([], [:]) }
        return (inbox.events, inbox.callers)
      }
      driver.value.handle(events, callers)
    }
  }

  // MARK: - On the event loop

  /// The state of a link, which its event loop alone uses.
  private final class LinkDriver {
    private let address: SharedTier.Address
    private let security: SharedTier.Security
    private let loop: any EventLoop
    private let uptime: @Sendable () -> Duration
    private let observer: @Sendable (LinkMachine.Effect) -> Void
    private let greetingDeadline: TimeAmount
    private var machine: LinkMachine
    private var callers: [Int: SharedLink.Caller] = [:]
    private var channel: (any Channel)?
    private var timer: (time: Duration, scheduled: Scheduled<Void>)?
    /// The events that came while one was handled.
    private var events: [LinkMachine.Event] = []
    private var isHandling = false
    /// What is to be sent, in one piece.
    private var outgoing = ByteBuffer()

    init(
      _ address: SharedTier.Address, _ security: SharedTier.Security, _ options: LinkOptions,
      _ loop: any EventLoop, _ uptime: @escaping @Sendable () -> Duration,
      _ observer: @escaping @Sendable (LinkMachine.Effect) -> Void
    ) {
      (self.address, self.security, self.loop) = (address, security, loop)
      (self.uptime, self.observer) = (uptime, observer)
      greetingDeadline = TimeAmount(options.greetingDeadline)
      machine = LinkMachine(options)
    }

    func handle(
      _ new: [LinkMachine.Event], _ callers: [Int: SharedLink.Caller] = [:]
    ) {
      self.callers.merge(callers) { $1 }
      events += new
      // What an effect leads to at once is handled after the effects before it.
      guard !isHandling else { return }
      isHandling = true
      while !events.isEmpty {
        let next = events
        events = []
        for event in next { apply(event) }
      }
      isHandling = false
      if outgoing.readableBytes > 0 {
        channel?.writeAndFlush(outgoing, promise: nil)
        outgoing = ByteBuffer()
      }
      schedule()
    }

    private func apply(_ event: LinkMachine.Event) {
      let moment = LinkMachine.Moment(now: uptime(), chance: .random(in: 0...1))
      for effect in machine.handle(event, moment) { perform(effect) }
      if case .left(let id) = event {
        callers.removeValue(forKey: id)?.continuation
          .resume(returning: .failure(.outcomeUnknown("its caller was cancelled")))
      }
    }

    private func perform(_ effect: LinkMachine.Effect) {
      switch effect {
      case .connect(let number): connect(number)
      case .send(_, let bytes): outgoing.writeBytes(bytes)
      case .disconnect:
        channel?.close(promise: nil)
        channel = nil
        outgoing.clear()
      case .answer(let id, let answer):
        guard let caller = callers.removeValue(forKey: id) else { break }
        if case .success = answer { caller.arrived(0) }
        caller.continuation.resume(returning: answer)
      case .invalidated, .leased, .leaseEnded, .changed: observer(effect)
      }
    }

    /// Sets the timer, if it would come too late.
    ///
    /// One that comes too early is set again.
    private func schedule() {
      let next = machine.nextTime
      if let timer {
        if let next, next >= timer.time { return }
        timer.scheduled.cancel()
        self.timer = nil
      }
      guard let next else { return }
      let bound = NIOLoopBound(self, eventLoop: loop)
      let delay = TimeAmount(max(.zero, next - uptime()))
      let scheduled = loop.scheduleTask(in: delay) {
        bound.value.timer = nil
        bound.value.handle([.timeHasCome])
      }
      timer = (next, scheduled)
    }
  }

  // MARK: - Connecting

  extension LinkDriver {
    private func connect(_ number: Int) {
      let bound = NIOLoopBound(self, eventLoop: loop)
      primary().whenComplete { result in
        let driver = bound.value
        switch result {
        case .success(let address):
          if driver.isConnecting(number) { driver.connect(number, to: address) }
        case .failure(let error): driver.handle([.ended(number, SharedFailure(of: error))])
        }
      }
    }

    /// Where the primary is.
    private func primary() -> EventLoopFuture<SharedTier.Address> {
      guard case .sentinels(let sentinels, let primary, let login) = address.place else {
        return loop.makeSucceededFuture(address)
      }
      let query = SentinelQuery(primary, login: login)
      return ServerRound.ask(
        sentinels, security, within: greetingDeadline, on: loop,
        failure: "none of its Sentinels can be reached"
      ) { _ in query }
    }

    private func connect(_ number: Int, to address: SharedTier.Address) {
      let bound = NIOLoopBound(self, eventLoop: loop)
      let isSecure = security.kind != .plain
      let connected = loop.connect(to: address, security, within: greetingDeadline) {
        LinkHandler(bound, number, isSecure: isSecure)
      }
      connected.whenFailure { error in
        bound.value.handle([.ended(number, SharedFailure(of: error))])
      }
    }

    private func isConnecting(_ number: Int) -> Bool {
      number == machine.connection && machine.state == .connecting
    }

    /// Notes the connection with a number; false if it is no longer wanted.
    fileprivate func opened(_ number: Int, _ channel: any Channel) -> Bool {
      guard isConnecting(number) else { return false }
      self.channel = channel
      return true
    }
  }

  private final class LinkHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let driver: NIOLoopBound<LinkDriver>
    private let number: Int
    private let isSecure: Bool

    init(_ driver: NIOLoopBound<LinkDriver>, _ number: Int, isSecure: Bool) {
      (self.driver, self.number, self.isSecure) = (driver, number, isSecure)
    }

    func channelActive(context: ChannelHandlerContext) {
      guard driver.value.opened(number, context.channel) else {
        return context.close(promise: nil)
      }
      if !isSecure { driver.value.handle([.connected(number)]) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      guard case .handshakeCompleted? = event as? TLSUserEvent else { return }
      driver.value.handle([.connected(number)])
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let buffer = unwrapInboundIn(data)
      driver.value.handle([.received(number, Array(buffer.readableBytesView))])
    }

    func channelInactive(context: ChannelHandlerContext) {
      driver.value.handle([.ended(number, .unreachable("the connection has ended"))])
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      driver.value.handle([.ended(number, SharedFailure(of: error))])
      context.close(promise: nil)
    }
  }
#endif
