import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// Values of `DirectCoding` types are coded directly within types that are only `Codable`.
@Suite struct StreamPartTests {
  // MARK: - What is coded directly

  @Test("Direct values within a Codable type do not go through Codable.")
  func withoutCodable() throws {
    try expectDirect(ObservedPage())
    try expectDirect([ObservedPage(), ObservedPage()])
    try expectDirect(ObservedCase.observed(Observed(), 1))
    // A Codable type within a direct one within a Codable one.
    let page = ObservedPage()
    try expectDirect(Box(value: page, more: [page]))
    try expectDirect(["a": [Box(value: page, more: [page])]])
  }

  @Test("Compositions of direct values do not go through Codable.")
  func compositions() throws {
    let value = Observed()
    try expectDirect(["a": value, "b": value])
    try expectDirect(Set([value]))
    try expectDirect([[value], [], [value, value]])
    try expectDirect([value, nil])
    try expectDirect(Optional(value))
    try expectDirect(["a": [[value, nil]], "b": []])
    try expectDirect([Set([[value]]): [value]])
    try expectDirect([1: value])
  }

  private func expectDirect<Value: Codable & Equatable & Sendable>(
    _ value: Value, at place: SourceLocation = #_sourceLocation
  ) throws {
    try expectNoCodable(value, at: place)
    try expectSame(value, at: place)
  }

  @Test("The bytes of a Codable value with direct ones are those of the format.")
  func documentedBytes() throws {
    struct Team: Codable {
      var lead: Person
      var members: [Person]
      var spare: [Person?]
    }
    let ada = Person(name: "Ada", age: nil)
    let team = Team(lead: ada, members: [ada, ada], spare: [nil, ada])
    let name: [UInt8] = [3] + Array("Ada".utf8) + [0]
    let body: [UInt8] =
      [0x15, 1] + [0x15, 0] + name + [0x13, 0x15, 0, 2, 0, 0, 0] + name + name
      + [0x13, 0x16, 2, 0, 0, 0, 0] + [0x15, 0] + name
    let person: [UInt8] =
      [2, 0x10, 4] + Array("name".utf8) + [0x85, 3] + Array("age".utf8)
    let shape: [UInt8] =
      [3, 0x16, 4] + Array("lead".utf8) + [0x16, 7] + Array("members".utf8) + [0x16, 5]
      + Array("spare".utf8)
    let expected = [1, UInt8(body.count), 0, 0, 0] + body + [2] + person + shape
    #expect(try directly(team) == expected)
  }

  @Test("Types with the same fields share one shape, as they do through Codable.")
  func sharedShape() throws {
    struct Boxes: Codable, Equatable {
      var integers: Box<Int>
      var numbers: Box<Double>
    }
    let boxes = Boxes(
      integers: Box(value: 1, more: [2, 3]), numbers: Box(value: 0.5, more: []))
    let bytes = try directly(boxes)
    #expect(bytes == (try byCodable(boxes)))
    #expect(try decode(Boxes.self, bytes) == boxes)
  }

  // MARK: - What is not

