import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// Values of `DirectCoding` types within others are coded directly, too.
@Suite struct DirectPartTests: RouteComparison {
  /// Expects that both routes read what both have written; without a fallback unless `isUnruly`.
  private func expectSame<T: DirectCoding & Equatable>(
    _ values: [T], isUnruly: Bool = false, at place: SourceLocation = #_sourceLocation
  ) throws {
    let route = DirectRoute<T>()
    for _ in 0..<2 {
      let direct = try directly(values, route)
      let isDirect = direct[6] == WireKind.object.rawValue
      #expect(isDirect != isUnruly, sourceLocation: place)
      for bytes in [direct, try byCodable(values)] {
        #expect(
          try Binary.decode([T].self, from: bytes.span.bytes) == values, sourceLocation: place)
        #expect(try route.decodeList(bytes.span.bytes) == values, sourceLocation: place)
        if !isUnruly {
          #expect(
            try bytes.withUnsafeBytes { try route.readList($0) } == values, "without Codable",
            sourceLocation: place)
        }
        #expect(Binary.read(bytes.span.bytes) != nil, "without the type", sourceLocation: place)
      }
      for value in values {
        for bytes in [try directly(value, route), try byCodable(value)] {
          #expect(
            try Binary.decode(T.self, from: bytes.span.bytes) == value, sourceLocation: place)
          #expect(try route.decode(bytes.span.bytes) == value, sourceLocation: place)
        }
      }
    }
  }

  // MARK: - What is coded directly

  @Test("Objects, lists and maps of direct values are coded as by Codable.")
  func parts() throws {
    let full = Holder.full
    try expectSame([Holder(), full, Holder(), full])
    try expectSame([full, full, Holder()])
    var other = full
    other.byName = Dictionary(uniqueKeysWithValues: (0..<50).map { ("\($0)", Part($0)) })
    other.list = (0..<50).map(Part.init)
    try expectSame([other, full])
  }

  @Test("No part of a direct value goes through Codable.")
  func withoutCodable() throws {
    let calls = Calls()
    try Observed.$calls.withValue(calls) {
      let route = DirectRoute<Observer>()
      let values = [Observer(), Observer()]
      // The fields of a type's first value are compared with those of Codable.
      _ = try directly(values, route)
      let learning = calls.count
      for _ in 0..<3 {
        let bytes = try directly(values, route)
        #expect(try bytes.withUnsafeBytes { try route.readList($0) } == values)
      }
      #expect(calls.count == learning)
      let bytes = try byCodable(values)
      #expect(calls.count == learning + 10)
      #expect(try bytes.withUnsafeBytes { try route.readList($0) } == values)
      #expect(calls.count == learning + 10)
    }
  }

  @Test("A generic type codes its parts directly, whatever they are.")
  func generic() throws {
    try expectSame([Box(value: Part(1), more: [Part(2)]), Box(value: Part(3), more: [])])
    try expectSame([Box(value: "a", more: ["b"]), Box(value: "c", more: [])])
    try expectSame([Box(value: Box(value: 1, more: []), more: [Box(value: 2, more: [3])])])
  }

  @Test("A type that holds itself is coded directly.")
  func recursive() throws {
    try expectSame([Branch(levels: 3), Branch(levels: 1), Branch(levels: 6)])
  }

  @Test("The bytes of a value with parts are those of the format.")
  func bytes() throws {
    let ada = Person(name: "Ada", age: nil)
    let box = Box(value: ada, more: [ada, Person(name: "B", age: 1)])
    let type: [UInt8] =
      [2, 0x10, 4] + Array("name".utf8) + [0x85, 3] + Array("age".utf8)
    let body: [UInt8] =
      [0x15, 0] + [0x15, 1, 3] + Array("Ada".utf8) + [0]
      + [0x13, 0x15, 1, 2, 0, 0, 0, 3] + Array("Ada".utf8) + [0]
      + [1, 0x42, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    let table: [UInt8] =
      [2, 2, 0x16, 5] + Array("value".utf8) + [0x16, 4] + Array("more".utf8) + type
    let expected = [1, UInt8(body.count), 0, 0, 0] + body + table
    #expect(try directly(box, DirectRoute()) == expected)
  }

  // MARK: - What is not

  @Test("A part that cannot be written directly sends the whole value through Codable.")
  func unrulyParts() throws {
    try expectSame(
      [Box(value: Wayward(a: 1, b: 2), more: [Wayward(a: 0, b: 3)])], isUnruly: true)
    let base = URL(string: "https://example.com/a/")
    let relative = try #require(URL(string: "b", relativeTo: base))
    try expectSame([Box(value: Linked(url: relative), more: [])], isUnruly: true)
    // A type without a shape has no direct part at all.
    try expectSame([Box(value: Doubled(), more: [Doubled()])])
  }

  @Test("Parts that are maps or lists of several shapes are read through Codable.")
  func otherForms() throws {
    let route = DirectRoute<Box<Person>>()
    let maps: [String: [[String: String]]] = ["more": [["name": "a"]]]
    struct Loose: Encodable {
      var value = ["name": "b"]
      var more: [[String: String]]
    }
    let bytes = try byCodable([Loose(more: maps["more"] ?? [])])
    let read = try route.decodeList(bytes.span.bytes)
    #expect(
      read == [Box(value: Person(name: "b", age: nil), more: [Person(name: "a", age: nil)])])
  }

  @Test("The depth limit counts the levels of direct parts.")
  func depth() throws {
    let route = DirectRoute<Branch>()
    // The object is a level, and so are each list and object within it.
    let deepest = Branch(levels: 64)
    let bytes = try directly(deepest, route)
    #expect(try Binary.decode(Branch.self, from: bytes.span.bytes) == deepest)
    #expect(try bytes.withUnsafeBytes { try route.read($0) } == deepest)
    #expect(throws: EncodingError.self) { try directly(Branch(levels: 65), route) }
    #expect(throws: EncodingError.self) { try byCodable(Branch(levels: 65)) }
    #expect(throws: EncodingError.self) { try directly([deepest], DirectRoute()) }
    #expect(throws: EncodingError.self) { try byCodable([deepest]) }
    // A part that is coded through Codable is within the levels of direct ones.
    for levels in [1, 20, 62] {
      for lists in [126 - 2 * levels, 127 - 2 * levels, 128 - 2 * levels, 129 - 2 * levels] {
        let value = Branch(levels: levels, nest: lists)
        let codable = result { try byCodable(value) }.value
        let direct = result { try directly(value, route) }.value
        #expect((codable == nil) == (direct == nil), "\(levels), \(lists)")
      }
    }
  }

  @Test("Several threads may use a new type of part at once.")
  func threads() throws {
    let failures = Mutex(0)
    let expected = [Box(value: Part(1), more: [Part(2)])]
    let route = DirectRoute<Box<Part>>()
    onThreads(4) { _ in
      do {
        let bytes = try directly(expected, route)
        if try route.decodeList(bytes.span.bytes) != expected { failures.withLock { $0 += 1 } }
      } catch {
        failures.withLock { $0 += 1 }
      }
    }
    #expect(failures.withLock { $0 } == 0)
  }
}

