/// The link to one server: whom it asks for what, what it makes of the replies, and for how long
/// local copies may be believed.
///
/// Events go in and effects come out; it has no clock, no lock and no I/O. Connections have
/// numbers, and an event of an earlier connection has no effect.
///
///     connecting   A connection is being made.
///     greeting     The link logs in, asks the server to push which keys become invalid, and has it
///                  end the former connection. A command that was sent there takes effect before
///                  those that are sent from then on, or never.
///     up           Commands are sent, and renewals. Replies come in the order of the commands,
///                  pushes between them.
///     waiting      The last connection was lost or could not be made. The next one is made after a
///                  time that doubles, and has a random part so that many machines do not all
///                  come at once.
///     closed       For good.
///
/// In each state but *up*, a command fails at once: the link is the circuit breaker, too.
///
/// The *lease* is the time up to which copies may be believed that were read over the connection. A
/// renewal is a `DEL` of a key that is never set, which a server counts as a write. A primary that
/// has too few replicas (`min-replicas-to-write`), or has become a replica itself, refuses writes
/// while it still answers reads. The lease counts from the sending of the renewal. It ends with the
/// connection.
package struct LinkMachine: Sendable {
  package enum State: Sendable, Hashable {
    case connecting
    case greeting
    case up
    case waiting(SharedFailure)
    case closed
  }

  package enum Event: Sendable {
    /// The link is to begin. It happens once.
    case opened
    /// A connection was made, with TLS if it is used.
    case connected(Int)
    /// Bytes have arrived.
    case received(Int, [UInt8])
    /// A connection has ended, or could not be made.
    case ended(Int, SharedFailure)
    /// Commands are to be sent, at least one. Their number is new.
    case asked(id: Int, RESPCommands)
    /// The caller no longer waits for the answer.
    case left(id: Int)
    /// Renewals delete one of these keys, at least one, from now on.
    case renewsWith([[UInt8]])
    /// ``LinkMachine/nextTime`` has come.
    case timeHasCome
    case closed
  }

  package enum Effect: Sendable, Hashable {
    case connect(Int)
    case send(Int, [UInt8])
    case disconnect(Int)
    /// What came of commands, once for each number: their replies, or a failure.
    case answer(id: Int, Result<[RESPValue], SharedFailure>)
    /// Keys were changed or removed on the server; nil for all keys.
    case invalidated([[UInt8]]?)
    /// Local copies read over this connection may be believed up to this time.
    case leased(Int, until: Duration)
    /// They may no longer be believed.
    case leaseEnded(Int)
    case changed(State)
  }

  /// What holds when an event comes.
  package struct Moment: Sendable {
    /// The time of a clock that never goes back.
    package var now: Duration
    /// A random number from 0 to 1.
    package var chance: Double

    package init(now: Duration, chance: Double) { (self.now, self.chance) = (now, chance) }
  }

  /// What a reply is to.
  fileprivate enum Sent {
    case hello
    case info
    case tracking
    case killing
    case renewal
    /// A command, and how many more of its question follow. The id is nil once the answer was a
    /// failure, or the caller has left.
    case command(Int?, others: Int)
  }

  package private(set) var state = State.waiting(.unreachable("the link has not begun"))
  private var options: LinkOptions

  /// A connection, as the server names it.
  private struct Client {
    let id: [UInt8]
    let address: [UInt8]

    /// Whether it comes through a Unix domain socket, whose connections all have its address.
    var isLocal: Bool { address.suffix(2) == Array(":0".utf8) }
  }

  private var client: Client?
  /// The last connection that was up, until the server has ended it.
  private var former: Client?
  /// The number of the last connection.
  package private(set) var connection = 0
  private var decoder = RESPDecoder()
  private var effects: [Effect] = []
  /// The commands whose replies have not come, in the order of their sending.
  private var sent = Queue<(what: Sent, at: Duration)>()
  /// The replies to the first of the commands that were asked for together.
  private var replies: [RESPValue] = []
  /// The number of commands at the beginning of ``sent`` whose replies are late.
  private var lateCount = 0
  /// When the last reply came, or since when a command waits if none did before.
  private var silentSince = Duration.zero
  private var isLeased = false
  /// The attempts to connect since the last renewal that succeeded.
  private var attempts = 0
  /// When the state changes by itself: greeting has failed, waiting is over, a renewal is due.
  private var dueTime: Duration?

  package init(_ options: LinkOptions) { self.options = options }

  /// When ``Event/timeHasCome`` is to be handled next; nil for never.
  package var nextTime: Duration? {
    guard state == .up, sent.count > 0 else { return dueTime }
    var times = [silentSince + options.longestSilence]
    if let dueTime { times.append(dueTime) }
    if lateCount < sent.count { times.append(sent[lateCount].at + options.deadline) }
    return times.min()
  }

  package mutating func handle(_ event: Event, _ moment: Moment) -> [Effect] {
    defer { effects = [] }
    switch event {
    case .opened: if connection == 0 { connect(moment) }
    case .connected(let number): if isCurrent(number), state == .connecting { greet(moment) }
    case .received(let number, let bytes):
      if isCurrent(number) { received(bytes, moment) }
    case .ended(let number, let failure):
      if isCurrent(number) { lose(named(failure), moment) }
    case .asked(let id, let commands): asked(id, commands, moment)
    case .left(let id): left(id)
    case .renewsWith(let keys): options.leaseKeys = keys
    case .timeHasCome: timeHasCome(moment)
    case .closed: close()
    }
    return effects
  }

  private func isCurrent(_ number: Int) -> Bool {
    guard number == connection else { return false }
    switch state {
    case .connecting, .greeting, .up: return true
    case .waiting, .closed: return false
    }
  }

  private mutating func change(to new: State) {
    state = new
    effects.append(.changed(new))
  }
}

