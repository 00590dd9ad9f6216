import Foundation
@testable import Larder
import LarderTestSupport
import Testing

@testable import Specimens

/// Payloads on users' disks stay readable, and the coder still writes the same bytes.
///
/// Each line of `Fixtures/payloads-1.txt` has a name and the bytes in hexadecimal. A line never
/// changes; a new version of the format gets a file of its own.
@Suite struct GoldenTests {
  private struct Golden {
    let name: String
    let bytes: () throws -> [UInt8]
    /// Whether the bytes decode to the value.
    let isRead: ([UInt8]) throws -> Bool

    init<T: Codable & Equatable>(_ name: String, _ value: T) {
      self.init(name, value, by: ==)
    }

    init<T: Codable>(_ name: String, _ value: T, by isEqual: @escaping (T, T) -> Bool) {
      self.name = name
      bytes = { try encoded(value) }
      isRead = { isEqual(try decoded(T.self, from: $0), value) }
    }
  }

  private let goldens: [Golden] = {
    let item = RoundTripTests.item
    let bare = Item(id: item.id, description: nil, location: "", url: item.url)
    let one = Expression.named(name: "one", value: .number(1))
    let date = Date(timeIntervalSinceReferenceDate: 788_918_400.1)
    return [
      Golden("null", Int?.none), Golden("bool", true), Golden("int", -2),
      Golden("string", "\u{E9}\u{1F600}"), Golden("date", date), Golden("data", Data([0, 255])),
      Golden("uuid", item.id), Golden("url", item.url), Golden("widths", Widths()),
      Golden("decimal", Decimal(sign: .minus, exponent: -2, significand: 150)),
      Golden("relative", URL(string: "b", relativeTo: URL(string: "https://example.com/a/"))),
      Golden("items", [item, bare]), Golden("optionals", Optionals()),
      Golden(
        "filled", Optionals(a: 1, c: [1, nil], d: bare, f: 1.5, g: 2, h: ["a": nil], i: date)),
      Golden("enum", Suit.hearts), Golden("level", Level.low),
      Golden("expressions", [one, .nothing, .sum(one, .number(2))]),
      Golden("tree", Node(value: 1, children: [Node(value: 2), Node(value: 3)])),
      Golden("dictionary", ["a": 1]), Golden("numbered", [-1: ["b"]]),
      Golden("pairs", [item.id: true]), Golden("set", Set([7])), Golden("lists", [[1], []]),
      Golden("doubles", [1.5, -.infinity]), Golden("floats", [1.5 as Float]),
      Golden("strings", ["", "a"]), Golden("bools", [true, false]), Golden("none", [Int]()),
      Golden("optional strings", ["a", nil]), Golden("nothing", Nothing()),
      Golden("empty", [Empty()]), Golden("interleaved", Interleaved(Array(1...9))),
      Golden("twice", Twice(a: "a", b: "b")), Golden("lists of two", TwoLists([1, 2])),
      Golden("pair", Pair(1, "a")), Golden("wrapped", Wrapped(Wrapped("a"))),
      Golden("sliders", Sliders()), Golden("forgiving", Forgiving(value: 1)),
      Golden("anything", Anything.list([.null, .object(["a": .text("b")]), .number(1)])),
      Golden("dynamic", [Dynamic(["a", "b"]), Dynamic(["a"]), Dynamic([]), Dynamic(["c"])]),
      Golden("backwards", Backwards(a: [1], b: bare, c: "c", d: ["x": "y"])),
      Golden("large names", Dynamic([String(repeating: "n", count: 4100)])),
      Golden("dog", Dog(name: "Rex", age: 3)) { $0.name == $1.name && $0.age == $1.age },
      Golden("cat", Cat(name: "Tom", lives: 9)) { $0.name == $1.name && $0.lives == $1.lives },
      Golden("nan", Double(bitPattern: 0x7FF8_0000_DEAD_BEEF)) { $0.bitPattern == $1.bitPattern },
    ]
  }()

  @Test("Every recorded payload is decoded, and encoded to the same bytes.")
  func payloads() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Fixtures/payloads-1.txt")
    var lines: [String: String] = [:]
    for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    where !line.hasPrefix("#") {
      let parts = line.components(separatedBy: ": ")
      try #require(parts.count == 2 && lines[parts[0]] == nil)
      lines[parts[0]] = parts[1]
    }
    for golden in goldens {
      let written = "\(golden.name): \(hex(try golden.bytes()))"
      let line = lines.removeValue(forKey: golden.name)
      #expect(written == "\(golden.name): \(line ?? "")")
      if let line { #expect(try golden.isRead(try bytes(line)), "\(golden.name)") }
    }
    #expect(lines.isEmpty)
  }

  private func bytes(_ hex: String) throws -> [UInt8] {
    let digits = Array(hex)
    return try stride(from: 0, to: digits.count, by: 2).map { index in
      try #require(UInt8(String(digits[index...(index + 1)]), radix: 16))
    }
  }
}

/// Values are streamed if possible, others go through a tree, and both write the same bytes.
@Suite struct StreamTests {
  private func isStreamed(_ value: some Encodable) -> Bool {
    var bytes = ByteBuffer()
    return PayloadWriter().write(value, into: &bytes)
  }

