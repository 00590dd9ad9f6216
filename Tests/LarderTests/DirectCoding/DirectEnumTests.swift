import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// Enums with direct coding are coded as through `Codable`.
@Suite struct DirectEnumTests {
  // MARK: - Bytes

  @Test("Both routes write the same bytes for random values.", arguments: [testSeed(), 1])
  func sameBytes(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for step in 0..<(300 * proofFactor) {
      let comment: Comment = "seed \(seed), step \(step)"
      let values = (0..<4).map { _ in Models.Step(&random) }
      #expect(try directly(values[0]) == byCodable(values[0]), comment)
      #expect(try directly(values) == byCodable(values), comment)
      #expect(try directly(["a": values[0]]) == byCodable(["a": values[0]]), comment)
      #expect(try directly([values[0], nil]) == byCodable([values[0], nil]), comment)
      try expectSame(values, comment)
    }
  }

  @Test("Each route reads what the other wrote, for random values.", arguments: [testSeed(), 1])
  func randomValues(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for step in 0..<(isProof ? 6000 : 120) {
      let comment: Comment = "seed \(seed), step \(step)"
      try expectSame(Models.Event(&random), comment)
      try expectSame((0..<4).map { _ in Models.Event(&random) }, comment)
      try expectSame((0..<4).map { _ in Models.LaterEvent(&random) }, comment)
      try expectSame(Models.Log(&random), comment)
    }
  }

  @Test("The bytes are those of the format.")
  func documentedBytes() throws {
    let name: [UInt8] = [1, 0x10, 2] + Array("_0".utf8)
    let note: [UInt8] = [1, 0x16, 4] + Array("note".utf8)
    let closed: [UInt8] = [1, 0x16, 6] + Array("closed".utf8)
    let text: [UInt8] = [0x15, 1, 0x15, 0, 2] + Array("hi".utf8)
    let empty: [UInt8] = [0x15, 2, 0x14, 0, 0, 0, 0]
    let body: [UInt8] = [0x13, 0x16, 3, 0, 0, 0] + text + empty + text
    let expected = [1, UInt8(body.count), 0, 0, 0] + body + [3] + name + note + closed
    #expect(try directly([Models.Event.note("hi"), .closed, .note("hi")]) == expected)
  }

  // MARK: - Which route

  @Test("Enums do not go through Codable, wherever they are.")
  func withoutCodable() throws {
    let all: [ObservedEnum] = [.none, .one(1), .nest(.one(2)), .text("a", more: nil)]
    for value in all { try expectDirect(value) }
    try expectDirect(all)
    try expectDirect(all.map(Optional.some) + [nil])
    try expectDirect(["a": all])
    try expectDirect(Box(value: all[2], more: all))
    try expectDirect(Models.Either<ObservedEnum, [ObservedEnum]>.both(all[1], all))
  }

  private func expectDirect<Value: Codable & Equatable & Sendable>(
    _ value: Value, at place: SourceLocation = #_sourceLocation
  ) throws {
    try expectNoCodable(value, at: place)
    try expectSame(value, at: place)
  }

