import Larder

/// Why a server was not asked, or did not answer.
///
/// No read and no change of a ``SharedCache`` fails because of it: a change tells it in its
/// ``SharedOutcome``, the tier in its ``SharedTier/state``.
public enum SharedFailure: Error, Sendable, Hashable {
  /// There is no connection, so nothing was sent; with the reason.
  case unreachable(String)
  /// A command was sent, and its reply did not come: it may have taken effect, or still will.
  case outcomeUnknown(String)
  /// The server answered with this error, which says that it cannot be used now.
  case refused(String)
  /// The server, or this tier, is set up wrongly; with what to change.
  ///
  /// The tier continues to try, so it connects once the server is set up correctly.
  case misconfigured(String)
  /// The server has no memory for more.
  case full
  /// The record is larger than ``SharedTier/Options/largestRecord``; both in bytes.
  case tooLarge(bytes: Int, limit: Int)
  /// The tier was closed.
  case closed
}

extension SharedFailure: CustomStringConvertible {
  /// What has happened, in English, without a full stop.
  public var description: String {
    switch self {
    case .unreachable(let why): "the server cannot be reached: \(why)"
    case .outcomeUnknown(let why): "it is not known what became of the command: \(why)"
    case .refused(let error): "the server refuses: \(error)"
    case .misconfigured(let what): "the server cannot be used as it is set up: \(what)"
    case .full: "the server has no memory for more"
    case .tooLarge(let bytes, let limit):
      "the record has \(bytes) bytes; the tier's limit is \(limit)"
    case .closed: "the tier is closed"
    }
  }
}

extension SharedFailure {
  /// The failure of a command that was answered with an error.
  static func refused(_ error: RESPError) -> SharedFailure { .refused(error.text) }
}

extension RESPError {
  /// The text, which is the server's, as a line that is safe to print.
  package var text: String { String(decoding: bytes, as: UTF8.self).escapedForTerminal }
}
