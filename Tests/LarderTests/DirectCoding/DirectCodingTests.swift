import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// Direct coding and `Codable` write payloads that the other can read.
@Suite struct DirectCodingTests: RouteComparison {
  /// Decodes directly, without falling back to `Codable`.
  private func read<T: DirectCoding>(_ bytes: [UInt8], _ route: DirectRoute<T>) throws -> T {
    try bytes.withUnsafeBytes { try route.read($0) }
  }

  private func readList<T: DirectCoding>(
    _ bytes: [UInt8], _ route: DirectRoute<T>
  ) throws -> [T] {
    try bytes.withUnsafeBytes { try route.readList($0) }
  }

  /// Whether a list was written directly: its elements are not tagged.
  private func isDirectList(_ bytes: [UInt8]) -> Bool {
    bytes.count > 6 && bytes[6] == WireKind.object.rawValue
  }

  // MARK: - Both routes

  @Test("Each route reads what the other wrote.")
  func bothWays() throws {
    let values = [Everything(), .full, Everything(), .full, .full]
    for order in [values, values.reversed()] {
      let route = DirectRoute<Everything>()
      // The second time, the route knows the shape.
      for _ in 0..<2 {
        let direct = try directly(order, route)
        #expect(isDirectList(direct))
        #expect(try Binary.decode([Everything].self, from: direct.span.bytes) == order)
        #expect(try readList(direct, route) == order)
        #expect(try readList(try byCodable(order), route) == order)
        for value in order {
          let direct = try directly(value, route)
          #expect(try read(direct, route) == value)
          #expect(try Binary.decode(Everything.self, from: direct.span.bytes) == value)
          #expect(try read(try byCodable(value), route) == value)
        }
      }
    }
  }

  @Test("A tool reads both payloads alike, without the type.")
  func withoutType() throws {
    let route = DirectRoute<Everything>()
    let bytes = try directly([.full, Everything()], route)
    let bytesByCodable = try byCodable([.full, Everything()])
    let direct = Binary.read(bytes.span.bytes)
    let byCodable = Binary.read(bytesByCodable.span.bytes)
    // The values have different identifiers, so only the structure is compared.
    func form(_ value: BinaryValue) -> String {
      if case .list(let elements) = value {
        return "[\(elements.map(form).joined(separator: ", "))]"
      }
      if case .fields(let fields) = value {
        return "{\(fields.map { $0.name + form($0.value) }.joined())}"
      }
      return "."
    }
    let found = form(try #require(direct))
    #expect(found == form(try #require(byCodable)))
    #expect(found.hasPrefix("[{bool.int."))
  }

  /// Reads the second example from `StorageFormat.md`.
  @Test("The example in StorageFormat.md is what direct coding writes.")
  func documentedExample() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let file = root.appending(path: "Sources/Larder/Documentation.docc/StorageFormat.md")
    let text = try String(contentsOf: file, encoding: .utf8)
    let chapter = try #require(text.components(separatedBy: "## Binary payloads").last)
    let blocks = chapter.components(separatedBy: "```")
    try #require(blocks.count > 3)
    let bytes = blocks[3].split(separator: "\n").dropFirst().flatMap { line in
      line.split(separator: " ").prefix { $0.count == 2 && UInt8($0, radix: 16) != nil }
        .compactMap { UInt8($0, radix: 16) }
    }
    let people = [Person(name: "Ada", age: 36), Person(name: "Bob", age: nil)]
    let route = DirectRoute<Person>()
    #expect(try directly(people, route) == bytes)
    #expect(try readList(bytes, route) == people)
    #expect(try Binary.decode([Person].self, from: bytes.span.bytes) == people)
  }

  @Test("Encoding appends to a buffer and keeps the bytes before.")
  func bytesBefore() throws {
    let route = DirectRoute<Song.First>()
    var buffer = ByteBuffer()
    buffer.append([7, 7])
    for _ in 0..<2 {
      try route.encode([Song.First(id: 1, title: "a", length: 2)], into: &buffer)
      #expect(Array(Array(buffer).prefix(2)) == [7, 7])
      let bytes = Array(Array(buffer).dropFirst(2))
      #expect(try readList(bytes, route).count == 1)
      buffer.truncate(to: 2)
    }
  }

  // MARK: - Versions of a type