  @Test("An enum that breaks the rules loses no data.")
  func unrulyEnums() throws {
    let relative = try #require(
      URL(string: "b", relativeTo: URL(string: "https://example.com/a/")))
    let links: [Unruly] = [.link(relative), .link(URL(filePath: "/a")), .link(relative)]
    for values in [
      links, [.withoutCase(1), .other(1)], [.twice(1), .other(2)], [.leavesOut(1, 2), .other(1)],
      [.varies(nil), .varies(1), .varies(nil)], [.varies(1), .varies(nil)],
      [.misnamed(1), .other(1)], [.withoutField(1), .other(1), .withoutField(2)],
    ] {
      for _ in 0..<2 {
        for value in values { try expectSame(value) }
        try expectSame(values)
        try expectSame([CaseWriter()])
        try expectSame(Box(value: values[0], more: values))
      }
    }
  }

  @Test("A case that never writes all fields is no longer asked for them.")
  func hopelessCase() throws {
    let calls = Calls()
    try Observed.$calls.withValue(calls) {
      for step in 0..<100 { try expectSame(Hopeless.forgetful(step)) }
    }
    // Once to write it each time, and 16 times to learn the case.
    #expect(calls.count == 100 + 16)
  }

  // MARK: - Versions

  @Test("An enum with added and removed fields and cases reads older values as Codable does.")
  func otherVersions() throws {
    var random = SplitMix64(seed: testSeed())
    var read = 0
    for _ in 0..<500 {
      let old = (0..<2).map { _ in Models.Event(&random) }
      for bytes in [try directly(old), try byCodable(old)] {
        if expectSameOutcome([Models.LaterEvent].self, bytes) { read += 1 }
      }
    }
    #expect(read > 20)
  }

  @Test("A case without fields that gets optional ones is still read directly.")
  func addedFields() throws {
    let calls = Calls()
    try Observed.$calls.withValue(calls) {
      let bytes = try byCodable(ObservedEnum.none)
      let before = calls.count
      #expect(try decode(LaterObserved.self, bytes) == LaterObserved.none(added: nil))
      #expect(calls.count == before)
    }
  }

  // MARK: - Errors

  @Test("Values without a known case, or with several, are the errors of Codable.")
  func errors() throws {
    typealias Values = [String: [String: Int]]
    let malformed: [Values] = [
      [:], ["unknown": [:]], ["closed": [:], "note": [:]], ["note": [:]], ["opened": ["url": 1]],
      ["": [:]], ["closed": ["a": 1]], ["note": ["_0": 1]],
    ]
    for value in malformed {
      for wrong in [
        try byCodable([value]), try byCodable([[value]]), try byCodable(["a": value]),
        try byCodable(value), try asObject(value),
      ] {
        expectSameOutcome([Models.Event].self, wrong)
        expectSameOutcome([[Models.Event]].self, wrong)
        expectSameOutcome([String: Models.Event].self, wrong)
        expectSameOutcome(Models.Event.self, wrong)
      }
    }
    for text in ["closed", ""] { expectSameOutcome([Models.Event].self, try byCodable([text])) }
    expectSameOutcome([Models.Event].self, try byCodable([["closed": 1]]))
    expectSameOutcome([Models.Event].self, try byCodable([["closed": [1]]]))
    let error = #expect(throws: DecodingError.self) {
      try decode([Models.Event].self, try byCodable([["unknown": [String: Int]()]]))
    }
    guard case .typeMismatch(_, let context) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(context.codingPath.map(\.stringValue) == ["Index 0"])
  }

  /// A payload of objects instead of maps.
  private func asObject(_ value: [String: [String: Int]]) throws -> [UInt8] {
    struct Name: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    struct Object: Encodable {
      var value: [String: [String: Int]]
      func encode(to encoder: any Encoder) throws {
        var outer = encoder.container(keyedBy: Name.self)
        for (name, fields) in value {
          var inner = outer.nestedContainer(
            keyedBy: Name.self, forKey: Name(stringValue: name))
          for (name, field) in fields { try inner.encode(field, forKey: Name(stringValue: name)) }
        }
      }
    }
    return try byCodable([Object(value: value)])
  }

  @Test("A changed payload decodes to the same value or error as through Codable.")
  func changedPayloads() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    var (refused, read) = (0, 0)
    for round in 0..<(4000 * proofFactor) {
      let events = [Models.Event(&random), Models.Event(&random)]
      let bytes = try round.isMultiple(of: 2) ? directly(events) : byCodable(events)
      var changed = bytes
      for _ in 0...Int.random(in: 0...2, using: &random) { random.change(&changed) }
      let comment: Comment = "seed \(seed), round \(round)"
      if expectSameOutcome([Models.Event].self, changed, comment) {
        read += 1
      } else {
        refused += 1
      }
    }
    #expect(refused > 500 && read > 100)
  }

  @Test("The depth limit counts two levels for each enum.")
  func depth() throws {
    for levels in [1, 2, 62, 63, 64, 65, 100, 10_000] {
      var value = Models.Step.plain(1, true)
      for _ in 1..<levels { value = .then(value, nil) }
      let byCodable = outcome { try self.byCodable(value) }
      let direct = outcome { try directly(value) }
      #expect(direct == byCodable, "\(levels)")
      #expect(byCodable.hasPrefix("[") == (levels <= 64), "\(levels)")
      if levels <= 64 { try expectSame(value) }
    }
  }

  @Test("Several threads may use a new enum at once.")
  func threads() {
    let failures = Mutex(0)
    onThreads(4) { thread in
      do {
        for step in 0..<20 {
          let values: [Fresh] = [.a(thread), .b("\(step)"), .c, .d(.a(1), nil)]
          if try decode([Fresh].self, directly(values)) != values {
            failures.withLock { $0 += 1 }
          }
        }
      } catch {
        failures.withLock { $0 += 1 }
      }
    }
    #expect(failures.withLock { $0 } == 0)
  }
}

// MARK: - Coding

extension DirectEnumTests: RouteComparison {
  private func directly<T: Codable & Sendable>(_ value: T) throws -> [UInt8] {
    try bytes(value) { try Coder<T>.binary.encode($0, &$1) }
  }

  /// Expects that the direct route has the value or the error of Codable; returns whether there is
  /// a value.
  @discardableResult
  private func expectSameOutcome<T: Codable & Equatable>(
    _ type: T.Type, _ bytes: [UInt8], _ comment: Comment? = nil,
    at place: SourceLocation = #_sourceLocation
  ) -> Bool {
    let expected = result { try Binary.decode(T.self, from: bytes.span.bytes) }
    let found = result { try decode(T.self, bytes) }
    #expect(found.error == expected.error, comment, sourceLocation: place)
    if let value = found.value, let expected = expected.value {
      #expect(isSame(value, expected), comment, sourceLocation: place)
    }
    return found.value != nil
  }

  /// Expects that both routes read what both have written.
  private func expectSame<T: Codable & Equatable & Sendable>(
    _ value: T, _ comment: Comment? = nil, at place: SourceLocation = #_sourceLocation
  ) throws {
    for bytes in [try directly(value), try byCodable(value)] {
      let read = [
        try decode(T.self, bytes), try Coder<T>.binary.decode(bytes.span.bytes),
        try Binary.decode(T.self, from: bytes.span.bytes),
      ]
      #expect(read.allSatisfy { isSame($0, value) }, comment, sourceLocation: place)
      #expect(Binary.read(bytes.span.bytes) != nil, comment, sourceLocation: place)
    }
  }
}
