import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// The depth limit holds within `DirectCoding` types, and through a cache.
@Suite struct DirectDepthTests {
  /// A value with a list of lists within it, made by a loop or by values within each other.
  struct Holder: DirectCoding {
    var lists: Lists

    init(levels: Int, byLoop: Bool) { lists = Lists(levels: levels, byLoop: byLoop) }
    init(from fields: inout FieldReader) throws { lists = try fields.read("lists") }
    func write(to fields: inout FieldWriter) { fields.write(lists, as: "lists") }
  }

  struct Lists: Codable, Equatable {
    /// Counts the values that were asked to encode themselves.
    @TaskLocal static var visits: Counter?

    var levels: Int
    var byLoop = false

    init(levels: Int, byLoop: Bool) { (self.levels, self.byLoop) = (levels, byLoop) }

    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      levels = 1
      while !list.isAtEnd {
        list = try list.nestedUnkeyedContainer()
        levels += 1
      }
    }

    func encode(to encoder: any Encoder) throws {
      try Self.visits?.add()
      var list = encoder.unkeyedContainer()
      if byLoop {
        for level in 1..<levels {
          list = list.nestedUnkeyedContainer()
          if level.isMultiple(of: 1000), list.codingPath.count > 200 { throw Endless() }
        }
      } else if levels > 1 {
        try list.encode(Lists(levels: levels - 1, byLoop: false))
      }
    }
  }

  struct Endless: Error {}

  final class Counter: @unchecked Sendable {
    // Only on the thread of its test.
    private(set) var count = 0

    func add() throws {
      count += 1
      if count > 3000 { throw Endless() }
    }
  }

  @Test(
    "The levels of a value within a direct one count towards the limit.", arguments: [true, false])
  func withinDirectValues(byLoop: Bool) throws {
    let store = Store.inMemory()
    let single = try store.cache("single", of: Holder.self)
    let list = try store.cache("list", of: [Holder].self)
    // The object is a level, and so is the list around it.
    try single.save(Holder(levels: 127, byLoop: byLoop), for: "k")
    #expect(try single.value(for: "k")?.lists.levels == 127)
    try list.save([Holder(levels: 126, byLoop: byLoop)], for: "k")
    #expect(try list.value(for: "k")?.first?.lists.levels == 126)
    for levels in [128, 129, 10_000, 1_000_000] {
      let value = Holder(levels: levels, byLoop: byLoop)
      #expect(try visits { try single.save(value, for: "k") } <= 3 * 130)
    }
    for levels in [127, 10_000, 1_000_000] {
      let value = Holder(levels: levels, byLoop: byLoop)
      #expect(try visits { try list.save([value], for: "k") } <= 3 * 130)
    }
    #expect(try single.value(for: "k")?.lists.levels == 127)
  }

  @Test("Every coder of a cache refuses a value that is too deep, and keeps the old one.")
  func everyCoder() throws {
    let coders: [Coder<Lists>] = [.binary, .json, .propertyList]
    for (number, coder) in coders.enumerated() {
      let cache = try Store.inMemory().cache("\(number)", of: Lists.self, coder: coder)
      try cache.save(Lists(levels: 128, byLoop: true), for: "k")
      for levels in [129, 10_000, 1_000_000] {
        for byLoop in [true, false] {
          let value = Lists(levels: levels, byLoop: byLoop)
          #expect(try visits { try cache.save(value, for: "k") } <= 2 * 130)
        }
      }
      #expect(try cache.value(for: "k")?.levels == 128)
    }
  }

  /// How many values were visited until `body` threw that they are too deep.
  private func visits(_ body: () throws -> Void) throws -> Int {
    let counter = Counter()
    do {
      try Lists.$visits.withValue(counter) { try body() }
      Issue.record("it was saved")
    } catch let error as StoreError {
      guard case .encoding(_, let underlying) = error,
        "\(underlying)".contains("Nested deeper than 128")
      else { throw error }
    }
    return counter.count
  }
}
