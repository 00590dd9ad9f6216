import Foundation
import Larder
import LarderShared
import LarderTestSupport

/// Runs a link over a socket, on a thread of its own.
final class SocketLink: ServerLink {
  private struct State {
    var machine: LinkMachine
    var events: [LinkMachine.Event] = [.opened]
    var effects: [LinkMachine.Effect] = []
    /// What is called when the answers arrive, by their numbers.
    var arrivals: [Int: @Sendable (Int?) -> Void] = [:]
    var nextID = 0
  }

  private let state: Watched<State>
  private let path: String
  private let clock = SystemClock()
  /// Is given the effects but for answers, which are not kept then.
  private let observer: (@Sendable (LinkMachine.Effect) -> Void)?
  private let wakeUp: (reading: Int32, writing: Int32)
  /// The socket, which the thread alone uses.
  private var descriptor: Int32?

  init(
    _ path: String, leaseKey: [UInt8] = Array("lease".utf8),
    _ change: (inout LinkOptions) -> Void = { _ in },
    observer: (@Sendable (LinkMachine.Effect) -> Void)? = nil
  ) {
    (self.path, self.observer) = (path, observer)
    var options = LinkOptions(leaseKey: leaseKey)
    options.firstWait = .milliseconds(10)
    // Only tests that are about late replies have them; the machine may be busy.
    (options.deadline, options.longestSilence) = (.seconds(60), .seconds(60))
    options.greetingDeadline = .seconds(60)
    change(&options)
    state = Watched(State(machine: LinkMachine(options)))
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { fatalError("no pipe") }
    wakeUp = (ends[0], ends[1])
    Thread.detachNewThread { self.run() }
  }

  deinit {
    Foundation.close(wakeUp.reading)
    Foundation.close(wakeUp.writing)
  }

  /// Closes the link, whose thread then ends.
  func close() { add(.closed) }

  /// Sends a command, and returns its answer.
  func ask(_ arguments: RESPArgument...) async -> Result<RESPValue, SharedFailure> {
    var commands = RESPCommands()
    commands.append(arguments)
    return await ask(commands).map { $0[0] }
  }

  /// Sends commands, and returns their replies.
  func ask(
    _ commands: RESPCommands, for key: [UInt8] = [],
    arrived: @escaping @Sendable (Int?) -> Void = { _ in }
  ) async -> Result<[RESPValue], SharedFailure> {
    let id = state.change { state in
      state.nextID += 1
      state.arrivals[state.nextID] = arrived
      return state.nextID
    }
    add(.asked(id: id, commands))
    await state.wait { $0.effects.contains { $0.answer(to: id) != nil } }
    return state.change { state in
      guard let index = state.effects.firstIndex(where: { $0.answer(to: id) != nil }) else {
        return .failure(.closed)
      }
      return state.effects.remove(at: index).answer(to: id) ?? .failure(.closed)
    }
  }

  /// Waits for an effect that `isWanted` accepts, and forgets it and those before it.
  func wait(_ isWanted: @escaping @Sendable (LinkMachine.Effect) -> Bool) async {
    await state.wait { $0.effects.contains(where: isWanted) }
    state.change { state in
      if let index = state.effects.firstIndex(where: isWanted) {
        state.effects.removeFirst(index + 1)
      }
    }
  }

  /// Waits until what the server has sent so far has arrived, and forgets it.
  ///
  /// Returns the keys that have become invalid, in their order; nil for all keys.
  @discardableResult func drain() async -> [[UInt8]?] {
    _ = await ask("ECHO", "a")
    return state.change { state in
      defer { state.effects = [] }
      return state.effects.flatMap { effect -> [[UInt8]?] in
        guard case .invalidated(let keys) = effect else { return [] }
        return keys ?? [nil]
      }
    }
  }

  func waitUntilUp() async { await wait { if case .leased = $0 { true } else { false } } }

  func waitForFailure(_ isWanted: @escaping @Sendable (SharedFailure) -> Bool) async {
    await wait { if case .changed(.waiting(let failure)) = $0 { isWanted(failure) } else { false } }
  }

  private func add(_ event: LinkMachine.Event) {
    state.change { $0.events.append(event) }
    _ = write(wakeUp.writing, [0], 1)
  }
}

// @unchecked: what changes has a lock, or is used by the thread alone.
extension SocketLink: @unchecked Sendable {}

extension LinkMachine.Effect {
  fileprivate func answer(to wanted: Int) -> Result<[RESPValue], SharedFailure>? {
    if case .answer(wanted, let answer) = self { answer } else { nil }
  }
}

// MARK: - The thread

extension SocketLink {
  private func run() {
    var isClosed = false
    while !isClosed {
      let events = state.change { state in
        defer { state.events = [] }
        return state.events
      }
      for event in events { handle(event) }
      let next = state.read { $0.machine.nextTime }
      waitForInput(next)
      if let next, next <= clock.uptime() { handle(.timeHasCome) }
      isClosed = state.read { $0.machine.state == .closed && $0.events.isEmpty }
    }
  }

  private func waitForInput(_ next: Duration?) {
    let number = state.read { $0.machine.connection }
    var inputs = [pollfd(fd: wakeUp.reading, events: Int16(POLLIN), revents: 0)]
    if let descriptor { inputs.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)) }
    let time = next.map { max(0, Int32(($0 - clock.uptime()) / .milliseconds(1)) + 1) }
    poll(&inputs, nfds_t(inputs.count), time ?? -1)
    var bytes = [UInt8](repeating: 0, count: 16_384)
    if inputs[0].revents != 0 { _ = read(wakeUp.reading, &bytes, bytes.count) }
    guard inputs.count > 1, inputs[1].revents != 0 else { return }
    let count = read(inputs[1].fd, &bytes, bytes.count)
    handle(
      count > 0
        ? .received(number, Array(bytes[..<count])) : .ended(number, .unreachable("it has ended")))
  }

  private func handle(_ event: LinkMachine.Event) {
    let moment = LinkMachine.Moment(now: clock.uptime(), chance: .random(in: 0...1))
    let new = state.change { $0.machine.handle(event, moment) }
    // In their order: whoever waits for an answer hears of what came before it.
    for effect in new { tell(effect) }
    for effect in new {
      switch effect {
      case .connect(let number):
        handle(connect() ? .connected(number) : .ended(number, .unreachable("refused")))
      case .disconnect:
        if let descriptor { Foundation.close(descriptor) }
        descriptor = nil
      case .send(let number, let bytes):
        if !send(bytes) { handle(.ended(number, .unreachable("it has ended"))) }
      default: break
      }
    }
  }

  private func tell(_ effect: LinkMachine.Effect) {
    guard case .answer(let id, let answer) = effect else {
      if let observer { observer(effect) } else { state.change { $0.effects.append(effect) } }
      return
    }
    let arrived = state.change { $0.arrivals.removeValue(forKey: id) }
    if case .success = answer { arrived?(0) }
    state.change { $0.effects.append(effect) }
  }

  private func connect() -> Bool {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    #if canImport(Darwin)
      let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
    #else
      let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    let isConnected = withUnsafeBytes(of: &address) { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) { address in
        Foundation.connect(
          descriptor, address.baseAddress, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    if isConnected { self.descriptor = descriptor } else { Foundation.close(descriptor) }
    return isConnected
  }

  private func send(_ bytes: [UInt8]) -> Bool {
    guard let descriptor else { return false }
    var start = 0
    while start < bytes.count {
      let count = bytes[start...].withUnsafeBytes {
        Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      start += count
    }
    return true
  }
}
