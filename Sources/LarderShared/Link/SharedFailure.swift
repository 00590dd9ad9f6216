/// Why a server was not asked, or did not answer.
package enum SharedFailure: Error, Sendable, Hashable {
  /// There is no connection, so nothing was sent.
  case unreachable(String)
  /// A command was sent, and its reply did not come: it may have taken effect, or still will.
  case outcomeUnknown(String)
  /// The server answered with an error, which says that it cannot be used now.
  case refused(RESPError)
  /// The server cannot be used as it is set up; the text says what to change.
  case misconfigured(String)
  /// The server has no memory for more.
  case full
  /// The record is larger than the tier allows.
  case tooLarge(bytes: Int, limit: Int)
  /// The link was closed.
  case closed
}

extension SharedFailure: CustomStringConvertible {
  package var description: String {
    switch self {
    case .unreachable(let why): "the server cannot be reached: \(why)"
    case .outcomeUnknown(let why): "it is not known what became of the command: \(why)"
    case .refused(let error): "the server refuses: \(String(decoding: error.bytes, as: UTF8.self))"
    case .misconfigured(let what): "the server cannot be used as it is set up: \(what)"
    case .full: "the server has no memory for more"
    case .tooLarge(let bytes, let limit):
      "the record has \(bytes) bytes; the tier's limit is \(limit)"
    case .closed: "the link is closed"
    }
  }
}
