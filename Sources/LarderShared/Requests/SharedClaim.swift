/// The claim of a machine to load a key that the server does not have: a lock, which the server
/// removes after a time.
///
/// It protects the source from many equal loads, and not the value: a load that has lost its claim
/// saves by the same condition as any other.
package struct SharedClaim: Sendable {
  package enum Outcome: Sendable, Hashable {
    /// The machine has the lock.
    case granted
    /// The key is no longer as it was seen.
    case changed(hasLock: Bool)
    /// Another machine has it.
    case held
  }

  /// The key that is to be loaded.
  package let key: [UInt8]
  /// After which time the server removes the lock.
  package let stay: Duration

  package init(of key: [UInt8], for stay: Duration) { (self.key, self.stay) = (key, stay) }

  private var lock: RESPArgument { .bytes(SharedKeys.lock(of: key)) }

  /// The claim, and the reading of the key's version, of whose changes the server tells from then
  /// on.
  package var commands: RESPCommands {
    var commands = RESPCommands()
    commands.append("SET", lock, "1", "NX", "PX", .number(max(1, stay.wholeMilliseconds)))
    SharedRead(key).appendVersionCommand(to: &commands)
    return commands
  }

  /// What the replies to ``commands`` say.
  ///
  /// - Parameters:
  ///   - replies: The replies.
  ///   - tombstone: The version of the tombstone that was seen under the key; nil for nothing.
  /// - Returns: Whether the machine may load.
  /// - Throws: ``SharedFailure/refused(_:)`` for an error.
  package func outcome(
    of replies: [RESPValue], seen tombstone: UInt64?
  ) throws(SharedFailure) -> Outcome {
    let isGranted: Bool
    switch replies.first {
    case .string: isGranted = true
    case .null: isGranted = false
    case .error(let error): throw .refused(error)
    default: throw .unreachable("it sent a reply that cannot be understood")
    }
    let version = try replies.dropFirst().first.map { reply throws(SharedFailure) in
      try SharedRead(key).version(in: reply)
    }
    guard version == .some(tombstone) else { return .changed(hasLock: isGranted) }
    return isGranted ? .granted : .held
  }

  /// Reads the lock, of whose end the server tells from then on.
  package var watching: RESPCommands { ["GET", lock] }

  /// Gives the lock back.
  package var release: RESPCommands { ["DEL", lock] }
}
