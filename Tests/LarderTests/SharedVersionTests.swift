import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

extension Fixture {
  /// The only record of the store, read.
  fileprivate func onlyHeader() throws -> Record {
    let row = try onlyRecord()
    return try Record(row.value.span.bytes, under: row.key.span.bytes)
  }

  /// Gives the only record a shared version.
  fileprivate func share(as version: UInt64) throws {
    try rewriteOnlyRecord { bytes in
      bytes[1] |= Record.Flag.hasSharedVersion
      bytes.insert(contentsOf: version.littleEndianBytes, at: Record.headerBytes)
    }
  }
}

extension UInt64 {
  fileprivate var littleEndianBytes: [UInt8] {
    withUnsafeBytes(of: littleEndian) { Array($0) }
  }
}

/// The field of a record that says which version of a value in a shared tier it is.
@Suite struct SharedVersionTests {
  @Test(
    "A record with a shared version is read as before, with all its other fields.",
    arguments: StoreKind.allCases)
  func read(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    for payload in [10, 20_000] {
      let data = try fixture.store.cache("data", of: Data.self)
      let value = Data(repeating: 7, count: payload)
      try data.save(
        value, for: "k", lifetime: .fresh(for: .hours(5), thenStaleFor: .hours(2)), validator: "v",
        tags: ["t"])
      try fixture.share(as: 0xFEDC_BA98_7654_3210)
      try fixture.reopen()
      let read = try fixture.store.cache("data", of: Data.self)
      let entry = try #require(try read.entry(for: "k"))
      #expect(entry.value == value && entry.validator == "v" && entry.tags == ["t"])
      #expect(entry.lifetime == .fresh(for: .hours(5), thenStaleFor: .hours(2)))
      #expect(try fixture.onlyHeader().sharedVersion == 0xFEDC_BA98_7654_3210)
      #expect(try read.validate().unreadable == 0)
    }
  }

  @Test("A migration keeps the shared version; a save, a touch and an update remove it.")
  func changes() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    var numbers = try fixture.store.cache("numbers", of: Int.self)
    try numbers.save(1, for: "k", lifetime: .hours(3), tags: ["t"])
    try fixture.share(as: 9)
    try fixture.reopen()
    let schema = Schema<Int>(version: 2).reading(1, as: Int.self) { $0 + 1 }
    numbers = try fixture.store.cache("numbers", of: Int.self, schema: schema)
    #expect(try fixture.store.migrate(numbers).migrated == 1)
    var record = try fixture.onlyHeader()
    #expect(record.schemaVersion == 2 && record.sharedVersion == 9)
    #expect(try numbers.entry(for: "k")?.lifetime == .hours(3))

    #expect(try numbers.touch("k"))
    record = try fixture.onlyHeader()
    #expect(record.sharedVersion == nil && record.ownLifetime != nil && record.tags != nil)
    #expect(try numbers.value(for: "k") == 2)

    try fixture.share(as: 10)
    try numbers.update("k") { $0 = 3 }
    #expect(try fixture.onlyHeader().sharedVersion == nil)
    try fixture.share(as: 11)
    try numbers.save(3, for: "k")
    #expect(try fixture.onlyHeader().sharedVersion == nil)
  }

  @Test("A record without room for its shared version, and a tombstone, are refused and kept.")
  func refused() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let data = try fixture.store.cache("data", of: Data.self, coder: .bytes)
    for flag in [Record.Flag.hasSharedVersion, 1 << 6, 1 << 3] {
      try data.save(Data([1, 2, 3, 4, 5, 6, 7]), for: "k")
      try fixture.rewriteOnlyRecord { $0[1] |= flag }
      #expect(
        throwsStoreError(where: { if case .incompatible = $0 { true } else { false } }) {
          try data.value(for: "k")
        }, "\(flag)")
      #expect(try data.validate().newer == 1, "\(flag)")
      #expect(try fixture.rows(in: .records).count == 1, "\(flag)")
    }
  }
}
