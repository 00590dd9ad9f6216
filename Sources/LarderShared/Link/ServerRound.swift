#if Shared
  import NIOCore
  import NIOTLS

  /// Servers that are asked the same at the same time, each on a connection of its own.
  final class ServerRound<Query: ServerQuery> {
    private let promise: EventLoopPromise<Query.Answer>
    /// The numbers of the servers that have not answered.
    private var open: Set<Int>
    /// What can be mended; nil if that is nothing so far.
    private var mistake: SharedFailure?
    /// What to say if no server has an answer.
    private let failure: String

    private init(_ count: Int, _ failure: String, _ promise: EventLoopPromise<Query.Answer>) {
      (open, self.failure, self.promise) = (Set(0..<count), failure, promise)
    }

    /// Asks, and returns the first answer.
    ///
    /// - Parameters:
    ///   - servers: At least one.
    ///   - security: Whether what is sent can be read on its way.
    ///   - deadline: When a server that has not answered is given up.
    ///   - loop: The event loop of the caller.
    ///   - failure: What to say, before the reason, if no server has an answer.
    ///   - query: The question to a server.
    /// - Returns: The answer; a ``SharedFailure`` if no server has one.
    static func ask(
      _ servers: [SharedTier.Address], _ security: SharedTier.Security,
      within deadline: TimeAmount, on loop: any EventLoop, failure: String,
      _ query: (SharedTier.Address) -> Query
    ) -> EventLoopFuture<Query.Answer> {
      let promise = loop.makePromise(of: Query.Answer.self)
      let round = NIOLoopBound(ServerRound(servers.count, failure, promise), eventLoop: loop)
      let isSecure = security.kind != .plain
      for (number, server) in servers.enumerated() {
        let query = query(server)
        let connected = loop.connect(to: server, security, within: deadline) {
          QueryHandler(query, isSecure: isSecure) { round.value.answered(number, $0) }
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

    private func answered(_ number: Int, _ answer: Result<Query.Answer, SharedFailure>) {
      guard open.remove(number) != nil else { return }
      switch answer {
      case .success(let answer):
        open = []
        promise.succeed(answer)
      case .failure(let failure):
        // What can be mended says more than that another one cannot be reached.
        if case .misconfigured = failure { mistake = failure }
        guard open.isEmpty else { return }
        var reason = failure.description
        if case .unreachable(let text) = failure { reason = text }
        promise.fail(mistake ?? SharedFailure.unreachable("\(self.failure) (\(reason))"))
      }
    }
  }

  /// Asks one server, and ends the connection.
  private final class QueryHandler<Query: ServerQuery>: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let query: Query
    private let isSecure: Bool
    private let answer: (Result<Query.Answer, SharedFailure>) -> Void
    private var decoder = RESPDecoder()
    private var replies: [RESPValue] = []

    init(
      _ query: Query, isSecure: Bool,
      _ answer: @escaping (Result<Query.Answer, SharedFailure>) -> Void
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
        answer(.success(try query.answer(in: replies)))
      } catch {
        answer(.failure(SharedFailure(of: error)))
      }
      context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
      answer(.failure(.unreachable("it ended the connection")))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      answer(.failure(SharedFailure(of: error)))
      context.close(promise: nil)
    }
  }
#endif