  @Test("A part that cannot be written directly goes through Codable, and nothing is lost.")
  func unrulyParts() throws {
    let wayward = [Wayward(a: 1, b: 2), Wayward(a: 0, b: 3)]
    let relative = try #require(
      URL(string: "b", relativeTo: URL(string: "https://example.com/a/")))
    for _ in 0..<2 {
      try expectSame(["a": wayward, "b": wayward.reversed()])
      try expectSame([wayward, [], wayward])
      try expectSame(["a": Linked(url: relative), "b": Linked(url: URL(filePath: "/b"))])
      try expectSame([[Doubled()], [Doubled(), Doubled()]])
    }
    // The next payload is written directly again: its list has objects of one shape.
    let names = ["a": [Person(name: "Ada", age: nil)]]
    let bytes = try directly(names)
    #expect(Array(bytes[12..<14]) == [WireKind.list.rawValue, WireKind.object.rawValue])
  }

  @Test("A value that throws throws the error of Codable, with its path.")
  func encodingErrors() throws {
    struct Refused: Error {}
    struct Stubborn: Codable {
      var path: Bool
      func encode(to encoder: any Encoder) throws {
        guard path else { throw Refused() }
        throw EncodingError.invalidValue(
          self, EncodingError.Context(codingPath: encoder.codingPath, debugDescription: ""))
      }
    }
    struct Outer: DirectCoding {
      var inner: Stubborn
      init(inner: Stubborn) { self.inner = inner }
      init(from fields: inout FieldReader) throws { inner = try fields.read("inner") }
      func write(to fields: inout FieldWriter) { fields.write(inner, as: "inner") }
    }
    #expect(throws: Refused.self) { try directly(["a": Outer(inner: Stubborn(path: false))]) }
    let value = ["a": [Outer(inner: Stubborn(path: true))]]
    let expected = outcome { try byCodable(value) }
    #expect(expected.contains("inner"))
    #expect(outcome { try directly(value) } == expected)
  }

  @Test("A part that uses a container around it does not disturb the payload.")
  func containersAround() throws {
    let value = Meddler.Outer()
    let bytes = try directly(value)
    #expect(try bytes == byCodable(value))
    #expect(Meddler.count.withLock { $0 } > 0)
  }

  @Test("The depth limit counts the levels of parts and of Codable types together.")
  func depth() throws {
    for levels in [1, 2, 20, 61, 62, 63, 64, 65, 100] {
      let value = Alternating(levels: levels)
      let byCodable = outcome { try self.byCodable(value) }
      let direct = outcome { try directly(value) }
      #expect(byCodable.hasPrefix("[") == direct.hasPrefix("["), "\(levels)")
      if byCodable.hasPrefix("[") { try expectSame(value) } else { #expect(direct == byCodable) }
    }
  }

  @Test("Parts within each other that cannot be coded directly take no more time for each level.")
  func attempts() throws {
    let relative = try #require(URL(string: "b", relativeTo: URL(string: "file:///a/")))
    var work: [Int] = []
    for levels in [15, 30] {
      let calls = Calls()
      try Alternating.$calls.withValue(calls) {
        let value = Alternating(levels: levels, url: relative)
        try expectSame(value)
        // A leaf that no route can read.
        var payload = try directly(Alternating(levels: levels, url: URL(filePath: "/abc")))
        let place = try #require(payload.lastRange(of: Array("file:///abc".utf8)))
        payload[place.lowerBound] = 0xFF
        let expected = outcome { try Binary.decode(Alternating.self, from: payload.span.bytes) }
        #expect(outcome { try self.decode(Alternating.self, payload) } == expected)
        #expect(expected.contains("url"))
      }
      // Without 2^30 calls after a failure with 15 levels.
      try #require(calls.count < 1000, "\(levels) levels")
      work.append(calls.count)
    }
    #expect(work[1] <= 3 * work[0])
  }

  @Test("A decoder that is kept within a part still reads its bytes.")
  func keptDecoder() throws {
    struct Page: Codable { var keepers: [Keeper] }
    var payload = try directly(Page(keepers: [Keeper(Kept(names: ["a", "b"]))]))
    let page = try decode(Page.self, payload)
    for index in payload.indices { payload[index] = 0xFF }
    #expect(try page.keepers.map { try $0.kept.readNames() } == [["a", "b"]])
  }

  // MARK: - Random values

  @Test(
    "Each route reads the random compositions that the other wrote.", arguments: [testSeed(), 1])
  func randomValues(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for step in 0..<(300 * proofFactor) {
      let comment: Comment = "seed \(seed), step \(step)"
      let knot = random.knot(depth: 3)
      switch step % 8 {
      case 0: try expectSame(random.several { $0.leaf() }, comment)
      case 1: try expectSame(Set(random.several { $0.leaf() }), comment)
      case 2: try expectSame(random.several { $0.several { $0.twig(depth: 1) } }, comment)
      case 3: try expectSame(random.several { $0.maybe { $0.twig(depth: 2) } }, comment)
      case 4: try expectSame(random.maybe { $0.twig(depth: 2) }, comment)
      case 5: try expectSame(random.names { $0.maybe { $0.leaf() } }, comment)
      default: break
      }
      try expectSame(knot, comment)
    }
  }

  @Test("A changed payload decodes to the same value or error as through Codable.")
  func changedPayloads() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    var refused = 0
    for round in 0..<(2000 * proofFactor) {
      let knot = random.knot(depth: 1)
      var changed = try round.isMultiple(of: 2) ? directly(knot) : byCodable(knot)
      for _ in 0...Int.random(in: 0...2, using: &random) { random.change(&changed) }
      let expected = result { try Binary.decode(Knot.self, from: changed.span.bytes) }
      let found = result { try self.decode(Knot.self, changed) }
      #expect(found.value == expected.value, "seed \(seed), round \(round)")
      #expect(found.error == expected.error, "seed \(seed), round \(round)")
      if expected.error != nil { refused += 1 }
    }
    #expect(refused > 500)
  }

  @Test("Several threads may use new compositions at once.")
  func threads() {
    struct Fresh: Codable, Equatable { var sets: [[Set<Leaf>?]] }
    let failures = Mutex(0)
    onThreads(4) { thread in
      do {
        for step in 0..<20 {
          let leaf = Leaf(id: thread, text: "\(step)")
          let value = Fresh(sets: [[[leaf], nil], []])
          if try decode(Fresh.self, directly(value)) != value { failures.withLock { $0 += 1 } }
        }
      } catch {
        failures.withLock { $0 += 1 }
      }
    }
    #expect(failures.withLock { $0 } == 0)
  }
}

// MARK: - Coding

extension StreamPartTests: RouteComparison {
  private func directly(_ value: some Encodable) throws -> [UInt8] {
    try bytes(value) { try Binary.encode($0, into: &$1, parts: DirectParts.self) }
  }

  /// Expects that both routes read what both have written, and so does a tool without the type.
  private func expectSame<T: Codable & Equatable>(
    _ value: T, _ comment: Comment? = nil, at place: SourceLocation = #_sourceLocation
  ) throws {
    for bytes in [try directly(value), try byCodable(value)] {
      #expect(try decode(T.self, bytes) == value, comment, sourceLocation: place)
      #expect(
        try Binary.decode(T.self, from: bytes.span.bytes) == value, comment,
        sourceLocation: place)
      #expect(Binary.read(bytes.span.bytes) != nil, comment, sourceLocation: place)
    }
  }
}
