import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// Maps and sets are decoded without a container, and as by one.
@Suite struct CollectionTests {
  /// Decodes a dictionary as the standard library does.
  private struct ByContainer<Value: Decodable>: Decodable {
    var values: [String: Value] = [:]

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: PathKey.self)
      for key in container.allKeys {
        values[key.stringValue] = try container.decode(Value.self, forKey: key)
      }
    }
  }

  private struct Point: Codable, Equatable {
    var x: Int
    var y: String?
  }

  private enum Shade: Codable, Equatable { case dark(Int), light }

  private func outcome<T>(_ body: () throws -> T) -> T? {
    do { return try body() } catch { return nil }
  }

  private func text<Value>(of maps: [[String: Value]]?) -> String {
    "\(maps?.map { map in map.sorted { $0.key < $1.key } } as Any)"
  }

  private func expectSame<Value: Codable & Equatable>(
    _ values: [String: Value], at place: SourceLocation = #_sourceLocation
  ) throws {
    try expectRoundTrip(values, at: place)
    var random = SplitMix64(seed: testSeed())
    let bytes = try encoded([values, values])
    for round in 0..<400 {
      var changed = bytes
      if round > 0 {
        changed[Int.random(in: 0..<bytes.count, using: &random)] = UInt8(random.next() % 256)
      }
      let expected = outcome {
        try decoded([ByContainer<Value>].self, from: changed).map(\.values)
      }
      let found = outcome { try decoded([[String: Value]].self, from: changed) }
      // A changed byte may make a number NaN, which equals nothing.
      #expect(
        found == expected || text(of: found) == text(of: expected), "\(changed)",
        sourceLocation: place)
    }
  }

  @Test("A map decodes as it does by a container, from changed payloads too.")
  func maps() throws {
    try expectSame(["a": "b", "": "c"])
    try expectSame(["a": 1, "b": -1])
    try expectSame(["a": 1.5])
    try expectSame(["a": true, "b": false])
    try expectSame(["a": UInt8(1)])
    try expectSame(["a": Int?.none, "b": 2])
    try expectSame(["a": Point(x: 1, y: nil), "b": Point(x: 2, y: "z")])
    try expectSame(["a": [Point(x: 1)], "b": []])
    try expectSame(["a": ["b": ["c": 1]], "d": [:]])
    try expectSame(["a": Shade.dark(1), "b": .light])
    try expectSame(["a": Date(timeIntervalSince1970: 0.1)])
    try expectSame([String: Int]())
  }

  @Test("An object is read as a map without its absent fields.")
  func objects() throws {
    let bytes = try encoded([["a": "b"], ["a": nil]].map { Texts(a: $0["a"] ?? nil, c: "d") })
    #expect(
      try decoded([[String: String]].self, from: bytes) == [["a": "b", "c": "d"], ["c": "d"]])
  }

  private struct Texts: Codable {
    var a: String?
    var c: String
  }

  @Test("The error for an entry names the path to it.")
  func errors() throws {
    let bytes = try encoded([["a": 1], ["b": 2], ["c": 3]])
    for type in [[[String: Bool]].self, [[String: String]].self, [[String: Point]].self]
      as [any Decodable.Type]
    {
      func failure<T: Decodable>(_ type: T.Type) -> String { decodingFailure(type, from: bytes) }
      #expect(failure(type).hasSuffix("at [0.a]"), "\(type)")
    }
  }

  @Test("Sets decode from lists.")
  func sets() throws {
    try expectRoundTrip(Set(["a", "b", ""]))
    try expectRoundTrip(Set([1, 2, 3]))
    try expectRoundTrip([Set([Int?.none, 1])])
    try expectRoundTrip(["a": Set<String>()])
    #expect(try decoded(Set<String>.self, from: encoded(["a", "b", "a"])) == ["a", "b"])
    #expect(try decoded(Set<Int?>.self, from: encoded([1, nil, 1])) == [1, nil])
  }
}
