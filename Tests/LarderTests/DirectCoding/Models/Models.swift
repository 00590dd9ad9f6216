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

    indirect enum Shape: Codable, Equatable, Sendable {
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
}
