import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// The notes of what expires are kept small, and those that are lost are made again.
@Suite struct ExpiryNotesTests {
  private static func pack(_ key: [UInt8]) -> NotePack? { NotePack(key: key.span.bytes) }

  /// The keys in the value of a pack; nil if it is damaged.
  private static func keys(of pack: NotePack, _ value: [UInt8]) -> KeyList? {
    var keys = KeyList()
    let isWhole = keys.append(pack, value.span.bytes)
    return isWhole ? keys : nil
  }

  // MARK: - Packs

  @Test("A pack has the keys that were put into it, each once and in order.")
  func roundTrip() throws {
    var random = SplitMix64(seed: 3)
    for count in [0, 1, 2, 300] {
      var list = KeyList()
      var keys: Set<[UInt8]> = []
      for _ in 0..<count {
        let key = random.bytes(Int.random(in: 0...3, using: &random)) + [7, 7, 7]
        keys.insert(key)
        for _ in 0..<2 { list.append(key[...]) }
      }
      list.sort()
      let pack = NotePack(cacheID: 300, bucket: -5, number: .max)
      let (key, value) = (pack.key, pack.value(of: list))
      #expect(Self.pack(key) == pack)
      let found = try #require(Self.keys(of: pack, value))
      let foundKeys = (0..<found.count).map { Array(found[$0]) }
      #expect(foundKeys == keys.sorted { $0.lexicographicallyPrecedes($1) })
    }
  }

  @Test("Damage to any byte of a pack, or to its end, is detected.")
  func damagedPack() {
    var list = KeyList()
    for key in ["a", "ab", "abc", "b"] { list.append(Array(key.utf8)[...]) }
    let pack = NotePack(cacheID: 1, bucket: 10, number: 2)
    let value = pack.value(of: list)
    func isWhole(_ value: [UInt8], _ pack: NotePack) -> Bool {
      Self.keys(of: pack, value) != nil
    }
    #expect(isWhole(value, pack))
    for index in value.indices {
      for bit in 0..<8 {
        var damaged = value
        damaged[index] ^= 1 << bit
        #expect(!isWhole(damaged, pack))
      }
      #expect(!isWhole(Array(value[..<index]), pack))
    }
    #expect(!isWhole(value, NotePack(cacheID: 2, bucket: 10, number: 2)))
    #expect(!isWhole(value, NotePack(cacheID: 1, bucket: 11, number: 2)))
    // Lengths beyond the end, under a checksum that matches.
    for body in [[0, 200], [1, 0], [0], [0x80], [0, 1]] as [[UInt8]] {
      #expect(!isWhole(Metadata.sealed(body, under: pack.key), pack))
    }
  }

  @Test("Long lists are split into packs by the number of keys and by their bytes.")
  func split() {
    var list = KeyList()
    for number in 0..<2500 { list.append(Array("\(10_000 + number)".utf8)[...]) }
    #expect(list.packs().map(\.count) == [1024, 1024, 452])
    var long = KeyList()
    for byte in UInt8(0)..<5 { long.append(Array(repeating: byte, count: 60_000)[...]) }
    #expect(long.packs().map(\.count) == [1, 1, 1, 1, 1])
  }

  // MARK: - Openings

