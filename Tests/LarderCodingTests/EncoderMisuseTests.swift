import Foundation
@testable import Larder
import LarderTestSupport
import Synchronization
import Testing

@testable import Specimens

/// Encoders and containers that types request, keep and use in unusual ways.
@Suite struct EncoderMisuseTests {
  private enum Keys: CodingKey { case a, b }

  // MARK: - Kept

  /// Keeps its encoder, its container and, if it needs a tree, two super encoders.
  // @unchecked: one thread at a time uses it.
  private final class Keeper: Encodable, @unchecked Sendable {
    private var encoders: [any Encoder] = []
    private var fields: [KeyedEncodingContainer<Keys>] = []
    private let usesTree: Bool
    init(usesTree: Bool) { self.usesTree = usesTree }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode("kept", forKey: .a)
      (encoders, fields) = ([encoder], [container])
      if usesTree {
        encoders += [container.superEncoder(), container.superEncoder(forKey: .b)]
        // A stream does not know the path.
        _ = container.codingPath
      }
    }

    /// Encodes with everything that is kept, and returns the number of errors.
    func encodeLate() -> Int {
      var failures = 0
      func attempt(_ body: () throws -> Void) { if tried(body) == nil { failures += 1 } }
      for index in fields.indices { attempt { try fields[index].encode("late", forKey: .b) } }
      for encoder in encoders {
        var container = encoder.container(keyedBy: Keys.self)
        attempt { try container.encode(RoundTripTests.item, forKey: .b) }
        var list = encoder.unkeyedContainer()
        attempt { try list.encode("late") }
        var single = encoder.singleValueContainer()
        attempt { try single.encode("late") }
      }
      return failures
    }
  }

  private static let kept = Mutex<[Keeper]>([])

  @Test("What a type keeps in a global refuses everything, whichever thread uses it.")
  func otherThreads() throws {
    let items = [RoundTripTests.item, RoundTripTests.item]
    let expected = try encoded(items)
    let own = try encoded([Keeper(usesTree: false)])
    for _ in 0..<10 {
      // Each thread uses what another one kept, while all of them encode values of these types.
      let keepers = (0..<8).map { _ in Keeper(usesTree: false) }
      Self.kept.withLock { $0 = keepers }
      onThreads(8) { thread in
        _ = tried { try encoded([keepers[thread], keepers[thread]]) }
      }
      let wrong = Mutex(0)
      onThreads(8) { thread in
        let isRight: Void? = tried {
          for _ in 0..<20 {
            let late = Self.kept.withLock { $0[(thread + 1) % 8] }.encodeLate()
            guard late == 4, try encoded(items) == expected,
              try encoded([Keeper(usesTree: false)]) == own
            else { throw Refusal() }
          }
        }
        if isRight == nil { wrong.withLock { $0 += 1 } }
      }
      #expect(wrong.withLock { $0 } == 0)
    }
    Self.kept.withLock { $0 = [] }
  }

  @Test("What a type keeps of a tree does not change the payload, nor the next ones.")
  func keptOfTree() throws {
    let keeper = Keeper(usesTree: true)
    let bytes = try encoded(["x": keeper])
    let fields = try decoded([String: Shown].self, from: bytes)
    #expect(fields["x"]?.a == "kept")
    _ = keeper.encodeLate()
    #expect(hex(try encoded(["x": Keeper(usesTree: true)])) == hex(bytes))
    #expect(try decoded(from: encoded([1, 2])) == [1, 2])
  }

  private struct Shown: Decodable { var a: String }

  // MARK: - Superclasses

  private class Base: Codable {
    var base: String
    init(base: String) { self.base = base }
  }

  private class Middle: Base {
    var middle: [Int]
    private enum Keys: CodingKey { case middle }
    init(base: String, middle: [Int]) {
      self.middle = middle
      super.init(base: base)
    }
    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      middle = try container.decode([Int].self, forKey: .middle)
      try super.init(from: try container.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      // Requested before the fields, and used after them.
      let above = container.superEncoder()
      try container.encode(middle, forKey: .middle)
      try super.encode(to: above)
    }
  }

  private final class Top: Middle, Equatable {
    var top: Item?
    private enum Keys: CodingKey { case top, above }
    init(base: String, middle: [Int], top: Item?) {
      self.top = top
      super.init(base: base, middle: middle)
    }
    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      top = try container.decodeIfPresent(Item.self, forKey: .top)
      try super.init(from: try container.superDecoder(forKey: .above))
    }
    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encodeIfPresent(top, forKey: .top)
      try super.encode(to: container.superEncoder(forKey: .above))
    }
    static func == (one: Top, other: Top) -> Bool {
      (one.base, one.middle, one.top) == (other.base, other.middle, other.top)
    }
  }

  @Test("Class hierarchies of three levels round-trip, alone and within other values.")
  func superclasses() throws {
    let one = Top(base: "b", middle: [1, 2], top: RoundTripTests.item)
    let other = Top(base: "", middle: [], top: nil)
    try expectRoundTrip(one)
    try expectRoundTrip([one, other, one])
    try expectRoundTrip(["a": [other], "b": [one]])
    // A value that needs a tree does not keep the next one from a stream.
    let before = hex(try encoded([RoundTripTests.item]))
    _ = try encoded([one])
    #expect(hex(try encoded([RoundTripTests.item])) == before)
  }

  // MARK: - Requested twice

  /// Requests a container of one field twice, and fills both.
  private struct Again: Encodable {
    enum Way: CaseIterable { case fields, list, inner, elements }
    let way: Way

    func encode(to encoder: any Encoder) throws {
      var outer = encoder.container(keyedBy: Keys.self)
      switch way {
      case .fields:
        var one = outer.nestedContainer(keyedBy: Keys.self, forKey: .a)
        try one.encode(1, forKey: .a)
        var two = outer.nestedContainer(keyedBy: Keys.self, forKey: .a)
        try two.encode(2, forKey: .b)
        try one.encodeIfPresent("three", forKey: .a)
      case .list:
        var one = outer.nestedUnkeyedContainer(forKey: .a)
        try one.encode(1)
        var two = outer.nestedUnkeyedContainer(forKey: .a)
        try two.encode(2)
        try one.encode(3)
      case .inner:
        // The second one begins after another field, and the first is not used any more.
        var one = outer.nestedContainer(keyedBy: Keys.self, forKey: .a)
        try one.encode(1, forKey: .a)
        try outer.encode(true, forKey: .b)
        var two = outer.nestedContainer(keyedBy: Keys.self, forKey: .a)
        try two.encode(2, forKey: .b)
      case .elements:
        var list = outer.nestedUnkeyedContainer(forKey: .b)
        var one = list.nestedContainer(keyedBy: Keys.self)
        var two = list.nestedContainer(keyedBy: Keys.self)
        try two.encode(2, forKey: .b)
        try one.encode(1, forKey: .a)
      }
    }
  }

  @Test(
    "A container that is requested twice has what was written to both.",
    arguments: Again.Way.allCases)
  private func twice(way: Again.Way) throws {
    let value = ["x": Again(way: way), "y": Again(way: way)]
    let json = try JSONDecoder().decode(Anything.self, from: JSONEncoder().encode(value))
    #expect(try decoded(Anything.self, from: encoded(value)) == json)
    #expect(try decoded(Anything.self, from: encodedByTree(value)) == json)
  }

  @Test("A container of another form for the same field is refused.")
  func otherForm() {
    struct Changed: Encodable {
      func encode(to encoder: any Encoder) throws {
        var outer = encoder.container(keyedBy: Keys.self)
        var one = outer.nestedContainer(keyedBy: Keys.self, forKey: .a)
        try one.encode(1, forKey: .a)
        var two = outer.nestedUnkeyedContainer(forKey: .a)
        try two.encode(2)
      }
    }
    #expect(throws: EncodingError.self) { try encoded(Changed()) }
  }
}
