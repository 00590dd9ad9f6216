/// A link to the server of a tier, or to the nodes of a cluster, over any network.
///
/// Its observer is given the effects of each server's ``LinkMachine``, with the server's number. A
/// server that is closed, other than number 0, is one that the cluster no longer has.
package protocol ServerLink: Sendable {
  /// The number of the server that has a key, as far as is known; nil if that is not known.
  func server(of key: [UInt8]) -> Int?

  /// Sends commands, at least one, and returns their replies.
  ///
  /// - Parameters:
  ///   - commands: The commands.
  ///   - key: The key that all of them are about.
  ///   - arrived: Called when the last reply has arrived, on the link's thread, in its order among
  ///     the effects that the link's observer is given. It must return soon. It is given the number
  ///     of the server whose lease holds for the reply; nil if that is not to be believed. It may
  ///     be called several times; the last time counts.
  /// - Returns: The replies, or why they did not come.
  func ask(
    _ commands: RESPCommands, for key: [UInt8], arrived: @escaping @Sendable (Int?) -> Void
  ) async -> Result<[RESPValue], SharedFailure>

  /// Ends the link: whoever waits gets a failure.
  func close()
}

extension ServerLink {
  /// 0, the only server.
  package func server(of key: [UInt8]) -> Int? { 0 }
}
