import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import Specimens

/// Payloads hand out the same decoders and containers again, which a type may keep.
// Serialized: some of its types keep containers in static variables.
@Suite(.serialized) struct DecoderReuseTests {
  private enum Keys: CodingKey { case name, parts, next, missing }

  /// An element of a list, whose decoder and containers are read by other types, too.
  private struct Part: Codable, Equatable {
    var name: String
    var parts: [Part]?
    var next: [String: Int]?
  }

  private static func parts(_ count: Int, from first: Int = 0) -> [Part] {
    (first..<(first + count)).map { index in
      Part(
        name: "part \(index)", parts: [Part(name: "inner \(index)")],
        next: index % 2 == 0 ? nil : ["number": index])
    }
  }

  /// Decodes with payloads that keep containers or not, and that are used again where they can be.
  private final class Reader {
    private let keepsContainers: Bool
    private var spare: UnsafeMutablePointer<PayloadState>?
    /// The payloads that could not be used again.
    private(set) var lost = 0

    init(keepsContainers: Bool) { self.keepsContainers = keepsContainers }

    deinit { spare?.pointee.owner?.release() }

    func decode<T: Decodable>(_ type: T.Type = T.self, from bytes: [UInt8]) throws -> T {
      // The decoders that a type keeps must not need the caller's bytes.
      var bytes = bytes
      defer { for index in bytes.indices { bytes[index] = 0xFF } }
      return try bytes.withUnsafeBytes { bytes in
        let payload =
          spare
          ?? Unmanaged.passRetained(Payload(keepsContainers: keepsContainers))
          .takeUnretainedValue().state
        spare = nil
        defer {
          if Payload.end(payload) { spare = payload } else { lost += 1 }
        }
        return try Binary.decode(bytes, with: payload)
      }
    }
  }

  // MARK: - What is kept

  @Test("Containers are a reference that only their copies share.")
  func layout() {
    #expect(ValueDecoder.keepsContainers)
  }

