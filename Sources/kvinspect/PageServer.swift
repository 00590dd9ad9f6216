#if Page
  import Foundation
  import LarderInspection
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import Synchronization

  /// Serves a page on 127.0.0.1: each request on a thread of its own, and each on its own
  /// connection.
  final class PageServer: Sendable {
    private static let mostRequests = 32
    /// Each has a descriptor, and LevelDB needs some, too.
    private static let mostConnections = 200
    /// A client has so long to send a request, and to take each part of the response.
    fileprivate static let patience = TimeAmount.seconds(10)

    fileprivate let page: InspectionPage
    private let requests = Atomic(0)
    private let connections = Atomic(0)
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    init(_ page: InspectionPage) { self.page = page }

    /// Listens on a port, 0 for any that is free, and serves until the process ends.
    ///
    /// Calls `ready` with the port when clients can connect.
    func run(on port: Int, ready: (Int) throws -> Void) throws {
      let channel = try ServerBootstrap(group: group)
        .serverChannelOption(.backlog, value: 256)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            var limits = NIOHTTPDecoderLimitConfiguration()
            // A key may have 64 KiB, of which each byte may take three characters.
            limits.maxHeaderFieldSize = 256 << 10
            limits.maxHeaderListSize = 320 << 10
            limits.maxHeaderFieldCount = 64
            let decoder = HTTPRequestDecoder(
              leftOverBytesStrategy: .dropBytes, limitConfiguration: limits)
            try channel.pipeline.syncOperations.addHandlers([
              HTTPResponseEncoder(), ByteToMessageHandler(decoder),
              HTTPServerProtocolErrorHandler(), PageConnection(of: self),
            ])
          }
        }
        .bind(host: "127.0.0.1", port: port).wait()
      try ready(channel.localAddress?.port ?? port)
      try channel.closeFuture.wait()
    }

    /// Counts a connection; false if there are too many.
    fileprivate func open() -> Bool {
      connections.add(1, ordering: .relaxed).newValue <= Self.mostConnections
    }

    fileprivate func close() { connections.subtract(1, ordering: .relaxed) }

    /// Answers a request on a thread of its own; false if there are too many.
    fileprivate func answer(_ request: PageRequest, to client: PageConnection.Client) -> Bool {
      guard requests.add(1, ordering: .relaxed).newValue <= Self.mostRequests else {
        requests.subtract(1, ordering: .relaxed)
        return false
      }
      let thread = Thread {
        self.page.answer(request, to: client)
        self.requests.subtract(1, ordering: .relaxed)
      }
      // Documents of JSON may be nested deeply.
      thread.stackSize = 8 << 20
      thread.start()
      return true
    }
  }

  /// A connection, which ends with its first response.
  private final class PageConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let server: PageServer
    private var client: Client?
    private var deadline: Scheduled<Void>?

    init(of server: PageServer) { self.server = server }

    func channelActive(context: ChannelHandlerContext) {
      let channel = context.channel
      deadline = context.eventLoop.scheduleTask(in: PageServer.patience) {
        channel.close(promise: nil)
      }
      if !server.open() { refuse(.busy, to: Client(channel)) }
    }

    func channelInactive(context: ChannelHandlerContext) {
      deadline?.cancel()
      client?.leave()
      server.close()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .head(let head) = unwrapInboundIn(data), client == nil else { return }
      let client = Client(context.channel, sendsBody: head.method != .HEAD)
      do throws(InspectionPage.Refusal) {
        let request = try server.page.admit(
          InspectionPage.Arrival(
            method: head.method.rawValue, target: head.uri, hosts: head.headers["host"],
            origins: head.headers["origin"]))
        self.client = client
        deadline?.cancel()
        if !server.answer(request, to: client) { throw .busy }
      } catch {
        refuse(error, to: client)
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      context.close(promise: nil)
    }

    private func refuse(_ refusal: InspectionPage.Refusal, to client: Client) {
      self.client = client
      client.refuse(refusal)
    }

    /// The client of a connection, for the thread that answers it.
    final class Client: PageClient {
      private let channel: any Channel
      private let sendsBody: Bool
      private let isOpen = Atomic(true)

      init(_ channel: any Channel, sendsBody: Bool = true) {
        (self.channel, self.sendsBody) = (channel, sendsBody)
      }

      var isThere: Bool { isOpen.load(ordering: .relaxed) }

      func leave() { isOpen.store(false, ordering: .relaxed) }

      func begin(_ head: PageHead) { write(Self.part(of: head)) }

      func send(_ bytes: [UInt8]) {
        guard sendsBody else { return }
        write(.body(.byteBuffer(ByteBuffer(bytes: bytes))))
      }

      func end() {
        // The response to HEAD has no body, and so no end of one.
        if sendsBody { write(.end(nil)) }
        channel.close(promise: nil)
      }

      /// Sends a whole response from the event loop, without waiting.
      func refuse(_ refusal: InspectionPage.Refusal) {
        channel.write(Self.part(of: refusal.head), promise: nil)
        if sendsBody {
          channel.write(
            HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: refusal.text))),
            promise: nil)
          channel.write(HTTPServerResponsePart.end(nil), promise: nil)
        }
        channel.flush()
        channel.close(promise: nil)
      }

      private static func part(of head: PageHead) -> HTTPServerResponsePart {
        var headers = HTTPHeaders(head.headers.map { ($0.name, $0.value) })
        headers.add(name: "Connection", value: "close")
        return .head(
          HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: head.status),
            headers: headers))
      }

      /// Sends a part, and waits until the system has taken it.
      private func write(_ part: HTTPServerResponsePart) {
        guard isThere else { return }
        let channel = channel
        let deadline = channel.eventLoop.scheduleTask(in: PageServer.patience) {
          channel.close(promise: nil)
        }
        do {
          try channel.writeAndFlush(part).wait()
        } catch {
          leave()
        }
        deadline.cancel()
      }
    }
  }
#endif
