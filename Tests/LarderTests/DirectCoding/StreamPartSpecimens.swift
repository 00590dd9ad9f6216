import Foundation
import LarderTestSupport
import Synchronization

@testable import Larder

/// A type that is only `Codable`, with parts in each way.
struct ObservedPage: Codable, Equatable {
  var title = "page"
  var one = Observed()
  var maybe: Observed? = Observed()
  var none: Observed?
  var list = [Observed(), Observed()]
  var lists = [[Observed()], []]
  var maybes = [Observed(), nil]
  var set: Set<Observed> = [Observed()]
  var byName = ["a": Observed()]
  var byNumber = [1: Observed()]
  var choice = ObservedCase.observed(Observed(), 2)
  var after = 7
}

enum ObservedCase: Codable, Equatable { case observed(Observed, Int), nothing }

/// A direct value that writes to a container around it, which no type may do.
struct Meddler: DirectCoding {
  private enum CodingKeys: CodingKey { case a }

  struct Outer: Codable {
    var first = 1
    var meddler = Meddler()
    var last = "last"

    enum CodingKeys: CodingKey { case first, meddler, last, intruder }

    init() {}

    init(from decoder: any Decoder) throws { self.init() }

    func encode(to encoder: any Encoder) throws {
      let container = encoder.container(keyedBy: CodingKeys.self)
      Meddler.around.withLock { $0 = Around(container: container) }
      var own = container
      try own.encode(first, forKey: .first)
      try own.encode(meddler, forKey: .meddler)
      try own.encode(last, forKey: .last)
    }
  }

  struct Around: @unchecked Sendable {
    // @unchecked: only the thread of the test uses it.
    var container: KeyedEncodingContainer<Outer.CodingKeys>
  }

  static let around = Mutex<Around?>(nil)
  static let count = Mutex(0)
  var a = 1

  init() {}
  init(from fields: inout FieldReader) throws { a = try fields.read("a") }

  func write(to fields: inout FieldWriter) {
    fields.write(a, as: "a")
    var container = Self.around.withLock { $0?.container }
    do {
      try container?.encode(9, forKey: .intruder)
    } catch {
      // The container refuses it.
      Self.count.withLock { $0 += 1 }
    }
  }
}

/// A Codable type within a direct one, within a Codable one, and so on.
struct Alternating: Codable, Equatable {
  @TaskLocal static var calls: Calls?

  struct Inner: DirectCoding, Equatable {
    var next: [Alternating]
    var url: URL

    init(next: [Alternating], url: URL) { (self.next, self.url) = (next, url) }

    init(from fields: inout FieldReader) throws {
      Alternating.calls?.add()
      next = try fields.read("next")
      url = try fields.read("url")
    }

    func write(to fields: inout FieldWriter) {
      Alternating.calls?.add()
      fields.write(next, as: "next")
      fields.write(url, as: "url")
    }
  }

  var inner: Inner?

  init(levels: Int, url: URL = URL(filePath: "/")) {
    let next = levels > 1 ? [Alternating(levels: levels - 1, url: url)] : []
    inner = Inner(next: next, url: levels > 1 ? URL(filePath: "/") : url)
  }
}

// MARK: - Random values

struct Leaf: DirectCoding, Hashable {
  var id: Int
  var text: String?

  init(id: Int, text: String?) { (self.id, self.text) = (id, text) }

  init(from fields: inout FieldReader) throws {
    id = try fields.read("id")
    text = try fields.readIfPresent("text")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(id, as: "id")
    fields.writeIfPresent(text, as: "text")
  }
}

/// A direct type with compositions of direct types, and with a type that is only `Codable`.
struct Twig: DirectCoding, Equatable {
  var leaf: Leaf
  var leaves: [Leaf?]
  var grid: [[Leaf]]
  var tags: Set<Leaf>?
  var named: [String: [Leaf]]
  var knot: Knot?

  init(
    leaf: Leaf, leaves: [Leaf?], grid: [[Leaf]], tags: Set<Leaf>?, named: [String: [Leaf]],
    knot: Knot?
  ) {
    (self.leaf, self.leaves, self.grid) = (leaf, leaves, grid)
    (self.tags, self.named, self.knot) = (tags, named, knot)
  }

  init(from fields: inout FieldReader) throws {
    leaf = try fields.read("leaf")
    leaves = try fields.read("leaves")
    grid = try fields.read("grid")
    tags = try fields.readIfPresent("tags")
    named = try fields.read("named")
    knot = try fields.readIfPresent("knot")
  }

  func write(to fields: inout FieldWriter) {
    fields.write(leaf, as: "leaf")
    fields.write(leaves, as: "leaves")
    fields.write(grid, as: "grid")
    fields.writeIfPresent(tags, as: "tags")
    fields.write(named, as: "named")
    fields.writeIfPresent(knot, as: "knot")
  }
}

struct Knot: Codable, Equatable {
  enum Choice: Codable, Equatable {
    case none
    case leaf(Leaf)
    case twigs([Twig], count: Int?)
  }

  var title: String
  var leaf: Leaf?
  var twigs: [Twig]
  var deep: [String: [[Twig?]]]
  var byNumber: [Int: Leaf]
  var choice: Choice
}

extension SplitMix64 {
  mutating func maybe<T>(_ make: (inout SplitMix64) -> T) -> T? {
    next() % 3 == 0 ? nil : make(&self)
  }

  mutating func several<T>(_ make: (inout SplitMix64) -> T) -> [T] {
    (0..<next() % 4).map { _ in make(&self) }
  }

  mutating func names<T>(_ make: (inout SplitMix64) -> T) -> [String: T] {
    Dictionary(
      several { ("name \($0.next() % 100)", make(&$0)) }, uniquingKeysWith: { first, _ in first })
  }

  mutating func leaf() -> Leaf {
    Leaf(id: Int(truncatingIfNeeded: next()), text: maybe { "text \($0.next())" })
  }

  mutating func twig(depth: Int) -> Twig {
    Twig(
      leaf: leaf(), leaves: several { $0.maybe { $0.leaf() } },
      grid: several { $0.several { $0.leaf() } }, tags: maybe { Set($0.several { $0.leaf() }) },
      named: names { $0.several { $0.leaf() } },
      knot: depth == 0 ? nil : maybe { $0.knot(depth: depth - 1) })
  }

  mutating func knot(depth: Int) -> Knot {
    let inner = max(0, depth - 1)
    let choice: Knot.Choice =
      switch next() % 3 {
      case 0: .none
      case 1: .leaf(leaf())
      default: .twigs(several { $0.twig(depth: 0) }, count: maybe { Int($0.next() % 9) })
      }
    return Knot(
      title: "knot \(next() % 1000)", leaf: maybe { $0.leaf() },
      twigs: several { $0.twig(depth: inner) },
      deep: names { $0.several { $0.several { $0.maybe { $0.twig(depth: 0) } } } },
      byNumber: Dictionary(
        several { (Int($0.next() % 100), $0.leaf()) }, uniquingKeysWith: { first, _ in first }),
      choice: choice)
  }
}
