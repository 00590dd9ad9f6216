@testable import Larder
import LarderTestSupport
import Synchronization
import Testing

@testable import Specimens

/// Streams hand out the same encoders and containers again, which a type may keep.
@Suite struct StreamLinkTests {
  private enum Keys: CodingKey { case a, b }

  /// Encodes a value with a writer, or by a tree if the writer abandons the stream.
  private func encoded(_ value: some Encodable, by writer: borrowing PayloadWriter) throws -> String
  {
    var bytes = ByteBuffer()
    let isStreamed = writer.write(value, into: &bytes)
    writer.endPayload()
    return hex(isStreamed ? Array(bytes) : try encodedByTree(value))
  }

  @Test("Containers are kept only if they are a reference that only their copies share.")
  func layout() {
    final class Object {}
    struct One { let object = Object() }
    struct Two { let object = Object(), other = Object() }
    struct Late { let number = 1, object = Object() }
    struct Shared { let object: Object }
    let shared = Object()
    #expect(Original(One()).isOneReference)
    #expect(Original(KeyedEncodingContainer<Keys>.refusing).isOneReference)
    #expect(PayloadWriter.keepsContainers)
    #expect(!Original(Two()).isOneReference)
    #expect(!Original(Late()).isOneReference)
    #expect(!Original(1).isOneReference)
    #expect(!Original([1]).isOneReference)
    #expect(!Original(()).isOneReference)
    #expect(!Original(Shared(object: shared)).isOneReference)
    withExtendedLifetime(shared) {}
  }

  @Test(
    "A writer encodes the same bytes whether it keeps containers or not.",
    arguments: [testSeed(), 1])
  func withoutKeeping(seed: UInt64) throws {
    let keeping = PayloadWriter(keepsContainers: true)
    let forgetting = PayloadWriter(keepsContainers: false)
    var random = SplitMix64(seed: seed)
    for step in 0..<300 {
      let thing = random.thing(depth: 4)
      let bytes = try encoded(thing, by: keeping)
      #expect(try encoded(thing, by: forgetting) == bytes, "seed \(seed), step \(step)")
      #expect(hex(try encodedByTree(thing)).count == bytes.count, "seed \(seed), step \(step)")
    }
  }

  /// Encodes the item and others within it, each into a payload of its own.
  private struct Nested: Encodable {
    let item: Item
    let others: Int
    let check: @Sendable ([UInt8]) -> Void

    func encode(to encoder: any Encoder) throws {
      if others > 0 {
        var bytes = ByteBuffer()
        try Binary.encode(Nested(item: item, others: others - 1, check: check), into: &bytes)
        check(Array(bytes))
      }
      try item.encode(to: encoder)
    }
  }

  @Test("Many values that are encoded at the same time have the bytes of one that is alone.")
  func sameTime() throws {
    let counts = Mutex((right: 0, wrong: 0))
    onThreads(4) { thread in
      var random = SplitMix64(seed: UInt64(thread))
      do {
        for _ in 0..<20 {
          let item = random.item()
          let alone = try LarderCodingTests.encoded(item)
          // More than the writers that are kept.
          let nested = Nested(item: item, others: 12) { bytes in
            counts.withLock { bytes == alone ? ($0.right += 1) : ($0.wrong += 1) }
          }
          #expect(try LarderCodingTests.encoded(nested) == alone)
        }
      } catch {
        Issue.record("\(error)")
      }
    }
    #expect(counts.withLock { $0.wrong } == 0)
    #expect(counts.withLock { $0.right } == 4 * 20 * 12)
  }

  // MARK: - Kept by a type

  /// Keeps everything that it receives, and fills it after the call.
  private final class Keeper: Encodable {
    var encoders: [any Encoder] = []
    var fields: [KeyedEncodingContainer<Keys>] = []
    var lists: [any UnkeyedEncodingContainer] = []
    var failures = 0

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      var list = container.nestedUnkeyedContainer(forKey: .a)
      try list.encode(1)
      encoders.append(encoder)
      fields.append(container)
      lists.append(list)
    }

