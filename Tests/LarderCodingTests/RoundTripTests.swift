import Foundation
@testable import Larder
import LarderTestSupport
import Testing

@testable import Specimens

/// Values of every shape of type round-trip.
@Suite struct RoundTripTests {
  static let item = Item(
    id: UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)),
    description: "a description", location: nil,
    url: URL(filePath: "/images/a b.png"))

  @Test("Numbers of every width round-trip.")
  func numbers() throws {
    try expectRoundTrip(Widths())
    try expectRoundTrip([Int128.min, 0, .max])
    try expectRoundTrip([UInt128.max])
  }

  @Test("Arrays of numbers of every width round-trip.")
  func arrays() throws {
    func check<T: FixedWidthInteger & Codable>(_ type: T.Type) throws {
      try expectRoundTrip([T.min, 0, 1, .max])
      try expectRoundTrip([T]())
      try expectRoundTrip([[T.max], [], [T.min]])
      try expectRoundTrip(["a": [T.max]])
    }
    try check(Int.self)
    try check(Int8.self)
    try check(Int16.self)
    try check(Int32.self)
    try check(Int64.self)
    try check(UInt.self)
    try check(UInt8.self)
    try check(UInt16.self)
    try check(UInt32.self)
    try check(UInt64.self)
    try expectRoundTrip([true, false])
    try expectRoundTrip([Float.pi, -0.0])
    try expectRoundTrip([Double.pi, -0.0])
  }

  @Test(
    "Doubles keep their bits.",
    arguments: [
      Double.nan.bitPattern, Double.signalingNaN.bitPattern, 0x7FF8_0000_DEAD_BEEF,
      0xFFF8_0000_0000_0001, Double.infinity.bitPattern, (-Double.infinity).bitPattern,
      (-0.0).bitPattern, 1,
    ])
  func doubles(bits: UInt64) throws {
    let value = Double(bitPattern: bits)
    #expect(try decoded(Double.self, from: encoded(value)).bitPattern == bits)
    #expect(try decoded([Double].self, from: encoded([value])).map(\.bitPattern) == [bits])
    let date = Date(timeIntervalSinceReferenceDate: value)
    let back = try decoded(Date.self, from: encoded(date))
    #expect(back.timeIntervalSinceReferenceDate.bitPattern == bits)
  }

  @Test(
    "Floats keep their bits.",
    arguments: [Float.nan.bitPattern, 0x7FC0_BEEF, Float.infinity.bitPattern, 0x8000_0000])
  func floats(bits: UInt32) throws {
    #expect(try decoded(Float.self, from: encoded(Float(bitPattern: bits))).bitPattern == bits)
    let list = [Float(bitPattern: bits)]
    #expect(try decoded([Float].self, from: encoded(list)).map(\.bitPattern) == [bits])
  }

  @Test("Top-level scalars round-trip.")
  func scalars() throws {
    try expectRoundTrip(true)
    try expectRoundTrip(-1)
    try expectRoundTrip("")
    try expectRoundTrip(String(repeating: "\u{E9}", count: 100_000))
    try expectRoundTrip(Int?.none)
    try expectRoundTrip(Int??.some(.some(3)))
    try expectRoundTrip(Suit.hearts)
    try expectRoundTrip(Level.low)
  }

  @Test("Optional fields and elements round-trip.")
  func optionals() throws {
    try expectRoundTrip(Optionals())
    try expectRoundTrip(
      Optionals(
        a: 1, b: "b", c: [1, nil, 3], d: Self.item, e: false, f: 1.5, g: 255,
        h: ["a": 1, "b": nil], i: Date(timeIntervalSinceReferenceDate: 0.1), j: Data([0, 255]),
        k: Self.item.url, l: .max))
    try expectRoundTrip([Optionals(a: 1), Optionals(b: ""), Optionals(), Optionals(c: [])])
    try expectRoundTrip([String?.none, "a", nil])
    try expectRoundTrip([Item?.none, Self.item])
  }

  @Test("Foundation's types round-trip.")
  func foundationTypes() throws {
    try expectRoundTrip([Date.distantPast, .distantFuture, Date(timeIntervalSince1970: 0.1)])
    try expectRoundTrip([Data(), Data([1]), Data(repeating: 7, count: 100_000)])
    try expectRoundTrip(Data(Array(0...9))[3..<5])
    try expectRoundTrip([UUID(), UUID()])
    let base = try #require(URL(string: "https://example.com/a/"))
    let relative = try #require(URL(string: "b?c=d#e", relativeTo: base))
    #expect(try decoded(URL.self, from: encoded(relative)) == relative)
    #expect(try decoded([URL].self, from: encoded([base, relative])) == [base, relative])
    #expect(try decoded([URL?].self, from: encoded([nil, relative])) == [nil, relative])
    #expect(
      try decoded([String: URL].self, from: encoded(["a": relative])) == ["a": relative])
    let odd = Item(id: UUID(), description: nil, location: nil, url: relative)
    #expect(try decoded([Item].self, from: encoded([Self.item, odd])) == [Self.item, odd])
    #expect(try decoded(Optionals.self, from: encoded(Optionals(k: relative))).k == relative)
    let decimals = ["0", "-1.5", "123456789012345678901234567890", "1e-120", "NaN"]
    for text in decimals {
      let decimal = Decimal(string: text) ?? Decimal.nan
      #expect(try decoded(Decimal.self, from: encoded(decimal)) == decimal || decimal.isNaN)
    }
    try expectRoundTrip(DateComponents(calendar: nil, year: 2026, month: 2))
    try expectRoundTrip(IndexSet([1, 2, 5]))
    try expectRoundTrip(Locale(identifier: "de_DE"))
    try expectRoundTrip(DateInterval(start: .distantPast, duration: 5))
    try expectRoundTrip(Measurement(value: 3, unit: UnitLength.meters))
    try expectRoundTrip(CGRect(x: 1, y: 2, width: 3, height: 4))
  }

  @Test("Collections round-trip.")
  func collections() throws {
    try expectRoundTrip(["a": 1, "": 2, "\u{E9}": 3])
    try expectRoundTrip([1: "a", -1: "b"])
    try expectRoundTrip([Self.item.id: 1, UUID(): 2])
    try expectRoundTrip([Suit.clubs: 1, .hearts: 2])
    try expectRoundTrip(["a": ["b": ["c": [1, 2]]], "d": [:]])
    try expectRoundTrip([[1: ["x"]], [:]])
    try expectRoundTrip(Set(["a", "b"]))
    try expectRoundTrip(Set([1, 2, 3]))
    try expectRoundTrip(ContiguousArray([1, 2]))
    try expectRoundTrip(1..<5)
    try expectRoundTrip(["a"..."c"])
    try expectRoundTrip([[], [[]], [[1], []]] as [[[Int]]])
    try expectRoundTrip([String: Int]())
  }

  @Test("Classes with a superclass round-trip.")
  func classes() throws {
    let dog = try decoded(Dog.self, from: encoded(Dog(name: "Rex", age: 3)))
    #expect(dog.name == "Rex" && dog.age == 3)
    let cat = try decoded(Cat.self, from: encoded(Cat(name: "Tom", lives: 9)))
    #expect(cat.name == "Tom" && cat.lives == 9)
    let dogs = try decoded(
      [Dog].self, from: encoded((0..<5).map { Dog(name: "d\($0)", age: $0) }))
    #expect(dogs.map(\.name) == ["d0", "d1", "d2", "d3", "d4"])
  }

  @Test("Enums with associated values round-trip.")
  func enumsWithPayloads() throws {
    let one = Expression.named(name: "one", value: .number(1))
    try expectRoundTrip(Expression.nothing)
    try expectRoundTrip(Expression.sum(one, .sum(.nothing, .named(name: "", value: nil))))
    try expectRoundTrip([one, .nothing, .number(.infinity), one])
  }

  @Test("Types that encode themselves in unusual ways round-trip.")
  func unusualTypes() throws {
    try expectRoundTrip(Interleaved(Array(1...9)))
    try expectRoundTrip([Interleaved(Array(1...9)), Interleaved(Array(11...19))])
    try expectRoundTrip(Nothing())
    try expectRoundTrip([Nothing(), Nothing()])
    try expectRoundTrip(["a": Nothing()])
    try expectRoundTrip(Empty())
    try expectRoundTrip([Empty(), Empty()])
    try expectRoundTrip(Twice(a: "a", b: "b"))
    try expectRoundTrip([Twice(a: "a", b: "b"), Twice(a: "", b: "")])
    try expectRoundTrip(TwoLists([1, 2, 3]))
    try expectRoundTrip([TwoLists([]), TwoLists([1])])
    try expectRoundTrip([Pair(1, "a"), Pair(2, "b")])
    try expectRoundTrip(Wrapped(Wrapped(Self.item)))
    try expectRoundTrip([Wrapped([Wrapped("a")]), Wrapped([])])
    try expectRoundTrip(Sliders())
    try expectRoundTrip(Forgiving(value: 7))
    try expectRoundTrip([Forgiving(value: 7), Forgiving(value: 8)])
    try expectRoundTrip(["a": Forgiving(value: 7), "b": Forgiving(value: 8)])
    // A failed field with no field after it.
    struct Last: Codable, Equatable {
      var good = 7
      var bad: String?
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(good, forKey: .good)
        _ = tried { try container.encode(Halfway(), forKey: .bad) }
      }
    }
    try expectRoundTrip(Last())
    try expectRoundTrip([Last(), Last()])
    try expectRoundTrip(["a": Wrapped(Last())])
    try expectRoundTrip(
      Backwards(a: [1, 2], b: Self.item, c: "c", d: ["x": "y", "": ""]))
    try expectRoundTrip(
      [Backwards(a: [], b: nil, c: "", d: [:]), Backwards(a: [1], b: nil, c: "", d: ["a": ""])])
    try expectRoundTrip(
      Anything.object(["a": .list([.null, .truth(true), .number(1), .text("x")]), "b": .null]))
  }

  @Test("Recursive types round-trip.")
  func trees() throws {
    let leaf = Node(value: 1)
    try expectRoundTrip(
      Node(value: 3, children: [leaf, Node(value: 2, children: [leaf]), leaf]))
  }

  @Test("Values with many names and many shapes round-trip.")
  func manyShapes() throws {
    // More fields than a linear search handles, more shapes than there are numbers, and names
    // longer than a table may be.
    try expectRoundTrip(Dynamic((0..<40).map { "field \($0)" }))
    try expectRoundTrip((0..<400).map { Dynamic(["a\($0)", "b"]) })
    try expectRoundTrip([Dynamic([String(repeating: "x", count: 5000), "y"]), Dynamic(["y"])])
    try expectRoundTrip(
      (0..<3).map { Dynamic(["\($0)", "same", String(repeating: "z", count: 1500)]) })
    try expectRoundTrip((0..<300).map { ["key \($0)": $0] })
  }

  @Test("Encoding keeps the bytes before the payload.")
  func precedingBytes() throws {
    var buffer = ByteBuffer()
    buffer.append([7, 7])
    try Binary.encode(["a"], into: &buffer)
    let whole = Array(buffer)
    #expect(whole.starts(with: [7, 7]))
    #expect(try decoded([String].self, from: Array(whole.dropFirst(2))) == ["a"])
    do {
      try Binary.encode(["a": Halfway()], into: &buffer)
      Issue.record("a value that throws was encoded")
    } catch is Refusal {
    }
    #expect(Array(buffer) == whole)
  }

  /// A value may keep its decoder and use it after the bytes have changed.
  @Test("A decoder can be used after the call that made it.")
  func keptDecoders() throws {
    struct Lazy: Decodable {
      let decoder: any Decoder
      init(from decoder: any Decoder) throws { self.decoder = decoder }
    }
    var bytes = try encoded(["a": [Self.item]])
    let lazy = try decoded(Lazy.self, from: bytes)
    for index in bytes.indices { bytes[index] = 0xFF }
    #expect(try [String: [Item]](from: lazy.decoder) == ["a": [Self.item]])
  }

  /// A null has no bytes, so the next field starts at the same offset.
  @Test("A null is not confused with the field after it.")
  func nulls() throws {
    struct Fields: Codable, Equatable {
      var second = Level.high
      var third = "third"
      private enum Keys: CodingKey { case first, second, third }

      init() {}
      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        second = try container.decode(Level.self, forKey: .second)
        guard try container.decode(Anything.self, forKey: .first) == .null else { throw Refusal() }
        third = try container.decode(String.self, forKey: .third)
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeNil(forKey: .first)
        try container.encode(second.rawValue, forKey: .second)
        try container.encode(third, forKey: .third)
      }
    }
    try expectRoundTrip(Fields())
    struct Second: Codable, Equatable { var second: Level }
    struct Outer<T: Codable & Equatable>: Codable, Equatable {
      var inner: T
      var after = "after"
    }
    // An object that was decoded in part is skipped to its end.
    #expect(
      try decoded(from: encoded(Outer(inner: Fields()))) == Outer(inner: Second(second: .high)))
  }

  @Test("Several threads can decode an empty list at once.")
  func emptyListsOnThreads() throws {
    let bytes = try encoded([Int]())
    onThreads(4) { _ in
      for _ in 0..<100 {
        #expect(throws: Never.self) { try decoded([Int].self, from: bytes) }
      }
    }
  }
}