// MARK: - Connecting

extension LinkMachine {
  private mutating func connect(_ moment: Moment) {
    guard state != .closed else { return }
    connection += 1
    attempts += 1
    dueTime = moment.now + options.greetingDeadline
    effects.append(.connect(connection))
    change(to: .connecting)
  }

  private mutating func greet(_ moment: Moment) {
    decoder = RESPDecoder()
    change(to: .greeting)
    var hello: [RESPArgument] = ["HELLO", 3]
    if let login = options.login { hello += ["AUTH", .text(login.user), .text(login.password)] }
    var commands = RESPCommands()
    commands.append(hello)
    commands.append("CLIENT", "INFO")
    commands.append("CLIENT", "TRACKING", "ON")
    send(commands, [.hello, .info, .tracking], moment)
  }

  private mutating func greeted(by reply: RESPValue, _ moment: Moment) {
    switch reply {
    case .error(let error) where error.code == "NOPROTO" || error.isUnknownCommand:
      misconfigured("it does not know RESP3 (HELLO 3); Redis does from version 6 on", moment)
    case .error(let error) where error.code == "NOAUTH":
      misconfigured("it wants a user and a password", moment)
    case .error(let error) where error.code == "WRONGPASS":
      misconfigured("it knows no such user with this password, or the user is off", moment)
    case .error(let error): refused(error, moment)
    case .map(let fields):
      guard fields["role"] == .string(Array("master".utf8)) else {
        return misconfigured("it is no primary; connect to the primary", moment)
      }
      guard options.isInCluster || fields["mode"] != .string(Array("cluster".utf8)) else {
        return misconfigured("it is a node of a cluster; use Address.cluster", moment)
      }
    default: lose(.unreachable("its greeting cannot be understood"), moment)
    }
  }

  private mutating func informed(by reply: RESPValue, _ moment: Moment) {
    switch reply {
    case .error:
      misconfigured("it has no CLIENT INFO; Redis has from version 6.2 on", moment)
    case .string(let text):
      guard let id = text.field("id"), let address = text.field("addr") else { fallthrough }
      client = Client(id: id, address: address)
    default: lose(.unreachable("its CLIENT INFO cannot be understood"), moment)
    }
  }

  private mutating func tracked(by reply: RESPValue, _ moment: Moment) {
    switch reply {
    case .error:
      misconfigured("it has no CLIENT TRACKING, as some proxies; connect to the server", moment)
    default:
      guard let former else { return comeUp(moment) }
      // The id alone is not enough: a server gives it to another connection after a restart.
      let kill: RESPCommands = [
        "CLIENT", "KILL", "ID", .bytes(former.id), "ADDR", .bytes(former.address), "SKIPME", "yes",
      ]
      send(kill, [.killing], moment)
    }
  }

  private mutating func killed(by reply: RESPValue, _ moment: Moment) {
    switch reply {
    case .error(let error): refused(error, moment)
    default:
      former = nil
      comeUp(moment)
    }
  }

  private mutating func comeUp(_ moment: Moment) {
    change(to: .up)
    renew(moment)
  }

  /// The failure of a connection, with what it may come from if it ended before the reply.
  private func named(_ failure: SharedFailure) -> SharedFailure {
    guard state == .greeting, !options.usesTLS, case .unreachable(let text) = failure else {
      return failure
    }
    return .unreachable("it ended the connection when it was greeted (\(text)); does it want TLS?")
  }

