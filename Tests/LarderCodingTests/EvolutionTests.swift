import Foundation
import Testing

@testable import Larder
@testable import Specimens

/// A type may change in the ways that JSON allows, and errors name the path.
@Suite struct EvolutionTests {
  private struct Old: Codable {
    var a = 1
    var b = "b"
    var c = [1, 2]
    var d = ["x": 1]
  }

  @Test("Fields may be added, removed, reordered and made optional.")
  func fields() throws {
    struct New: Codable, Equatable {
      var d: [String: Int]
      var new: String?
      var list: [Int]?
      var b: String?
      var a: Int?
    }
    let new = New(d: ["x": 1], new: nil, list: nil, b: "b", a: 1)
    #expect(try decoded(New.self, from: encoded(Old())) == new)
    #expect(try decoded([New].self, from: encoded([Old(), Old()])) == [new, new])
  }

  @Test("An optional field may become required if it is present.")
  func requiredFields() throws {
    struct Before: Codable { var a: Int? }
    struct After: Codable, Equatable { var a: Int }
    #expect(try decoded(After.self, from: encoded(Before(a: 3))) == After(a: 3))
    #expect(decodingFailure(After.self, from: try encoded(Before())) == "no a at []")
  }

  @Test("Numbers may change their width if they fit.")
  func widths() throws {
    #expect(try decoded(Int8.self, from: encoded(UInt64(127))) == 127)
    #expect(try decoded(UInt128.self, from: encoded(Int8(5))) == 5)
    #expect(try decoded([Int64].self, from: encoded([1, 2] as [UInt8])) == [1, 2])
    #expect(try decoded([Int].self, from: encoded([1, 2] as [Int16])) == [1, 2])
    #expect(try decoded(Double.self, from: encoded(3)) == 3)
    #expect(try decoded(Int.self, from: encoded(3.0)) == 3)
    #expect(try decoded(Float.self, from: encoded(0.1)) == 0.1)
    #expect(decodingFailure(Int8.self, from: try encoded(128)) == "corrupted at []")
    #expect(decodingFailure(UInt.self, from: try encoded(-1)) == "corrupted at []")
    #expect(decodingFailure(Int.self, from: try encoded(0.5)) == "corrupted at []")
    #expect(decodingFailure(Float.self, from: try encoded(1e300)) == "corrupted at []")
  }

  @Test("Strings may become URLs and UUIDs, and the reverse.")
  func texts() throws {
    let item = RoundTripTests.item
    let url = item.url.absoluteString
    #expect(try decoded(String.self, from: encoded(item.url)) == url)
    #expect(try decoded([URL].self, from: encoded([url])) == [item.url])
    #expect(try decoded(from: encoded([item.id])) == [item.id.uuidString])
    #expect(try decoded(from: encoded(["a": item.id.uuidString])) == ["a": item.id])
    #expect(decodingFailure([UUID].self, from: try encoded(["x"])) == "corrupted at [0]")
    #expect(decodingFailure(Data.self, from: try encoded("x")) == "not Data at []")
  }

  private struct Outer<T: Codable>: Codable {
    var list: [[String: T]]
  }

  /// The binary coder and JSON report the same mistakes in the same words.
  @Test("Errors name the same path and kind as JSON's.")
  func errorPaths() throws {
    struct Missing: Codable { var nobody: Int }
    struct Deep: Codable { var inner: [Missing] }
    func check<From: Codable, To: Codable>(_ value: From, as type: To.Type) throws {
      let json = jsonDecodingFailure(type, from: try JSONEncoder().encode(value))
      #expect(decodingFailure(type, from: try encoded(value)) == json)
      #expect(!json.hasPrefix("decoded"))
    }
    let outer = Outer(list: [[:], ["k": 1]])
    try check(outer, as: Outer<String>.self)
    try check(outer, as: Outer<Missing>.self)
    try check(outer, as: Outer<[Int]>.self)
    try check(Outer(list: [["k": [1, nil, 3]]]), as: Outer<[Int]>.self)
    try check(Outer(list: [["k": ["inner": [["nobody": 1], [:]]]]]), as: Outer<Deep>.self)
    try check(Old(), as: Missing.self)
    try check(Old(), as: Int.self)
    try check([1], as: Int.self)
    try check([Int?.none], as: [Int].self)
    try check(["a": "no url: \u{0}"], as: [String: UUID].self)
    try check([1, 2], as: Pair.self)
    try check([1], as: Pair.self)
    try check(Outer(list: [["k": Suit.hearts.rawValue + "x"]]), as: Outer<Suit>.self)
  }

