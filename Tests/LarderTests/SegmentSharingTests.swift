import AcceptanceRows
import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Testing

@testable import Larder

/// Caches that share segments, and stores that hardly fit on their disk, get their room back.
@Suite(.acceptance) struct SegmentSharingTests {
  private static func text(_ number: Int, _ mark: String) -> String {
    String(repeating: "\(mark) \(number), ", count: 40)
  }

  private static func segmentBytes(in fixture: Fixture) throws -> Int {
    let path = fixture.directory.path(percentEncoded: false)
    return try SystemFiles().names(in: path).filter { $0.hasSuffix(".segment") }.reduce(0) {
      $0 + (try SystemFiles().byteCount(of: "\(path)/\($1)") ?? 0)
    }
  }

  /// Saves into both caches in turn, so that each segment has values of both.
  private static func fill(
    _ kept: Cache<Int, String>, _ other: Cache<Int, String>, count: Int
  ) throws {
    for number in 0..<count {
      try kept.save(text(number, "kept"), for: number)
      try other.save(text(number, "other"), for: number)
    }
  }

  /// Expects that only one of the two caches takes room by now, and that it is whole.
  private static func expectOnlyKept(
    _ kept: Cache<Int, String>, count: Int, in fixture: Fixture
  ) throws {
    fixture.engine.waitForBackgroundWork()
    try fixture.engine.collectSegments()
    let live = (0..<count).reduce(0) { $0 + text($1, "kept").utf8.count }
    #expect(try segmentBytes(in: fixture) < live * 3 / 2)
    for number in 0..<count { #expect(try kept.value(for: number) == text(number, "kept")) }
  }

  @Test("Values of one lifetime are given back when they expire beside values that stay.")
  func mixedLifetimes() throws {
    let fixture = try Fixture(.segments) { $0.memoryBytes = 0 }
    defer { fixture.end() }
    let long = try fixture.store.cache(
      "long", of: String.self, keyedBy: Int.self, lifetime: .unlimited)
    let short = try fixture.store.cache(
      "short", of: String.self, keyedBy: Int.self, lifetime: .seconds(60))
    try Self.fill(long, short, count: 60)
    fixture.clock.advance(by: .seconds(100))
    #expect(try fixture.store.sweep() == 60)
    try Self.expectOnlyKept(long, count: 60, in: fixture)
  }

  @Test("Clearing or dropping a cache gives back its values beside those of others.")
  func clearedAndDropped() throws {
    for isDropped in [false, true] {
      let fixture = try Fixture(.segments) { $0.memoryBytes = 0 }
      defer { fixture.end() }
      let kept = try fixture.store.cache("kept", of: String.self, keyedBy: Int.self)
      let other = try fixture.store.cache("other", of: String.self, keyedBy: Int.self)
      try Self.fill(kept, other, count: 60)
      if isDropped { try fixture.store.drop(cache: "other") } else { try other.removeAll() }
      fixture.store.context.engine.waitForBackgroundWork()
      try Self.expectOnlyKept(kept, count: 60, in: fixture)
    }
  }

  @Test("A migration of a store that would not fit twice on its disk waits for the room it frees.")
  func tightMigration() throws {
    let disk = SimulatedDisk()
    var options = LevelDBOptions()
    options.files = SimulatedFiles(disk)
    options.writeBufferBytes = 64 << 10
    options.maxFileBytes = 1 << 20
    options.separation = Record.separation(from: 1000)
    options.segmentBytes = 64 << 10
    disk.setCapacity(8 << 20)
    var store = try Store(engine: LevelDBEngine(at: "/store", options: options), origin: .disk)
    let value = { Data(repeating: UInt8($0 % 200), count: 4000) }
    let old = try store.cache("images", of: Data.self, keyedBy: Int.self, coder: .bytes)
    var saved = 0
    do {
      while saved < 10_000 {
        try old.save(value(saved), for: saved)
        saved += 1
      }
    } catch StoreError.diskFull {
    }
    // What is left takes more than half of the room.
    let kept = saved * 2 / 3
    for number in kept..<saved { try old.remove(number) }
    try store.context.engine.collectSegments()
    try store.close()
    store = try Store(engine: LevelDBEngine(at: "/store", options: options), origin: .disk)
    let new = try store.cache(
      "images", of: Data.self, keyedBy: Int.self,
      schema: Schema(version: 2).reading(1, as: Data.self) { $0 }, coder: .bytes)
    let report = try store.migrate(new)
    #expect(report.migrated == kept)
    #expect(store.context.engine.segmentTotals.deletedBytes > kept * 4000 / 2)
    for number in 0..<kept { #expect(try new.value(for: number) == value(number)) }
    try store.close()
  }
}
