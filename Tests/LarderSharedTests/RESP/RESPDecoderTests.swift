import LarderShared
import LarderTestSupport
import Testing

/// The reading of what a server sends.
@Suite struct RESPDecoderTests {
  private static func string(_ text: String) -> RESPValue { .string(Array(text.utf8)) }
  private static func error(_ text: String) -> RESPValue { .error(RESPError(Array(text.utf8))) }

  /// Replies of Redis 7.0.15, in RESP3 but for the first ones, and what they mean.
  static let replies: [(bytes: String, values: [RESPValue])] = [
    ("*3\r\n:0\r\n:1\r\n:2\r\n", [.array([.integer(0), .integer(1), .integer(2)])]),
    ("$-1\r\n", [.null]),
    ("*2\r\n$1\r\nw\r\n$-1\r\n", [.array([string("w"), .null])]),
    ("$5\r\n3.141\r\n", [string("3.141")]),
    ("+OK\r\n", [string("OK")]),
    ("$11\r\nHello World\r\n", [string("Hello World")]),
    (":12345\r\n", [.integer(12345)]),
    (",3.141\r\n", [.double(3.141)]),
    ("_\r\n", [.null]),
    ("~3\r\n:0\r\n:1\r\n:2\r\n", [.array([.integer(0), .integer(1), .integer(2)])]),
    (
      "%2\r\n:0\r\n#f\r\n:1\r\n#t\r\n",
      [.map([.integer(0), .boolean(false), .integer(1), .boolean(true)])]
    ),
    (
      "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n"
        + "$39\r\nSome real reply following the attribute\r\n",
      [string("Some real reply following the attribute")]
    ),
    (
      ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n$40\r\nSome real reply following the push reply\r\n",
      [
        .push([string("server-cpu-usage"), .integer(42)]),
        string("Some real reply following the push reply"),
      ]
    ),
    ("=29\r\ntxt:This is a verbatim\nstring\r\n", [string("This is a verbatim\nstring")]),
    (
      "(1234567999999999999999999999999999999\r\n",
      [string("1234567999999999999999999999999999999")]
    ),
    (
      "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
      [error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    ),
    (
      "+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n",
      [string("OK"), .push([string("invalidate"), .array([string("k")])])]
    ),
    (
      "*4\r\n:1\r\n-NO x\r\n:2\r\n_\r\n",
      [.array([.integer(1), error("NO x"), .integer(2), .null])]
    ),
    (
      "+OK\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n",
      [string("OK"), .push([string("invalidate"), .null])]
    ),
    (
      "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n"
        + "$2\r\nid\r\n:4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
        + "$7\r\nmodules\r\n*0\r\n",
      [
        .map([
          string("server"), string("redis"), string("version"), string("7.0.15"), string("proto"),
          .integer(3), string("id"), .integer(4), string("mode"), string("standalone"),
          string("role"), string("master"), string("modules"), .array([]),
        ])
      ]
    ),
  ]

  @Test("Replies of a server are read, wherever the connection divides them.")
  func replies() {
    for (text, values) in Self.replies {
      let bytes = Array(text.utf8)
      #expect(Decoded(bytes).values == values)
      #expect(Decoded(bytes, dividedAt: 1..<bytes.count).values == values, "byte by byte: \(text)")
      for end in 1..<bytes.count {
        let decoded = Decoded(bytes, dividedAt: [end])
        #expect(decoded.values == values && decoded.fault == nil, "\(text), divided at \(end)")
      }
    }
  }

  @Test("Values that the table of replies leaves out are read.")
  func rare() {
    for (text, value) in [
      ("+\r\n", Self.string("")), ("$0\r\n\r\n", Self.string("")),
      ("$2\r\n\r\n\r\n", Self.string("\r\n")), ("=4\r\nmkd:\r\n", Self.string("")),
      (":-9223372036854775808\r\n", .integer(.min)), (":+5\r\n", .integer(5)),
      (",inf\r\n", .double(.infinity)), (",-inf\r\n", .double(-.infinity)),
      (",1e-3\r\n", .double(0.001)), (",10\r\n", .double(10)), ("(-7\r\n", Self.string("-7")),
      ("!5\r\nE a\nb\r\n", Self.error("E a\nb")), ("*-1\r\n", .null), ("%0\r\n", .map([])),
      ("|0\r\n|1\r\n:1\r\n|1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", .integer(5)),
      ("*1\r\n|1\r\n:1\r\n:2\r\n*1\r\n*0\r\n", .array([.array([.array([])])])),
    ] {
      let decoded = Decoded(Array(text.utf8))
      #expect(decoded.values == [value] && decoded.fault == nil, "\(text)")
    }
    guard case .double(let number) = Decoded(Array(",nan\r\n".utf8)).values.first else {
      Issue.record("no number")
      return
    }
    #expect(number.isNaN)
  }

  @Test("Random values are read from each spelling, in pieces of random sizes.")
  func random() {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    for _ in 0..<2000 {
      let values = random.some { random in
        random.below(4) == 0
          ? .push(random.some { $0.value(depth: 1) }) : random.value(depth: 0)
      }
      var writer = RESPWriter()
      for value in values { writer.append(value, spelling: &random) }
      var ends: Set<Int> = []
      for _ in 0..<random.below(6) { ends.insert(random.below(writer.bytes.count + 1)) }
      let decoded = Decoded(writer.bytes, dividedAt: ends.sorted())
      #expect(decoded.values == values && decoded.fault == nil, "seed \(seed)")
    }
  }

  @Test(
    "Bytes that are no value are a fault, after the values before them.",
    arguments: [
      ("HTTP/1.1 400 Bad Request\r\n", RESPFault.unknownType(UInt8(ascii: "H"))),
      ("\u{15}\u{3}\u{3}", .unknownType(0x15)), ("\r\n", .unknownType(13)),
      ("+a\n", .malformed("a line that does not end with CR LF")),
      ("+\n", .malformed("a line that does not end with CR LF")),
      ("+a\rb\r\n", .malformed("a CR within a line")),
      (":\r\n", .malformed("an integer that is none")),
      (":1 \r\n", .malformed("an integer that is none")),
      (":9223372036854775808\r\n", .malformed("an integer that is none")),
      (",\r\n", .malformed("a double that is none")),
      (",0x1p3\r\n", .malformed("a double that is none")),
      (",infinity\r\n", .malformed("a double that is none")),
      ("(-\r\n", .malformed("a big number that is none")),
      ("(\r\n", .malformed("a big number that is none")),
      ("_x\r\n", .malformed("a null that is not empty")),
      ("#true\r\n", .malformed("a boolean that is neither t nor f")),
      ("$\r\n", .malformed("a length that is none")),
      ("$-2\r\n", .malformed("a length that is none")),
      ("$?\r\n", .malformed("a length that is none")),
      ("*?\r\n", .malformed("a length that is none")),
      ("!-1\r\n", .malformed("a length that is none")),
      ("=-1\r\n", .malformed("a length that is none")),
      ("%-1\r\n", .malformed("a length that is none")),
      (">-1\r\n", .malformed("a length that is none")),
      ("=3\r\ntxt\r\n", .malformed("a verbatim string without its type")),
      ("=5\r\ntextx\r\n", .malformed("a verbatim string without its type")),
      ("$1\r\nabc", .malformed("a string that is not as long as it says")),
      ("$1\r\na\n\n", .malformed("a string that is not as long as it says")),
      ("*1\r\n>0\r\n", .malformed("a push within another value")),
    ])
  func malformed(text: String, fault: RESPFault) {
    let bytes = Array("+OK\r\n".utf8) + Array(text.utf8)
    #expect(Decoded(bytes).values == [Self.string("OK")])
    #expect(Decoded(bytes).fault == fault)
    #expect(Decoded(bytes + Array("+OK\r\n".utf8), dividedAt: 1...bytes.count) == Decoded(bytes))
  }
}

extension SplitMix64 {
  /// A random value, without pushes.
  fileprivate mutating func value(depth: Int) -> RESPValue {
    switch below(depth < 4 ? 9 : 6) {
    case 0: .string(bytes(below(40)))
    case 1: .string(Array(String(next()).utf8))
    case 2: .error(RESPError(Array("ERR ".utf8) + bytes(below(10))))
    case 3: .integer(Int64(bitPattern: next()))
    case 4: .double(double())
    case 5: .null
    case 6: .boolean(below(2) == 0)
    case 7: .array(some { $0.value(depth: depth + 1) })
    default: .map(some { [$0.value(depth: depth + 1), $0.value(depth: depth + 1)] }.flatMap { $0 })
    }
  }
}
