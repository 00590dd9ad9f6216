/// How a link talks to its server.
package struct LinkOptions: Sendable {
  /// Nil, the default, for a server without passwords.
  package var login: SharedTier.Login?
  /// Whether connections are made with TLS; false by default.
  package var usesTLS = false
  /// The time for a reply; 50 ms by default.
  package var deadline = Duration.milliseconds(50)
  /// The time to connect and to be greeted, with TLS if it is used; 2 s by default.
  package var greetingDeadline = Duration.seconds(2)
  /// For how long after the sending of a renewal local copies may be believed; 2 s by default.
  package var lease = Duration.seconds(2)
  /// The time between two renewals; 0.5 s by default.
  package var renewal = Duration.milliseconds(500)
  /// The longest time without a reply, while one is due, before the link connects anew.
  ///
  /// 250 ms by default. It is several deadlines, because a server that saves to its disk may pause,
  /// and so may this process.
  package var longestSilence = Duration.milliseconds(250)
  /// The time before the second attempt to connect; each further one waits twice as long.
  package var firstWait = Duration.milliseconds(100)
  /// The longest time before an attempt to connect.
  package var longestWait = Duration.seconds(5)
  /// The keys that renewals delete, at least one; they are never set.
  ///
  /// Each connection uses the next one. In a cluster, a slot that is being moved refuses its key.
  package var leaseKeys: [[UInt8]]
  /// Whether the server is a node of a cluster; false by default.
  package var isInCluster = false

  package init(leaseKey: [UInt8]) { leaseKeys = [leaseKey] }
}