  private mutating func misconfigured(_ text: String, _ moment: Moment) {
    lose(.misconfigured(text), moment)
  }

  /// Ends the connection because of an error, by its meaning.
  private mutating func refused(_ error: RESPError, _ moment: Moment) {
    lose(error.code == "NOPERM" ? .misconfigured(error.text) : .refused(error), moment)
  }

  /// Ends the connection, and waits.
  private mutating func lose(_ failure: SharedFailure, _ moment: Moment) {
    disconnect(failure)
    let doubled = options.firstWait * (1 << min(max(attempts, 1) - 1, 20))
    let wait = min(doubled, options.longestWait) * (0.5 + moment.chance / 2)
    attempts = max(attempts, 1)
    dueTime = moment.now + wait
    change(to: .waiting(failure))
  }

  private mutating func close() {
    guard state != .closed else { return }
    disconnect(.closed)
    dueTime = nil
    change(to: .closed)
  }

  /// Ends the connection, and fails the commands that still wait for a reply.
  private mutating func disconnect(_ failure: SharedFailure) {
    switch state {
    case .connecting, .greeting, .up: effects.append(.disconnect(connection))
    case .waiting, .closed: break
    }
    // What was sent through a Unix domain socket is there when the connection is lost, so the
    // server reads it before it accepts the next one.
    if state == .up, client?.isLocal == false { former = client }
    client = nil
    if isLeased { effects.append(.leaseEnded(connection)) }
    isLeased = false
    while let (what, _) = sent.popFirst() {
      guard case .command(let id?, others: 0) = what else { continue }
      effects.append(.answer(id: id, .failure(.outcomeUnknown(failure.description))))
    }
    (lateCount, replies) = (0, [])
  }
}

// MARK: - Commands

extension LinkMachine {
  private mutating func asked(_ id: Int, _ commands: RESPCommands, _ moment: Moment) {
    switch state {
    case .up:
      let kinds = (0..<commands.count).reversed().map { Sent.command(id, others: $0) }
      send(commands, kinds, moment)
    case .waiting(let failure): effects.append(.answer(id: id, .failure(failure)))
    case .connecting, .greeting:
      effects.append(.answer(id: id, .failure(.unreachable("it is being connected to"))))
    case .closed: effects.append(.answer(id: id, .failure(.closed)))
    }
  }

  private mutating func left(_ id: Int) {
    for index in 0..<sent.count { sent[index].what.forget(id) }
  }

  private mutating func renew(_ moment: Moment) {
    let key = options.leaseKeys[connection % options.leaseKeys.count]
    send(["DEL", .bytes(key)], [.renewal], moment)
    dueTime = moment.now + options.renewal
  }

  private mutating func send(_ commands: RESPCommands, _ kinds: [Sent], _ moment: Moment) {
    if sent.count == 0 { silentSince = moment.now }
    for kind in kinds { sent.append((kind, moment.now)) }
    effects.append(.send(connection, commands.bytes))
  }

  private mutating func timeHasCome(_ moment: Moment) {
    if state == .up {
      while lateCount < sent.count, sent[lateCount].at + options.deadline <= moment.now {
        if case .command(let id?, let others) = sent[lateCount].what {
          effects.append(.answer(id: id, .failure(.outcomeUnknown("its reply is late"))))
          for index in lateCount...lateCount + others { sent[index].what.forget(id) }
        }
        lateCount += 1
      }
      if sent.count > 0, silentSince + options.longestSilence <= moment.now {
        return lose(.unreachable("it has not answered for \(options.longestSilence)"), moment)
      }
    }
    guard let dueTime, dueTime <= moment.now else { return }
    switch state {
    case .connecting:
      let hint = options.usesTLS ? "; does it speak TLS on this port?" : ""
      lose(.unreachable("no connection in \(options.greetingDeadline)\(hint)"), moment)
    case .greeting:
      lose(.unreachable("it did not answer in \(options.greetingDeadline)"), moment)
    case .up: renew(moment)
    case .waiting: connect(moment)
    case .closed: break
    }
  }
}

// MARK: - Replies

extension LinkMachine {
  private static var signOfLife: Int { 1024 }

  private mutating func received(_ bytes: [UInt8], _ moment: Moment) {
    guard state != .connecting else { return }
    // A large piece shows that the server is sending a long reply; a few bytes do not.
    if bytes.count >= Self.signOfLife { silentSince = moment.now }
    let number = connection
    var values: [RESPValue] = []
    var fault: RESPFault?
    do throws(RESPFault) {
      try decoder.decode(bytes.span.bytes) { values.append($0) }
    } catch {
      fault = error
    }
    for value in values where isCurrent(number) {
      if case .push(let parts) = value { pushed(parts, moment) } else { replied(value, moment) }
    }
    guard let fault, isCurrent(number) else { return }
    lose(fault.failure, moment)
  }