  /// Decodes songs of the first version as `type`, directly, from the payloads of both routes.
  private func expectReads<T: DirectCoding & Equatable>(
    _ type: T.Type, at place: SourceLocation = #_sourceLocation
  ) throws {
    let songs = (0..<4).map { Song.First(id: $0, title: "Song \($0)", length: Double($0) / 3) }
    let route = DirectRoute<T>()
    for bytes in [try directly(songs, DirectRoute<Song.First>()), try byCodable(songs)] {
      let expected = try Binary.decode([T].self, from: bytes.span.bytes)
      #expect(expected.count == 4, sourceLocation: place)
      for _ in 0..<2 {
        #expect(try readList(bytes, route) == expected, sourceLocation: place)
      }
    }
    let one = try directly(songs[3], DirectRoute<Song.First>())
    for _ in 0..<2 {
      #expect(
        try read(one, route) == Binary.decode(T.self, from: one.span.bytes), sourceLocation: place)
    }
  }

  @Test("Types with added, removed, moved and widened fields read older payloads.")
  func changedFields() throws {
    try expectReads(Song.First.self)
    try expectReads(Song.Added.self)
    try expectReads(Song.Removed.self)
    try expectReads(Song.Moved.self)
    try expectReads(Song.Widened.self)
  }

  @Test("One route reads payloads of many versions in turn, more than it remembers.")
  func manyVersions() throws {
    let route = DirectRoute<Song.Widened>()
    let first = try directly([Song.First(id: 1, title: "a", length: 2)], DirectRoute())
    let moved = try byCodable([["title": "b", "more": "c"]])
    let widened = try directly(
      [try JSONDecoder().decode(Song.Widened.self, from: Data(#"{"id": 2}"#.utf8))], DirectRoute())
    for _ in 0..<3 {
      #expect(try readList(first, route).map(\.title) == ["a"])
      #expect(try readList(widened, route).map(\.title) == [nil])
      #expect(throws: DecodingError.self) { try route.decodeList(moved.span.bytes) }
    }
    // More shapes than a route remembers: the others are decoded, too.
    for extra in 0..<40 {
      let bytes = try byCodable([Numbered(id: extra, names: ["extra \(extra)"])])
      for _ in 0..<2 {
        #expect(try readList(bytes, route) == route.decodeList(bytes.span.bytes))
        #expect(try readList(bytes, route).map(\.id) == [Double(extra)])
      }
    }
  }

  /// A song whose other fields have arbitrary names.
  private struct Numbered: Encodable {
    var id: Int
    var names: [String]

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Name.self)
      try container.encode(id, forKey: Name(stringValue: "id"))
      for name in names { try container.encode(1, forKey: Name(stringValue: name)) }
    }
  }

  private struct Name: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  @Test("The error for a missing field names the field.")
  func missingField() throws {
    let route = DirectRoute<Song.Needy>()
    let bytes = try directly([Song.First(id: 1, title: "a", length: 2)], DirectRoute())
    #expect(throws: (any Error).self) { try readList(bytes, route) }
    let error = #expect(throws: DecodingError.self) { try route.decodeList(bytes.span.bytes) }
    guard case .keyNotFound(let key, _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(key.stringValue == "composer")
  }

  // MARK: - Values coded through Codable

  @Test("Values that direct coding cannot write are written through Codable.")
  func unfitValues() throws {
    let base = Everything.url("http://example.com/")
    var relative = Everything()
    relative.url = try #require(URL(string: "a/b", relativeTo: base))
    var optional = Everything()
    optional.noURL = relative.url
    for list in [[relative], [Everything(), relative], [Everything(), optional, Everything()]] {
      let route = DirectRoute<Everything>()
      let bytes = try directly(list, route)
      #expect(!isDirectList(bytes))
      #expect(try route.decodeList(bytes.span.bytes) == list)
      #expect(isDirectList(try directly([Everything()], route)), "the others still go directly")
    }
    let empty = try directly([], DirectRoute<Everything>())
    #expect(try DirectRoute<Everything>().decodeList(empty.span.bytes).isEmpty)
  }

  @Test("Types that break the rules of DirectCoding lose no data.")
  func unrulyTypes() throws {
    for list in [
      [Wayward(a: 1, b: 2), Wayward(a: 0, b: 3)], [Wayward(a: 0, b: 3), Wayward(a: 1, b: 2)],
    ] {
      let route = DirectRoute<Wayward>()
      let bytes = try directly(list, route)
      #expect(!isDirectList(bytes))
      #expect(try route.decodeList(bytes.span.bytes) == list)
      for value in list {
        let bytes = try directly(value, route)
        #expect(try route.decode(bytes.span.bytes) == value)
      }
    }
    for list in [
      [Fickle(x: 1, z: 2), Fickle(y: 3, z: 4)], [Fickle(x: 1, z: 2), Fickle(x: 3)],
      [Fickle(x: 1), Fickle(x: 2, y: 3)],
    ] {
      let route = DirectRoute<Fickle>()
      let bytes = try directly(list, route)
      #expect(!isDirectList(bytes))
      #expect(try route.decodeList(bytes.span.bytes) == list)
    }
    let route = DirectRoute<Doubled>()
    for _ in 0..<2 {
      let bytes = try directly(Doubled(), route)
      #expect(try route.decode(bytes.span.bytes) == Doubled())
    }
  }

  @Test("A first value that leaves out a field is one that Codable can read.")
  func firstValue() throws {
    // Each route sees a value without the field first.
    for value in [Wayward(a: 0, b: 3), Wayward(a: 1, b: 2)] {
      let route = DirectRoute<Wayward>()
      for value in [Wayward(a: 0, b: 3), value] {
        let bytes = try directly(value, route)
        #expect(try Binary.decode(Wayward.self, from: bytes.span.bytes) == value)
        #expect(try route.decode(bytes.span.bytes) == value)
        let list = try directly([value], route)
        #expect(try Binary.decode([Wayward].self, from: list.span.bytes) == [value])
      }
    }
    // A value with all fields shows the shape later.
    let route = DirectRoute<Wayward>()
    _ = try directly([Wayward(a: 0, b: 3)], route)
    #expect(isDirectList(try directly([Wayward(a: 1, b: 2)], route)))
    // An optional that was nil at first is not lost later.
    let fickle = DirectRoute<Fickle>()
    for value in [Fickle(x: 1), Fickle(x: 1, y: 2), Fickle(x: 1, y: 2, z: 3), Fickle(x: 1, y: 2)] {
      let bytes = try directly(value, fickle)
      #expect(try Binary.decode(Fickle.self, from: bytes.span.bytes) == value)
      #expect(try fickle.decode(bytes.span.bytes) == value)
    }
  }

  @Test("A type that never writes all fields is no longer asked for them.")
  func hopelessType() throws {
    struct Forgetful: DirectCoding, Equatable {
      @TaskLocal static var calls: Calls?
      var a = 1
      var b = 2
      init() {}
      init(from fields: inout FieldReader) throws { a = try fields.read("a") }
      func write(to fields: inout FieldWriter) {
        Self.calls?.add()
        fields.write(a, as: "a")
      }
    }
    let calls = Calls()
    try Forgetful.$calls.withValue(calls) {
      let route = DirectRoute<Forgetful>()
      for _ in 0..<100 {
        let bytes = try directly(Forgetful(), route)
        #expect(try Binary.decode(Forgetful.self, from: bytes.span.bytes) == Forgetful())
      }
    }
    #expect(calls.count == 16)
  }

  @Test("An error of an inner value is the error of the whole, and nothing is written.")
  func innerError() throws {
    struct Stubborn: Codable {
      func encode(to encoder: any Encoder) throws { throw Refused() }
      init() {}
      init(from decoder: any Decoder) throws {}
    }
    struct Outer: DirectCoding {
      var a = 1
      var b = Stubborn()
      init() {}
      init(from fields: inout FieldReader) throws { a = try fields.read("a") }
      func write(to fields: inout FieldWriter) {
        fields.write(a, as: "a")
        fields.write(b, as: "b")
      }
    }
    var buffer = ByteBuffer()
    let route = DirectRoute<Outer>()
    for _ in 0..<2 {
      do {
        try route.encode(Outer(), into: &buffer)
        Issue.record("it was encoded")
      } catch is Refused {}
      let left = buffer.count
      #expect(left == 0)
    }
  }

  private struct Refused: Error {}

  @Test("The depth limit counts the levels around a directly coded value.")
  func depth() throws {
    // The deepest value that Codable takes as a field of an object in a list, and one deeper.
    struct Deep: DirectCoding, Equatable {
      var nest: Nest
      init(_ nest: Nest) { self.nest = nest }
      init(from fields: inout FieldReader) throws { nest = try fields.read("nest") }
      func write(to fields: inout FieldWriter) { fields.write(nest, as: "nest") }
    }
    let route = DirectRoute<Deep>()
    let deepest = [Deep(Nest(depth: Binary.maximumDepth - 2))]
    #expect(try readList(try directly(deepest, route), route) == deepest)
    #expect(throws: EncodingError.self) {
      try directly([Deep(Nest(depth: Binary.maximumDepth - 1))], route)
    }
  }

  /// Lists within each other.
  private final class Nest: Codable, Equatable, Sendable {
    let inner: Nest?
    init(depth: Int) { inner = depth > 1 ? Nest(depth: depth - 1) : nil }
    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      inner = list.isAtEnd ? nil : try list.decode(Nest.self)
    }
    func encode(to encoder: any Encoder) throws {
      var list = encoder.unkeyedContainer()
      if let inner { try list.encode(inner) }
    }
    static func == (one: Nest, other: Nest) -> Bool { one.inner == other.inner }
  }
}
