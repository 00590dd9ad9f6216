import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// Direct decoding gives the result of `Codable` for any bytes, on any number of threads.
@Suite struct DirectHostileTests: RouteComparison {
  private func bytes(_ encode: (inout ByteBuffer) throws -> Void) rethrows -> [UInt8] {
    var buffer = ByteBuffer()
    try encode(&buffer)
    return Array(buffer)
  }

  /// Changes payloads at random, and decodes each with a route that knows their shape, with a new
  /// route, and through `Codable`.
  private func expectSame<T: DirectCoding>(
    _ values: [T], rounds: Int, at place: SourceLocation = #_sourceLocation
  ) throws {
    var random = SplitMix64(seed: testSeed())
    let route = DirectRoute<T>()
    let payloads = [
      try bytes { try route.encode(values, into: &$0) },
      try bytes { try Binary.encode(values, into: &$0) },
    ]
    for payload in payloads { _ = try route.decodeList(payload.span.bytes) }
    for round in 0..<rounds * proofFactor {
      var changed = payloads[round % payloads.count]
      for _ in 0...Int.random(in: 0...2, using: &random) { random.change(&changed) }
      let expected = outcome { try Binary.decode([T].self, from: changed.span.bytes) }
      let known = outcome { try route.decodeList(changed.span.bytes) }
      let unknown = outcome { try DirectRoute<T>().decodeList(changed.span.bytes) }
      #expect(known == expected, "\(changed)", sourceLocation: place)
      #expect(unknown == expected, "\(changed)", sourceLocation: place)
      if known != expected || unknown != expected { return }
    }
  }

  @Test("A changed payload decodes to the same value or error as through Codable.")
  func changedPayloads() throws {
    try expectSame([Everything(), .full], rounds: 3000)
    try expectSame([Holder(), .full], rounds: 6000)
    try expectSame([Branch(levels: 3, nest: 2)], rounds: 3000)
    try expectSame(
      (0..<3).map { Song.First(id: $0, title: "Song \($0)", length: 0.5) }, rounds: 6000)
    let added = try JSONDecoder().decode(
      [Song.Added].self,
      from: Data(#"[{"id":1,"title":"a","length":2,"year":3},{"id":2,"title":"","length":0}]"#.utf8)
    )
    try expectSame(added, rounds: 6000)
  }

  // Each run of a proof has two new seeds.
  private static let seeds: [UInt64] = {
    let seed = testSeed()
    return [seed, isProof ? seed &+ 1 : 1]
  }()

  /// `make proof` runs it with ten million payloads in five parts, and the address sanitizer.
  @Test(
    "A changed payload is read directly only if Codable reads the same value.", arguments: seeds)
  func changedModels(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let agreements = try Agreement.all(seed: seed)
    let goal = isProof ? 1_000_000 : 2_000
    var (checked, read) = (0, 0)
    while checked < goal {
      let agreement = agreements[random.below(agreements.count)]
      let payloads = (0...random.below(8)).map { _ in
        // Sometimes a payload of another type.
        let source = random.below(4) == 0 ? agreements[random.below(agreements.count)] : agreement
        var bytes = source.payloads[random.below(source.payloads.count)]
        for _ in 0..<random.below(4) { random.change(&bytes) }
        return bytes
      }
      do {
        read += try agreement.check(payloads, random.below(2) == 0)
      } catch {
        Issue.record("\(error), seed \(seed), after \(checked) payloads: \(payloads)")
        return
      }
      checked += payloads.count
    }
    #expect(read > checked / 10, "too few payloads are read directly")
    print("changed payloads: \(checked), \(read) read directly, seed \(seed)")
  }

  @Test("A list that claims more elements than it has is an error, without allocating for them.")
  func falseCount() throws {
    let route = DirectRoute<Song.First>()
    var list = try bytes {
      try route.encode([Song.First(id: 1, title: "a", length: 2)], into: &$0)
    }
    _ = try route.decodeList(list.span.bytes)
    // The number of elements follows the types.
    list.replaceSubrange(8..<12, with: [0xFF, 0xFF, 0xFF, 0x7F])
    #expect(throws: DecodingError.self) { try route.decodeList(list.span.bytes) }
    list.replaceSubrange(8..<12, with: [2, 0, 0, 0])
    #expect(throws: DecodingError.self) { try route.decodeList(list.span.bytes) }
  }

  @Test("Several threads may use a new route at once.")
  func threads() {
    for _ in 0..<50 {
      let route = DirectRoute<Everything>()
      let older = DirectRoute<Song.Added>()
      let value = Everything.full
      let failures = Mutex<[String]>([])
      onThreads(4) { thread in
        do {
          let whole = try bytes { try route.encode([value, value], into: &$0) }
          let one = try bytes {
            try DirectRoute().encode([Song.First(id: thread, title: "a", length: 1)], into: &$0)
          }
          let isRight =
            try route.decodeList(whole.span.bytes) == [value, value]
            && older.decodeList(one.span.bytes).map(\.id) == [thread]
          if !isRight { failures.withLock { $0.append("a wrong value") } }
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
      #expect(failures.withLock { $0 } == [])
    }
  }

  @Test("A decoder that is kept after decoding still reads its bytes.")
  func keptDecoder() throws {
    let route = DirectRoute<Keeper>()
    let values = [Keeper(Kept(names: ["a", "b"])), Keeper(Kept(names: ["c"]))]
    var payload = try bytes { try route.encode(values, into: &$0) }
    for _ in 0..<2 {
      let read = try payload.withUnsafeBytes { try route.readList($0) }
      for index in payload.indices { payload[index] = 0xFF }
      #expect(try read.map { try $0.kept.readNames() } == [["a", "b"], ["c"]])
      payload = try bytes { try route.encode(values, into: &$0) }
    }
  }
}

struct Keeper: DirectCoding {
  var kept: Kept
  init(_ kept: Kept) { self.kept = kept }
  init(from fields: inout FieldReader) throws { kept = try fields.read("kept") }
  func write(to fields: inout FieldWriter) { fields.write(kept, as: "kept") }
}

/// A value that reads its names later.
struct Kept: Codable, @unchecked Sendable {
  // @unchecked: only the test's own thread has it.
  private var names: [String] = []
  private var decoder: (any Decoder)?

  init(names: [String]) { self.names = names }
  init(from decoder: any Decoder) throws { self.decoder = decoder }
  func encode(to encoder: any Encoder) throws { try names.encode(to: encoder) }
  func readNames() throws -> [String] {
    guard let decoder else { return names }
    return try [String](from: decoder)
  }
}

extension SplitMix64 {
  /// Changes bytes as damage would, or as an attacker who knows the format.
  mutating func change(_ bytes: inout [UInt8]) {
    guard !bytes.isEmpty else { return }
    let place = Int.random(in: 0..<bytes.count, using: &self)
    switch next() % 6 {
    case 0: bytes[place] ^= 1 << UInt8(next() % 8)
    case 1: bytes[place] = UInt8.random(in: 0...30, using: &self)
    case 2: bytes.removeSubrange(place...)
    case 3: bytes.remove(at: place)
    case 4: bytes.insert(UInt8.random(in: 0...255, using: &self), at: place)
    default: bytes.swapAt(place, Int.random(in: 0..<bytes.count, using: &self))
    }
  }
}
