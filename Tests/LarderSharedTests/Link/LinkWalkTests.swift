import LarderShared
import LarderTestSupport
import Testing

/// Random events in random orders, with a server that answers each command, late or never.
@Suite struct LinkWalkTests {
  @Test("Whatever happens, each command has one answer, its own, and no lease is too long.")
  func walk() {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    var answered = 0
    for _ in 0..<300 {
      var walk = LinkWalk(random: SplitMix64(seed: random.next()))
      for _ in 0..<200 { walk.step() }
      walk.end()
      #expect(walk.faults == [], "seed \(seed)")
      answered += walk.successes
    }
    #expect(answered > 3000)
  }
}

/// A link, its server, and what must hold between them.
private struct LinkWalk {
  var random: SplitMix64
  var link = LinkScript { $0.deadline = .milliseconds(20) }
  var faults: [String] = []
  var successes = 0
  /// The commands that have no answer yet.
  private var open: Set<Int> = []
  private var nextID = 0
  /// The numbers of the commands that were asked for together.
  private var counts: [Int: Int] = [:]
  /// The bytes that the server has sent, by connections, and that have not arrived.
  private var replies: [Int: [UInt8]] = [:]
  /// The times at which renewals were sent, by connections.
  private var renewals: [Int: Set<Duration>] = [:]
  /// The connections over which the server was asked to end the former one.
  private var killed: Set<Int> = []
  private var isUp = false
  private var disconnected: Set<Int> = []

  init(random: SplitMix64) {
    self.random = random
    play(.opened)
  }

  mutating func step() {
    let number = link.connection
    switch random.below(20) {
    case 0..<7:
      nextID += 1
      open.insert(nextID)
      var commands = RESPCommands()
      for _ in 0...random.below(3) { commands.append("GET", .number(nextID)) }
      counts[nextID] = commands.count
      play(.asked(id: nextID, commands))
    case 7..<14: deliver(to: number)
    case 14: link.now += .milliseconds(random.below(15))
    case 15:
      if let time = link.machine.nextTime { link.now = max(link.now, time) }
      play(.timeHasCome)
    case 16:
      if random.below(10) == 0 { play(.ended(number, .unreachable("reset"))) }
    case 17:
      if random.below(2) == 0 { deliver(to: random.below(number + 1)) }
    case 18:
      if let id = open.randomElement(using: &random) {
        open.remove(id)
        play(.left(id: id))
      }
    default: play(.connected(number))
    }
  }

  mutating func end() {
    play(.closed)
    if !open.isEmpty { faults.append("no answer to \(open)") }
  }

  private mutating func deliver(to number: Int) {
    let bytes = replies[number] ?? []
    let count = random.below(3) == 0 ? random.below(bytes.count + 1) : bytes.count
    replies[number]?.removeFirst(count)
    play(.received(number, Array(bytes.prefix(count))))
  }

  private mutating func play(_ event: LinkMachine.Event) {
    link.play(event, chance: Double(random.below(100)) / 100)
    for effect in link.effects { check(effect) }
    if let time = link.machine.nextTime, time < link.now, case .timeHasCome = event {
      faults.append("the next time has passed")
    }
    if isUp != (link.machine.state == .up) { faults.append("the state was not told") }
  }

  private mutating func check(_ effect: LinkMachine.Effect) {
    switch effect {
    case .connect(let number):
      if number > 1, !disconnected.contains(number - 1) { faults.append("two connections") }
    case .disconnect(let number):
      if !disconnected.insert(number).inserted { faults.append("disconnected twice") }
    case .send(let number, let bytes): serve(bytes, number)
    case .answer(let id, let answer):
      if open.remove(id) == nil { faults.append("a second answer to \(id)") }
      guard case .success(let values) = answer else { break }
      successes += 1
      let expected = Array(repeating: RESPValue.string(Array("\(id)".utf8)), count: counts[id] ?? 0)
      if values != expected { faults.append("\(id) got \(values)") }
    case .invalidated(let keys): if keys != [[1]] { faults.append("\(keys ?? []) are invalid") }
    case .leased(let number, let end):
      let isTrue = renewals[number]?.contains(end - .seconds(2)) ?? false
      if !isTrue || disconnected.contains(number) { faults.append("a lease of nothing") }
    case .leaseEnded(let number):
      if !disconnected.contains(number) { faults.append("a lease ended before its connection") }
    case .changed(let state): isUp = state == .up
    }
  }

  /// Has the server read commands, and answer them.
  private mutating func serve(_ bytes: [UInt8], _ number: Int) {
    if disconnected.contains(number) { faults.append("sent to nobody") }
    for case .array(let parts) in Decoded(bytes).values {
      guard case .string(let name)? = parts.first else { continue }
      var reply: String
      switch String(decoding: name, as: UTF8.self) {
      case "HELLO": reply = LinkScript.hello
      case "CLIENT":
        switch parts[1] {
        case .string(Array("INFO".utf8)): reply = LinkScript.info
        case .string(Array("KILL".utf8)):
          killed.insert(number)
          reply = ":1\r\n"
        default: reply = "+OK\r\n"
        }
      case "DEL":
        if !renewals.isEmpty, renewals[number] == nil, !killed.contains(number) {
          faults.append("the former connection was not ended")
        }
        renewals[number, default: []].insert(link.now)
        reply = random.below(20) == 0 ? "-READONLY x\r\n" : ":0\r\n"
      default:
        guard case .string(let id)? = parts.last else { continue }
        reply = "$\(id.count)\r\n" + String(decoding: id, as: UTF8.self) + "\r\n"
      }
      if random.below(5) == 0, name != Array("HELLO".utf8) {
        reply = ">2\r\n+invalidate\r\n*1\r\n$1\r\n\u{1}\r\n" + reply
      }
      replies[number, default: []] += Array(reply.utf8)
    }
  }
}
