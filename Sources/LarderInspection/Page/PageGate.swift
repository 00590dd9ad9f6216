import Larder

extension InspectionPage {
  /// A request as a server has received it.
  package struct Arrival: Sendable {
    /// The method of HTTP, such as `GET`.
    package var method: String
    /// The path and the query, as they were sent.
    package var target: String
    /// The values of all `Host` headers.
    package var hosts: [String]
    /// The values of all `Origin` headers.
    package var origins: [String]

    package init(method: String, target: String, hosts: [String], origins: [String]) {
      (self.method, self.target, self.hosts, self.origins) = (method, target, hosts, origins)
    }
  }

  /// A response to a request that is not answered.
  package struct Refusal: Error, Sendable {
    package let head: PageHead
    /// A text of one line.
    package let text: String

    package init(_ status: Int, _ text: String, more: [(name: String, value: String)] = []) {
      head = PageHead(status, type: "text/plain; charset=utf-8", more: more)
      self.text = text + "\n"
    }

    /// There are as many requests as can be answered at once.
    package static let busy = Refusal(
      503, "Too many requests at once.", more: [("Retry-After", "1")])
  }

  /// The address of the first view behind the port.
  package var root: String { "/\(token)/" }

  /// Decides whether a request is answered, before anything of the store is read.
  ///
  /// Only a program on this machine can connect. What else is checked keeps out pages from
  /// elsewhere in a browser on this machine, and other users of it:
  ///
  /// - The host must be this machine by name or number, with any port, as a tunnel has another
  ///   one. A page whose name was changed to point here sends its own name.
  /// - The first part of the path must be the token.
  /// - A page of another origin is refused, whatever it knows.
  package func admit(_ arrival: Arrival) throws(Refusal) -> PageRequest {
    guard arrival.hosts.count == 1, Self.isHere(arrival.hosts[0]) else {
      throw Refusal(403, "The host must be 127.0.0.1 or localhost.")
    }
    guard ["GET", "HEAD"].contains(arrival.method) else {
      throw Refusal(405, "Only GET and HEAD are answered.", more: [("Allow", "GET, HEAD")])
    }
    guard arrival.origins.allSatisfy({ $0 == "http://" + arrival.hosts[0] }) else {
      throw Refusal(403, "Other origins are not answered.")
    }
    let target = arrival.target.split(
      separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let path = target.first ?? ""
    let parts = path.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count >= 2, parts[0].isEmpty, isToken(parts[1]) else {
      throw Refusal(404, "There is nothing here. The address that kvinspect printed has a token.")
    }
    guard parts.count == 3 else {
      throw Refusal(308, "The address ends with a slash.", more: [("Location", root)])
    }
    return PageRequest(path: String(parts[2]), query: target.count == 2 ? String(target[1]) : "")
  }

  private static func isHere(_ host: String) -> Bool {
    let name = host.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)[0]
    return name == "127.0.0.1" || name.lowercased() == "localhost"
  }

  /// Compares in a time that does not depend on what is equal.
  private func isToken(_ text: Substring) -> Bool {
    guard text.utf8.count == token.utf8.count else { return false }
    return zip(text.utf8, token.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
