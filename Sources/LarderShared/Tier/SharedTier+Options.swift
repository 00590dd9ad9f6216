import Larder

extension SharedTier {
  /// Where the server of a tier is.
  public struct Address: Sendable, Hashable {
    enum Place: Sendable, Hashable {
      case host(String, port: Int)
      case socket(path: String)
      case sentinels([Address], primary: String, Login?)
      case cluster([Address])
    }

    let place: Place

    /// A server in a network.
    ///
    /// - Parameters:
    ///   - host: A name or an address. It must be the primary's; a replica refuses writes, so the
    ///     tier would be degraded.
    ///   - port: 1 to 65,535; 6379 by default.
    /// - Returns: The address.
    public static func server(host: String, port: Int = 6379) -> Address {
      Address(place: .host(host, port: port))
    }

    /// A server on the same machine.
    ///
    /// - Parameter path: The path of its Unix domain socket.
    /// - Returns: The address.
    public static func socket(path: String) -> Address { Address(place: .socket(path: path)) }

    /// The primary that Sentinels name, which may be another server after a failover.
    ///
    /// ```swift
    /// let sentinels = ["sentinel-1", "sentinel-2", "sentinel-3"]
    /// let address = SharedTier.Address.sentinels(
    ///   sentinels.map { .server(host: $0, port: 26379) }, primary: "shop")
    /// ```
    ///
    /// All Sentinels are asked before each connection, and the first that knows the primary is
    /// believed. ``SharedTier/Options/security`` holds for the Sentinels and for the primary. With
    /// TLS, the primary's certificate must have the name or the address that the Sentinels call it
    /// by. See <doc:LarderShared> for what a failover may lose.
    ///
    /// - Parameters:
    ///   - sentinels: 1 to 16 addresses; a Sentinel's usual port is 26379.
    ///   - primary: The name that the Sentinels know the primary by, in their `sentinel monitor`.
    ///   - login: The user of the Sentinels; nil, the default, for Sentinels without passwords.
    /// - Returns: The address.
    public static func sentinels(
      _ sentinels: [Address], primary: String, login: Login? = nil
    ) -> Address {
      Address(place: .sentinels(sentinels, primary: primary, login))
    }

    /// The primaries of a cluster, each of which has a part of the keys.
    ///
    /// ```swift
    /// let address = SharedTier.Address.cluster(
    ///   [.server(host: "cache-1"), .server(host: "cache-2"), .server(host: "cache-3")])
    /// ```
    ///
    /// Some of the nodes are enough: they tell where the others are, and again after a failover or
    /// when slots have been moved. The tier has a connection to each primary. ``SharedTier/state``
    /// is ``SharedTier/State/connected`` if all of them can be asked; if only some of them can,
    /// their keys are read and changed as ever. ``SharedTier/Options/security`` and
    /// ``SharedTier/Options/login`` hold for all nodes. With TLS, the nodes' certificates must have
    /// the names or addresses that the cluster calls them by. See <doc:LarderShared>.
    ///
    /// - Parameter nodes: 1 to 64 addresses of nodes, primaries or replicas.
    /// - Returns: The address.
    public static func cluster(_ nodes: [Address]) -> Address { Address(place: .cluster(nodes)) }
  }