  private mutating func replied(_ value: RESPValue, _ moment: Moment) {
    guard let (what, sentAt) = sent.popFirst() else {
      // As a server says that it has no room for another client, before it was asked anything.
      if case .error(let error) = value { return refused(error, moment) }
      return lose(.unreachable("it sent a reply to nothing"), moment)
    }
    lateCount = max(0, lateCount - 1)
    silentSince = moment.now
    if case .error(let error) = value, error.code == "NOPERM", let command = what.subcommand {
      return misconfigured("the user may not call \(command)", moment)
    }
    switch what {
    case .hello: greeted(by: value, moment)
    case .info: informed(by: value, moment)
    case .tracking: tracked(by: value, moment)
    case .killing: killed(by: value, moment)
    case .renewal:
      switch value {
      case .error(let error): refused(error, moment)
      default:
        isLeased = true
        attempts = 0
        effects.append(.leased(connection, until: sentAt + options.lease))
      }
    case .command(let id, let others):
      replies.append(value)
      if others == 0 {
        if let id { effects.append(.answer(id: id, .success(replies))) }
        replies = []
      }
      if case .error(let error) = value, error.endsUse { refused(error, moment) }
    }
  }

  private mutating func pushed(_ parts: [RESPValue], _ moment: Moment) {
    guard parts.first == .string(Array("invalidate".utf8)) else { return }
    switch parts.dropFirst().first {
    case .null: effects.append(.invalidated(nil))
    case .array(let elements):
      var keys: [[UInt8]] = []
      for case .string(let key) in elements { keys.append(key) }
      guard keys.count == elements.count else { fallthrough }
      effects.append(.invalidated(keys))
    default: lose(.unreachable("it sent an invalidation that cannot be understood"), moment)
    }
  }
}

extension LinkMachine.Sent {
  /// The command of the greeting that a user may lack the right to; nil for others.
  fileprivate var subcommand: String? {
    switch self {
    case .info: "CLIENT INFO"
    case .tracking: "CLIENT TRACKING"
    case .killing: "CLIENT KILL"
    case .hello, .renewal, .command: nil
    }
  }

  /// Forgets who waits for the reply, if it is `id`.
  fileprivate mutating func forget(_ id: Int) {
    if case .command(id, let others) = self { self = .command(nil, others: others) }
  }
}

extension RESPFault {
  fileprivate var failure: SharedFailure {
    switch self {
    case .unknownType(0x15): .misconfigured("it speaks TLS, and the link does not")
    case .unknownType: .misconfigured("it speaks another protocol")
    case .malformed(let text), .overLimit(let text): .unreachable("it sent \(text)")
    }
  }
}

extension RESPError {
  fileprivate var isUnknownCommand: Bool { text.hasPrefix("ERR unknown command") }

  /// Whether it says that the server cannot be used now, whatever the command.
  fileprivate var endsUse: Bool {
    // A cluster may be allowed to work while some slots have no node.
    ["READONLY", "LOADING", "MASTERDOWN", "NOAUTH", "CLUSTERDOWN"].contains(code)
      && !text.contains("slot not served")
  }
}

extension [UInt8] {
  /// The value of a field in a text such as `id=4 addr=127.0.0.1:5000`.
  fileprivate func field(_ name: String) -> [UInt8]? {
    let start = Array("\(name)=".utf8)
    return split(separator: UInt8(ascii: " ")).first { $0.starts(with: start) }
      .map { Array($0.dropFirst(start.count)) }
  }
}

extension [RESPValue] {
  /// The value under a name, in a map.
  fileprivate subscript(name: String) -> RESPValue? {
    let key = RESPValue.string(Array<UInt8>(name.utf8))
    return stride(from: 0, to: count - 1, by: 2).first { self[$0] == key }.map { self[$0 + 1] }
  }
}

/// A list that is appended to at its end, and shortened at its beginning.
private struct Queue<Element: Sendable>: Sendable {
  private var elements: [Element] = []
  private var start = 0

  var count: Int { elements.count - start }

  subscript(index: Int) -> Element {
    get { elements[start + index] }
    set { elements[start + index] = newValue }
  }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    defer {
      start += 1
      if start > 32, start > elements.count / 2 {
        elements.removeFirst(start)
        start = 0
      }
    }
    return elements[start]
  }
}
