import LarderTestSupport
import Testing

@testable import LarderShared

/// The question which node of a cluster has which slots, and what nodes say about others.
struct ClusterQueryTests {
  private static func text(_ text: String) -> RESPValue { .string(Array(text.utf8)) }

  private static let info = text("cluster_enabled:1\r\ncluster_state:ok\r\n")

  private static func range(
    _ first: Int64, _ last: Int64, _ host: RESPValue, _ port: Int64
  ) -> RESPValue {
    let replica = RESPValue.array([text("10.0.0.9"), .integer(6379), text("id2")])
    return .array([
      .integer(first), .integer(last), .array([host, .integer(port), text("id"), .array([])]),
      replica,
    ])
  }

  private static func map(_ replies: RESPValue...) throws -> ClusterMap {
    try ClusterQuery(login: nil, host: "seed").answer(in: replies)
  }

  @Test("The slots of each primary are collected, and a node without a name is the one asked.")
  func ranges() throws {
    let map = try Self.map(
      Self.info,
      .array([
        Self.range(0, 2, Self.text("a"), 7000), Self.range(3, 3, Self.text(""), 7001),
        Self.range(4, 5, .null, 7001), Self.range(6, 6, Self.text("?"), 7001),
        Self.range(16_383, 16_383, Self.text("a"), 7000),
      ]))
    #expect(
      map.slots == [
        .server(host: "a", port: 7000): [0, 1, 2, 16_383],
        .server(host: "seed", port: 7001): [3, 4, 5, 6],
      ])
  }

  @Test("The user logs in first, if there is one.")
  func commands() {
    let login = SharedTier.Login(user: "u", password: "p")
    #expect(ClusterQuery(login: nil, host: nil).commands.count == 2)
    let commands = ClusterQuery(login: login, host: nil).commands
    #expect(commands.count == 3)
    #expect(commands.bytes.starts(with: "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n".utf8))
  }

  @Test(
    "Errors say what is wrong.",
    arguments: [
      ("NOAUTH Authentication required.", "wants a user and a password"),
      ("WRONGPASS invalid", "knows no such user"),
      ("NOPERM this user", "may not call CLUSTER INFO"),
      ("ERR This instance has cluster support disabled", "has cluster support disabled"),
    ])
  func errors(error: String, text: String) {
    let failure = #expect(throws: SharedFailure.self) {
      try Self.map(.error(RESPError(Array(error.utf8))))
    }
    #expect(failure?.description.contains(text) == true, "\(String(describing: failure))")
  }

  @Test("A map that is not whole, not of a working cluster, or not understood is refused.")
  func refused() {
    let ranges = [Self.range(0, 16_383, Self.text("a"), 7000)]
    for replies in [
      [Self.text("cluster_state:fail"), .array(ranges)],
      [Self.info, .array([])], [Self.info, Self.text("a")], [.array(ranges)], [],
      [Self.info, .array([Self.range(0, 16_384, Self.text("a"), 7000)])],
      [Self.info, .array([Self.range(-1, 2, Self.text("a"), 7000)])],
      [Self.info, .array([Self.range(2, 1, Self.text("a"), 7000)])],
      [Self.info, .array([Self.range(0, 1, Self.text("a"), 0)])],
      [Self.info, .array([Self.range(0, 1, Self.text("a"), .max)])],
      [Self.info, .array([.array([.integer(0), .integer(1)])])],
      [Self.info, .array([.array([.integer(0), .integer(1), .array([])])])],
    ] {
      #expect(throws: SharedFailure.self, "\(replies)") {
        try ClusterQuery(login: nil, host: "seed").answer(in: replies)
      }
    }
    #expect(throws: SharedFailure.self) {
      try ClusterQuery(login: nil, host: nil)
        .answer(in: [Self.info, .array([Self.range(0, 1, .null, 7000)])])
    }
  }

  @Test("Redirections name a node; other errors are none.")
  func redirections() {
    func redirection(_ text: String, from host: String? = "seed") -> ClusterRedirection? {
      ClusterRedirection(.error(RESPError(Array(text.utf8))), from: host)
    }
    #expect(redirection("MOVED 1 a:7000") == .moved(to: .server(host: "a", port: 7000)))
    #expect(redirection("ASK 1 ::1:7000") == .ask(.server(host: "::1", port: 7000)))
    #expect(redirection("MOVED 1 :7000") == .moved(to: .server(host: "seed", port: 7000)))
    #expect(redirection("MOVED 1 ?:7000", from: nil) == nil)
    for text in ["MOVED", "MOVED 1", "MOVED 1 a", "MOVED 1 a:", "MOVED 1 a:70000", "ERR a b:1"] {
      #expect(redirection(text) == nil, "\(text)")
    }
    #expect(ClusterRedirection(Self.text("MOVED 1 a:7000"), from: nil) == nil)
  }

  @Test("Each command can be sent behind ASKING.")
  func asking() {
    var commands: RESPCommands = ["GET", "k"]
    commands.append("DEL", "k")
    let asking = commands.asking
    #expect(asking.count == 4)
    var expected: RESPCommands = ["ASKING"]
    for command in [["GET", "k"], ["ASKING"], ["DEL", "k"]] as [[RESPArgument]] {
      expected.append(command)
    }
    #expect(asking.bytes == expected.bytes)
  }
}
