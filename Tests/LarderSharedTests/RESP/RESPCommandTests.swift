import LarderShared
import Testing

/// What is sent to a server.
@Suite struct RESPCommandTests {
  @Test("A command is an array of its arguments, each with its length in bytes.")
  func bytes() {
    var commands = RESPCommands()
    commands.append("SET", .bytes([0, 13, 10, 255]), "\u{E9}", "PX", 1500)
    commands.append("GET", .text(""), .number(-1))
    let expected =
      Array("*5\r\n$3\r\nSET\r\n$4\r\n".utf8) + [0, 13, 10, 255]
      + Array("\r\n$2\r\n\u{E9}\r\n$2\r\nPX\r\n$4\r\n1500\r\n".utf8)
      + Array("*3\r\n$3\r\nGET\r\n$0\r\n\r\n$2\r\n-1\r\n".utf8)
    #expect(commands.bytes == expected)
  }

  @Test("A command can be read as a value.")
  func roundTrip() {
    var commands = RESPCommands()
    commands.append(["DEL", .bytes([1, 2]), 3])
    #expect(
      Decoded(commands.bytes).values
        == [.array([.string(Array("DEL".utf8)), .string([1, 2]), .string(Array("3".utf8))])])
  }
}
