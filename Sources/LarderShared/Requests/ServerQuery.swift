/// A question to a server that is asked on a connection of its own, by RESP2.
package protocol ServerQuery: Sendable {
  associatedtype Answer: Sendable

  /// The question, at least one command.
  var commands: RESPCommands { get }

  /// The answer, from the replies to ``commands``, or those up to the first error.
  ///
  /// - Throws: ``SharedFailure/misconfigured(_:)`` for what can be mended, and
  ///   ``SharedFailure/unreachable(_:)`` for a reply that cannot be understood.
  func answer(in replies: [RESPValue]) throws(SharedFailure) -> Answer
}
