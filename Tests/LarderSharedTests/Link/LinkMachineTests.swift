import LarderShared
import Testing

/// The states of a link to a server, and what it sends and answers in each.
@Suite struct LinkMachineTests {
  @Test("A link greets its server, asks for pushes and renews its lease.")
  func up() {
    var link = LinkScript { $0.login = .init(user: "larder", password: "secret") }
    #expect(link.machine.nextTime == nil)
    #expect(link.play(.opened) == [.connect(1), .changed(.connecting)])
    #expect(link.play(.opened) == [])
    let hello = command("HELLO", 3, "AUTH", "larder", "secret")
    let greeting = hello + command("CLIENT", "INFO") + command("CLIENT", "TRACKING", "ON")
    #expect(link.play(.connected(1)) == [.changed(.greeting), .send(1, greeting)])
    link.now = .milliseconds(300)
    #expect(link.receive(LinkScript.greeting) == [])
    #expect(link.receive("+OK\r\n") == [.changed(.up), .send(1, command("DEL", "lease"))])
    link.now = .milliseconds(310)
    #expect(link.receive(":0\r\n") == [.leased(1, until: .milliseconds(2300))])
    #expect(link.passTime() == [.send(1, command("DEL", "lease"))])
    #expect(link.now == .milliseconds(800))
    #expect(link.receive(":0\r\n") == [.leased(1, until: .milliseconds(2800))])
  }

