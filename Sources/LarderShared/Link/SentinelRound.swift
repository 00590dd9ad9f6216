#if Shared
  import NIOCore
  import NIOTLS

  /// Sentinels that are asked at the same time where a primary is, on one event loop.
  final class SentinelRound {
    private let promise: EventLoopPromise<SharedTier.Address>
    /// The numbers of the Sentinels that have not answered.
    private var open: Set<Int>
    private var failure = SharedFailure.unreachable("none of its Sentinels can be reached")

    private init(_ count: Int, _ promise: EventLoopPromise<SharedTier.Address>) {
      (open, self.promise) = (Set(0..<count), promise)
    }

    /// Asks, and returns the first answer that names the primary.
    ///
    /// - Parameters:
    ///   - sentinels: At least one.
    ///   - query: The question.
    ///   - security: Whether what is sent can be read on its way.
    ///   - deadline: When a Sentinel that has not answered is given up.
    ///   - loop: The event loop of the caller.
    /// - Returns: The address; a ``SharedFailure`` if no Sentinel names it.
    static func ask(
      _ sentinels: [SharedTier.Address], _ query: SentinelQuery, _ security: SharedTier.Security,
      within deadline: TimeAmount, on loop: any EventLoop
    ) -> EventLoopFuture<SharedTier.Address> {
      let promise = loop.makePromise(of: SharedTier.Address.self)
      let round = NIOLoopBound(SentinelRound(sentinels.count, promise), eventLoop: loop)
      let isSecure = security.kind != .plain
      for (number, sentinel) in sentinels.enumerated() {
        let connected = loop.connect(to: sentinel, security, within: deadline) {
          SentinelHandler(query, isSecure: isSecure) { round.value.answered(number, $0) }
        }
        connected.whenComplete { result in
          switch result {
          // One that does not reply must not keep its connection.
          case .success(let channel):
            loop.scheduleTask(in: deadline) { channel.close(promise: nil) }
          case .failure(let error): round.value.answered(number, .failure(SharedFailure(of: error)))
          }
        }
      }
      return promise.futureResult
    }

    private func answered(_ number: Int, _ answer: Result<SharedTier.Address, SharedFailure>) {
      guard open.remove(number) != nil else { return }
      switch answer {
      case .success(let address):
        open = []
        promise.succeed(address)
      case .failure(let failure):
        // What can be mended says more than that another one cannot be reached.
        if case .misconfigured = failure { self.failure = failure }
        if open.isEmpty { promise.fail(self.failure) }
      }
    }
  }

  /// Asks one Sentinel, and ends the connection.
  private final class SentinelHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let query: SentinelQuery
    private let isSecure: Bool
    private let answer: (Result<SharedTier.Address, SharedFailure>) -> Void
    private var decoder = RESPDecoder()
    private var replies: [RESPValue] = []

    init(
      _ query: SentinelQuery, isSecure: Bool,
      _ answer: @escaping (Result<SharedTier.Address, SharedFailure>) -> Void
    ) {
      (self.query, self.isSecure, self.answer) = (query, isSecure, answer)
    }

    func channelActive(context: ChannelHandlerContext) { if !isSecure { ask(context) } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if case .handshakeCompleted? = event as? TLSUserEvent { ask(context) }
    }

    private func ask(_ context: ChannelHandlerContext) {
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: query.commands.bytes)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = Array(unwrapInboundIn(data).readableBytesView)
      do {
        try decoder.decode(bytes.span.bytes) { replies.append($0) }
        // The last reply, or an error before it.
        if case .error? = replies.last {} else if replies.count < query.commands.count { return }
        answer(.success(try query.address(in: replies)))
      } catch {
        answer(.failure(SharedFailure(of: error)))
      }
      context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
      answer(.failure(.unreachable("a Sentinel ended the connection")))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      answer(.failure(SharedFailure(of: error)))
      context.close(promise: nil)
    }
  }
#endif
