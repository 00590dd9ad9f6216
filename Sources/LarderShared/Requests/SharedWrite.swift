package import Larder

/// The writing of a record, a value or a tombstone, to a server.
///
/// It has two commands. A server does not push what others change after one's own write, so the
/// second command reads the version: from then on it does, and a record whose version is read is
/// what the server has.
package struct SharedWrite: Sendable {
  /// What has become of a record.
  package enum Outcome: Sendable, Hashable {
    /// It was written, and the server still had it when the version was read.
    case confirmed
    /// It was written, and another one was written after it.
    case replaced
    /// The condition was not met.
    case refused
    /// The server has no memory for it.
    case full
  }

  /// How long a record stays whose value never expires.
  package static let longestStay = Duration.seconds(30 * 86_400)

  package let key: [UInt8]
  package let record: SharedRecord
  package let condition: TierCondition
  /// After which time the server removes the record.
  package let stay: Duration

  /// - Parameters:
  ///   - record: A value or a tombstone.
  ///   - key: The server's key.
  ///   - condition: When the record is written.
  ///   - stay: At most ``longestStay``, which is also what a longer time and nil mean.
  package init(
    _ record: SharedRecord, under key: [UInt8], if condition: TierCondition, for stay: Duration?
  ) {
    (self.key, self.record, self.condition) = (key, record, condition)
    self.stay = min(stay ?? Self.longestStay, Self.longestStay)
  }

  // The script compares the version and writes in one step. A server runs a text that it has run
  // before without compiling it again.
  private static let script = """
    if redis.call('GETRANGE', KEYS[1], 24, 31) ~= ARGV[1] then return 0 end
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
    return 1
    """

  /// The write, and the reading of the version.
  package var commands: RESPCommands {
    let milliseconds = RESPArgument.number(max(1, stay.wholeMilliseconds))
    let (key, bytes) = (RESPArgument.bytes(key), RESPArgument.bytes(record.bytes))
    var commands = RESPCommands()
    switch condition {
    case .always: commands.append("SET", key, bytes, "PX", milliseconds)
    case .absent: commands.append("SET", key, bytes, "NX", "PX", milliseconds)
    case .version(let version):
      let seen = RESPArgument.bytes(version.littleEndianBytes)
      commands.append("EVAL", .text(Self.script), 1, key, seen, bytes, milliseconds)
    }
    SharedRead(self.key).appendVersionCommand(to: &commands)
    return commands
  }

  /// What the replies to ``commands`` say.
  ///
  /// - Throws: ``SharedFailure/refused(_:)`` for an error that is not about the key.
  package func outcome(of replies: [RESPValue]) throws(SharedFailure) -> Outcome {
    switch replies.first {
    case .error(let error) where error.code == "OOM" || error.isOutOfMemoryInScript: return .full
    case .error(let error) where error.code == "WRONGTYPE": return .refused
    case .error(let error): throw .refused(error)
    case .null, .integer(0): return .refused
    case .string, .integer(1): break
    default: throw .unreachable("it sent a reply that cannot be understood")
    }
    guard let second = replies.dropFirst().first else { return .replaced }
    return try SharedRead(key).version(in: second) == record.version ? .confirmed : .replaced
  }
}

extension RESPError {
  /// Whether a script found no memory; some versions name the script before the code.
  fileprivate var isOutOfMemoryInScript: Bool {
    text.contains("OOM command not allowed")
  }
}

extension Duration {
  /// The milliseconds, rounded up.
  var wholeMilliseconds: Int {
    let (seconds, attoseconds) = components
    let (whole, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000_000)
    return Int(seconds) * 1000 + Int(whole) + (rest > 0 ? 1 : 0)
  }
}