  @Test("The values of a list get one decoder and one container.")
  func sameObjects() throws {
    final class Seen { var objects: Set<UnsafeRawPointer> = [] }
    struct Watched: Decodable {
      // Only the addresses are noted, so that the objects stay free.
      nonisolated(unsafe) static var seen = Seen()
      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        Self.seen.objects.insert(
          UnsafeRawPointer(Unmanaged.passUnretained(decoder as AnyObject).toOpaque()))
        Self.seen.objects.insert(unsafeBitCast(container, to: UnsafeRawPointer.self))
      }
    }
    let reader = Reader(keepsContainers: true)
    let bytes = try encoded(Self.parts(20))
    for _ in 0..<3 { _ = try reader.decode([Watched].self, from: bytes) }
    #expect(Watched.seen.objects.count == 2)
    #expect(reader.lost == 0)
  }

  @Test(
    "A payload decodes the same values whether containers are kept or not.",
    arguments: [testSeed(), 1])
  func withoutKeeping(seed: UInt64) throws {
    let keeping = Reader(keepsContainers: true)
    let forgetting = Reader(keepsContainers: false)
    var random = SplitMix64(seed: seed)
    for step in 0..<300 {
      let thing = random.thing(depth: 4)
      var bytes = try encoded(thing)
      #expect(
        try keeping.decode(Thing.self, from: bytes) == thing,
        "seed \(seed), step \(step)")
      // A damaged payload leaves nothing behind that the next one would find.
      bytes[Int(random.next() % UInt64(bytes.count))] ^= UInt8(1 << (random.next() % 8))
      let damaged = tried { try keeping.decode(Thing.self, from: bytes) }
      let same = tried { try forgetting.decode(Thing.self, from: bytes) }
      #expect(damaged == same, "seed \(seed), step \(step)")
    }
    #expect(keeping.lost == 0 && forgetting.lost == 0)
  }

  // MARK: - Kept by a type

  /// Keeps everything that it receives.
  private struct Keeper: Decodable {
    let decoder: any Decoder
    let container: KeyedDecodingContainer<Keys>
    let list: any UnkeyedDecodingContainer
    let nested: KeyedDecodingContainer<Keys>
    let single: any SingleValueDecodingContainer
    let upper: any Decoder

    init(from decoder: any Decoder) throws {
      self.decoder = decoder
      container = try decoder.container(keyedBy: Keys.self)
      list = try container.nestedUnkeyedContainer(forKey: .parts)
      var elements = list
      nested = try elements.nestedContainer(keyedBy: Keys.self)
      single = try decoder.singleValueContainer()
      upper = try container.superDecoder(forKey: .parts)
    }

    /// Reads everything that was kept, which belongs to element `index` of a list.
    func check(_ part: Part, _ index: Int) throws {
      #expect(try container.decode(String.self, forKey: .name) == part.name)
      #expect(try container.decode([Part].self, forKey: .parts) == part.parts)
      #expect(try container.decodeIfPresent([String: Int].self, forKey: .next) == part.next)
      #expect(try Part(from: decoder) == part)
      #expect(try single.decode(Part.self) == part)
      #expect(try [Part](from: upper) == part.parts)
      #expect(try nested.decode(String.self, forKey: .name) == part.parts?[0].name)
      var list = list
      #expect(try list.decode(Part.self) == part.parts?[0])
      #expect(failure { _ = try container.decode(Int.self, forKey: .missing) } == "\(index)")
      #expect(failure { _ = try container.decode(Int.self, forKey: .name) } == "\(index).name")
      #expect(
        failure { _ = try nested.decode(Int.self, forKey: .name) } == "\(index).parts.0.name")
      #expect(
        failure { _ = try container.decode([[Int]].self, forKey: .parts) } == "\(index).parts.0")
      #expect(failure { _ = try list.decode(Int.self) } == "\(index).parts.1")
      #expect(failure { _ = try single.decode(Int.self) } == "\(index)")
      #expect(failure { _ = try Int(from: upper) } == "\(index).parts")
    }
  }

  @Test("What a type keeps stays usable after the payload.", arguments: [true, false])
  func keptByType(keepsContainers: Bool) throws {
    let reader = Reader(keepsContainers: keepsContainers)
    let parts = Self.parts(20)
    let bytes = try encoded(parts)
    let others = Self.parts(30, from: 100)
    let otherBytes = try encoded(others)
    let keepers = try reader.decode([Keeper].self, from: bytes)
    #expect(reader.lost == 1)
    for _ in 0..<3 {
      #expect(try reader.decode([Part].self, from: otherBytes) == others)
      for (index, keeper) in keepers.enumerated() { try keeper.check(parts[index], index) }
    }
    #expect(reader.lost == 1)
  }

  @Test("What a type keeps outlives the payload, and is released with the type.")
  func released() throws {
    weak var decoder: ValueDecoder?
    weak var payload: Payload?
    func decode() throws {
      let reader = Reader(keepsContainers: true)
      let keepers = try reader.decode([Keeper].self, from: try encoded(Self.parts(3)))
      decoder = keepers[1].decoder as? ValueDecoder
      payload = decoder?.payload
      #expect(decoder != nil && payload != nil)
      try keepers[1].check(Self.parts(3)[1], 1)
    }
    try decode()
    #expect(decoder == nil && payload == nil)
  }

  /// Keeps one container for all threads, or the last decoder.
  private final class Global: Sendable {
    let container = Mutex<(@Sendable () throws -> String)?>(nil)
    static let shared = Global()
  }

  /// Stores its container in a global.
  private struct Storing: Decodable {
    init(from decoder: any Decoder) throws {
      nonisolated(unsafe) let container = try decoder.container(keyedBy: Keys.self)
      Global.shared.container.withLock {
        $0 = { try container.decode(String.self, forKey: .name) }
      }
    }
  }

  @Test("A container in a global stays with its value.")
  func inGlobal() throws {
    _ = try decoded([Storing].self, from: try encoded(Self.parts(5)))
    for _ in 0..<3 {
      let others = Self.parts(7, from: 50)
      #expect(try decoded([Part].self, from: try encoded(others)) == others)
      let name = try Global.shared.container.withLock { try $0?() }
      #expect(name == "part 4")
    }
    Global.shared.container.withLock { $0 = nil }
  }

  @Test("Nothing of a value stays with the payload.")
  func forgotten() throws {
    final class Object: Sendable {}
    struct Owning: CodingKey {
      var stringValue = "parts"
      var object: Object?
      var intValue: Int? { nil }
      init(_ object: Object) { self.object = object }
      init?(stringValue: String) { nil }
      init?(intValue: Int) { nil }
    }
    struct Owner: Decodable {
      weak var object: Object?
      init(from decoder: any Decoder) throws {
        let object = Object()
        let container = try decoder.container(keyedBy: Owning.self)
        _ = try container.decode([Part].self, forKey: Owning(object))
        self.object = object
      }
    }
    let reader = Reader(keepsContainers: true)
    let owner = try reader.decode(Owner.self, from: try encoded(Self.parts(1)[0]))
    #expect(owner.object == nil)
    #expect(reader.lost == 0)
  }

  // MARK: - Used while decoding

  /// Reads the container, or the decoder, of the value before it.
  private struct Sibling: Decodable {
    final class Last {
      var container: KeyedDecodingContainer<Keys>?
      var decoder: (any Decoder)?
      var list: (any UnkeyedDecodingContainer)?
    }
    nonisolated(unsafe) static var last = Last()

    let name: String
    var before: [String] = []

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      name = try container.decode(String.self, forKey: .name)
      if let last = Self.last.container {
        before.append(try last.decode(String.self, forKey: .name))
        before.append(failure { _ = try last.decode(Int.self, forKey: .missing) })
      }
      if let last = Self.last.decoder {
        before.append(try Part(from: last).name)
        before.append(failure { _ = try Int(from: last) })
      }
      if var last = Self.last.list {
        before.append(try last.decode(Part.self).name)
        before.append(failure { _ = try last.decode(Int.self) })
      }
      #expect(try container.decode(String.self, forKey: .name) == name)
      Self.last = Last()
      switch name.suffix(1) {
      case "1": Self.last.container = container
      case "2": Self.last.decoder = decoder
      case "3": Self.last.list = try container.nestedUnkeyedContainer(forKey: .parts)
      default: break
      }
    }
  }

  @Test(
    "A container and a decoder can be used after a sibling of the same type.",
    arguments: [true, false])
  func afterSibling(keepsContainers: Bool) throws {
    let reader = Reader(keepsContainers: keepsContainers)
    let bytes = try encoded(Self.parts(6))
    for _ in 0..<2 {
      let siblings = try reader.decode([Sibling].self, from: bytes)
      #expect(siblings.map(\.name) == Self.parts(6).map(\.name))
      #expect(
        siblings.map(\.before) == [
          [], [], ["part 1", "1"], ["part 2", "2"], ["inner 3", "3.parts.1"], [],
        ])
    }
    // What was given up belongs to nobody, so that the payload can be used again.
    #expect(reader.lost == 0)
  }

  /// Reads a list by the container around it, from within the list.
  private struct Reentrant: Decodable {
    final class Outer { var container: KeyedDecodingContainer<Keys>? }
    nonisolated(unsafe) static var outer = Outer()

    struct Inner: Decodable {
      let names: [String]
      init(from decoder: any Decoder) throws {
        let own = try decoder.container(keyedBy: Keys.self)
        let before = try own.decode(String.self, forKey: .name)
        let all = try Reentrant.outer.container?.decode([Part].self, forKey: .parts) ?? []
        let path = failure { _ = try own.decode(Int.self, forKey: .missing) }
        #expect(decoder.codingPath.last?.intValue.map(String.init) == String(path.suffix(1)))
        names = [before, path] + all.map(\.name)
      }
    }

    let parts: [Inner]
    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      Self.outer.container = container
      parts = try container.decode([Inner].self, forKey: .parts)
      Self.outer.container = nil
    }
  }

  @Test("A list can be decoded while its elements are.", arguments: [true, false])
  func reentrant(keepsContainers: Bool) throws {
    let reader = Reader(keepsContainers: keepsContainers)
    let value = Part(name: "outer", parts: Self.parts(4))
    let names = Self.parts(4).map(\.name)
    let bytes = try encoded(value)
    for _ in 0..<2 {
      let decoded = try reader.decode(Reentrant.self, from: bytes)
      #expect(
        decoded.parts.map(\.names)
          == names.indices.map { [names[$0], "parts.\($0)"] + names })
    }
    #expect(reader.lost == 0)
  }

  /// A value within itself, which reads its fields before and after the one within.
  private final class Chain: Codable {
    let name: String
    let next: Chain?
    let part: Part

    private enum Keys: CodingKey { case name, next, part }

    init(_ depth: Int) {
      name = "link \(depth)"
      next = depth == 0 ? nil : Chain(depth - 1)
      part = Part(name: "part \(depth)")
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      let other = try decoder.container(keyedBy: DecoderReuseTests.Keys.self)
      name = try container.decode(String.self, forKey: .name)
      next = try container.decodeIfPresent(Chain.self, forKey: .next)
      part = try container.decode(Part.self, forKey: .part)
      #expect(try other.decode(String.self, forKey: .name) == name)
      #expect(try container.decodeIfPresent(Chain.Name.self, forKey: .next)?.name == next?.name)
    }

    struct Name: Decodable { let name: String }

    var names: [String] { [name, part.name] + (next?.names ?? []) }
  }

  @Test("A type can be decoded within itself.", arguments: [true, false])
  func recursion(keepsContainers: Bool) throws {
    let reader = Reader(keepsContainers: keepsContainers)
    for depth in [3, 40, 0, 12] {
      let bytes = try encoded(Chain(depth))
      #expect(try reader.decode(Chain.self, from: bytes).names == Chain(depth).names)
    }
    #expect(reader.lost == 0)
  }

  // MARK: - Errors

  /// Throws after some fields, while its container is kept.
  private struct Throwing: Decodable {
    nonisolated(unsafe) static var kept: [KeyedDecodingContainer<Keys>] = []
    let name: String
    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      name = try container.decode(String.self, forKey: .name)
      if name.hasSuffix("1") || name.hasSuffix("2") {
        if name.hasSuffix("2") { Self.kept.append(container) }
        throw Refusal()
      }
    }
  }

  /// Decodes a list, whose elements may throw.
  private struct Tolerant: Decodable {
    var names: [String] = []
    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      while !list.isAtEnd {
        if let value = tried({ try list.decode(Throwing.self) }) {
          names.append(value.name)
        } else {
          names.append("! \(try list.decode(Part.self).name)")
        }
      }
    }
  }

  @Test("A type that throws halfway does not disturb the values after it.")
  func throwingHalfway() throws {
    let reader = Reader(keepsContainers: true)
    let bytes = try encoded(Self.parts(5))
    for _ in 0..<2 {
      #expect(throws: Refusal.self) { try reader.decode([Throwing].self, from: bytes) }
      #expect(
        try reader.decode(Tolerant.self, from: bytes).names
          == ["part 0", "! part 1", "! part 2", "part 3", "part 4"])
    }
    #expect(Throwing.kept.count == 2)
    for container in Throwing.kept {
      #expect(try container.decode([Part].self, forKey: .parts) == Self.parts(5)[2].parts)
      #expect(failure { _ = try container.decode(Int.self, forKey: .missing) } == "2")
    }
    Throwing.kept = []
  }

  // MARK: - Many containers

  private struct Tag<Value>: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// Keeps containers with keys of twelve types.
  private struct Wide: Decodable {
    var read: [() throws -> String] = []
    init(from decoder: any Decoder) throws {
      func add<Value>(_ type: Value.Type) throws {
        let container = try decoder.container(keyedBy: Tag<Value>.self)
        read.append { try container.decode(String.self, forKey: Tag(stringValue: "name")) }
      }
      try add(Int.self)
      try add(Int8.self)
      try add(Int16.self)
      try add(Int32.self)
      try add(Int64.self)
      try add(UInt.self)
      try add(UInt8.self)
      try add(UInt16.self)
      try add(UInt32.self)
      try add(UInt64.self)
      try add(Bool.self)
      try add(Int.self)
      #expect(try read.map { try $0() } == Array(repeating: try read[0](), count: 12))
    }
  }

  @Test("A value may use containers with keys of many types.", arguments: [true, false])
  func manyTypes(keepsContainers: Bool) throws {
    let reader = Reader(keepsContainers: keepsContainers)
    let bytes = try encoded(Self.parts(3))
    let others = try encoded(Self.parts(3, from: 60))
    let wide = try reader.decode([Wide].self, from: bytes)
    for _ in 0..<2 { _ = try reader.decode([Wide].self, from: others) }
    for (value, part) in zip(wide, Self.parts(3)) {
      #expect(try value.read.map { try $0() } == Array(repeating: part.name, count: 12))
    }
  }

  // MARK: - Threads

  @Test("Eight threads decode at once, and some types keep their decoders.")
  func threads() throws {
    let parts = Self.parts(10)
    let bytes = try encoded(parts)
    onThreads(8) { thread in
      #expect(throws: Never.self) {
        var keepers: [[Keeper]] = []
        for round in 0..<200 {
          if round % 20 == thread {
            keepers.append(try decoded([Keeper].self, from: bytes))
          }
          guard try decoded([Part].self, from: bytes) == parts else { throw Refusal() }
        }
        for keeper in keepers.joined().enumerated() {
          try keeper.element.check(parts[keeper.offset % 10], keeper.offset % 10)
        }
      }
    }
  }
}

/// The coding path of an error, as text.
private func failure(_ body: () throws -> Void) -> String {
  do {
    try body()
    return "no error"
  } catch DecodingError.keyNotFound(_, let context) {
    return path(context)
  } catch DecodingError.typeMismatch(_, let context) {
    return path(context)
  } catch DecodingError.valueNotFound(_, let context) {
    return path(context)
  } catch {
    return "\(error)"
  }
}

private func path(_ context: DecodingError.Context) -> String {
  context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
    .joined(separator: ".")
}
