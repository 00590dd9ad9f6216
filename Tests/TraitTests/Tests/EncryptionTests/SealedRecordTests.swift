import Crypto
import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Sealed records that someone changes or moves, with a checksum that is right.
@Suite(.timeLimit(.minutes(5))) struct SealedRecordTests {
  /// A sealed store that is open, with two caches of two values each.
  final class Records {
    let sealed: SealedStore
    let store: Store
    let caches: [Cache<String, String>]

    init() throws {
      sealed = try SealedStore()
      store = try sealed.open(.key(id: "1", key(1)))
      caches = try ["a", "b"].map { [store] in
        try store.cache($0, of: String.self, memory: .none)
      }
      for cache in caches {
        for key in ["x", "y"] {
          try cache.save("\(marker) \(cache.name) \(key)", for: key, validator: "etag")
        }
      }
    }

    deinit {
      do { try store.close() } catch { Issue.record(error) }
    }

    func physicalKey(_ key: String, in cache: Int) -> [UInt8] {
      key.recordKey(in: caches[cache].core.id).bytes
    }

    func bytes(of key: String, in cache: Int) throws -> [UInt8] {
      try #require(try store.engine.get(physicalKey(key, in: cache).span.bytes))
    }

    /// Puts a record, with a checksum that is right.
    func put(_ bytes: [UInt8], for key: String, in cache: Int) throws {
      var rows = WriteBatch()
      rows.putSeparable(
        physicalKey(key, in: cache).span.bytes, stamp: Record.stamp
      ) { buffer in
        buffer.append(bytes.span.bytes)
        return 0
      }
      try store.engine.write(&rows, synced: false)
    }

    /// The value, if it can be read; an error that is not of the record is recorded.
    func value(_ key: String, in cache: Int) throws -> String? {
      do {
        return try caches[cache].value(for: key)
      } catch StoreError.undecodable, StoreError.incompatible, StoreError.newerSchema,
        StoreError.corrupt
      {
        return nil
      }
    }
  }

  @Test("A record that is moved to another key or another cache is an error.")
  func moved() throws {
    let records = try Records()
    let bytes = try records.bytes(of: "x", in: 0)
    try records.put(bytes, for: "x", in: 0)
    #expect(try records.value("x", in: 0) == "\(marker) a x")
    for (key, cache) in [("y", 0), ("x", 1), ("z", 0)] {
      try records.put(bytes, for: key, in: cache)
      #expect(throws: StoreError.self) { try records.caches[cache].value(for: key) }
      #expect(throws: StoreError.self) { try records.caches[cache].lookup(for: key) }
    }
  }

  @Test("A record of another store with the same key of the user is an error.")
  func otherStore() throws {
    let (records, other) = (try Records(), try Records())
    try records.put(try other.bytes(of: "x", in: 0), for: "x", in: 0)
    #expect(throws: StoreError.self) { try records.caches[0].value(for: "x") }
  }

  @Test("Whatever bit of a sealed record is changed, another value is never read.")
  func flipped() throws {
    let records = try Records()
    let bytes = try records.bytes(of: "x", in: 0)
    let header = try records.record(bytes)
    for index in bytes.indices where !(Record.stamp.offset..<Record.stamp.end).contains(index) {
      for bit in [UInt8(1), 2, 4, 8, 16, 32, 64, 128] {
        var changed = bytes
        changed[index] ^= bit
        try records.put(changed, for: "x", in: 0)
        let value = try records.value("x", in: 0)
        #expect(value == nil || value == "\(marker) a x", "byte \(index), bit \(bit)")
        if header.payload.contains(index) { #expect(value == nil, "byte \(index)") }
        guard header.validator?.contains(index) == true else { continue }
        #expect(throws: StoreError.self) { try records.caches[0].lookup(for: "x") }
      }
    }
  }

  @Test("Random damage, with a checksum that is right, never gives another value.")
  func randomDamage() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let records = try Records()
    let sources = try [("x", 0), ("y", 0), ("x", 1), ("y", 1)].map {
      try records.bytes(of: $0.0, in: $0.1)
    }
    var readable = 0
    for round in 0..<(isProof ? 1_000_000 : 20_000) {
      var bytes = sources[0]
      for _ in 0...random.below(3) {
        let place = random.below(bytes.count)
        switch random.below(6) {
        case 0: bytes[place] ^= 1 << UInt8(random.below(8))
        case 1: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        case 2: bytes = Array(bytes[..<max(place, Record.headerBytes)])
        case 3: bytes.insert(contentsOf: random.bytes(1 + random.below(8)), at: place)
        case 4:
          // A part of another record, at its place.
          let other = sources[random.below(sources.count)]
          let end = min(place + 1 + random.below(40), other.count, bytes.count)
          if place < end { bytes.replaceSubrange(place..<end, with: other[place..<end]) }
        default: bytes.removeSubrange(place..<min(place + 1 + random.below(4), bytes.count))
        }
        if bytes.count < Record.headerBytes { bytes = sources[0] }
      }
      try records.put(bytes, for: "x", in: 0)
      guard let value = try records.value("x", in: 0) else { continue }
      readable += 1
      try #require(value == "\(marker) a x", "seed \(seed), round \(round): \(bytes)")
    }
    // Changes of dates and tags, which are not sealed.
    print("random damage: \(readable) records were still read, seed \(seed)")
  }

  @Test("A payload of another record, or a validator in the place of one, is an error.")
  func swapped() throws {
    let records = try Records()
    let (x, y) = (try records.bytes(of: "x", in: 0), try records.bytes(of: "y", in: 0))
    let (headerX, headerY) = (try records.record(x), try records.record(y, for: "y"))
    var mixed = Array(x[..<headerX.payload.lowerBound])
    try records.put(mixed + y[headerY.payload], for: "x", in: 0)
    #expect(throws: StoreError.self) { try records.caches[0].value(for: "x") }
    mixed += x[try #require(headerX.validator)]
    try records.put(mixed, for: "x", in: 0)
    #expect(throws: StoreError.self) { try records.caches[0].value(for: "x") }
  }
}

extension SealedRecordTests.Records {
  func record(_ bytes: [UInt8], for key: String = "x") throws -> Record {
    try Record(head: bytes.span.bytes, of: bytes.count, under: physicalKey(key, in: 0).span.bytes)
  }
}
