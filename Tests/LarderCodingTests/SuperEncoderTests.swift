@testable import Larder
import LarderTestSupport
import Testing

@testable import Specimens

/// Super encoders, which write in the place of a field or an element.
@Suite struct SuperEncoderTests {
  enum Keys: CodingKey { case a, b }

  /// A value that is encoded by a function.
  private struct Value: Encodable {
    let body: (any Encoder) throws -> Void
    func encode(to encoder: any Encoder) throws { try body(encoder) }
  }

  // The arguments are not values themselves: Swift Testing would encode them as JSON.
  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    fileprivate let body: @Sendable (any Encoder) throws -> Void

    init(_ name: String, _ body: @escaping @Sendable (any Encoder) throws -> Void) {
      (testDescription, self.body) = (name, body)
    }
  }

  private static func fields(
    _ name: String,
    _ body: @escaping @Sendable (inout KeyedEncodingContainer<Keys>) throws -> Void
  ) -> Case {
    Case(name) { encoder in
      var fields = encoder.container(keyedBy: Keys.self)
      try body(&fields)
    }
  }

  private static let item = RoundTripTests.item

  // MARK: - In order

  static let inOrder = [
    fields("before the fields") {
      try item.encode(to: $0.superEncoder())
      try $0.encode(1, forKey: .a)
    },
    fields("after the fields") {
      try $0.encode(1, forKey: .a)
      try item.encode(to: $0.superEncoder())
    },
    fields("two in a row") {
      try item.encode(to: $0.superEncoder(forKey: .b))
      try item.encode(to: $0.superEncoder(forKey: .a))
    },
    fields("one within the other") {
      var inner = $0.superEncoder().container(keyedBy: Keys.self)
      try inner.encode("in", forKey: .b)
      try item.encode(to: inner.superEncoder())
      try $0.encode(1, forKey: .a)
    },
    fields("unused") {
      _ = $0.superEncoder()
      try $0.encode(1, forKey: .a)
    },
    fields("unused at the end") {
      try $0.encode(1, forKey: .a)
      _ = $0.superEncoder()
    },
    fields("without fields") {
      _ = $0.superEncoder().container(keyedBy: Keys.self)
      _ = $0.superEncoder(forKey: .a).unkeyedContainer()
    },
    fields("asked twice for its fields") {
      let encoder = $0.superEncoder()
      var one = encoder.container(keyedBy: Keys.self)
      try one.encode(1, forKey: .a)
      var two = encoder.container(keyedBy: Keys.self)
      try two.encode(2, forKey: .b)
    },
    fields("asked twice for its elements") {
      let encoder = $0.superEncoder()
      var one = encoder.unkeyedContainer()
      try one.encode(1)
      var two = encoder.unkeyedContainer()
      try two.encode(2)
    },
    fields("single values") {
      var number = $0.superEncoder(forKey: .a).singleValueContainer()
      try number.encode(7)
      var list = $0.superEncoder(forKey: .b).singleValueContainer()
      try list.encode([item])
      var none = $0.superEncoder().singleValueContainer()
      try none.encodeNil()
    },
    fields("a dictionary in a single value") {
      var map = $0.superEncoder().singleValueContainer()
      try map.encode(["x": item])
    },
    fields("a dictionary that encodes itself") {
      try ["x": item].encode(to: $0.superEncoder())
    },
    Case("elements") { encoder in
      var list = encoder.unkeyedContainer()
      try list.encode("first")
      try item.encode(to: list.superEncoder())
      var number = list.superEncoder().singleValueContainer()
      try number.encode(1.5)
      _ = list.superEncoder()
      var inner = list.superEncoder().unkeyedContainer()
      try inner.encode(true)
      var nested = list.nestedUnkeyedContainer()
      try nested.encode(2)
    },
    Case("kept until the end") { encoder in
      var list = encoder.unkeyedContainer()
      let encoders = [list.superEncoder(), list.superEncoder(), list.superEncoder()]
      try item.encode(to: encoders[2])
    },
  ]

  @Test("A value that uses its super encoders in order is streamed.", arguments: inOrder)
  func streamed(way: Case) throws {
    let writer = PayloadWriter()
    let value = Value(body: way.body)
    // The second list finds the shapes and the links of the first one.
    for values in [[value], [value, value], [value, value, value]] {
      var bytes = ByteBuffer()
      #expect(writer.write(values, into: &bytes))
      writer.endPayload()
      let (streamed, byTree) = (hex(Array(bytes)), hex(try encodedByTree(values)))
      #expect(streamed == byTree)
    }
  }

  // MARK: - Out of order

  static let outOfOrder = [
    fields("used after a field") {
      let encoder = $0.superEncoder()
      try $0.encode(1, forKey: .a)
      try item.encode(to: encoder)
    },
    fields("used after another one") {
      let encoder = $0.superEncoder()
      try item.encode(to: $0.superEncoder(forKey: .b))
      try item.encode(to: encoder)
    },
    fields("handed out twice") {
      var one = $0.superEncoder().container(keyedBy: Keys.self)
      try one.encode(1, forKey: .a)
      var two = $0.superEncoder().container(keyedBy: Keys.self)
      try two.encode(2, forKey: .b)
    },
    fields("used within another value") { fields in
      let encoder = fields.superEncoder()
      try fields.encode(Value { _ in try item.encode(to: encoder) }, forKey: .a)
    },
    fields("used within a value of its own") { fields in
      let encoder = fields.superEncoder()
      var inner = encoder.container(keyedBy: Keys.self)
      let again = Value { own in
        var fields = own.container(keyedBy: Keys.self)
        try fields.encode(1, forKey: .a)
        var outer = encoder.container(keyedBy: Keys.self)
        try outer.encode(2, forKey: .b)
      }
      try inner.encode(again, forKey: .a)
    },
    fields("of a path") {
      _ = $0.superEncoder().codingPath
    },
    Case("elements used in another order") { encoder in
      var list = encoder.unkeyedContainer()
      let encoders = [list.superEncoder(), list.superEncoder()]
      try item.encode(to: encoders[1])
      try item.encode(to: encoders[0])
    },
  ]

  @Test("A value that uses them out of order has the payload of its tree.", arguments: outOfOrder)
  func notStreamed(way: Case) throws {
    let values = [Value(body: way.body), Value(body: way.body)]
    var bytes = ByteBuffer()
    #expect(!PayloadWriter().write(values, into: &bytes))
    #expect(hex(try encoded(values)) == hex(try encodedByTree(values)))
  }

  // MARK: - Errors

  static let invalid = [
    fields("two single values") {
      var single = $0.superEncoder().singleValueContainer()
      try single.encode(1)
      try single.encode(2)
    },
    fields("a single value after fields") {
      let encoder = $0.superEncoder()
      var fields = encoder.container(keyedBy: Keys.self)
      try fields.encode(1, forKey: .a)
      var single = encoder.singleValueContainer()
      try single.encode(2)
    },
    fields("elements after fields") {
      let encoder = $0.superEncoder()
      _ = encoder.container(keyedBy: Keys.self)
      var list = encoder.unkeyedContainer()
      try list.encode(2)
    },
    fields("fields after a single value") {
      let encoder = $0.superEncoder()
      var single = encoder.singleValueContainer()
      try single.encode(1)
      var fields = encoder.container(keyedBy: Keys.self)
      try fields.encode(1, forKey: .a)
    },
    fields("too deep") { fields in
      func nest(_ encoder: any Encoder, _ levels: Int) throws {
        var fields = encoder.container(keyedBy: Keys.self)
        try fields.encode(1, forKey: .a)
        if levels > 0 { try nest(fields.superEncoder(), levels - 1) }
      }
      try nest(fields.superEncoder(), 1000)
    },
  ]

  @Test("Two forms of one value are refused, and a nesting too deep.", arguments: invalid)
  func refused(way: Case) throws {
    #expect(throws: EncodingError.self) { try encoded([Value(body: way.body)]) }
    // The error leaves nothing behind.
    let item = RoundTripTests.item
    #expect(hex(try encoded([item])) == hex(try encodedByTree([item])))
  }

  @Test("A super encoder refuses everything after the payload.")
  func kept() throws {
    final class Keeper: Encodable {
      var kept: [any Encoder] = []
      func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: Keys.self)
        kept += [fields.superEncoder(), fields.superEncoder(forKey: .a)]
        try RoundTripTests.item.encode(to: kept[kept.count - 1])
      }
    }
    let keepers = [Keeper(), Keeper()]
    let writer = PayloadWriter()
    var bytes = ByteBuffer()
    #expect(writer.write(keepers, into: &bytes))
    writer.endPayload()
    for encoder in keepers.flatMap(\.kept) {
      #expect(throws: (any Error).self) { try RoundTripTests.item.encode(to: encoder) }
      var single = encoder.singleValueContainer()
      #expect(throws: (any Error).self) { try single.encode(1) }
    }
    var later = ByteBuffer()
    #expect(writer.write([RoundTripTests.item], into: &later))
    writer.endPayload()
    #expect(hex(Array(later)) == hex(try encodedByTree([RoundTripTests.item])))
  }
}
