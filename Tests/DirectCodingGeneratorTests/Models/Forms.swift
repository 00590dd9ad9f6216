// swift-format-ignore-file
import Foundation
import struct Foundation.URL
import Larder

// The forms in which properties and structs are written, also those that this project does not use.
// `swift package generate-direct-coding` makes Forms+DirectCoding.swift of this file.

/// Properties that are saved, and what stands between them.
struct Properties: Codable, Equatable, Sendable {
  /* var commentedOut: Int /* within a comment */ */
  var plain: Int
  let constant: String
  var first, second: Int, third: String
  var a = 1, b: Int = 2, c = "three"
  var optional: String?
  var spelledOut: Optional<Int> = nil
  var qualified: Swift.Optional<Double> = nil
  var implicit: Int!
  var negative = -1.5e-3
  var isOn = true
  var list = [1, 2, 3]
  var named: [String: [Int]] = ["{": [1]]
  var nested: [[String: Int?]]?
  var set: Set<String> = ["a"]; var afterSemicolon = 0x1F
  var raw = #"a "string" with \ and { and \#(1 + 1)"#
  var quote = #"""#
  var text = """
    { var notAProperty: Int }
    """
  var interpolated: String = "}\("{" + "\(1)")"
  var computedOnce: Int = { let x = 3; return x + 1 }()
  var chained: [Int] = [3, 1, 2]
    .sorted()
    .map { $0 + 1 }
  var summed: Int =
    1
    + 2
  var conditional: String = if Bool(true) { "yes" } else { "no" }
  var generic: Dictionary<String, Array<Int>> = Dictionary<String, [Int]>()
  var small: UInt8 = 7, ratio: Float = 0.5
  var data: Data = Data([1, 2])
  var date: Date = Date(timeIntervalSinceReferenceDate: 0.25)
  var id: UUID = UUID()
  var url: URL?
  var mood: Mood = .some
  var moods: [Mood] = [.glad]
  var inner: Inner = Inner(x: 1)
  var inners: [Inner?] = [nil]
  var watched: Int = 4 {
    willSet {}
    didSet { if watched < 0 { watched = 0 } }
  }
  var observed: Int {
    @Sendable func local() {}
    return 5
  }
  var `default`: Bool = false
  var fields: Int = 6
  var keyword: Mood = .in
  public internal(set) var visible: Int = 8
  @available(*, deprecated) var old: Int { plain }

  static let shared = 1
  static let (one, two) = (1, 2)
  lazy var later: Int = 9
  var computed: Int { plain + 1 }
  var settable: Int {
    get { plain }
    set { plain = newValue }
  }
  typealias Pair = (Int, Int)

  enum Mood: String, Codable { case glad, some, any, `in` }

  struct Inner: Codable, Equatable, Sendable {
    var x: Int
    func f() -> (Int) -> Int { { $0 } }
  }

  init(_ plain: Int, _ constant: String, url: URL? = nil) {
    (self.plain, self.constant, self.url) = (plain, constant, url)
    (first, second, third) = (1, 2, "3")
  }

  func method(_ struct: Int = 1, extension: Int = 2) -> Int { 1 }
  func generic<T>(_ value: T) -> T where T: Equatable { value }
  subscript(_ index: Int) -> Int { index }

  static func == (one: Properties, other: Properties) -> Bool { one.bytes == other.bytes }

  private var bytes: [UInt8]? {
    var buffer = ByteBuffer()
    do { try Binary.encode(self, into: &buffer) } catch { return nil }
    return Array(buffer)
  }
}

/// A value that is written, but not read: `Codable` does the same.
struct Versioned: Codable, Equatable, Sendable {
  // The compiler warns of a constant with a value unless the coding keys name it.
  let version = 1
  var name: String

  private enum CodingKeys: String, CodingKey { case version, name }
}

/// Coding keys rename, order and leave out properties.
struct Renamed: Codable, Equatable, Sendable {
  var id: Int
  var title: String
  private var cache: [Int: @Sendable (Int) -> Int] = [:]
  var note: String?

