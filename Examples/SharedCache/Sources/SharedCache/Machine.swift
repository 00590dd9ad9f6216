import Foundation
import Larder
import LarderShared

/// One of the machines: a process with a store of its own, and a connection to the server.
struct Machine {
  let store: Store
  let tier: SharedTier
  let prices: SharedCache<String, Int>
  /// The file with the price, in place of a slow service.
  let source: URL

  init(directory: URL, server: String, source: URL) throws {
    store = try Store(at: directory)
    var options = SharedTier.Options()
    // The server is on the same machine. Over a network, leave out this line: TLS is the default.
    options.security = .plain
    // This machine may be busy with a build.
    (options.requestTimeout, options.connectTimeout) = (.seconds(10), .seconds(10))
    tier = try SharedTier(.socket(path: server), namespace: "shop", options)
    let cache = try store.cache("prices", of: Int.self, lifetime: .fresh(for: .hours(1)))
    prices = try SharedCache(cache, in: tier)
    self.source = source
  }

  /// Does what a line asks for, and returns what has happened.
  func answer(_ command: String) async throws -> String {
    let words = command.split(separator: " ").map(String.init)
    switch words[0] {
    case "connected", "degraded":
      for await state in tier.states where "\(state)".hasPrefix(words[0]) { break }
      return words[0]
    case "read":
      let entry = try await prices.entry(for: "apples") { [source] _ in
        .value(try Self.price(in: source))
      }
      guard let entry else { return "nothing" }
      let from =
        entry.origin == .loaded
        ? "loaded from the source"
        : "from \(["memory": "memory", "disk": "its disk"]["\(entry.origin)"] ?? "the server")"
      return "\(entry.value), \(from)\(entry.isConfirmed ? "" : ", not confirmed")"
    case "wait":
      while try await prices.value(for: "apples") != Int(words[1]) { await Task.yield() }
      return words[1]
    case "save":
      try Data(words[1].utf8).write(to: source)
      switch try await prices.save(try Self.price(in: source), for: "apples") {
      case .shared: return "it is on the server"
      case .localOnly: return "it is on this machine only"
      }
    default: return "unknown: \(command)"
    }
  }

  private static func price(in source: URL) throws -> Int {
    Int(String(decoding: try Data(contentsOf: source), as: UTF8.self)) ?? 0
  }
}
