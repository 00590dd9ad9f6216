import Larder
import LarderShared
import LarderTestSupport
import LarderTesting

/// A ``SimulatedServer`` and its clients, with what is on its way between them.
///
/// Each client's requests arrive in their order, and so do the replies and the pushes to it. Those
/// of different clients arrive in any order, which ``step(_:)`` chooses.
final class SimulatedNetwork: Sendable {
  private typealias Answer = Result<[RESPValue], SharedFailure>

  private struct Request {
    var commands: [[[UInt8]]]
    var replies: [RESPValue] = []
    let arrived: @Sendable (Int?) -> Void
    let id: Int
  }

  private enum Message {
    case answer(Request)
    case invalidated([[UInt8]]?)
  }

  private struct Client {
    let observer: @Sendable (LinkMachine.Effect) -> Void
    var isUp = true
    var hold = Hold.no
    var requests: [Request] = []
    var messages: [Message] = []
    /// Whether its script has ended; see ``SimulatedNetwork/finish(_:)``.
    var isFinished = false

    /// Whether it waits for the network.
    var isWaiting: Bool {
      !requests.isEmpty || messages.contains { if case .answer = $0 { true } else { false } }
    }
  }

  /// Whether a request waits before it is sent.
  private enum Hold {
    case no
    case next
    case held
  }

  private struct State {
    var server: SimulatedServer
    var clients: [Client] = []
    var isAutomatic = true
    var lastID = 0
    /// The answers that their callers have not fetched.
    var answers: [Int: Answer] = [:]
    /// The names of the commands that the server has executed.
    var log: [String] = []
    /// The commands and messages that have arrived.
    var time = 0
    /// The values that a key of the server had, each with the time from which on.
    var history: [[UInt8]: [(from: Int, value: [UInt8]?)]] = [:]

    mutating func noteHistory() {
      for (key, values) in history {
        let value = server.value(of: key)
        if values.isEmpty || values.last?.value != value { history[key]?.append((time, value)) }
      }
    }
  }

  private let state: Watched<State>
  private let clock: ManualClock

  init(clients: Int, _ clock: ManualClock) {
    state = Watched(State(server: SimulatedServer(clients: 0..<clients)))
    self.clock = clock
  }

  /// A tier on a machine of its own.
  func tier(_ options: SharedTier.Options = .init()) throws -> SharedTier {
    let number = state.read { $0.clients.count }
    let tier = try SharedTier(namespace: "test", options) { [self] _, observer in
      state.change { $0.clients.append(Client(observer: { observer($0, 0) })) }
      return Link(network: self, number: number)
    }
    renewLeases()
    return tier
  }

  private struct Link: ServerLink {
    let network: SimulatedNetwork
    let number: Int

    func ask(
      _ commands: RESPCommands, for key: [UInt8], arrived: @escaping @Sendable (Int?) -> Void
    ) async -> Result<[RESPValue], SharedFailure> {
      await network.waitToSend(number)
      let id = network.send(commands, arrived, from: number)
      return await network.answer(to: id)
    }

    func close() { network.disconnect(number) }
  }
}

// MARK: - Connections

extension SimulatedNetwork {
  static let lease = Duration.seconds(2)

  /// The names of the commands that were executed since the last call.
  func takeLog() -> [String] {
    state.change { state in
      defer { state.log = [] }
      return state.log
    }
  }

  /// Whether messages arrive at once; by default they do.
  func setAutomatic(_ isAutomatic: Bool) {
    state.change { state in
      state.isAutomatic = isAutomatic
      if isAutomatic { Self.deliverAll(&state) }
    }
  }

  func renewLeases() {
    let end = clock.uptime() + Self.lease
    state.change { state in
      for client in state.clients where client.isUp { client.observer(.leased(1, until: end)) }
    }
  }

  /// Loses a connection, and what is on its way.
  func disconnect(_ number: Int) {
    state.change { state in
      guard state.clients[number].isUp else { return }
      state.clients[number].isUp = false
      state.clients[number].observer(.leaseEnded(1))
      state.clients[number].observer(.changed(.waiting(.unreachable("no network"))))
      let lost = state.clients[number]
      (state.clients[number].requests, state.clients[number].messages) = ([], [])
      for request in lost.requests { state.answers[request.id] = Self.lost }
      for case .answer(let request) in lost.messages { state.answers[request.id] = Self.lost }
      state.server.forget(number)
    }
  }

  private static var lost: Answer { .failure(.outcomeUnknown("the connection was lost")) }

  func connect(_ number: Int) {
    let end = clock.uptime() + Self.lease
    state.change { state in
      state.clients[number].isUp = true
      state.server.connect(number)
      state.clients[number].observer(.leased(1, until: end))
    }
  }

  /// Executes a command of somebody else's, and returns the reply.
  @discardableResult func execute(_ arguments: RESPArgument...) -> RESPValue {
    var commands = RESPCommands()
    commands.append(arguments)
    return state.change { state in
      let reply = Self.execute(commands.arguments[0], by: -1, &state)
      if state.isAutomatic { Self.deliverAll(&state) }
      return reply
    }
  }

  private func send(
    _ commands: RESPCommands, _ arrived: @escaping @Sendable (Int?) -> Void, from number: Int
  ) -> Int {
    state.change { state in
      state.lastID += 1
      let id = state.lastID
      if state.clients[number].isUp {
        state.clients[number].requests.append(
          Request(commands: commands.arguments, arrived: arrived, id: id))
        if state.isAutomatic { Self.deliverAll(&state) }
      } else {
        state.answers[id] = .failure(.unreachable("no network"))
      }
      return id
    }
  }

