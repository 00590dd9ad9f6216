import LarderShared

/// A server in memory that answers the commands of the shared tier, and tells its clients what
/// others change, as Redis 7 does.
///
/// ``SimulatedServerTests`` compares it with a real one.
struct SimulatedServer {
  /// What a command has led to.
  struct Outcome: Hashable {
    let reply: RESPValue
    /// The keys that each client was told of, in their order; nil for all keys.
    var pushes: [Int: [[UInt8]?]] = [:]
  }

  private var values: [[UInt8]: [UInt8]] = [:]
  /// The clients that have read a key since it was changed, whether or not it was there.
  private var readers: [[UInt8]: Set<Int>] = [:]
  private let clients: Range<Int>

  init(clients: Range<Int>) { self.clients = clients }

  /// The value of a key, which nobody reads.
  func value(of key: [UInt8]) -> [UInt8]? { values[key] }

  /// Ends the connection of a client.
  mutating func forget(_ client: Int) {
    for key in readers.keys { readers[key]?.remove(client) }
  }

  mutating func execute(_ arguments: [[UInt8]], by client: Int) -> Outcome {
    let key = arguments.count > 1 ? arguments[1] : []
    switch String(decoding: arguments[0], as: UTF8.self) {
    case "GET":
      readers[key, default: []].insert(client)
      return Outcome(reply: values[key].map(RESPValue.string) ?? .null)
    case "GETRANGE":
      return Outcome(reply: .string(range(of: key, arguments[2], arguments[3], by: client)))
    case "SET":
      guard !arguments.contains(Array("NX".utf8)) || values[key] == nil else {
        return Outcome(reply: .null)
      }
      return set(key, arguments[2], reply: .string(Array("OK".utf8)))
    case "DEL":
      guard values[key] != nil else { return Outcome(reply: .integer(0)) }
      return set(key, nil, reply: .integer(1))
    case "FLUSHALL":
      (values, readers) = ([:], [:])
      var outcome = Outcome(reply: .string(Array("OK".utf8)))
      for client in clients { outcome.pushes[client] = [nil] }
      return outcome
    case "EVAL":
      // The only script that the tier has: it writes if the version is the one that was seen.
      let key = arguments[3]
      let version = range(of: key, Array("24".utf8), Array("31".utf8), by: client)
      guard version == arguments[4] else { return Outcome(reply: .integer(0)) }
      return set(key, arguments[5], reply: .integer(1))
    default: return Outcome(reply: .error(RESPError(Array("ERR unknown command".utf8))))
    }
  }

  private mutating func range(
    of key: [UInt8], _ start: [UInt8], _ end: [UInt8], by client: Int
  ) -> [UInt8] {
    readers[key, default: []].insert(client)
    let value = values[key] ?? []
    let numbers = [start, end].map { Int(String(decoding: $0, as: UTF8.self)) ?? 0 }
    return Array(value.prefix(numbers[1] + 1).dropFirst(numbers[0]))
  }

  private mutating func set(_ key: [UInt8], _ value: [UInt8]?, reply: RESPValue) -> Outcome {
    values[key] = value
    var outcome = Outcome(reply: reply)
    for reader in readers.removeValue(forKey: key) ?? [] { outcome.pushes[reader] = [key] }
    return outcome
  }
}

extension RESPCommands {
  /// The arguments of each command, as a server reads them.
  var arguments: [[[UInt8]]] {
    Decoded(bytes).values.map { value in
      guard case .array(let parts) = value else { return [] }
      return parts.map { if case .string(let bytes) = $0 { bytes } else { [] } }
    }
  }
}