// MARK: - Specimens

struct Part: DirectCoding, Equatable {
  enum Shade: Codable, Equatable { case dark(Int), light }

  var id: Int
  var name: String?
  var shade: Shade

  init(_ id: Int) {
    (self.id, name) = (id, id.isMultiple(of: 2) ? "part \(id)" : nil)
    shade = id.isMultiple(of: 3) ? .dark(id) : .light
  }

  init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    name = try fields.readIfPresent("name")
    shade = try fields.read("shade")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.writeIfPresent(name, as: "name")
    fields.write(shade, as: "shade")
  }
}

/// Parts in each way.
struct Holder: DirectCoding, Equatable {
  var one = Part(1)
  var none: Part?
  var between = "text"
  var list: [Part] = []
  var noList: [Part]?
  var byName: [String: Part] = [:]
  var noNames: [String: Part]?
  var links: [Linked] = []
  var after = 7

  init() {}

  static var full: Holder {
    var holder = Holder()
    holder.one = Part(2)
    holder.none = Part(3)
    (holder.list, holder.noList) = ([Part(4), Part(5)], [Part(6)])
    (holder.byName, holder.noNames) = (["a": Part(7)], ["": Part(8)])
    holder.links = [Linked(url: URL(filePath: "/a"))]
    return holder
  }