  @Test("A type that encodes itself incorrectly is refused.")
  func invalidValues() throws {
    struct Mixed: Encodable {
      func encode(to encoder: any Encoder) throws {
        var list = encoder.unkeyedContainer()
        try list.encode(1)
        _ = encoder.container(keyedBy: Dynamic.Key.self)
      }
    }
    struct Double: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(1)
        try container.encode(2)
      }
    }
    struct Endless: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self)
      }
    }
    struct Down: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode(self)
      }
    }
    #expect(throws: EncodingError.self) { try encoded(Mixed()) }
    #expect(throws: EncodingError.self) { try encoded(["a": Mixed()]) }
    #expect(throws: EncodingError.self) { try encoded(Double()) }
    #expect(throws: EncodingError.self) { try encoded(Endless()) }
    #expect(throws: EncodingError.self) { try encoded([Down()]) }
  }

  @Test("A tree 64 nodes deep round-trips, and a deeper one is refused.")
  func depth() throws {
    func nested(_ depth: Int) -> Node {
      (1..<max(2, depth)).reduce(Node(value: 0)) { node, _ in Node(value: 1, children: [node]) }
    }
    // A node and the list in it are two levels.
    try expectRoundTrip(nested(64))
    #expect(throws: EncodingError.self) { try encoded(nested(65)) }
  }

  /// A type that catches the error for too many levels has nothing of its attempt in its payload.
  @Test("A value refused for its depth leaves nothing in the payload.")
  func caughtErrors() throws {
    struct Persistent: Encodable {
      enum Keys: CodingKey { case bad, good }
      var depth: Int
      var isInLists: Bool
      func encode(to encoder: any Encoder) throws {
        let inner = Persistent(depth: depth - 1, isInLists: isInLists)
        if depth > 0, isInLists {
          var container = encoder.unkeyedContainer()
          try container.encode(inner)
        } else if depth > 0 {
          var container = encoder.singleValueContainer()
          try container.encode(inner)
        } else {
          var container = encoder.container(keyedBy: Keys.self)
          _ = tried {
            if isInLists {
              try container.encode(["a"], forKey: .bad)
            } else {
              try container.encode(Level.low, forKey: .bad)
            }
          }
          try container.encode(7, forKey: .good)
        }
      }
    }
    let lists = try encoded(Persistent(depth: 126, isInLists: true))
    #expect(Binary.read(lists.span.bytes) != nil)
    #expect(throws: EncodingError.self) { try encoded(Persistent(depth: 127, isInLists: true)) }
    let values = try encoded(Persistent(depth: 511, isInLists: false))
    #expect(try decoded([String: Int].self, from: values) == ["good": 7])
    #expect(
      try decoded([String: Int].self, from: encoded(Persistent(depth: 510, isInLists: false)))
        == ["bad": -1, "good": 7])
  }

  @Test("Encoders know their coding path.")
  func encoderPaths() throws {
    struct PathRecorder: Encodable {
      func encode(to encoder: any Encoder) throws {
        let path = encoder.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
        guard encoder.userInfo.isEmpty else { throw Refusal() }
        var container = encoder.singleValueContainer()
        try container.encode(path.joined(separator: "."))
      }
    }
    let bytes = try encoded(["a": [[PathRecorder()], [PathRecorder(), PathRecorder()]]])
    #expect(try decoded(from: bytes) == ["a": [["a.0.0"], ["a.1.0", "a.1.1"]]])
  }

  @Test("Decoders know their coding path.")
  func decoderPaths() throws {
    struct PathRecorder: Decodable, Equatable {
      var path: String
      init(path: String) { self.path = path }
      init(from decoder: any Decoder) throws {
        path = decoder.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
          .joined(separator: ".")
      }
    }
    let recorders = try decoded(
      [String: [[PathRecorder]]].self, from: encoded(["a": [[1], [2, 3]]]))
    #expect(recorders["a"]?.flatMap { $0 }.map(\.path) == ["a.0.0", "a.1.0", "a.1.1"])
  }
}
