import LarderShared
import LarderTesting
import Testing

/// What a Sentinel is asked, and what its replies mean.
struct SentinelQueryTests {
  private static func text(_ text: String) -> RESPValue { .string(Array(text.utf8)) }

  private static func address(_ replies: RESPValue...) throws(SharedFailure) -> SharedTier.Address {
    try SentinelQuery("shop", login: nil).answer(in: replies)
  }

  @Test("It is asked for the primary by its name, after a login if there is one.")
  func commands() {
    #expect(
      SentinelQuery("shop", login: nil).commands.arguments
        == [["SENTINEL", "get-master-addr-by-name", "shop"].map { Array($0.utf8) }])
    let login = SharedTier.Login(user: "u", password: "p")
    #expect(
      SentinelQuery("shop", login: login).commands.arguments.first
        == ["AUTH", "u", "p"].map { Array($0.utf8) })
  }

  @Test("Two strings are the address, whether a login was acknowledged before or not.")
  func found() throws {
    let reply = RESPValue.array([Self.text("fe80::1"), Self.text("6380")])
    #expect(try Self.address(reply) == .server(host: "fe80::1", port: 6380))
    #expect(try Self.address(Self.text("OK"), reply) == .server(host: "fe80::1", port: 6380))
  }

  @Test(
    "A refusal and an unknown name say what to change.",
    arguments: [
      (RESPValue.error(RESPError(Array("NOAUTH Authentication required.".utf8))), "login"),
      (.error(RESPError(Array("WRONGPASS invalid".utf8))), "password"),
      (.error(RESPError(Array("ERR unknown command \u{1B}".utf8))), "refuses: ERR"),
      (.null, "shop"),
    ])
  func refused(reply: RESPValue, word: String) {
    let failure = #expect(throws: SharedFailure.self) { try Self.address(reply, .null) }
    guard case .misconfigured(let text)? = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    #expect(text.contains(word))
    #expect(!text.unicodeScalars.contains("\u{1B}"))
  }

  @Test(
    "Replies of another shape and addresses that are not valid are refused.",
    arguments: [
      [], [.integer(1)], [.array([])], [.array([text("a")])], [.array([text("a"), text("b")])],
      [.array([text("a"), text("0")])], [.array([text(""), text("1")])],
      [.array([text("a"), text("65536")])], [.array([text("a"), .integer(1)])],
      [.array([text("a"), text("1"), text("2")])],
    ] as [[RESPValue]])
  func malformed(replies: [RESPValue]) {
    let failure = #expect(throws: SharedFailure.self) {
      try SentinelQuery("shop", login: nil).answer(in: replies)
    }
    guard case .unreachable? = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
  }
}
