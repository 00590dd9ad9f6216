import Larder

/// The question to a node of a cluster which primary has which slots.
///
/// A node that is cut off from most others says after a while that the cluster is down. What it
/// knows is not believed then.
package struct ClusterQuery: ServerQuery {
  let login: SharedTier.Login?
  /// The host by which the node is asked; nil for a socket.
  let host: String?

  /// - Parameters:
  ///   - login: The user to log in as; nil for none.
  ///   - host: The host by which the node is asked, for the nodes of which the reply does not name
  ///     one; nil for a socket.
  package init(login: SharedTier.Login?, host: String?) { (self.login, self.host) = (login, host) }

  package var commands: RESPCommands {
    var commands = RESPCommands()
    if let login { commands.append("AUTH", .text(login.user), .text(login.password)) }
    commands.append("CLUSTER", "INFO")
    commands.append("CLUSTER", "SLOTS")
    return commands
  }

  package func answer(in replies: [RESPValue]) throws(SharedFailure) -> ClusterMap {
    for case .error(let error) in replies {
      switch error.code {
      case "NOAUTH": throw .misconfigured("a node wants a user and a password")
      case "WRONGPASS":
        throw .misconfigured("a node knows no such user with this password, or the user is off")
      case "NOPERM": throw .misconfigured("the user may not call CLUSTER INFO and CLUSTER SLOTS")
      default: throw .misconfigured("a node refuses: \(error.text)")
      }
    }
    guard case .array(let ranges)? = replies.last, case .string(let info)? = replies.dropLast().last
    else { throw Self.notUnderstood }
    guard String(decoding: info, as: UTF8.self).contains("cluster_state:ok") else {
      throw .unreachable("the cluster is down")
    }
    var map = ClusterMap()
    for range in ranges {
      guard case .array(let parts) = range, parts.count >= 3, case .integer(let first) = parts[0],
        case .integer(let last) = parts[1], case .array(let primary) = parts[2],
        primary.count >= 2, case .integer(let port) = primary[1], 0 <= first, first <= last,
        last < KeySlot.count
      else { throw Self.notUnderstood }
      let address = try address(primary[0], Int(port))
      map.slots[address, default: []].formUnion(Int(first)...Int(last))
    }
    guard !map.slots.isEmpty else { throw .unreachable("no node of the cluster has a slot") }
    return map
  }

  private func address(
    _ name: RESPValue, _ port: Int
  ) throws(SharedFailure) -> SharedTier.Address {
    var host = host
    // A node that does not know its own address sends nothing, or "?".
    if case .string(let bytes) = name, !bytes.isEmpty, bytes != [UInt8(ascii: "?")] {
      host = String(decoding: bytes, as: UTF8.self)
    }
    guard let host else {
      throw .misconfigured("the nodes do not know their addresses; set cluster-announce-ip")
    }
    return try SharedTier.Address.server(named: host, port)
  }

  private static var notUnderstood: SharedFailure {
    .unreachable("a node sent a reply that cannot be understood")
  }
}

/// Which primary of a cluster has which slots.
package struct ClusterMap: Sendable, Hashable {
  /// The slots of each primary, 0 to 16,383.
  package var slots: [SharedTier.Address: Set<Int>] = [:]

  package init() {}
}

/// What a node replies to a command for a key that it does not have.
package enum ClusterRedirection: Sendable, Hashable {
  /// Another node has the slot.
  case moved(to: SharedTier.Address)
  /// The slot is being moved: the other node has the key, if there is one.
  case ask(SharedTier.Address)

  /// Nil if the reply says nothing like it.
  ///
  /// - Parameters:
  ///   - reply: The reply.
  ///   - host: The host of the node, which is meant if the reply names none; nil for a socket.
  package init?(_ reply: RESPValue, from host: String?) {
    guard case .error(let error) = reply, ["MOVED", "ASK"].contains(error.code) else { return nil }
    // "MOVED 3999 127.0.0.1:6381"; an IPv6 address has colons of its own.
    let words = String(decoding: error.bytes, as: UTF8.self).split(separator: " ")
    guard words.count == 3, let colon = words[2].lastIndex(of: ":"),
      let port = Int(words[2][words[2].index(after: colon)...])
    else { return nil }
    let name = String(words[2][..<colon])
    guard let host = name.isEmpty || name == "?" ? host : name else { return nil }
    do throws(SharedFailure) {
      let address = try SharedTier.Address.server(named: host, port)
      self = error.code == "ASK" ? .ask(address) : .moved(to: address)
    } catch {
      return nil
    }
  }
}

extension SharedTier.Address {
  /// A server that another one names.
  ///
  /// - Throws: ``SharedFailure/unreachable(_:)`` if that cannot be an address.
  static func server(named host: String, _ port: Int) throws(SharedFailure) -> Self {
    let address = server(host: host, port: port)
    do throws(StoreError) {
      try address.check()
    } catch {
      throw .unreachable("a server named an address that is not valid")
    }
    return address
  }
}
