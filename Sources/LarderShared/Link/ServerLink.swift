/// A link to a server over any network.
package protocol ServerLink: Sendable {
  /// Sends commands, at least one, and returns their replies.
  ///
  /// - Parameters:
  ///   - commands: The commands.
  ///   - arrived: Called when the last reply has arrived, on the link's thread, in its order among
  ///     the effects that the link's observer is given. It must return soon.
  /// - Returns: The replies, or why they did not come.
  func ask(
    _ commands: RESPCommands, arrived: @escaping @Sendable () -> Void
  ) async -> Result<[RESPValue], SharedFailure>

  /// Ends the link: whoever waits gets a failure.
  func close()
}