    /// Counts the errors of encoding with everything that was kept.
    func encodeLate() -> Int {
      var failures = 0
      func attempt(_ body: () throws -> Void) { if tried(body) == nil { failures += 1 } }
      for index in fields.indices {
        attempt { try fields[index].encode("late", forKey: .b) }
        attempt { try fields[index].encodeNil(forKey: .b) }
        attempt { try fields[index].encode([1], forKey: .b) }
        attempt { try fields[index].encodeIfPresent(RoundTripTests.item, forKey: .b) }
        var nested = fields[index].nestedContainer(keyedBy: Keys.self, forKey: .b)
        attempt { try nested.encode(1, forKey: .a) }
        var list = fields[index].superEncoder().unkeyedContainer()
        attempt { try list.encode(1) }
        attempt { try lists[index].encode("late") }
        var inner = lists[index].nestedContainer(keyedBy: Keys.self)
        attempt { try inner.encode(1, forKey: .a) }
        var again = encoders[index].container(keyedBy: Keys.self)
        attempt { try again.encode(1, forKey: .b) }
        var single = encoders[index].singleValueContainer()
        attempt { try single.encode(RoundTripTests.item) }
        #expect(encoders[index].codingPath.isEmpty && fields[index].codingPath.isEmpty)
        #expect(lists[index].codingPath.isEmpty && lists[index].count == 0)
      }
      return failures
    }
  }

  @Test("What a type keeps refuses everything after the payload.", arguments: [true, false])
  func keptByType(keepsContainers: Bool) throws {
    let writer = PayloadWriter(keepsContainers: keepsContainers)
    let items = [RoundTripTests.item, RoundTripTests.item]
    let expected = hex(try encodedByTree(items))
    // A list, so that each element receives a container while the ones before it are in use.
    let keepers = (0..<20).map { _ in Keeper() }
    let first = try encoded(keepers, by: writer)
    #expect(first == hex(try encodedByTree((0..<20).map { _ in Keeper() })))
    for _ in 0..<3 {
      for keeper in keepers { #expect(keeper.encodeLate() == 10) }
      #expect(try encoded(items, by: writer) == expected)
    }
    #expect(try encoded(keepers, by: writer) == first)
  }

  @Test("What a type keeps outlives the writer.", arguments: [true, false])
  func outlivingWriter(keepsContainers: Bool) throws {
    let keeper = Keeper()
    func encode() throws {
      _ = try encoded([keeper, keeper], by: PayloadWriter(keepsContainers: keepsContainers))
    }
    try encode()
    #expect(keeper.encodeLate() == 20)
  }

  @Test(
    "What a type keeps does not disturb a value that is being encoded.", arguments: [true, false])
  func keptWhileInUse(keepsContainers: Bool) throws {
    final class Disturbed: Encodable {
      let keeper: Keeper
      var calls = 0
      init(_ keeper: Keeper) { self.keeper = keeper }
      func encode(to encoder: any Encoder) throws {
        calls += 1
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(1, forKey: .a)
        #expect(keeper.encodeLate() == 10)
        try container.encode(2, forKey: .b)
      }
    }
    let writer = PayloadWriter(keepsContainers: keepsContainers)
    let keeper = Keeper()
    _ = try encoded(keeper, by: writer)
    let value = Disturbed(keeper)
    #expect(try encoded(value, by: writer) == hex(try encodedByTree(Disturbed(keeper))))
    #expect(value.calls == 1)
  }

  /// The container of a value that has ended, used while a value of the same type is encoded.
  @Test("A container used after a sibling of the same type goes through a tree.")
  func afterSibling() throws {
    final class Last { var container: KeyedEncodingContainer<Keys>? }
    struct Sibling: Encodable {
      let last: Last
      let isFirst: Bool
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode("own", forKey: .a)
        if !isFirst { try last.container?.encode("late", forKey: .b) }
        last.container = container
      }
    }
    let last = Last()
    let siblings = [Sibling(last: last, isFirst: true), Sibling(last: last, isFirst: false)]
    let writer = PayloadWriter(keepsContainers: true)
    // The object has ended, so that a field cannot be added to its bytes.
    var bytes = ByteBuffer()
    #expect(!writer.write(siblings, into: &bytes))
    writer.endPayload()
    let value = try decoded([[String: String]].self, from: LarderCodingTests.encoded(siblings))
    #expect(value == [["a": "own", "b": "late"], ["a": "own"]])
  }

  // MARK: - Many containers

  /// An object that is filled through many containers, all of which are in use.
  private struct Crowd: Codable, Equatable {
    struct Key: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    var count: Int

    init(_ count: Int) { self.count = count }
    init(from decoder: any Decoder) throws {
      count = try decoder.container(keyedBy: Key.self).allKeys.count
    }
    func encode(to encoder: any Encoder) throws {
      var containers = (0..<count).map { _ in encoder.container(keyedBy: Key.self) }
      for index in containers.indices {
        try containers[index].encode(index, forKey: Key(stringValue: "field \(index)"))
      }
    }
  }

  @Test("A type may use many containers of one value at once.", arguments: [true, false])
  func manyContainers(keepsContainers: Bool) throws {
    let writer = PayloadWriter(keepsContainers: keepsContainers)
    for count in [1, 7, 8, 9, 64, 65, 150] {
      let crowds = [Crowd(count), Crowd(count)]
      let bytes = try encoded(crowds, by: writer)
      #expect(bytes == hex(try encodedByTree(crowds)))
    }
    try expectRoundTrip([Crowd(20), Crowd(3)])
  }

  private struct Tagged<Tag: Codable & Equatable & Sendable>: Codable, Equatable {
    var a = 1
    var b: [Int: Int]? = [1: 2]
  }

  @Test("Types with keys of many types are encoded in turn.", arguments: [true, false])
  func manyTypes(keepsContainers: Bool) throws {
    let writer = PayloadWriter(keepsContainers: keepsContainers)
    let values: [any Encodable] = [
      Tagged<Int>(), Tagged<Int8>(), Tagged<Int16>(), Tagged<Int32>(), Tagged<Int64>(),
      Tagged<UInt>(), Tagged<UInt8>(), Tagged<UInt16>(), Tagged<UInt32>(), Tagged<UInt64>(),
      Tagged<String>(), Tagged<Bool>(), [Tagged<Float>(), Tagged<Float>()],
    ]
    let expected = try values.map { hex(try encodedByTree($0)) }
    for _ in 0..<3 {
      for (value, expected) in zip(values, expected) {
        #expect(try encoded(value, by: writer) == expected)
      }
    }
  }
}
