import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Records on their way between a store and a shared tier.
@Suite struct SharedRecordTests {
  private static let key = Array("ld1:shop:data:k".utf8)

  /// The only record of a store as a shared one.
  private func shared(
    _ fixture: borrowing Fixture, version: UInt64, under key: [UInt8] = key
  ) throws -> SharedRecord {
    let row = try fixture.onlyRecord()
    let record = try Record(row.value.span.bytes, under: row.key.span.bytes)
    return try SharedRecord(record, in: row.value.span.bytes, version: version, under: key)
  }

  /// Puts a shared record into a store, in place of the record that is there.
  private func install(_ shared: SharedRecord, in fixture: borrowing Fixture) throws {
    let key = try fixture.onlyRecord().key
    var batch = WriteBatch()
    batch.putSeparable(key.span.bytes, stamp: Record.stamp) { shared.append(to: &$0) ?? 0 }
    try fixture.store.engine.write(&batch, synced: false)
  }

  private func sealed(_ bytes: [UInt8], version: UInt64 = 7) -> [UInt8] {
    var bytes = bytes
    bytes.withUnsafeMutableBytes { bytes in
      Self.key.withUnsafeBytes { Record.stamp.seal(value: bytes, key: $0, sequence: version) }
    }
    return bytes
  }

  @Test(
    "A record arrives in another store as it left the first, to the last bit.",
    arguments: StoreKind.allCases)
  func journey(kind: StoreKind) throws {
    let (here, there) = (try Fixture(kind), try Fixture(kind))
    defer {
      here.end()
      there.end()
    }
    let caches = try [here, there].map { try $0.store.cache("data", of: Data.self) }
    for combination in 0..<32 {
      func has(_ bit: Int) -> Bool { combination & 1 << bit != 0 }
      // Half of the values are so large that they are compressed, and in a segment on disk.
      let value = Data(repeating: UInt8(combination), count: has(0) ? 20_000 : 10)
      here.clock.set(Date(timeIntervalSinceReferenceDate: 800_000_000.1 + Double(combination)))
      there.clock.set(here.clock.now() + 1)
      try caches[0].save(
        value, for: "k", lifetime: has(1) ? .fresh(for: .hours(2)) : nil,
        validator: has(2) ? "v" : nil, tags: has(3) ? ["t"] : [])
      // A migration gives a record an original sequence, and keeps a shared version.
      if has(4) { try here.share(original: 3) }
      try caches[1].save(Data(), for: "k")

      let sent = try shared(here, version: 0xFEDC_BA98_7654_3210)
      let arrived = try SharedRecord(sent.bytes, under: Self.key)
      #expect(arrived.version == 0xFEDC_BA98_7654_3210 && arrived.record == sent.record)
      try install(arrived, in: there)
      let (one, other) = (
        try #require(try caches[0].entry(for: "k")), try #require(try caches[1].entry(for: "k"))
      )
      #expect(other.value == value && other.savedAt == one.savedAt)
      #expect(other.lifetime == one.lifetime && other.tags == one.tags)
      #expect(other.validator == one.validator)
      let row = try there.onlyRecord()
      let record = try Record(row.value.span.bytes, under: row.key.span.bytes)
      #expect(record.sharedVersion == 0xFEDC_BA98_7654_3210)
      #expect(record.originalSequence == record.sequence)
      // And back.
      #expect(try shared(there, version: sent.version).bytes == sent.bytes)
    }
  }

  @Test("A shared record with a changed byte, cut short or under another key is damaged.")
  func damaged() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let data = try fixture.store.cache("data", of: Data.self, coder: .bytes)
    try data.save(Data([1, 2, 3]), for: "k", lifetime: .hours(2), validator: "v")
    for sent in [
      try shared(fixture, version: 7).bytes,
      SharedRecord.tombstone(version: 7, under: Self.key).bytes,
    ] {
      for index in sent.indices {
        for bit in 0..<8 {
          var bytes = sent
          bytes[index] ^= 1 << bit
          #expect(throws: RecordFault.damaged) { try SharedRecord(bytes, under: Self.key) }
        }
        #expect(throws: RecordFault.damaged) {
          try SharedRecord(Array(sent[..<index]), under: Self.key)
        }
      }
      #expect(throws: RecordFault.damaged) { try SharedRecord(sent + [0], under: Self.key) }
      #expect(throws: RecordFault.damaged) { try SharedRecord(sent, under: Self.key + [0]) }
      #expect(throws: RecordFault.damaged) {
        try SharedRecord(sealed(sent, version: 0), under: Self.key)
      }
    }
  }

  @Test("A tombstone is read, has no value, and is nothing that a store takes.")
  func tombstone() throws {
    let tombstone = SharedRecord.tombstone(version: 9, under: Self.key)
    let arrived = try SharedRecord(tombstone.bytes, under: Self.key)
    #expect(arrived.record == nil && arrived.version == 9 && arrived.bytes.count == 36)
    var buffer = ByteBuffer()
    #expect(arrived.append(to: &buffer) == nil && buffer.count == 0)
    #expect(throws: RecordFault.unsupported("record flags 64")) {
      try Record(tombstone.bytes.span.bytes, under: Self.key.span.bytes)
    }
  }

  @Test("A shared record of a later version, or with fields that it must not have, is refused.")
  func unsupported() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let data = try fixture.store.cache("data", of: Data.self, coder: .bytes)
    try data.save(Data(repeating: 1, count: 50), for: "k")
    let sent = try shared(fixture, version: 7).bytes
    let tombstone = SharedRecord.tombstone(version: 7, under: Self.key).bytes
    for (bytes, index, bits) in [
      (sent, 0, 2), (sent, 1, 1 << 3), (sent, 1, 1 << 5), (sent, 1, 1 << 4), (sent, 3, 2),
      (sent, 3, 8), (sent, 1, 1 << 6), (tombstone, 1, 1), (tombstone, 3, 1), (tombstone, 10, 1),
    ] as [([UInt8], Int, UInt8)] {
      var changed = bytes
      changed[index] ^= bits
      #expect(throws: RecordFault.self, "byte \(index), \(bits)") {
        try SharedRecord(sealed(changed), under: Self.key)
      }
    }
    #expect(throws: RecordFault.unsupported("a tombstone with fields")) {
      try SharedRecord(sealed(tombstone + [0]), under: Self.key)
    }
    #expect(throws: Never.self) { try SharedRecord(sealed(sent), under: Self.key) }
  }
}

extension Fixture {
  /// Gives the only record a shared version and an original sequence, as a migration leaves it.
  fileprivate func share(original: UInt64) throws {
    try rewriteOnlyRecord { bytes in
      bytes[1] |= Record.Flag.hasSharedVersion
      bytes[3] |= Record.MoreFlag.hasOriginalSequence
      let lifetime = bytes[1] & Record.Flag.hasOwnLifetime == 0 ? 0 : OwnLifetime.byteCount
      let number = withUnsafeBytes(of: original.littleEndian) { Array($0) }
      bytes.insert(contentsOf: number, at: Record.headerBytes + lifetime)
      bytes.insert(contentsOf: number, at: Record.headerBytes)
    }
  }
}
