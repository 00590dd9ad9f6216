import Larder

/// The question to a Sentinel where a primary is.
package struct SentinelQuery: ServerQuery {
  let primary: String
  let login: SharedTier.Login?

  /// - Parameters:
  ///   - primary: The name that the Sentinel knows the primary by.
  ///   - login: The user to log in as; nil for none.
  package init(_ primary: String, login: SharedTier.Login?) {
    (self.primary, self.login) = (primary, login)
  }

  package var commands: RESPCommands {
    var commands = RESPCommands()
    if let login { commands.append("AUTH", .text(login.user), .text(login.password)) }
    commands.append("SENTINEL", "get-master-addr-by-name", .text(primary))
    return commands
  }

  /// The primary's address.
  package func answer(in replies: [RESPValue]) throws(SharedFailure) -> SharedTier.Address {
    for case .error(let error) in replies {
      switch error.code {
      case "NOAUTH": throw .misconfigured("a Sentinel wants a login of its own")
      case "WRONGPASS":
        throw .misconfigured("a Sentinel knows no such user with this password, or the user is off")
      default: throw .misconfigured("a Sentinel refuses: \(error.text)")
      }
    }
    switch replies.last {
    case .null?:
      throw .misconfigured(
        "a Sentinel knows no primary named \(primary.debugDescription.escapedForTerminal)")
    case .array(let parts)?:
      guard parts.count == 2, case .string(let host) = parts[0], case .string(let port) = parts[1],
        let port = Int(String(decoding: port, as: UTF8.self))
      else { fallthrough }
      return try SharedTier.Address.server(
        named: String(decoding: host, as: UTF8.self), port)
    default: throw .unreachable("a Sentinel sent a reply that cannot be understood")
    }
  }
}
