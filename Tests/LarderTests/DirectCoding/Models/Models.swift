import Foundation
import Larder

// Types with direct coding in many compositions. `swift package generate-direct-coding` makes
// Models+DirectCoding.swift of this file. The fuzzer and the digest of payloads use it, too.

enum Models {
  /// A field of each type that has functions of its own.
  struct Scalars: Codable, Equatable, Sendable {
    var bool: Bool
    var int: Int
    var double: Double
    var string: String
    var data: Data
    var date: Date
    var url: URL
    var uuid: UUID
    var maybeBool: Bool?
    var maybeInt: Int?
    var maybeDouble: Double?
    var maybeString: String?
    var maybeData: Data?
    var maybeDate: Date?
    var maybeURL: URL?
    var maybeUUID: UUID?
  }

  /// Numbers of other widths, in lists, too.
  struct Widths: Codable, Equatable, Sendable {
    var int8: Int8
    var uint16: UInt16?
    var int32: Int32
    var uint64: UInt64
    var float: Float?
    var integers: [Int]
    var doubles: [Double]
    var maybeIntegers: [Int]?
    var bytes: [UInt8]
    var floats: [Float]
    var booleans: [Bool]
    var last: Int
  }

  struct Leaf: Codable, Equatable, Sendable {
    var id: Int
    var name: String?
  }

  /// Another version of a leaf: the fields are moved, and there is one more.
  struct LaterLeaf: Codable, Equatable, Sendable {
    var name: String?
    var id: Double
    var added: [String]?
  }

  /// Direct values in each way that is coded directly.
  struct Nest: Codable, Equatable, Sendable {
    var leaf: Leaf
    var maybe: Leaf?
    var leaves: [Leaf]
    var maybeLeaves: [Leaf]?
    var named: [String: Leaf]
    var maybeNamed: [String: Leaf]?
    var scalars: [Scalars]
    var after: Int
  }

  /// The fields of a nest in another order, without some.
  struct LaterNest: Codable, Equatable, Sendable {
    var after: Int?
    var maybeNamed: [String: LaterLeaf]?
    var leaves: [LaterLeaf]
    var leaf: LaterLeaf?
  }

  /// Collections that are coded through `Codable`, with direct values in them.
  struct Collections: Codable, Equatable, Sendable {
    var matrix: [[Leaf]]
    var holes: [Leaf?]
    var numbered: [Int: Leaf]
    var lists: [String: [Leaf]]
    var texts: Set<String>
    var numbers: Set<Int>
    var leaves: Set<Place>
    var strings: [String]
    var blobs: [Data]
    var dates: [Date]
    var identifiers: [UUID: Int]
    var links: [URL]
  }

  struct Place: Codable, Hashable, Sendable {
    var x: Int
    var y: Int?
  }

  /// Values of `Codable` types between direct ones.
  struct Mixed: Codable, Equatable, Sendable {
    enum Kind: String, Codable, CaseIterable { case plain, other, `default` }

    /// Coded through `Codable`: it does not name `Sendable`.
    indirect enum Shape: Codable, Equatable {
      case none
      case circle(Double)
      case polygon(points: [Place], of: Leaf?)
      case group([Shape])
    }

    var kind: Kind
    var shape: Shape
    var shapes: [Shape]
    var plain: Plain
    var plains: [Plain]?
    var leaf: Leaf
    var large: Int128?
    var decimal: Decimal
  }

  /// Coded through `Codable` within others, with a direct value in it: it does not name `Sendable`.
  struct Plain: Codable, Equatable {
    var leaf: Leaf
    var nest: [String: Int?]
  }

  /// A type that holds itself.
  struct Tree: Codable, Equatable, Sendable {
    var value: String
    var children: [Tree]
    var named: [String: Tree]?
  }

  /// Generic parameters of all kinds.
  struct Pair<First: Codable & Equatable & Sendable, Second: Codable & Equatable & Sendable>:
    Codable, Equatable, Sendable
  {
    var first: First
    var second: Second?
  }

  /// Names that are renamed, not ASCII, or long.
  struct Named: Codable, Equatable, Sendable {
    var a: Int
    var b: String
    var c: Leaf?
    private enum CodingKeys: String, CodingKey {
      case b = "\u{E9}t\u{E9} \u{1F600}"
      case a = ""
      case c = "a name that is longer than sixteen bytes, as names of fields seldom are"
    }
  }

  /// Cases with values of many types and without, with labels and without.
  indirect enum Event: Codable, Equatable, Sendable {
    case opened(url: URL, at: Date?, Leaf)
    case note(String)
    case closed
    case measured(Double, id: UUID?, [Int], isFinal: Bool)
    case moved(Place?, leaves: [Leaf], blob: Data)
    case replaced(Event, by: Event?)
    case several([Event], named: [String: Event])
    case drawn(Mixed.Shape, as: Mixed.Kind, holes: [Event?])
    case `default`(fields: Int = 1, in: Either<Leaf, String>)
  }

  /// An enum without lists of direct structs, so that both routes write the same bytes.
  indirect enum Step: Codable, Equatable, Sendable {
    case none
    case labels(name: String, count: Int, at: Date?)
    case plain(Double, Bool)
    case plainToo(Double, Bool)
    case mixed(UUID, url: URL?, [Int], names: [String])
    case leaf(Leaf, Leaf?)
    case kind(Mixed.Kind, Mixed.Kind?)
    case then(Step, Step?)
    case all([Step], [Step?], named: [String: Step])
    case either(Either<Int, Step>)
  }

  /// Another version of an event: some cases are gone, some have other values, and one is new.
  enum LaterEvent: Codable, Equatable, Sendable {
    case note(String?, author: String?)
    case closed(at: Date?)
    case measured(isFinal: Bool)
    case moved(leaves: [LaterLeaf]?, Place?)
    case forgotten
  }

  /// Generic parameters in the cases of an enum.
  enum Either<First: Codable & Equatable & Sendable, Second: Codable & Equatable & Sendable>:
    Codable, Equatable, Sendable
  {
    case first(First)
    case second(Second)
    case both(First?, Second)
  }

  /// Enums in each way that is coded directly.
  struct Log: Codable, Equatable, Sendable {
    var first: Event
    var last: Event?
    var events: [Event]
    var named: [String: Event]
    var groups: [[Event?]]?
    var choice: Either<Event, [Event]>
    var after: Int
  }

  /// Another version of a log.
  struct LaterLog: Codable, Equatable, Sendable {
    var after: Int
    var first: LaterEvent?
    var events: [LaterEvent]
  }
}
