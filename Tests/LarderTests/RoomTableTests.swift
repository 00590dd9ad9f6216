import AcceptanceRows
import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Testing

@testable import Larder

/// What removals give back on a full disk.
///
/// Each test fills a volume, removes entries, and saves others at once: as many as were removed.
@Suite(.acceptance, .serialized) struct RoomTableTests {
  /// The entries that are removed.
  enum Removal: String, CaseIterable {
    case all, half, quarter, range, swept
  }

  /// A row of the table: numbers of entries.
  private struct Row {
    var filled = 0
    var removed = 0
    /// Saved before the first save was refused.
    var atOnce = 0
    /// Saved in all, also after refusals.
    var saved = 0
    var longest = Duration.zero
    /// Whether the removal itself found no room.
    var isRefused = false

    /// The share of the removed entries for which others could be saved.
    func share(_ count: Int) -> Int { removed == 0 ? 0 : 100 * count / removed }
  }

  private func isSaved(_ number: Int, in cache: Cache<Int, Data>) throws -> Bool {
    // Every second entry expires early, for the sweep.
    let lifetime: Lifetime? = number.isMultiple(of: 2) ? .seconds(60) : nil
    do {
      try cache.save(Pictures.value(number), for: number, lifetime: lifetime)
      return true
    } catch StoreError.diskFull, StoreError.writesDisabled {
      return false
    }
  }

  private func remove(
    _ removal: Removal, of filled: Int, from cache: Cache<Int, Data>, _ clock: ManualClock
  ) throws -> Int {
    switch removal {
    case .all:
      try cache.removeAll()
      return filled
    case .half, .quarter:
      let step = removal == .half ? 2 : 4
      return try stride(from: 0, to: filled, by: step).count { try cache.remove($0) }
    case .range: return try cache.remove(in: .upTo(filled / 2))
    case .swept:
      clock.advance(by: .seconds(100))
      return try cache.store.sweep()
    }
  }