  @Test("A value that encodes its fields in order is streamed.")
  func streamed() {
    let item = RoundTripTests.item
    #expect(isStreamed([item, item]))
    #expect(isStreamed(Optionals(a: 1, c: [1, nil], d: item, h: ["a": nil])))
    #expect(isStreamed([Widths(), Widths()]))
    #expect(isStreamed(Node(value: 1, children: [Node(value: 2), Node(value: 3)])))
    #expect(isStreamed([Expression.sum(.number(1), .named(name: "n", value: nil)), .nothing]))
    #expect(isStreamed((0..<1000).map { ["key \($0)": [$0: "a"]] }))
    #expect(isStreamed([Dynamic(["a", "b"]), Dynamic(["a"]), Dynamic(["b", "a"]), Dynamic([])]))
    #expect(isStreamed(Cat(name: "Tom", lives: 9)))
    #expect(isStreamed([Dog(name: "Rex", age: 3), Dog(name: "Ace", age: 4)]))
    #expect(isStreamed([Wrapped(Wrapped("a"))]))
    #expect(isStreamed(Nothing()))
    #expect(isStreamed(["a": Anything.list([.null, .object(["a": .text("b")])])]))
    #expect(isStreamed([Suit.clubs: Decimal(3)]))
  }

  @Test("A value that encodes its fields out of order goes through a tree.")
  func notStreamed() {
    #expect(!isStreamed(Interleaved(Array(1...9))))
    #expect(!isStreamed([Twice(a: "a", b: "b")]))
    #expect(!isStreamed(["a": Forgiving(value: 1)]))
    #expect(!isStreamed((0..<300).map { Dynamic(["\($0)"]) }))
    #expect(!isStreamed(Dynamic([String(repeating: "n", count: 4100)])))
  }

  /// The two ways may differ only in the numbers that they assign to shapes.
  @Test("The stream and the tree write the same bytes.")
  func bothWays() throws {
    func check(_ value: some Encodable) throws {
      #expect(hex(try encoded(value)) == hex(try encodedByTree(value)))
    }
    let item = RoundTripTests.item
    try check([item, item])
    try check([Optionals(a: 1, c: [1, nil], d: item, h: ["a": nil]), Optionals()])
    try check([Widths(), Widths()])
    try check(["a": [1: ["b"]]])
    try check(Cat(name: "Tom", lives: 9))
    try check([Nothing()])
    try check([Pair(1, "a")])
    try check(["a": Anything.list([.null, .object(["a": .text("b")])])])
    try check([["x"], []])
    try check([URL?.none, item.url])
  }

  /// A stream is reused and caches shapes, which must not affect later payloads.
  @Test("A payload does not depend on the values encoded before it.")
  func reuse() throws {
    let item = RoundTripTests.item
    let values: [any Encodable] = [
      [Dynamic(["a", "b"]), Dynamic(["a"]), Dynamic(["b", "a"]), Dynamic([])],
      [Dynamic(["a"]), Dynamic(["a", "b"]), Dynamic(["a", "c"])], [item],
      Node(value: 1, children: [Node(value: 2)]), Optionals(d: item),
      (0..<200).map { Dynamic(["\($0)"]) }, Dog(name: "Rex", age: 3),
      [Expression.sum(.number(1), .nothing)], Data(repeating: 1, count: 1 << 19),
    ]
    let first = try values.map { hex(try encoded($0)) }
    var random = SplitMix64(seed: 1)
    for _ in 0..<300 {
      let index = Int.random(in: 0..<values.count, using: &random)
      #expect(hex(try encoded(values[index])) == first[index])
    }
  }

  @Test("A value may contain another encoded payload.")
  func nestedPayloads() throws {
    struct Sealed: Codable, Equatable {
      var item: Item
      init(_ item: Item) { self.item = item }
      init(from decoder: any Decoder) throws {
        let bytes = try decoder.singleValueContainer().decode([UInt8].self)
        item = try decoded(from: bytes)
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(try encoded(item))
      }
    }
    let item = RoundTripTests.item
    try expectRoundTrip([["a": Sealed(item)], ["b": Sealed(item)]])
  }

  /// Keeps the containers that it received.
  private final class Keeper: Encodable {
    var kept: [any UnkeyedEncodingContainer] = []
    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      try container.encode(1)
      kept.append(container)
    }
    func encodeLate() {
      for index in kept.indices { _ = tried { try kept[index].encode("late") } }
    }
  }

  /// An encoder that outlives its call must not write into a buffer that is in use again.
  @Test("An encoder that outlives its call does not affect later payloads.")
  func keptEncoders() throws {
    let keeper = Keeper()
    #expect(try decoded(from: encoded(keeper)) == [1])
    let value = [RoundTripTests.item]
    let before = hex(try encoded(value))
    keeper.encodeLate()
    #expect(hex(try encoded(value)) == before)
  }

  /// It must not make a value that is being encoded start again, either.
  @Test("An encoder that outlives its call does not restart the next value.")
  func keptEncoderInUse() throws {
    final class Disturbed: Encodable {
      let keeper: Keeper
      var calls = 0
      init(_ keeper: Keeper) { self.keeper = keeper }
      func encode(to encoder: any Encoder) throws {
        calls += 1
        var container = encoder.unkeyedContainer()
        try container.encode(1)
        keeper.encodeLate()
        try container.encode(2)
      }
    }
    // Repeated, because a test that runs at the same time may take the stream of the next value.
    for _ in 0..<50 {
      let keeper = Keeper()
      #expect(try decoded(from: encoded(keeper)) == [1])
      let value = Disturbed(keeper)
      #expect(try decoded(from: encoded(value)) == [1, 2])
      #expect(value.calls == 1)
    }
  }

  @Test("Several threads can encode and decode at once.")
  func threads() async throws {
    let results = await withTaskGroup(of: Bool.self) { group in
      for task in 0..<8 {
        group.addTask {
          tried {
            for step in 0..<500 {
              let nodes = [Node(value: task, children: [Node(value: step)])]
              let items = [RoundTripTests.item]
              guard try decoded(from: encoded(nodes)) == nodes,
                try decoded(from: encoded(items)) == items
              else { throw Refusal() }
            }
          } != nil
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results == Array(repeating: true, count: 8))
  }
}