  @Test("Replies go to the commands in their order, with pushes between them.")
  func commands() {
    var link = LinkScript()
    link.comeUp()
    #expect(link.play(.asked(id: 7, ["GET", "a"])) == [.send(1, command("GET", "a"))])
    #expect(link.play(.asked(id: 8, ["GET", "b"])) == [.send(1, command("GET", "b"))])
    #expect(link.play(.asked(id: 9, ["GET", "c"])) == [.send(1, command("GET", "c"))])
    #expect(link.play(.left(id: 8)) == [])
    #expect(
      link.receive(
        "$1\r\nA\r\n>2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n_\r\n-ERR x\r\n")
        == [
          .answer(id: 7, .success([.string(Array("A".utf8))])),
          .invalidated([Array("a".utf8), Array("b".utf8)]),
          .answer(id: 9, .success([.error(RESPError(Array("ERR x".utf8)))])),
        ])
    #expect(link.receive(">2\r\n+invalidate\r\n_\r\n>2\r\n+other\r\n:1\r\n") == [.invalidated(nil)])
    #expect(link.machine.state == .up)
  }

  @Test("Commands that are asked for together have one answer, with all replies or none.")
  func together() {
    var link = LinkScript { $0.longestSilence = .seconds(5) }
    link.comeUp()
    var commands: RESPCommands = ["SET", "a", "b"]
    commands.append("GET", "a")
    let bytes = command("SET", "a", "b") + command("GET", "a")
    #expect(link.play(.asked(id: 1, commands)) == [.send(1, bytes)])
    link.play(.asked(id: 2, ["GET", "b"]))
    #expect(link.receive("+OK\r\n") == [])
    #expect(
      link.receive("+b\r\n_\r\n") == [
        .answer(
          id: 1, .success([.string(Array("OK".utf8)), .string(Array("b".utf8))])),
        .answer(id: 2, .success([.null])),
      ])
    // The second reply is late, and the next answer has nothing of the first one.
    link.play(.asked(id: 3, commands))
    link.receive("+OK\r\n")
    #expect(
      link.passTime() == [.answer(id: 3, .failure(.outcomeUnknown("its reply is late")))])
    link.play(.asked(id: 4, ["GET", "b"]))
    #expect(link.receive("+b\r\n_\r\n") == [.answer(id: 4, .success([.null]))])
    // Nobody waits for the answer any more, and the connection is lost.
    link.play(.asked(id: 5, commands))
    link.play(.asked(id: 6, commands))
    link.receive("+OK\r\n")
    #expect(link.play(.left(id: 5)) == [])
    let failure = SharedFailure.unreachable("reset")
    #expect(
      link.play(.ended(1, failure)) == [
        .disconnect(1), .leaseEnded(1),
        .answer(id: 6, .failure(.outcomeUnknown(failure.description))),
        .changed(.waiting(failure)),
      ])
  }

  @Test("A late reply is answered by a failure, and silence ends the connection.")
  func late() {
    var link = LinkScript()
    link.comeUp()
    let late = SharedFailure.outcomeUnknown("its reply is late")
    for id in 1...100 { link.play(.asked(id: id, ["GET", "a"])) }
    link.passTime()
    #expect(link.now == .milliseconds(50))
    #expect(link.effects == (1...100).map { .answer(id: $0, .failure(late)) })
    // A reply that comes late is nobody's answer, and a sign of life.
    link.now = .milliseconds(249)
    #expect(link.receive("$1\r\nA\r\n") == [])
    link.now = .milliseconds(260)
    link.play(.asked(id: 101, ["GET", "a"]))
    #expect(link.passTime() == [.answer(id: 101, .failure(late))])
    link.now = .milliseconds(490)
    link.play(.asked(id: 102, ["GET", "a"]))
    let failure = SharedFailure.unreachable("it has not answered for 0.25 seconds")
    #expect(
      link.passTime() == [
        .disconnect(1), .leaseEnded(1),
        .answer(id: 102, .failure(.outcomeUnknown(failure.description))),
        .changed(.waiting(failure)),
      ])
    #expect(link.now == .milliseconds(499))
    #expect(link.play(.asked(id: 103, ["GET", "a"])) == [.answer(id: 103, .failure(failure))])
    #expect(link.receive("$1\r\nA\r\n") == [])
  }

  @Test("A link that is up and idle notices that its server does not answer.")
  func idle() {
    var link = LinkScript()
    link.comeUp()
    while link.machine.state == .up { link.passTime() }
    // The renewal after half a second has no reply.
    #expect(link.now == .milliseconds(750))
    #expect(link.effects.contains(.leaseEnded(1)))
  }

  @Test("A large reply may take long to arrive, but not byte by byte.")
  func slow() {
    var link = LinkScript { $0.deadline = .seconds(60) }
    link.comeUp()
    let value = [UInt8](repeating: 7, count: 100_000)
    link.play(.asked(id: 1, ["GET", "a"]))
    link.receive("$100000\r\n")
    for start in stride(from: 0, to: value.count, by: 2000) {
      link.now += .milliseconds(200)
      link.play(.received(1, Array(value[start..<start + 2000])))
      link.play(.timeHasCome)
    }
    #expect(link.receive("\r\n").first == .answer(id: 1, .success([.string(value)])))

    var other = LinkScript()
    other.comeUp()
    other.play(.asked(id: 1, ["GET", "a"]))
    for byte in "$1000\r\n" where other.machine.state == .up {
      other.now += .milliseconds(100)
      other.receive(String(byte))
      other.play(.timeHasCome)
    }
    #expect(
      other.machine.state == .waiting(.unreachable("it has not answered for 0.25 seconds")))
  }

  @Test("The time before an attempt to connect doubles, has a random part, and has a limit.")
  func backoff() {
    var link = LinkScript()
    link.play(.opened)
    var waits: [Duration] = []
    for attempt in 1...8 {
      link.play(.ended(attempt, .unreachable("refused")), chance: 1)
      let start = link.now
      #expect(link.passTime() == [.connect(attempt + 1), .changed(.connecting)])
      waits.append(link.now - start)
    }
    #expect(waits == [100, 200, 400, 800, 1600, 3200, 5000, 5000].map { .milliseconds($0) })
    link.play(.ended(9, .unreachable("refused")), chance: 0)
    let start = link.now
    link.passTime()
    #expect(link.now - start == .milliseconds(2500))
    // A renewal that succeeds begins anew, and not a connection that is lost before it.
    link.play(.connected(10))
    link.receive(LinkScript.greeting + "+OK\r\n-READONLY You can't write against a replica.\r\n")
    #expect(link.machine.nextTime == link.now + .seconds(5))
    link.passTime()
    link.play(.connected(11))
    link.receive(LinkScript.greeting + "+OK\r\n:1\r\n:0\r\n")
    link.play(.ended(11, .unreachable("reset")))
    #expect(link.machine.nextTime == link.now + .milliseconds(100))
  }

  @Test("Connecting and greeting have a deadline.")
  func greetingDeadline() {
    var link = LinkScript()
    link.play(.opened)
    #expect(
      link.passTime() == [
        .disconnect(1), .changed(.waiting(.unreachable("no connection in 2.0 seconds"))),
      ])
    #expect(link.now == .seconds(2))
    link.passTime()
    link.now += .seconds(1)
    link.play(.connected(2))
    link.receive(LinkScript.greeting)
    #expect(
      link.passTime() == [
        .disconnect(2), .changed(.waiting(.unreachable("it did not answer in 2.0 seconds"))),
      ])
    #expect(link.now == .milliseconds(4100))
  }

  private static let oldServer = "it does not know RESP3 (HELLO 3); Redis does from version 6 on"

  private static func noRight(_ command: String) -> String {
    "User larder has no permissions to run the '\(command)' command"
  }

  @Test(
    "A connection that ends at the greeting, or is not made with TLS, may be of the other kind.")
  func otherSecurity() {
    var link = LinkScript()
    link.play(.opened)
    link.play(.connected(1))
    link.play(.ended(1, .unreachable("reset")))
    let text = "it ended the connection when it was greeted (reset); does it want TLS?"
    #expect(link.machine.state == .waiting(.unreachable(text)))
    var secure = LinkScript { $0.usesTLS = true }
    secure.play(.opened)
    secure.passTime()
    let other = "no connection in 2.0 seconds; does it speak TLS on this port?"
    #expect(secure.machine.state == .waiting(.unreachable(other)))
    secure.passTime()
    secure.play(.connected(2))
    secure.play(.ended(2, .unreachable("reset")))
    #expect(secure.machine.state == .waiting(.unreachable("reset")))
  }

  @Test(
    "A server that cannot be used is named, with what to change.",
    arguments: [
      // As Redis 7.0.15, and Redis 5 for the first one, say it.
      ("-ERR unknown command `HELLO`, with args beginning with: `3`\r\n", Self.oldServer),
      ("-NOPROTO unsupported protocol version\r\n", Self.oldServer),
      (
        "-NOAUTH HELLO must be called with the client already authenticated, otherwise ...\r\n",
        "it wants a user and a password"
      ),
      (
        "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        "it knows no such user with this password, or the user is off"
      ),
      (
        LinkScript.hello + "-NOPERM \(Self.noRight("client|info"))\r\n",
        "the user may not call CLIENT INFO"
      ),
      (
        LinkScript.hello + "-ERR Unknown subcommand or wrong number of arguments\r\n",
        "it has no CLIENT INFO; Redis has from version 6.2 on"
      ),
      (
        LinkScript.greeting.replacing("$6\r\nmaster", with: "$7\r\nreplica"),
        "it is no primary; connect to the primary"
      ),
      (
        LinkScript.greeting + "-NOPERM \(Self.noRight("client|tracking"))\r\n",
        "the user may not call CLIENT TRACKING"
      ),
      (
        LinkScript.greeting + "-ERR unknown command\r\n",
        "it has no CLIENT TRACKING, as some proxies; connect to the server"
      ),
      (
        LinkScript.greeting + "+OK\r\n-NOPERM \(Self.noRight("del"))\r\n",
        "NOPERM \(Self.noRight("del"))"
      ),
      ("\u{15}\u{3}\u{1}", "it speaks TLS, and the link does not"),
      ("HTTP/1.1 400 Bad Request\r\n", "it speaks another protocol"),
    ])
  func misconfigured(text: String, problem: String) {
    var link = LinkScript()
    link.play(.opened)
    link.play(.connected(1))
    link.receive(text)
    #expect(link.machine.state == .waiting(.misconfigured(problem)))
    #expect(link.effects.contains(.disconnect(1)))
    // It is tried again: the server may have been set up meanwhile.
    #expect(link.passTime().first == .connect(2))
  }

  @Test(
    "An error that says that the server cannot be used ends the connection and its lease.",
    arguments: ["READONLY", "LOADING", "MASTERDOWN", "NOAUTH", "CLUSTERDOWN"])
  func ended(code: String) {
    let error = RESPError(Array("\(code) x".utf8))
    var link = LinkScript()
    link.comeUp()
    link.play(.asked(id: 1, ["SET", "a", "b"]))
    link.play(.asked(id: 2, ["GET", "a"]))
    #expect(
      link.receive("-\(code) x\r\n$1\r\nA\r\n") == [
        .answer(id: 1, .success([.error(error)])), .disconnect(1), .leaseEnded(1),
        .answer(id: 2, .failure(.outcomeUnknown(SharedFailure.refused(error.text).description))),
        .changed(.waiting(.refused(error.text))),
      ])
  }

  @Test("Each connection renews with the next key, and with others once it is told so.")
  func leaseKeys() {
    let keys = ["a", "b"].map { Array($0.utf8) }
    var script = LinkScript { $0.leaseKeys = keys }
    for attempt in 1...4 {
      if attempt == 1 { script.play(.opened) } else { script.passTime() }
      script.play(.connected(script.connection))
      script.receive(LinkScript.greeting + "+OK\r\n")
      // The former connection is ended first.
      if attempt > 1 { script.receive(":1\r\n") }
      let renewal = command("DEL", .bytes(keys[attempt % 2]))
      #expect(script.effects.contains(.send(attempt, renewal)))
      // As a node of a cluster whose slot is being moved.
      if attempt < 4 { script.receive("-ASK 1 a:1\r\n") }
    }
    script.receive(":0\r\n")
    script.play(.renewsWith([Array("c".utf8)]))
    #expect(script.passTime().contains(.send(4, command("DEL", "c"))))
    #expect(script.machine.state == .up)
  }

  @Test("A renewal that is refused ends the connection, whatever the error.")
  func renewalRefused() {
    var link = LinkScript()
    link.comeUp()
    link.passTime()
    let error = RESPError(Array("NOREPLICAS Not enough good replicas to write.".utf8))
    #expect(
      link.receive("-NOREPLICAS Not enough good replicas to write.\r\n") == [
        .disconnect(1), .leaseEnded(1), .changed(.waiting(.refused(error.text))),
      ])
  }

  @Test("A cluster that is down ends the connection; a slot that no node has does not.")
  func clusterDown() {
    for (text, isUp) in [("Hash slot not served", true), ("The cluster is down", false)] {
      var link = LinkScript()
      link.comeUp()
      link.play(.asked(id: 1, ["GET", "a"]))
      let error = RESPError(Array("CLUSTERDOWN \(text)".utf8))
      #expect(
        link.receive("-CLUSTERDOWN \(text)\r\n").first
          == .answer(id: 1, .success([.error(error)])))
      #expect((link.machine.state == .up) == isUp)
    }
  }

  @Test(
    "Bytes that are no reply end the connection, after the replies before them.",
    arguments: [
      "$1\r\nabc\r\n", "+x\ry\r\n", ">2\r\n+invalidate\r\n:1\r\n", ">1\r\n+invalidate\r\n",
      ">2\r\n+invalidate\r\n*1\r\n:1\r\n", "+to nothing\r\n",
    ])
  func faults(text: String) {
    var link = LinkScript()
    link.comeUp()
    link.play(.asked(id: 1, ["GET", "a"]))
    let effects = link.receive("$1\r\nA\r\n" + text)
    #expect(
      effects.prefix(3) == [
        .answer(id: 1, .success([.string(Array("A".utf8))])), .disconnect(1), .leaseEnded(1),
      ])
    guard case .waiting(.unreachable) = link.machine.state else {
      Issue.record("\(link.machine.state)")
      return
    }
  }

  @Test("A connection that is cut at any byte of a reply or a push leaves nothing half done.")
  func cut() {
    let bytes = Array("$1\r\nA\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n$1\r\nB\r\n".utf8)
    let whole: [LinkMachine.Effect] = [
      .answer(id: 1, .success([.string(Array("A".utf8))])), .invalidated([Array("a".utf8)]),
      .answer(id: 2, .success([.string(Array("B".utf8))])),
    ]
    for count in bytes.indices {
      var link = LinkScript()
      link.comeUp()
      for id in [1, 2] { link.play(.asked(id: id, ["GET", "a"])) }
      let effects = link.play(.received(1, Array(bytes[..<count])))
      #expect(effects == Array(whole.prefix(effects.count)) && effects.count < 3)
      let failure = SharedFailure.unreachable("reset")
      let lost = [1, 2].filter { id in !effects.contains { $0.isAnswer(to: id) } }
      #expect(
        link.play(.ended(1, .unreachable("reset"))) == [.disconnect(1), .leaseEnded(1)]
          + lost.map { .answer(id: $0, .failure(.outcomeUnknown(failure.description))) }
          + [.changed(.waiting(failure))])
      // Nothing of it is left for the next connection.
      link.passTime()
      link.play(.connected(2))
      link.receive(LinkScript.greeting + "+OK\r\n:1\r\n:0\r\n")
      #expect(link.machine.state == .up, "cut after \(count) bytes")
    }
  }

  @Test("A former connection by a Unix domain socket is not ended: another may look the same.")
  func killingLocal() {
    let greeting = LinkScript.hello + "=27\r\ntxt:id=4 addr=/tmp/s:0 fd=8\r\n+OK\r\n"
    var link = LinkScript()
    link.play(.opened)
    for number in [1, 2] {
      link.play(.connected(number))
      #expect(
        link.receive(greeting) == [.changed(.up), .send(number, command("DEL", "lease"))])
      link.play(.ended(number, .unreachable("reset")))
      link.passTime()
    }
  }

  @Test("The server ends the former connection before anything is sent on the next one.")
  func killing() {
    var link = LinkScript()
    link.comeUp()
    link.play(.asked(id: 1, ["SET", "a", "b"]))
    link.play(.ended(1, .unreachable("reset")))
    // A connection that is lost while it is greeted changes nothing.
    for number in [2, 3] {
      link.passTime()
      link.play(.connected(number))
      let kill = command(
        "CLIENT", "KILL", "ID", "4", "ADDR", "127.0.0.1:5000", "SKIPME", "yes")
      #expect(link.receive(LinkScript.greeting + "+OK\r\n") == [.send(number, kill)])
      #expect(
        link.play(.asked(id: number, ["GET", "a"])) == [
          .answer(id: number, .failure(.unreachable("it is being connected to")))
        ])
      if number == 2 { link.play(.ended(2, .unreachable("reset"))) }
    }
    // It had ended by itself.
    #expect(link.receive(":0\r\n") == [.changed(.up), .send(3, command("DEL", "lease"))])
    link.play(.ended(3, .unreachable("reset")))
    link.passTime()
    link.play(.connected(4))
    link.receive(LinkScript.greeting + "+OK\r\n-NOPERM \(Self.noRight("client|kill"))\r\n")
    #expect(
      link.machine.state == .waiting(.misconfigured("the user may not call CLIENT KILL")))
  }

  @Test("Events of an earlier connection have no effect.")
  func earlier() {
    var link = LinkScript()
    link.comeUp()
    link.play(.ended(1, .unreachable("reset")))
    #expect(link.play(.received(1, Array(":0\r\n".utf8))) == [])
    #expect(link.play(.ended(1, .unreachable("reset"))) == [])
    link.passTime()
    #expect(link.play(.connected(1)) == [] && link.play(.received(1, [1])) == [])
    #expect(link.machine.state == .connecting)
    #expect(
      link.play(.asked(id: 1, ["GET", "a"])) == [
        .answer(id: 1, .failure(.unreachable("it is being connected to")))
      ])
  }

  @Test("A closed link answers what waits, and does nothing more.")
  func closed() {
    var link = LinkScript()
    link.comeUp()
    link.play(.asked(id: 1, ["GET", "a"]))
    #expect(
      link.play(.closed) == [
        .disconnect(1), .leaseEnded(1),
        .answer(id: 1, .failure(.outcomeUnknown("the tier is closed"))), .changed(.closed),
      ])
    #expect(link.machine.nextTime == nil)
    for event: LinkMachine.Event in [
      .opened, .connected(1), .received(1, [1]), .ended(1, .unreachable("")), .timeHasCome, .closed,
      .left(id: 1),
    ] {
      #expect(link.play(event) == [])
    }
    #expect(link.play(.asked(id: 2, ["GET", "a"])) == [.answer(id: 2, .failure(.closed))])
  }
}

extension LinkMachine.Effect {
  fileprivate func isAnswer(to wanted: Int) -> Bool {
    if case .answer(wanted, _) = self { true } else { false }
  }
}