  enum CodingKeys: String, CodingKey {
    case title = "t\"\u{69}tle", note
    case id = #"i"d"#
  }

  init(id: Int, title: String, note: String?) {
    (self.id, self.title, self.note) = (id, title, note)
  }

  static func == (one: Self, other: Self) -> Bool {
    (one.id, one.title, one.note) == (other.id, other.title, other.note)
  }
}

/// Coding keys without strings, in an extension.
struct Plainly: Codable, Equatable, Sendable {
  var a: Int
  var b: Int?
  var c = 3
}

extension Plainly? {
  enum CodingKeys {}
}

extension Plainly {
  enum CodingKeys: CodingKey { case b, a }
}

/// Codable by an extension of this file.
struct Extended: Equatable {
  var a: String
}

extension Extended: Codable, Sendable {}

/// Both halves of Codable, and a composition.
struct Halves: Encodable & Sendable, Decodable, Equatable {
  var a: String
}

/// Generic parameters, of which the last may be an optional.
struct Page<Item: Codable & Sendable & Equatable, Note>: Codable, Equatable, Sendable
where Note: Codable & Sendable & Equatable {
  var items: [Item]
  var note: Note
  var next: Note?
}

enum Outer {
  struct Middle: Codable, Equatable, Sendable {
    var value: Int

    struct Innermost: Codable, Equatable, Sendable { var value: String }
  }

  private struct Hidden: Codable, Sendable { private var value: Int }
}

extension Outer.Middle {
  struct Added: Codable, Equatable, Sendable { var value: [Double] }
}

extension Outer {
  final class Holder {
    struct Held: Codable, Equatable, Sendable { var value: Date? }
  }
}

/// Not coded, but for a struct in it.
struct Uncoded {
  lazy var x = 1
  var pair = (1, 2)
  struct Coded: Codable, Equatable, Sendable { var x: Int }
}

/// Conforms by its own declaration.
struct Direct: DirectCoding, Equatable { var x: Int }

@available(macOS 15, *)
nonisolated enum Attributed {
  struct Nested: Codable, Equatable, Sendable { var x: Int }
}

public struct Public: Codable, Equatable, Sendable {
  public var x: Int
  var y: Int?
}

package struct Packaged: Codable, Equatable, Sendable {
  package var x: Int
}

public enum Space {}

extension Space {
  public struct Explicit: Codable, Equatable, @unchecked Sendable { public let x: Int }
}

public extension Space {
  struct Implicit: Codable, Equatable, Sendable { public let x: Int }
}

#if canImport(Glibc)
  import Glibc
  func inACondition() {}
#endif

func local() {
  struct Local: Codable { var (a, b) = (1, 2) }
}

/// Cases in the forms in which they are written, and what stands between them.
public enum Choice: Codable, Equatable, Sendable {
  case none, one(Int)
  case `default`, labels(a: Int, b: String? = nil, Swift.Optional<Double>); case last(in: Bool)
  case fields(fields: Fields, name: String = "}", `self`: [Choice])
  indirect case nested(Choice, [String: Choice?])

  public enum Fields: String, Codable, Sendable { case a, b }
  enum Number: Codable, Sendable { case zero }
  static let other = Choice.none
  var isNone: Bool { if case .none = self { true } else { false } }
  func f() -> Choice { switch self { case .one: self; default: .none } }
}

/// Coding keys rename the cases, and the conformance is in an extension.
enum RenamedChoice<Value: Codable & Sendable & Equatable>: Equatable {
  case a(Value)
  case b(x: Value?, Int)
}

extension RenamedChoice: Codable, Sendable {
  enum CodingKeys: String, CodingKey { case b = "\u{E9}\"", a }
}

/// Conforms by its own declaration.
enum DirectChoice: DirectEnum, Equatable { case on, off(at: Date) }