  private func measure(
    _ removal: Removal, in store: Store, _ clock: ManualClock
  ) throws -> Row {
    let cache = try store.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes)
    var row = Row()
    while row.filled < 100_000, try isSaved(row.filled, in: cache) { row.filled += 1 }
    do {
      row.removed = try remove(removal, of: row.filled, from: cache, clock)
    } catch StoreError.diskFull, StoreError.writesDisabled, StoreError.io {
      row.isRefused = true
      return row
    }
    var refusals = 0
    while row.saved < row.removed, refusals < 20 {
      let begin = ContinuousClock.now
      if try isSaved(1_000_001 + 2 * row.saved, in: cache) {
        row.saved += 1
        if refusals == 0 { row.atOnce = row.saved }
      } else {
        refusals += 1
        store.context.engine.waitForBackgroundWork()
      }
      row.longest = max(row.longest, .now - begin)
    }
    for number in 0..<row.saved {
      let key = 1_000_001 + 2 * number
      try #require(try cache.value(for: key) == Pictures.value(key), "\(key)")
    }
    return row
  }

  private static func options(_ clock: ManualClock, segments: Bool) -> Store.Options {
    var options = Store.Options()
    options.clock = clock
    if !segments { options.advanced.separatedValueBytes = nil }
    return options
  }

  private static func print(_ row: Row, _ volume: String, segments: Bool, _ removal: Removal) {
    Swift.print(
      "room: | \(volume) | \(segments ? "segments" : "none") | \(removal.rawValue) |",
      "\(row.filled) | \(row.removed) | \(row.share(row.atOnce)) % | \(row.share(row.saved)) % |",
      row.isRefused ? "the removal was refused |" : "",
      "\(row.longest.formatted(.units(allowed: [.milliseconds])))")
  }

  /// A store on a simulated disk of this size.
  private static func store(_ megabytes: UInt64, _ options: Store.Options) throws -> Store {
    let disk = SimulatedDisk()
    disk.setCapacity(megabytes << 20)
    return try Store(on: disk, options: options)
  }

  @Test("A save that has waited for room counts once in a budget, and is observed once.")
  func waited() async throws {
    let options = Self.options(ManualClock(), segments: true)
    let store = try Self.store(8, options)
    let expected = try Store(
      engine: InMemoryEngine(), options: options, origin: .memory)
    let (cache, model) = (try Self.pictures(in: store), try Self.pictures(in: expected))
    var filled = 0
    while try isSaved(filled, in: cache) { filled += 1 }
    try cache.removeAll()
    let changes = cache.changes(buffered: 1000)
    var saved: [Int] = []
    while saved.count < filled * 9 / 10 {
      try #require(try isSaved(saved.count, in: cache) && isSaved(saved.count, in: model))
      saved.append(saved.count)
    }
    let counts = try [cache, model].map { cache in
      try #require(cache.store.context.budgets.accounting.count(cache.core.id)).bytes
    }
    #expect(counts[0] == counts[1])
    try store.close()
    var observed: [Int?] = []
    for await change in changes { observed.append(change.key) }
    #expect(observed == saved)
  }

  private static func pictures(in store: Store) throws -> Cache<Int, Data> {
    try store.cache(
      "pictures", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: 1 << 30)
  }

  @Test(
    "Removals on a full simulated disk make room for saves at once.",
    arguments: isProof ? Removal.allCases : [.all, .range], isProof ? [false, true] : [true])
  func simulated(removal: Removal, segments: Bool) throws {
    for megabytes in (isProof ? [8, 24] : [4]) as [UInt64] {
      let clock = ManualClock()
      let store = try Self.store(megabytes, Self.options(clock, segments: segments))
      let row = try measure(removal, in: store, clock)
      Self.print(row, "simulated \(megabytes) MB", segments: segments, removal)
      expect(row, removal, segments: segments)
      try store.close()
    }
  }

  /// Segments in which nothing is live are given back to the next saves.
  ///
  /// `WhatSurvivesWhat.md` has the figures of all others.
  private func expect(_ row: Row, _ removal: Removal, segments: Bool) {
    #expect(!row.isRefused)
    #expect(row.removed > 0)
    guard segments, removal == .all || removal == .range else { return }
    #expect(row.share(row.atOnce) >= 90)
  }

  @Test(
    "Removals on a full volume make room for saves at once.",
    .enabled("part of the proof; needs the right to mount volumes") {
      isProof && SmallVolume.isAllowed(.tmpfs) && SmallVolume.isAllowed(.ext4)
    },
    arguments: Removal.allCases, [false, true])
  func real(removal: Removal, segments: Bool) throws {
    for kind in SmallVolume.Kind.allCases {
      for megabytes in [8, 64] {
        let volume = try SmallVolume(kind, megabytes: megabytes)
        let clock = ManualClock()
        let store = try Store(
          at: volume.directory.appending(path: "store"),
          options: Self.options(clock, segments: segments))
        let row = try measure(removal, in: store, clock)
        Self.print(row, "\(kind.rawValue) \(megabytes) MB", segments: segments, removal)
        expect(row, removal, segments: segments)
        try store.close()
      }
    }
  }

  @Test(
    "A few large values that are saved again and again at full speed take bounded room.",
    .enabled("part of the proof") { isProof }, arguments: [1, 10, 64, 256])
  func turnover(megabytes: Int) throws {
    let directory = try TemporaryDirectory()
    let store = try Store(at: URL(filePath: directory.path("store")))
    let cache = try store.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes)
    var random = SplitMix64(seed: 1)
    let noise = Data(random.bytes(100_000))
    let count = megabytes * 10
    var most = 0
    for number in 0..<count { try cache.save(noise, for: number) }
    for round in 0..<10_000 {
      try cache.save(noise, for: Int.random(in: 0..<count, using: &random))
      if round % 64 == 0 { most = max(most, try store.context.engine.storedBytes()) }
    }
    store.context.engine.waitForBackgroundWork()
    let rest = try store.context.engine.storedBytes()
    Swift.print(
      "space: | live \(megabytes) MB | peak \(most >> 20) MiB | at rest \(rest >> 20) MiB |")
    #expect(most <= 2 * megabytes << 20 + max(128, megabytes) << 20)
    try store.close()
  }
}