  init(from fields: inout FieldReader) throws {
    one = try fields.read("one")
    none = try fields.readIfPresent("none")
    between = try fields.read("between")
    list = try fields.read("list")
    noList = try fields.readIfPresent("noList")
    byName = try fields.read("byName")
    noNames = try fields.readIfPresent("noNames")
    links = try fields.read("links")
    after = try fields.read("after")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(one, as: "one")
    fields.writeIfPresent(none, as: "none")
    fields.write(between, as: "between")
    fields.write(list, as: "list")
    fields.writeIfPresent(noList, as: "noList")
    fields.write(byName, as: "byName")
    fields.writeIfPresent(noNames, as: "noNames")
    fields.write(links, as: "links")
    fields.write(after, as: "after")
  }
}

struct Linked: DirectCoding, Equatable {
  var url: URL
  init(url: URL) { self.url = url }
  init(from fields: inout FieldReader) throws { url = try fields.read("url") }
  func write(to fields: inout FieldWriter) { fields.write(url, as: "url") }
}

struct Box<Value: Codable & Equatable & Sendable>: DirectCoding, Equatable {
  var value: Value
  var more: [Value]

  init(value: Value, more: [Value]) { (self.value, self.more) = (value, more) }

  init(from fields: inout FieldReader) throws {
    value = try fields.read("value")
    more = try fields.read("more")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(value, as: "value")
    fields.write(more, as: "more")
  }
}

/// A value with others of its type within it.
struct Branch: DirectCoding, Equatable {
  var branches: [Branch]
  /// Lists within each other, which are coded through Codable.
  var nest: DirectDepthTests.Lists?

  init(levels: Int, nest: Int = 0) {
    branches = levels > 1 ? [Branch(levels: levels - 1, nest: nest)] : []
    if levels == 1, nest > 0 { self.nest = DirectDepthTests.Lists(levels: nest, byLoop: false) }
  }

  init(from fields: inout FieldReader) throws {
    branches = try fields.read("branches")
    nest = try fields.readIfPresent("nest")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(branches, as: "branches")
    fields.writeIfPresent(nest, as: "nest")
  }
}

/// Counts calls of functions of Codable.
final class Calls: Sendable {
  private let total = Mutex(0)
  var count: Int { total.withLock { $0 } }
  func add() { total.withLock { $0 += 1 } }
}

struct Observed: DirectCoding, Hashable {
  @TaskLocal static var calls: Calls?
  var x = 1

  private enum CodingKeys: CodingKey { case x }

  init() {}

  init(from decoder: any Decoder) throws {
    Self.calls?.add()
    x = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .x)
  }

  func encode(to encoder: any Encoder) throws {
    Self.calls?.add()
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(x, forKey: .x)
  }

  init(from fields: inout FieldReader) throws { x = try fields.read("x") }
  func write(to fields: inout FieldWriter) { fields.write(x, as: "x") }
}

private struct Observer: DirectCoding, Equatable {
  var one = Observed()
  var maybe: Observed? = Observed()
  var list = [Observed(), Observed()]
  var byName = ["a": Observed()]

  init() {}

  init(from fields: inout FieldReader) throws {
    one = try fields.read("one")
    maybe = try fields.readIfPresent("maybe")
    list = try fields.read("list")
    byName = try fields.read("byName")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(one, as: "one")
    fields.writeIfPresent(maybe, as: "maybe")
    fields.write(list, as: "list")
    fields.write(byName, as: "byName")
  }
}
