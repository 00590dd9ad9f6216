package import LarderShared

/// What a Redis server does with the commands of a shared tier: its values, and which client it
/// tells of a change.
package struct SimulatedServer: Sendable {
  /// What a command has led to.
  package struct Outcome: Sendable, Hashable {
    package var reply: RESPValue
    /// The keys that each client was told of, in their order; nil for all keys.
    package var pushes: [Int: [[UInt8]?]] = [:]
  }

  private struct Value {
    let bytes: [UInt8]
    /// When the server removes it; nil for never.
    let end: Duration?
  }

  private var values: [[UInt8]: Value] = [:]
  /// The clients that have read a key since it was changed, whether or not it was there.
  private var readers: [[UInt8]: Set<Int>] = [:]
  private var clients: Set<Int>

  package init(clients: some Sequence<Int> = []) { self.clients = Set(clients) }

  /// The value of a key; no client becomes a reader of it.
  package func value(of key: [UInt8]) -> [UInt8]? { values[key]?.bytes }

  /// Begins the connection of a client.
  package mutating func connect(_ client: Int) { clients.insert(client) }

  /// Ends the connection of a client.
  package mutating func forget(_ client: Int) {
    clients.remove(client)
    for key in readers.keys { readers[key]?.remove(client) }
  }

  /// Executes a command: its name, and what follows it.
  package mutating func execute(
    _ arguments: [[UInt8]], by client: Int, at now: Duration = .zero
  ) -> Outcome {
    let name = String(decoding: arguments.first ?? [], as: UTF8.self)
    // The only script that a tier has writes if the version is the one that was seen.
    let place = name == "EVAL" ? 3 : 1
    let key = arguments.count > place ? arguments[place] : []
    var outcome = Outcome(reply: .null)
    if let end = values[key]?.end, end <= now { set(key, nil, &outcome) }
    outcome.reply = reply(to: name, key, arguments.dropFirst(place + 1), client, now, &outcome)
    return outcome
  }

  private mutating func reply(
    to name: String, _ key: [UInt8], _ rest: ArraySlice<[UInt8]>, _ client: Int, _ now: Duration,
    _ outcome: inout Outcome
  ) -> RESPValue {
    let rest = Array(rest)
    switch (name, rest.count) {
    case ("GET", 0):
      readers[key, default: []].insert(client)
      return values[key].map { .string($0.bytes) } ?? .null
    case ("GETRANGE", 2): return .string(range(of: key, rest[0], rest[1], by: client))
    case ("SET", 1...):
      let isConditional = rest.contains(Array("NX".utf8))
      guard !isConditional || values[key] == nil else { return .null }
      let hasStay = rest.dropLast().last == Array("PX".utf8)
      set(key, Value(bytes: rest[0], end: hasStay ? now + stay(rest.last) : nil), &outcome)
      return .string(Array("OK".utf8))
    case ("DEL", 0):
      guard values[key] != nil else { return .integer(0) }
      set(key, nil, &outcome)
      return .integer(1)
    case ("FLUSHALL", _):
      (values, readers) = ([:], [:])
      for client in clients { outcome.pushes[client, default: []].append(nil) }
      return .string(Array("OK".utf8))
    case ("EVAL", 3):
      let version = range(of: key, Array("24".utf8), Array("31".utf8), by: client)
      guard version == rest[0] else { return .integer(0) }
      set(key, Value(bytes: rest[1], end: now + stay(rest[2])), &outcome)
      return .integer(1)
    default: return .error(RESPError(Array("ERR unknown command".utf8)))
    }
  }

  private mutating func range(
    of key: [UInt8], _ start: [UInt8], _ end: [UInt8], by client: Int
  ) -> [UInt8] {
    readers[key, default: []].insert(client)
    return Array((values[key]?.bytes ?? []).prefix(number(end) + 1).dropFirst(number(start)))
  }

  private mutating func set(_ key: [UInt8], _ value: Value?, _ outcome: inout Outcome) {
    values[key] = value
    for reader in readers.removeValue(forKey: key) ?? [] {
      outcome.pushes[reader, default: []].append(key)
    }
  }

  private func stay(_ argument: [UInt8]?) -> Duration { .milliseconds(number(argument ?? [])) }

  private func number(_ argument: [UInt8]) -> Int {
    Int(String(decoding: argument, as: UTF8.self)) ?? 0
  }
}

extension RESPCommands {
  /// The arguments of each command, as a server reads them.
  package var arguments: [[[UInt8]]] {
    var decoder = RESPDecoder()
    var commands: [[[UInt8]]] = []
    do throws(RESPFault) {
      try decoder.decode(bytes.span.bytes) { value in
        guard case .array(let parts) = value else { return }
        commands.append(parts.map { if case .string(let bytes) = $0 { bytes } else { [] } })
      }
    } catch {
      preconditionFailure("commands are arrays of strings: \(error)")
    }
    return commands
  }
}
