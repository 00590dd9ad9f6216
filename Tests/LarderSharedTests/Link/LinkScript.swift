import LarderShared

/// A link whose events a test plays, one after another.
struct LinkScript {
  private(set) var machine: LinkMachine
  private(set) var effects: [LinkMachine.Effect] = []
  var now = Duration.zero
  /// The number of the last connection that was to be made.
  private(set) var connection = 0

  init(_ change: (inout LinkOptions) -> Void = { _ in }) {
    var options = LinkOptions(leaseKey: Array("lease".utf8))
    change(&options)
    machine = LinkMachine(options)
  }

  /// Handles an event, and returns its effects.
  @discardableResult mutating func play(
    _ event: LinkMachine.Event, chance: Double = 1
  ) -> [LinkMachine.Effect] {
    effects = machine.handle(event, LinkMachine.Moment(now: now, chance: chance))
    for case .connect(let number) in effects { connection = number }
    return effects
  }

  /// Lets bytes arrive.
  @discardableResult mutating func receive(_ text: String) -> [LinkMachine.Effect] {
    play(.received(connection, Array(text.utf8)))
  }

  /// Lets time pass up to the next time that the machine asks for.
  @discardableResult mutating func passTime(chance: Double = 1) -> [LinkMachine.Effect] {
    guard let time = machine.nextTime else { return [] }
    now = max(now, time)
    return play(.timeHasCome, chance: chance)
  }

  /// Connects, is greeted, and gets the first lease.
  mutating func comeUp() {
    play(.opened)
    play(.connected(connection))
    receive(Self.greeting + "+OK\r\n:0\r\n")
  }

  /// The greeting of Redis 7.0.15 up to the reply to `CLIENT TRACKING`.
  static let greeting = hello + info
  static let info = "=33\r\ntxt:id=4 addr=127.0.0.1:5000 fd=8\r\n"
  static let hello =
    "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n"
    + "$2\r\nid\r\n:4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
    + "$7\r\nmodules\r\n*0\r\n"
}

/// A command as it is sent.
func command(_ arguments: RESPArgument...) -> [UInt8] {
  var commands = RESPCommands()
  commands.append(arguments)
  return commands.bytes
}
