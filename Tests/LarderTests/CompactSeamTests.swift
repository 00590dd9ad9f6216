import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// `Store.compact` on a full disk, during kills, and beside migrations and backups.
@Suite(.timeLimit(.minutes(10))) struct CompactSeamTests {
  // MARK: - A full disk

  private static func open(on disk: SimulatedDisk, segments: Bool) throws -> Store {
    var options = Store.Options()
    options.clock = ManualClock()
    if !segments { options.advanced.separatedValueBytes = nil }
    return try Store(on: disk, options: options)
  }

  private static func pictures(in store: Store) throws -> Cache<Int, Data> {
    try store.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes)
  }

  private func isSaved(_ number: Int, in cache: Cache<Int, Data>) throws -> Bool {
    do {
      try cache.save(Pictures.value(number), for: number)
      return true
    } catch StoreError.diskFull, StoreError.writesDisabled {
      return false
    }
  }

  @Test(
    "Without room for a copy it throws, loses nothing, and writes and the next call succeed later.",
    arguments: [true, false])
  func fullDisk(segments: Bool) async throws {
    let disk = SimulatedDisk()
    disk.setCapacity(8 << 20)
    var store = try Self.open(on: disk, segments: segments)
    var cache = try Self.pictures(in: store)
    var filled = 0
    while try isSaved(filled, in: cache) { filled += 1 }
    let kept = (0..<filled).filter { $0 % 4 > 0 }
    for number in 0..<filled where number % 4 == 0 { try cache.remove(number) }
    store.context.engine.waitForBackgroundWork()
    // Another program takes the rest.
    disk.setCapacity(UInt64(disk.names.reduce(0) { $0 + (disk.bytes(of: $1)?.count ?? 0) }))
    await #expect {
      try await store.compact()
    } throws: { error in
      if case StoreError.diskFull = error { true } else { false }
    }
    for number in kept { #expect(try cache.value(for: number) == Pictures.value(number)) }

    disk.setCapacity(64 << 20)
    for number in filled..<filled + 20 { try cache.save(Pictures.value(number), for: number) }
    let report = try await store.compact()
    #expect(report.bytesAfter < (kept.count + 20) * Pictures.byteCount * 5 / 4, "\(report)")
    try store.close()
    store = try Self.open(on: disk, segments: segments)
    #expect(store.recovery == nil)
    cache = try Self.pictures(in: store)
    #expect(try cache.count() == kept.count + 20)
    for number in kept + Array(filled..<filled + 20) {
      #expect(try cache.value(for: number) == Pictures.value(number))
    }
    try store.close()
  }

  // MARK: - Kills

  /// What the worker's changes up to `last` leave under its keys.
  private static func values(after last: Int) -> [Data?] {
    var values = [Data?](repeating: nil, count: 40)
    for number in max(1, last - 39)...max(1, last) where number <= last {
      let byte = UInt8(truncatingIfNeeded: number)
      values[number % 40] =
        number.isMultiple(of: 3) ? nil : Data(repeating: byte, count: 20_000 + number % 1000)
    }
    return values
  }

  @Test("A kill during a compaction loses no change that has returned.")
  func kills() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let directory = try TemporaryDirectory()
    var (last, steps) = (0, 0)
    for round in 0..<(8 * proofFactor) {
      var worker = try ChildProcess("CrashWorker", ["compact", directory.path, "\(last)"])
      var lines = Int.random(in: 1...100, using: &random)
      while let line = worker.readLine() {
        if line == "at" {
          steps += 1
        } else {
          last = try #require(Int(line), "\(line), seed \(seed)")
        }
        lines -= 1
        if lines == 0 { worker.kill() }
      }
      try #require(lines <= 0, "the worker ended by itself, seed \(seed)")
      let store = try Store(at: URL(filePath: directory.path))
      let cache = try store.cache("values", of: Data.self, keyedBy: Int.self, coder: .bytes)
      let found = try (0..<40).map { try cache.value(for: $0) }
      try store.close()
      // The worker may have made one more change than it said.
      last = try #require(
        [last, last + 1].first { found == Self.values(after: $0) },
        "round \(round), change \(last), seed \(seed)")
    }
    #expect(steps > 0 && last > 40, "\(steps) steps, \(last) changes")
  }

  // MARK: - Other long calls

  @Test("In the middle of a migration, and beside backups, it changes no entry.")
  func besideMigrationAndBackup() async throws {
    let fixture = try Fixture(.segments)
    let places = try TemporaryDirectory()
    defer { fixture.end() }
    let count = 400
    let old = try fixture.store.cache("notes", of: NoteV1.self)
    try fixture.store.write { batch in
      // Not in the order of the keys: each segment has notes that are migrated first and last.
      for number in (0..<count).map({ $0 * 7 % count }) {
        batch.save(NoteV1(name: "\(number)"), for: fixture.key(number), in: old)
      }
    }
    try fixture.reopen()
    let store = fixture.store
    let (isUnderWay, isCompacted) = (Flag(), Flag())
    let schema = Schema<Note>(version: 3).reading(1, as: NoteV1.self) { old in
      // The first slice, of 256, is written. The payloads that it replaced make room.
      if old.name == "\(count * 3 / 4)" {
        isUnderWay.raise()
        isCompacted.wait()
      }
      return Note(title: old.name, body: "was 1")
    }
    let notes = try store.cache("notes", of: Note.self, schema: schema)
    let backups = (0..<3).map { URL(filePath: places.path("backup \($0)")) }
    let isOver = Atomic(false)
    async let migration = store.run { try store.migrate(notes) }
    async let compactions: Void = {
      await store.run { isUnderWay.wait() }
      repeat {
        try await store.compact()
        isCompacted.raise()
      } while !isOver.load(ordering: .relaxed)
    }()
    try await store.run {
      defer { isOver.store(true, ordering: .relaxed) }
      isUnderWay.wait()
      for backup in backups { try store.backup(to: backup) }
    }
    #expect(try await migration.migrated == count)
    try await compactions
    try fixture.expectMigrated(count)
    for (number, backup) in backups.enumerated() {
      let place = URL(filePath: places.path("restored \(number)"))
      try Store.restore(from: backup, to: place)
      var options = Store.Options()
      options.clock = fixture.clock
      let restored = try Store(at: place, options: options)
      #expect(restored.recovery == nil)
      let copies = try restored.cache("notes", of: Note.self, schema: .reading1And2)
      for number in 0..<count {
        #expect(
          try copies.value(for: fixture.key(number)) == Note(title: "\(number)", body: "was 1"))
      }
      try restored.close()
    }
  }

  // MARK: - Collections by themselves

  enum Removal: CaseIterable {
    case range, cleared, dropped, swept
  }

  @Test("Removals of many entries at once make a collection due.", arguments: Removal.allCases)
  func removals(removal: Removal) throws {
    let fixture = try Fixture(.segments)
    defer { fixture.end() }
    let cache = try fixture.store.cache(
      "a", of: Data.self, keyedBy: Int.self, coder: .bytes)
    for number in 0..<40 {
      let lifetime: Lifetime? = number < 38 ? .seconds(60) : nil
      try cache.save(Pictures.value(number).prefix(1000), for: number, lifetime: lifetime)
    }
    fixture.engine.waitForBackgroundWork()
    func segments() throws -> Int {
      try SystemFiles().names(in: fixture.directory.path).count { $0.hasSuffix(".segment") }
    }
    #expect(try segments() >= 10)
    switch removal {
    case .range: #expect(try cache.remove(in: .upTo(38)) == 38)
    case .cleared: try cache.removeAll()
    case .dropped: try fixture.store.drop(cache: "a")
    case .swept:
      fixture.clock.advance(by: .seconds(100))
      #expect(try fixture.store.sweep() == 38)
    }
    fixture.engine.waitForBackgroundWork()
    #expect(try segments() <= 2)
  }
}
