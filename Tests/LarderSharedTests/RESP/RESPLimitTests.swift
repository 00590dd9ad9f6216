import LarderShared
import LarderTestSupport
import Testing

/// What a server may send at most, and the room that it takes.
@Suite struct RESPLimitTests {
  private var limits: RESPDecoder.Limits {
    var limits = RESPDecoder.Limits()
    (limits.depth, limits.elements, limits.bytes) = (3, 10, 100)
    return limits
  }

  private func decode(_ text: String) -> Decoded { Decoded(Array(text.utf8), limits: limits) }

  @Test("A value at a limit is read, and the limits are those of each value.")
  func atLimits() {
    let texts = [
      "*1\r\n%1\r\n:1\r\n*1\r\n:2\r\n", "*10\r\n" + String(repeating: ":1\r\n", count: 10),
      "%5\r\n" + String(repeating: ":1\r\n", count: 10),
      "$93\r\n" + String(repeating: "x", count: 93) + "\r\n",
      "+" + String(repeating: "x", count: 97) + "\r\n",
    ]
    for text in texts {
      let decoded = decode(text + text + text)
      #expect(decoded.values.count == 3 && decoded.fault == nil, "\(text)")
    }
  }

  @Test(
    "A value over a limit is a fault.",
    arguments: [
      ("*1\r\n*1\r\n*1\r\n*0\r\n", "a value within over 3 others"),
      ("|1\r\n*1\r\n*1\r\n*1\r\n", "a value within over 3 others"),
      ("*11\r\n", "a value of over 10 elements"), ("%6\r\n", "a value of over 10 elements"),
      ("*5\r\n*3\r\n:1\r\n:1\r\n:1\r\n*3\r\n", "a value of over 10 elements"),
      ("*99999999999999999999999999\r\n", "a value of over 10 elements"),
      ("%9223372036854775807\r\n", "a value of over 10 elements"),
      ("$94\r\n", "a value of over 100 bytes"),
      ("$9223372036854775807\r\n", "a value of over 100 bytes"),
      ("!18446744073709551616\r\n", "a value of over 100 bytes"),
      (
        "*2\r\n$80\r\n" + String(repeating: "x", count: 80) + "\r\n$9\r\n",
        "a value of over 100 bytes"
      ),
      ("+" + String(repeating: "x", count: 100), "a value of over 100 bytes"),
      (
        String(repeating: "|1\r\n$20\r\n01234567890123456789\r\n:2\r\n", count: 3),
        "a value of over 100 bytes"
      ),
    ])
  func overLimits(text: String, fault: String) {
    #expect(decode(text) == Decoded([], fault: .overLimit(fault)))
    let bytes = Array(text.utf8)
    #expect(
      Decoded(bytes, dividedAt: 1..<bytes.count, limits: limits)
        == Decoded([], fault: .overLimit(fault)))
  }

  @Test("A length takes no room before its bytes are there.")
  func announced() throws {
    var decoder = RESPDecoder()
    for line in ["*100000\r\n", "*100000\r\n", "$33000000\r\n", "x"] {
      try decoder.decode(Array(line.utf8).span.bytes) { _ in }
    }
    #expect(decoder.heldBytes < 1000)
  }

  @Test("A value takes at most twice its own room, and nothing is left of it.")
  func held() throws {
    var decoder = RESPDecoder()
    let bytes = Array("$1000000\r\n".utf8) + Array(repeating: 7, count: 1_000_000)
    var most = 0
    for start in stride(from: 0, to: bytes.count, by: 1000) {
      let piece = bytes[start..<min(start + 1000, bytes.count)]
      try decoder.decode(piece.span.bytes) { _ in }
      most = max(most, decoder.heldBytes)
    }
    #expect(most >= 1_000_000 && most <= 2_100_000)
    var values: [RESPValue] = []
    try decoder.decode(Array("\r\n".utf8).span.bytes) { values.append($0) }
    #expect(values == [.string(Array(repeating: 7, count: 1_000_000))])
    #expect(decoder.heldBytes < 1000)
  }
}

extension Decoded {
  fileprivate init(_ values: [RESPValue], fault: RESPFault) {
    self.init([])
    (self.values, self.fault) = (values, fault)
  }
}
