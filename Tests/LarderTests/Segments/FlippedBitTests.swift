import AcceptanceRows
import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// A bit of a payload flips in a store that was killed, and its other values stay.
@Suite(.acceptance) struct FlippedBitTests {
  private static func options() -> Store.Options {
    var options = Store.Options()
    options.memoryBytes = 0
    return options
  }

  private static func images(_ store: Store) throws -> Cache<Int, Data> {
    try store.cache("images", of: Data.self, keyedBy: Int.self, coder: .bytes)
  }

  private static func notes(_ store: Store) throws -> Cache<Int, Data> {
    try store.cache("notes", of: Data.self, keyedBy: Int.self, coder: .bytes)
  }

  private static func image(_ number: Int) -> Data {
    var random = SplitMix64(seed: UInt64(number))
    return Data(random.bytes(10_000))
  }

  /// A copy of an open store, as a kill would leave it.
  private static func copy(_ directory: URL, named name: String) throws -> URL {
    let copy = directory.deletingLastPathComponent().appending(path: name)
    try FileManager.default.copyItem(at: directory, to: copy)
    return copy
  }

  /// Flips a bit of the payload of an image.
  private static func flip(_ number: Int, in directory: URL) throws {
    let path = directory.appending(path: "00000001.segment")
    var bytes = try Data(contentsOf: path)
    let place = try #require(bytes.range(of: image(number)))
    bytes[place.lowerBound + 5000] ^= 1
    try bytes.write(to: path)
  }

  /// Writes a store that is still open.
  ///
  /// It has three images, of which 1 is removed and 2 ended by its tag, and 100 notes, all durable.
  /// Then come image 3 and note 100.
  private static func write(in directory: URL) throws -> Store {
    let store = try Store(at: directory, options: options())
    let (images, notes) = (try images(store), try notes(store))
    for number in 0..<3 {
      try images.save(image(number), for: number, tags: number == 2 ? ["ended"] : [])
    }
    try store.flush()
    try images.remove(1)
    try store.invalidate(tag: "ended")
    for number in 0..<100 { try notes.save(Data([1]), for: number, durability: .powerLoss) }
    try store.flush()
    try images.save(image(3), for: 3)
    try notes.save(Data([1]), for: 100)
    return store
  }

  /// The images and the numbers of notes of a store; nil for an image that is damaged.
  private static func contents(_ store: Store) throws -> (images: [Int: Data?], notes: Int) {
    let (images, notes) = (try images(store), try notes(store))
    var found: [Int: Data?] = [:]
    for number in 0..<4 {
      do {
        if let image = try images.value(for: number) { found[number] = image }
      } catch StoreError.corrupt("images", "\(number)", _) {
        found[number] = .some(nil)
      }
    }
    let count = try (0...100).count { try notes.value(for: $0) != nil }
    try store.close()
    return (found, count)
  }

  @Test("A flipped bit of a durable payload costs one entry, and no write of any cache.")
  func durablePayload() throws {
    let temporary = try TemporaryDirectory()
    let place = URL(filePath: temporary.path("store"))
    let live = try Self.write(in: place)
    for number in 0..<3 {
      let killed = try Self.copy(place, named: "killed \(number)")
      try Self.flip(number, in: killed)
      let store = try Store(at: killed, options: Self.options())
      #expect(store.recovery == nil)
      let (images, notes) = try Self.contents(store)
      var expected: [Int: Data?] = [0: Self.image(0), 3: Self.image(3)]
      // An entry that has ended is damaged like another; nothing is left of a removed one.
      if number != 1 { expected[number] = .some(nil) }
      #expect(images == expected)
      #expect(notes == 101)
    }
    try live.close()
  }

  @Test("A flipped bit of a payload that was not durable takes the writes from it on.")
  func plainPayload() throws {
    let temporary = try TemporaryDirectory()
    let place = URL(filePath: temporary.path("store"))
    let live = try Self.write(in: place)
    let killed = try Self.copy(place, named: "killed")
    try Self.flip(3, in: killed)
    // Every way of reading the store agrees with its opening.
    var readOnly = Self.options()
    readOnly.access = .readOnly
    var found = [try Self.contents(Store(at: killed, options: readOnly))]
    let salvaged = temporary.path("salvaged")
    _ = try Store.salvage(from: killed, to: URL(filePath: salvaged))
    found.append(try Self.contents(Store(at: URL(filePath: salvaged), options: Self.options())))
    let store = try Store(at: killed, options: Self.options())
    let summary = try #require(store.recovery?.summary)
    #expect(summary.contains("missing or damaged in 00000001.segment, byte "))
    #expect(summary.contains("The last writes are lost, at least 2. A power loss takes only"))
    found.append(try Self.contents(store))
    for (images, notes) in found {
      #expect(images == [0: Self.image(0)])
      #expect(notes == 100)
    }
    try live.close()
  }

  @Test("A segment that is cut after a clean close costs the entries behind the cut.")
  func cutSegment() throws {
    let temporary = try TemporaryDirectory()
    let place = URL(filePath: temporary.path("store"))
    try Self.write(in: place).close()
    let path = place.appending(path: "00000001.segment")
    let bytes = try Data(contentsOf: path)
    try bytes.prefix(5000).write(to: path)
    let store = try Store(at: place, options: Self.options())
    #expect(store.recovery == nil)
    let (images, notes) = try Self.contents(store)
    #expect(images == [0: nil, 2: nil, 3: nil])
    #expect(notes == 101)
  }

  @Test("A rebuild loses only the entry of a damaged payload.")
  func rebuild() throws {
    let temporary = try TemporaryDirectory()
    let place = URL(filePath: temporary.path("store"))
    let live = try Self.write(in: place)
    let killed = try Self.copy(place, named: "killed")
    try live.close()
    try Self.flip(3, in: killed)
    for name in try FileManager.default.contentsOfDirectory(
      atPath: killed.path(percentEncoded: false)
    ) where name == "CURRENT" || name.hasPrefix("MANIFEST-") {
      try FileManager.default.removeItem(at: killed.appending(path: name))
    }
    let rebuilt = URL(filePath: temporary.path("rebuilt"))
    _ = try Store.salvage(from: killed, to: rebuilt, rebuilding: .leavingOutDoubtful)
    let (images, notes) = try Self.contents(Store(at: rebuilt, options: Self.options()))
    #expect(images == [0: Self.image(0)])
    #expect(notes == 101)
  }
}
