#if Shared
  import NIOCore
  import NIOPosix
  import NIOSSL

  extension EventLoop {
    /// Connects to a server that has an address of its own.
    ///
    /// - Parameters:
    ///   - address: A host or a socket.
    ///   - security: Whether what is sent can be read on its way.
    ///   - deadline: The longest time for the connection, without TLS.
    ///   - handler: Makes the handler of what arrives.
    /// - Returns: The channel.
    func connect<Handler: ChannelInboundHandler>(
      to address: SharedTier.Address, _ security: SharedTier.Security, within deadline: TimeAmount,
      _ handler: @escaping @Sendable () -> Handler
    ) -> EventLoopFuture<any Channel> {
      let bootstrap = ClientBootstrap(group: self)
        .connectTimeout(deadline)
        .channelOption(.tcpOption(.tcp_nodelay), value: 1)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            if let tls = try security.handler(for: address) {
              try channel.pipeline.syncOperations.addHandler(tls)
            }
            try channel.pipeline.syncOperations.addHandler(handler())
          }
        }
      switch address.place {
      case .host(let host, let port): return bootstrap.connect(host: host, port: port)
      case .socket(let path): return bootstrap.connect(unixDomainSocketPath: path)
      case .sentinels, .cluster:
        return makeFailedFuture(SharedFailure.unreachable("its address was not asked for"))
      }
    }
  }

  extension SharedTier.Security {
    /// The handler that encrypts; nil for none.
    fileprivate func handler(for address: SharedTier.Address) throws -> NIOSSLClientHandler? {
      guard case .tls(let authorities, let own) = kind else { return nil }
      var configuration = TLSConfiguration.makeClientConfiguration()
      configuration.minimumTLSVersion = .tlsv12
      if let authorities { configuration.trustRoots = .file(authorities) }
      try own?.add(to: &configuration)
      let context: NIOSSLContext
      do {
        context = try NIOSSLContext(configuration: configuration)
      } catch NIOSSLError.failedToLoadPrivateKey {
        throw SharedFailure.misconfigured("the private key does not belong to the certificate")
      } catch {
        throw SharedFailure.misconfigured("the authorities cannot be read: \(error)")
      }
      guard case .host(let host, _) = address.place else {
        return try NIOSSLClientHandler(context: context, serverHostname: nil)
      }
      // An address is no name that could be sent; then the certificate must have the address.
      return try NIOSSLClientHandler(
        context: context, serverHostname: Self.isAddress(host) ? nil : host)
    }

    private static func isAddress(_ host: String) -> Bool {
      do {
        _ = try SocketAddress(ipAddress: host, port: 0)
        return true
      } catch {
        return false
      }
    }
  }

  extension SharedTier.Security.Certificate {
    fileprivate func add(to configuration: inout TLSConfiguration) throws(SharedFailure) {
      do {
        configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(certificate).map {
          .certificate($0)
        }
      } catch {
        throw .misconfigured("this machine's certificate cannot be read: \(error)")
      }
      do {
        configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
      } catch {
        throw .misconfigured("the certificate's private key cannot be read: \(error)")
      }
    }
  }

  extension SharedFailure {
    init(of error: any Error) {
      // A host may have several addresses.
      let error = (error as? NIOConnectionError)?.connectionErrors.last?.error ?? error
      if let failure = error as? SharedFailure {
        self = failure
        return
      }
      let text = "\(error)"
      if error is NIOSSLExtraError || text.contains("CERTIFICATE_VERIFY_FAILED") {
        self = .misconfigured("its certificate is not one of this server that is trusted: \(text)")
        return
      }
      if text.contains("ALERT_CERTIFICATE_REQUIRED") {
        self = .misconfigured(
          "it wants a certificate of this machine; use Security.tls(authorities:certificate:key:)")
        return
      }
      if text.contains("ALERT_") {
        self = .misconfigured("it ends the TLS connection: \(text)")
        return
      }
      // Others are of a connection that has ended.
      switch error as? NIOSSLError {
      case .handshakeFailed(.sslError)?: self = .misconfigured("the TLS handshake fails: \(text)")
      default: self = .unreachable(text)
      }
    }
  }
#endif