  @Test("After a close no scan is needed, and after another end all entries are found by one.")
  func openings() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(100))
    for number in 0..<3000 { try cache.save(number, for: "\(number)") }
    try fixture.reopen()
    #expect(fixture.store.context.notes.isComplete)

    let copy = try TemporaryDirectory()
    let again = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(100))
    try again.save(1, for: "later")
    let path = fixture.directory.path(percentEncoded: false)
    for name in try FileManager.default.contentsOfDirectory(atPath: path) {
      try FileManager.default.copyItem(
        atPath: "\(path)/\(name)", toPath: "\(copy.path)/\(name)")
    }
    var options = Store.Options()
    options.clock = fixture.clock
    let killed = try Store(at: URL(filePath: copy.path), options: options)
    #expect(!killed.context.notes.isComplete)
    fixture.clock.advance(by: .seconds(200))
    #expect(try killed.sweep() == 3001)
    #expect(killed.context.notes.isComplete)
    try killed.close()
    #expect(try fixture.store.sweep() == 3001)
  }

  @Test("A store that only reads, or writes nothing, stays closed.")
  func readOnly() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self)
    try cache.save(1, for: "a")
    for _ in 0..<2 {
      try fixture.reopen()
      #expect(fixture.store.context.notes.isComplete)
      #expect(try fixture.store.cache("cache", of: Int.self).value(for: "a") == 1)
    }
  }

  @Test(
    "A note that a scan adds while packs are being written is in the next ones.",
    arguments: [true, false])
  func notedDuringWrite(isCommitted: Bool) throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self)
    for number in 0..<1000 { try cache.save(number, for: "\(number)") }

    let notes = ExpiryNotes()
    try notes.read(from: fixture.engine, isIntact: false)
    let records = EngineRange(prefix: [KeySpace.records.rawValue])
    let cursor = try fixture.engine.headCursor(over: records)
    func noteNext() throws {
      try #require(try cursor.next())
      cursor.withEntry { key, head in _ = notes.note(found: head, under: key) }
    }
    for _ in 0..<999 { try noteNext() }
    #expect(try packedKeys(of: notes, isCommitted, whileWriting: noteNext) == 999)
    #expect(try packedKeys(of: notes, true) {} == (isCommitted ? 1 : 1000))
  }

  /// Lets a write put all notes into packs; returns how many it puts.
  private func packedKeys(
    of notes: ExpiryNotes, _ isCommitted: Bool, whileWriting body: () throws -> Void
  ) throws -> Int {
    var rows = WriteBatch()
    notes.requestPacks(closing: false)
    notes.contribute(to: &rows)
    try body()
    notes.ended(didCommit: isCommitted)
    return rows.bytes.withBytes { bytes in
      rows.rows.reduce(0) { count, row in
        guard let pack = NotePack(key: [UInt8](bytes[row.key]).span.bytes) else { return count }
        return count + (pack.forEachKey(in: [UInt8](bytes[row.value]).span.bytes) { _ in } ?? 0)
      }
    }
  }

  // MARK: - Losses

  enum Loss: CaseIterable {
    case mark, markDamaged, allNotes, flipped, cut, duplicated, foreign, misplaced
  }

  @Test(
    "Whatever becomes of notes, all due entries are swept, and no call fails.",
    arguments: Loss.allCases, StoreKind.allCases)
  func losses(loss: Loss, kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(1000))
    for number in 0..<3000 { try cache.save(number, for: "\(number)") }
    try fixture.store.context.writeNotes()
    let markKey = Metadata.notes
    let mark = try #require(try fixture.engine.get(markKey.span.bytes))
    let packs = try fixture.rows(in: .notes)
    var rows = WriteBatch()
    let (key, value) = packs[1]
    switch loss {
    case .mark, .allNotes:
      rows.remove(markKey.span.bytes)
      if loss == .allNotes { for pack in packs { rows.remove(pack.key.span.bytes) } }
    case .markDamaged:
      let damaged = Array(mark.dropLast())
      rows.put(markKey.span.bytes, damaged.span.bytes)
    case .flipped:
      var damaged = value
      damaged[100] ^= 4
      rows.put(key.span.bytes, damaged.span.bytes)
    case .cut:
      let rest = Array(value.prefix(value.count / 2))
      rows.put(key.span.bytes, rest.span.bytes)
    case .duplicated:
      let pack = try #require(Self.pack(key))
      let keys = try #require(Self.keys(of: pack, value))
      let other = NotePack(cacheID: pack.cacheID, bucket: pack.bucket, number: 1_000_000)
      rows.put(other, keys)
    case .foreign:
      // Of a store with other keys, some of which are here, too.
      let pack = try #require(Self.pack(key))
      var keys = KeyList()
      for number in 2990..<3100 { keys.append(Array("\(number)".utf8)[...]) }
      keys.sort()
      rows.put(NotePack(cacheID: pack.cacheID, bucket: 0, number: 9), keys)
    case .misplaced:
      let pack = try #require(Self.pack(key))
      let other = NotePack(cacheID: pack.cacheID, bucket: pack.bucket, number: 1_000_000)
      let otherKey = other.key
      rows.put(otherKey.span.bytes, value.span.bytes)
    }
    if kind == .memory {
      try fixture.engine.write(&rows, synced: false)
    } else {
      try fixture.store.close()
      let engine = try LevelDBEngine(at: fixture.directory.path(percentEncoded: false))
      try engine.write(&rows, synced: false)
      try engine.close()
    }
    try fixture.reopen()
    let again = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(1000))
    try again.save(-1, for: "new")
    fixture.clock.advance(by: .seconds(999))
    #expect(try fixture.store.sweep() == 0)
    #expect(try again.count() == 3001)
    fixture.clock.advance(by: .seconds(100))
    // A damaged pack is found by the first sweep, and the notes are made by the next.
    let count = try fixture.store.sweep() + fixture.store.sweep()
    #expect(count == 3001)
    #expect(try fixture.rows(in: .records).isEmpty)
    #expect(try fixture.rows(in: .notes).isEmpty)
  }

  @Test("Notes in a block that cannot be read are made anew, and the sweeps do not fail.")
  func unreadableBlock() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(1000))
    // Few enough that no sweep compacts them, which would meet the block, too.
    let end = String(repeating: "k", count: 400)
    for number in 0..<900 { try cache.save(number, for: "\(number)" + end) }
    try fixture.store.context.writeNotes()
    try fixture.engine.compact(EngineRange())
    try fixture.store.close()
    // Notes have the greatest keys, so they end the last table.
    let path = fixture.directory.path(percentEncoded: false)
    let table = try #require(try Damage.files(in: path, endingIn: ".ldb").last)
    let blocks = try TableFile(try SystemFiles().read(table, limit: nil)).blocks
    try Damage.flipByte(at: try #require(blocks.last).offset + 10, of: table)
    try fixture.reopen()
    _ = try fixture.store.cache("cache", of: Int.self, lifetime: .seconds(1000))
    fixture.clock.advance(by: .seconds(1100))
    var count = 0
    for _ in 0..<3 { count += try fixture.store.sweep() }
    #expect(fixture.store.context.notes.isComplete)
    #expect(count == 900)
  }

  // MARK: - Growth

  @Test("Keys that are saved again and again make no packs, if they are few.")
  func fewKeys() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self)
    for number in 0..<20_000 { try cache.save(number, for: "\(number % 50)") }
    #expect(try fixture.rows(in: .notes).isEmpty)
    #expect(try fixture.notes().count == 50)
  }

  @Test("Notes of overwritten entries do not grow without bound.", arguments: [false, true])
  func growth(isSwept: Bool) throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self)
    let end = String(repeating: "k", count: 60_000)
    var most = 0
    for round in 0..<40 {
      for number in 0..<20 { try cache.save(round, for: "\(number)" + end) }
      fixture.clock.advance(by: .seconds(60))
      if isSwept { #expect(try fixture.store.sweep() == 0) }
      most = max(most, try fixture.rows(in: .notes).reduce(0) { $0 + $1.value.count })
    }
    // 800 saves of 60 KB keys.
    #expect(most > ExpiryNotes.leastExcess / 2 && most < 2 * ExpiryNotes.leastExcess, "\(most)")
    #expect(Set(try fixture.notes().map(\.userKey)).count == 20)
    fixture.clock.advance(by: .seconds(8 * 86_400))
    #expect(try fixture.store.sweep() == 20)
    #expect(try fixture.rows(in: .notes).isEmpty)
  }
}
