import Foundation
import Testing

@testable import Larder

/// Generated functions write what `Codable` writes, and read it.
@Suite struct PayloadTests {
  private func expectSame<T: DirectCoding & Equatable>(
    _ value: T, at place: SourceLocation = #_sourceLocation
  ) throws {
    var buffer = ByteBuffer()
    try Binary.encode(value, into: &buffer)
    let byCodable = Array(buffer)
    let route = DirectRoute<T>()
    for _ in 0..<2 {
      buffer.truncate(to: 0)
      try route.encode(value, into: &buffer)
      let direct = Array(buffer)
      let (written, expected) = (
        Binary.read(direct.span.bytes), Binary.read(byCodable.span.bytes)
      )
      #expect("\(try #require(written))" == "\(try #require(expected))", sourceLocation: place)
      #expect(
        try direct.withUnsafeBytes { try route.read($0) } == value, "read directly",
        sourceLocation: place)
      #expect(try Binary.decode(T.self, from: direct.span.bytes) == value, sourceLocation: place)
    }
  }

  @Test("Each form of property is saved as by Codable.")
  func properties() throws {
    try expectSame(Properties(1, "c"))
    var full = Properties(-1, "", url: URL(string: "https://example.com"))
    (full.optional, full.spelledOut, full.qualified, full.implicit) = ("o", 1, .nan, 2)
    full.nested = [["a": 1], ["b": nil]]
    try expectSame(full)
    try expectSame(Properties.Inner(x: 3))
  }

  @Test("Each form of case is saved as by Codable.")
  func cases() throws {
    let choices: [Choice] = [
      .none, .one(1), .default, .labels(a: 1, b: nil, nil), .labels(a: 1, b: "b", 0.5),
      .last(in: true), .fields(fields: .a, self: [.none, .one(2)]),
      .nested(.one(1), ["a": .one(1), "b": nil]),
    ]
    try expectSameEnum(choices)
    try expectSameEnum([Choice.Number.zero])
    try expectSameEnum([RenamedChoice.a(1.5), .b(x: nil, 1), .b(x: 2.5, 1)])
    try expectSameEnum([DirectChoice.on, .off(at: .distantPast)])
  }

  /// Both routes write the same bytes, because the values hold no list of structs.
  private func expectSameEnum<T: DirectEnum & Equatable>(
    _ values: [T], at place: SourceLocation = #_sourceLocation
  ) throws {
    let coder = Coder<[T]>.binary
    for value in values {
      var direct = ByteBuffer()
      var byCodable = ByteBuffer()
      try coder.encode([value], &direct)
      try Binary.encode([value], into: &byCodable)
      let bytes = Array(direct)
      #expect(bytes == Array(byCodable), sourceLocation: place)
      #expect(try coder.decode(bytes.span.bytes) == [value], sourceLocation: place)
    }
  }

  @Test("Private properties are saved as by Codable, by functions in their file.")
  func privateProperties() throws {
    try expectSame(Account(number: 7, note: nil))
    try expectSame(Account(number: -7, note: "n"))
    try expectSame(Account.Key([1, 2, 3]))
  }

  @Test("Coding keys name and order the fields.")
  func codingKeys() throws {
    try expectSame(Renamed(id: 1, title: "t", note: nil))
    try expectSame(Renamed(id: 1, title: "t", note: "n"))
    try expectSame(Plainly(a: 1, b: 2))
    try expectSame(Versioned(name: "n"))
  }

  @Test("Each form of declaration is saved as by Codable.")
  func declarations() throws {
    try expectSame(Extended(a: "a"))
    try expectSame(Halves(a: "a"))
    try expectSame(Page(items: [1], note: "n", next: nil))
    try expectSame(Page(items: ["a"], note: Public?.none, next: Public(x: 1)))
    try expectSame(Outer.Middle(value: 1))
    try expectSame(Outer.Middle.Innermost(value: "a"))
    try expectSame(Outer.Middle.Added(value: [1.5]))
    try expectSame(Outer.Holder.Held(value: Date(timeIntervalSince1970: 1)))
    try expectSame(Uncoded.Coded(x: 1))
    try expectSame(Direct(x: 1))
    try expectSame(Attributed.Nested(x: 1))
    try expectSame(Public(x: 1))
    try expectSame(Packaged(x: 1))
    try expectSame(Space.Explicit(x: 1))
    try expectSame(Space.Implicit(x: 1))
  }
}