  /// Whether what is sent to a server can be read on its way.
  public struct Security: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
      case tls(authorities: String?, own: Certificate? = nil)
      case plain
    }

    /// The paths of a certificate and its private key.
    struct Certificate: Sendable, Hashable {
      let certificate: String
      let key: String
    }

    let kind: Kind

    /// TLS 1.2 or later.
    ///
    /// The server's name is checked, and its certificate against the system's authorities.
    public static let tls = Security(kind: .tls(authorities: nil))

    /// As ``tls``, with authorities of one's own.
    ///
    /// - Parameter path: The path of a file with their certificates, in PEM form.
    /// - Returns: The security.
    public static func tls(authorities path: String) -> Security {
      Security(kind: .tls(authorities: path))
    }

    /// As ``tls``, for servers that ask each machine for a certificate.
    ///
    /// Redis and Valkey do so unless they have `tls-auth-clients no`. The files are read at each
    /// connection.
    ///
    /// - Parameters:
    ///   - path: The path of a file with the certificates of one's own authorities, in PEM form;
    ///     nil for the system's.
    ///   - certificate: The path of a file with this machine's certificate, in PEM form, followed
    ///     by the intermediate certificates of its chain, if it has any.
    ///   - key: The path of a file with the certificate's private key, in PEM form, without a
    ///     password.
    /// - Returns: The security.
    public static func tls(
      authorities path: String? = nil, certificate: String, key: String
    ) -> Security {
      Security(
        kind: .tls(authorities: path, own: Certificate(certificate: certificate, key: key)))
    }

    /// Without encryption, for a network that nobody else uses.
    public static let plain = Security(kind: .plain)
  }

  /// The user as whom a tier logs in.
  public struct Login: Sendable, Hashable {
    /// The user's name.
    public let user: String
    /// The user's password, which descriptions of the login leave out.
    public let password: String

    /// Creates a login.
    ///
    /// - Parameters:
    ///   - user: `default`, the default, is the user of a server that has only a password.
    ///   - password: The user's password.
    public init(user: String = "default", password: String) {
      (self.user, self.password) = (user, password)
    }
  }

  /// What reads do while the server cannot be asked.
  public enum Degraded: Sendable, Hashable {
    /// They return entries of the machine, within their lifetime, as unconfirmed.
    case serveLocal
    /// They load.
    case askSource
  }

  /// How a tier is used.
  public struct Options: Sendable, Hashable {
    /// Whether what is sent can be read on its way; ``Security/tls`` by default.
    public var security = Security.tls
    /// The user to log in as; nil, the default, for a server without passwords.
    public var login: Login?
    /// What reads do while the server cannot be asked; ``Degraded/serveLocal`` by default.
    public var whenDegraded = Degraded.serveLocal
    /// The size of the largest record that is shared: 1 byte to 32 MiB; 1 MiB by default.
    ///
    /// A larger one stays on its machine, and the value that the server had before is removed.
    public var largestRecord = 1 << 20
    /// The longest time for a reply: 1 ms to 60 s; 50 ms by default.
    ///
    /// Without one, the call goes on as if the server could not be asked. After five such times
    /// without any reply, the tier connects anew.
    public var requestTimeout = Duration.milliseconds(50)
    /// The longest time for a connection, with TLS and login: 1 ms to 60 s; 2 s by default.
    public var connectTimeout = Duration.seconds(2)
    /// How long values in memory are confirmed without news of the server: 100 ms to 60 s; 2 s by
    /// default.
    ///
    /// The tier asks for a sign of life four times as often.
    public var lease = Duration.seconds(2)

    /// How long a machine waits for another one that loads the same key, instead of loading it,
    /// too: 1 ms to 60 s; nil, the default, for not at all.
    ///
    /// With it, a key that is nowhere is loaded once, however many machines ask for it at the same
    /// time. It should be a little longer than a load takes: if a machine is killed during a load,
    /// the others wait for as long. Each load first asks the server whether it may begin. See
    /// <doc:LarderShared>.
    public var loadWait: Duration?

    /// Creates the default options.
    public init() {}
  }
}

extension SharedTier.Login: CustomStringConvertible, CustomReflectable {
  /// The user's name.
  public var description: String { "user \(user.debugDescription)" }
  /// The user's name.
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

extension SharedTier.Address {
  func check() throws(StoreError) {
    switch place {
    case .host(let host, let port):
      guard !host.isEmpty, 1...65_535 ~= port else {
        throw .invalidArgument(
          "the server \(host.debugDescription), port \(port): a name and 1 to 65535 are needed")
      }
    case .socket(let path):
      // The system's limit, without the null byte; macOS allows 103.
      guard 1...103 ~= path.utf8.count else {
        throw .invalidArgument(
          "a socket whose path has \(path.utf8.count) bytes; 1 to 103 are allowed")
      }
    case .sentinels(let sentinels, let primary, _):
      guard 1...16 ~= sentinels.count, !primary.isEmpty else {
        throw .invalidArgument(
          "\(sentinels.count) Sentinels of the primary \(primary.debugDescription); "
            + "1 to 16 and a name are needed")
      }
      for sentinel in sentinels { try sentinel.checkIsServer("a Sentinel") }
    case .cluster(let nodes):
      guard 1...64 ~= nodes.count else {
        throw .invalidArgument("\(nodes.count) nodes of a cluster; 1 to 64 are needed")
      }
      for node in nodes { try node.checkIsServer("a node") }
    }
  }

  private func checkIsServer(_ what: String) throws(StoreError) {
    switch place {
    case .host, .socket: try check()
    case .sentinels, .cluster:
      throw .invalidArgument("the address of \(what) must be .server or .socket")
    }
  }
}

extension SharedTier.Options {
  func check() throws(StoreError) {
    let times: [(name: String, value: Duration, range: ClosedRange<Duration>)] = [
      ("requestTimeout", requestTimeout, .milliseconds(1) ... .seconds(60)),
      ("connectTimeout", connectTimeout, .milliseconds(1) ... .seconds(60)),
      ("lease", lease, .milliseconds(100) ... .seconds(60)),
      ("loadWait", loadWait ?? .seconds(1), .milliseconds(1) ... .seconds(60)),
    ]
    for (name, value, range) in times where !range.contains(value) {
      throw .invalidArgument(
        "\(name) is \(value); \(range.lowerBound) to \(range.upperBound) are allowed")
    }
    guard 1...(32 << 20) ~= largestRecord else {
      throw .invalidArgument("largestRecord is \(largestRecord); 1 to \(32 << 20) are allowed")
    }
  }

  /// The options of the link to the server.
  package func link(leaseKey: [UInt8]) -> LinkOptions {
    var link = LinkOptions(leaseKey: leaseKey)
    link.login = login
    link.usesTLS = security.kind != .plain
    (link.deadline, link.longestSilence) = (requestTimeout, requestTimeout * 5)
    link.greetingDeadline = connectTimeout
    (link.lease, link.renewal) = (lease, lease / 4)
    return link
  }
}
