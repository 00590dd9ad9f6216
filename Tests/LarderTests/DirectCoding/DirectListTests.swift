import Testing

@testable import Larder

/// Lists of numbers are read without `Codable`.
@Suite struct DirectListTests: RouteComparison {
  private let route = DirectRoute<NumberLists>()

  private func directly(_ value: NumberLists) throws -> [UInt8] {
    try directly(value, route)
  }

  /// Decodes directly, without falling back to `Codable`.
  private func read(_ bytes: [UInt8]) throws -> NumberLists {
    try bytes.withUnsafeBytes { try route.read($0) }
  }

  @Test("Lists of numbers are read directly, whichever route wrote them.")
  func lists() throws {
    for value in [NumberLists(), NumberLists([], []), NumberLists(Array(0..<2000), [.pi])] {
      // The first read learns the fields.
      for _ in 0..<2 {
        #expect(try read(directly(value)) == value)
        #expect(try read(byCodable(value)) == value)
      }
    }
  }

  @Test("Lists of narrower numbers are widened directly, by a route that has read them first.")
  func narrowFirst() throws {
    let narrow = try byCodable(NarrowLists())
    for _ in 0..<3 { #expect(try read(narrow) == NumberLists([3, -4], [1.5])) }
    #expect(try read(byCodable(NumberLists())) == NumberLists())
  }

  @Test("Lists of narrower numbers go through Codable after a route has read wide ones.")
  func wideFirst() throws {
    #expect(try read(byCodable(NumberLists())) == NumberLists())
    let narrow = try byCodable(NarrowLists())
    for _ in 0..<2 {
      #expect(throws: (any Error).self) { try read(narrow) }
      #expect(try route.decode(narrow.span.bytes) == NumberLists([3, -4], [1.5]))
    }
  }

  @Test("A list that claims more numbers than there are bytes is refused.")
  func hugeCount() throws {
    var payload = try directly(NumberLists())
    #expect(try read(payload) == NumberLists())
    // The count follows the head, the object's type, and the list's two types.
    let count = 5 + 2 + 2
    #expect(payload[count...(count + 3)] == [3, 0, 0, 0])
    payload[count + 3] = 0x7F
    #expect(throws: (any Error).self) { try read(payload) }
    #expect(throws: DecodingError.self) { try route.decode(payload.span.bytes) }
  }
}