  /// The number of requests of a client that the server has not executed.
  func requestCount(of number: Int) -> Int { state.read { $0.clients[number].requests.count } }

  /// Holds the next request of a client until ``releaseRequest(of:)``; those after it pass it.
  func holdNextRequest(of number: Int) { state.change { $0.clients[number].hold = .next } }

  func waitForHeldRequest(of number: Int) async {
    await state.wait { $0.clients[number].hold == .held }
  }

  func releaseRequest(of number: Int) { state.change { $0.clients[number].hold = .no } }

  private func waitToSend(_ number: Int) async {
    let isHeld = state.change { state in
      guard state.clients[number].hold == .next else { return false }
      state.clients[number].hold = .held
      return true
    }
    if isHeld { await state.wait { $0.clients[number].hold == .no } }
  }

  private func answer(to id: Int) async -> Answer {
    await state.wait { $0.answers[id] != nil }
    return state.change { $0.answers.removeValue(forKey: id) ?? .failure(.closed) }
  }
}

// MARK: - Delivery

extension SimulatedNetwork {
  /// Lets one command or one message arrive; false if there is none.
  func step(_ random: inout SplitMix64) -> Bool {
    step { random.below($0) } != nil
  }

  /// Lets a message arrive, or else the command that `choose` takes, out of so many.
  ///
  /// - Returns: How many there were, and the one that was taken; nil if there was none.
  func stepOfServer(_ choose: (Int) -> Int) -> (count: Int, taken: Int)? {
    let hasDelivered = state.change { state in
      guard let number = state.clients.firstIndex(where: { !$0.messages.isEmpty }) else {
        return false
      }
      state.time += 1
      Self.deliverNext(to: number, &state)
      return true
    }
    return hasDelivered ? (1, 0) : step(choose)
  }

  private func step(_ choose: (Int) -> Int) -> (count: Int, taken: Int)? {
    state.change { state in
      var choices: [(client: Int, isRequest: Bool)] = []
      for (number, client) in state.clients.enumerated() {
        if !client.requests.isEmpty { choices.append((number, true)) }
        if !client.messages.isEmpty { choices.append((number, false)) }
      }
      guard !choices.isEmpty else { return nil }
      let taken = choose(choices.count)
      let choice = choices[taken]
      state.time += 1
      if choice.isRequest {
        Self.executeNext(of: choice.client, &state)
      } else {
        Self.deliverNext(to: choice.client, &state)
      }
      return (choices.count, taken)
    }
  }

  private static func deliverAll(_ state: inout State) {
    var isDone = false
    while !isDone {
      isDone = true
      for number in state.clients.indices {
        while !state.clients[number].requests.isEmpty {
          executeNext(of: number, &state)
          isDone = false
        }
        while !state.clients[number].messages.isEmpty { deliverNext(to: number, &state) }
      }
    }
  }

  private static func executeNext(of number: Int, _ state: inout State) {
    let arguments = state.clients[number].requests[0].commands.removeFirst()
    state.clients[number].requests[0].replies.append(execute(arguments, by: number, &state))
    guard state.clients[number].requests[0].commands.isEmpty else { return }
    state.clients[number].messages.append(.answer(state.clients[number].requests.removeFirst()))
  }

  /// Executes a command; pushes go on their way.
  private static func execute(
    _ arguments: [[UInt8]], by number: Int, _ state: inout State
  ) -> RESPValue {
    let outcome = state.server.execute(arguments, by: number)
    state.noteHistory()
    state.log.append(String(decoding: arguments[0], as: UTF8.self))
    for (client, pushes) in outcome.pushes where client >= 0 {
      for key in pushes { state.clients[client].messages.append(.invalidated(key.map { [$0] })) }
    }
    return outcome.reply
  }

  private static func deliverNext(to number: Int, _ state: inout State) {
    switch state.clients[number].messages.removeFirst() {
    case .invalidated(let keys): state.clients[number].observer(.invalidated(keys))
    case .answer(let request):
      request.arrived(0)
      state.answers[request.id] = .success(request.replies)
    }
  }
}

// MARK: - Scripts

extension SimulatedNetwork {
  /// The number of commands and messages that `step` has let arrive.
  var time: Int { state.read { $0.time } }

  /// Notes that a machine begins a script, whose calls come one after another.
  func begin(_ number: Int) { state.change { $0.clients[number].isFinished = false } }

  /// Notes that the script has ended.
  func finish(_ number: Int) { state.change { $0.clients[number].isFinished = true } }

  /// Waits until each machine waits for the network, or has ended its script.
  ///
  /// - Returns: Whether all have ended.
  func waitUntilQuiet() async -> Bool {
    await state.wait { state in
      state.answers.isEmpty && state.clients.allSatisfy { $0.isFinished || $0.isWaiting }
    }
    return state.read { $0.clients.allSatisfy(\.isFinished) }
  }

  /// Whether no message to a machine is on its way.
  func isUpToDate(_ number: Int) -> Bool { state.read { $0.clients[number].messages.isEmpty } }

  /// Follows the values of a key, from now on.
  func follow(_ key: [UInt8]) {
    state.change { state in
      state.history = [key: []]
      state.noteHistory()
    }
  }

  /// The values that the followed key had in a span of time, nil for none.
  func values(from start: Int, to end: Int) -> [[UInt8]?] {
    state.read { state in
      let history = state.history.values.first ?? []
      let ends = history.dropFirst().map(\.from) + [Int.max]
      return zip(history, ends).filter { $0.0.from <= end && $0.1 >= start }.map(\.0.value)
    }
  }
}
