import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Large values in segments, through the public options of a store.
@Suite struct LargeValueTests {
  private static func options(
    from bytes: Int? = 4 << 10, clock: ManualClock = ManualClock()
  ) -> Store.Options {
    var options = Store.Options()
    options.advanced.separatedValueBytes = bytes
    options.clock = clock
    options.memoryBytes = 0
    return options
  }

  private static func images(_ store: Store) throws -> Cache<Int, Data> {
    try store.cache("images", of: Data.self, keyedBy: Int.self, coder: .bytes)
  }

  private static func image(_ number: Int, _ count: Int = 100_000) -> Data {
    var random = SplitMix64(seed: UInt64(number))
    return Data(random.bytes(count))
  }

  /// The bytes of all segments in a directory.
  private static func segmentBytes(in path: String) throws -> Int {
    try SystemFiles().names(in: path).filter { $0.hasSuffix(".segment") }.reduce(0) {
      $0 + (try SystemFiles().byteCount(of: "\(path)/\($1)") ?? 0)
    }
  }

  @Test("Values are read with any option, in both accesses, from backups and after a salvage.")
  func everywhere() throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"))
    var store = try Store(at: place, options: Self.options())
    for number in 0..<20 {
      try Self.images(store).save(Self.image(number, 1000 << (number % 8)), for: number)
    }
    try store.close()
    #expect(try Self.segmentBytes(in: place.path(percentEncoded: false)) > 500_000)

    func expectImages(_ store: Store) throws {
      let images = try Self.images(store)
      for number in 0..<20 {
        #expect(try images.value(for: number) == Self.image(number, 1000 << (number % 8)))
      }
      try store.close()
    }
    store = try Store(at: place, options: Self.options(from: nil))
    try store.backup(to: URL(filePath: directory.path("backup")))
    try expectImages(store)
    var readOnly = Self.options(from: nil)
    readOnly.access = .readOnly
    try expectImages(try Store(at: place, options: readOnly))
    let restored = URL(filePath: directory.path("restored"))
    try Store.restore(from: URL(filePath: directory.path("backup")), to: restored)
    try expectImages(try Store(at: restored, options: Self.options(from: 1)))
    let salvaged = URL(filePath: directory.path("salvaged"))
    let report = try Store.salvage(from: place, to: salvaged)
    #expect(report.entries["images"] == 20 && report.losses.isEmpty)
    try expectImages(try Store(at: salvaged, options: Self.options(from: nil)))
  }

  @Test("A touch, and a read of a sliding cache, do not write the payload again.")
  func touched() async throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"))
    let clock = ManualClock()
    func open(_ store: Store) throws -> Cache<Int, Data> {
      try store.cache(
        "images", of: Data.self, keyedBy: Int.self, lifetime: .seconds(160), expiry: .sliding,
        coder: .bytes)
    }
    var store = try Store(at: place, options: Self.options(clock: clock))
    var images = try open(store)
    for number in 0..<3 { try images.save(Self.image(number), for: number, tags: ["a"]) }
    let written = store.statistics.segments.writtenBytes
    #expect(written > 300_000)
    clock.advance(by: .seconds(100))
    #expect(try images.touch(0, lifetime: .seconds(1000), validator: Validator("new")))
    #expect(try images.value(for: 1) == Self.image(1))
    try await store.waitUntilIdle()
    #expect(store.statistics.segments.writtenBytes == written)
    // The entry that was not read has expired.
    clock.advance(by: .seconds(100))
    for _ in 0..<2 {
      for number in 0..<3 {
        #expect(try images.value(for: number) == (number == 2 ? nil : Self.image(number)))
      }
      #expect(try images.entry(for: 0)?.validator == Validator("new"))
      #expect(try images.entry(for: 0)?.tags == ["a"])
      try await store.waitUntilIdle()
      try store.close()
      store = try Store(at: place, options: Self.options(clock: clock))
      images = try open(store)
    }
    try store.close()
  }

  /// Damages the payloads of as many images, which are all that was saved.
  private static func damagePayloads(_ count: Int, in directory: borrowing TemporaryDirectory)
    throws
  {
    let segment = directory.path("store/00000001.segment")
    var bytes = try SystemFiles().read(segment, limit: nil)
    for number in 0..<count { bytes[50_000 + number * 100_000] ^= 1 }
    try SystemFiles().replace(segment, with: bytes)
  }

  @Test("Keys, counts, contents, invalidations and removals of ranges do not read payloads.")
  func scannedHeads() throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"))
    let clock = ManualClock()
    func open(_ store: Store) throws -> Cache<Int, Data> {
      try store.cache(
        "images", of: Data.self, keyedBy: Int.self, lifetime: .seconds(60), coder: .bytes)
    }
    var store = try Store(at: place, options: Self.options(clock: clock))
    for number in 0..<5 {
      if number == 2 { clock.advance(by: .seconds(40)) }
      try open(store).save(Self.image(number), for: number, tags: number == 4 ? ["a"] : [])
    }
    try store.close()
    try Self.damagePayloads(5, in: directory)
    clock.advance(by: .seconds(30))
    store = try Store(at: place, options: Self.options(clock: clock))
    let images = try open(store)
    let error = #expect(throws: StoreError.self) { try images.value(for: 2) }
    guard case .corrupt = error else { return #expect(Bool(false), "\(String(describing: error))") }
    // The first two have expired. An entry that was read, and damaged, would be shown in any state.
    for order in [ScanOrder.ascending, .descending] {
      let cursor = try images.keys(order: order)
      var keys: [Int] = []
      while let key = try cursor.next() { keys.append(key) }
      #expect(keys == (order == .ascending ? [2, 3, 4] : [4, 3, 2]))
    }
    #expect(try images.count() == 3)
    #expect(try (0..<6).map { try images.contains($0) } == [false, false, true, true, true, false])
    var contents = try #require(try store.contents()["images"])
    #expect(contents.fresh.entries == 3 && contents.expired.entries == 2)
    #expect(contents.unreadable.entries == 0 && contents.due.entries == 2)
    #expect(contents.fresh.bytes > 300_000)
    try store.invalidate(tag: "a")
    #expect(try store.sweep() == 3)
    #expect(try images.remove(in: .all) == 2)
    contents = try #require(try store.contents()["images"])
    #expect(contents.fresh.entries + contents.unreadable.entries == 0)
    try store.close()
  }

  @Test("Sweeps and evictions do not read payloads.")
  func heads() throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"))
    let clock = ManualClock()
    func open() throws -> (Store, expiring: Cache<Int, Data>, counted: Cache<Int, Data>) {
      let store = try Store(at: place, options: Self.options(clock: clock))
      return (
        store,
        try store.cache(
          "expiring", of: Data.self, keyedBy: Int.self, lifetime: .seconds(60), coder: .bytes),
        try store.cache(
          "counted", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: 250_000)
      )
    }
    var (store, expiring, counted) = try open()
    for number in 0..<3 { try expiring.save(Self.image(number), for: number) }
    for number in 0..<2 { try counted.save(Self.image(number), for: number) }
    try store.close()
    try Self.damagePayloads(5, in: directory)
    (store, expiring, counted) = try open()
    clock.advance(by: .seconds(30))
    #expect(try store.sweep() == 0)
    clock.advance(by: .seconds(30))
    #expect(try store.sweep() == 3)
    for number in 0..<3 { #expect(try expiring.value(for: number) == nil) }
    // There is room for two entries: each save removes one whose payload is damaged.
    try counted.save(Self.image(2), for: 2)
    for _ in 0..<2 { #expect(try counted.value(for: 2) != nil) }
    try counted.save(Self.image(3), for: 3)
    #expect(store.statistics.caches["counted"]?.deletions.cacheBudget.entries == 2)
    for number in 0..<4 {
      #expect(try counted.value(for: number) == (number < 2 ? nil : Self.image(number)))
    }
    try store.close()
  }

  @Test("A damaged payload is an error for its key, is found by validate, and costs nothing else.")
  func damage() throws {
    let directory = try TemporaryDirectory()
    let place = URL(filePath: directory.path("store"))
    var store = try Store(at: place, options: Self.options())
    for number in 0..<3 { try Self.images(store).save(Self.image(number), for: number) }
    try store.close()
    let segment = directory.path("store/00000001.segment")
    var bytes = try SystemFiles().read(segment, limit: nil)
    bytes[150_000] ^= 1
    try SystemFiles().replace(segment, with: bytes)

    store = try Store(at: place, options: Self.options())
    let images = try Self.images(store)
    #expect(try images.value(for: 0) == Self.image(0))
    #expect {
      try images.value(for: 1)
    } throws: { error in
      if case StoreError.corrupt(cache: "images", key: "1", file: _) = error { true } else { false }
    }
    #expect(try images.value(for: 2) == Self.image(2))
    // The store itself is whole.
    #expect(try SystemFiles().kind(of: directory.path("store/LARDER.damaged")) == nil)
    try images.validate()
    #expect(try images.value(for: 1) == nil)
    #expect(try images.value(for: 2) == Self.image(2))
    try store.close()
  }

  @Test("A sweep, a removal of all entries and a drop give back room in segments.")
  func room() throws {
    let directory = try TemporaryDirectory()
    let clock = ManualClock()
    let store = try Store(
      at: URL(filePath: directory.path), options: Self.options(clock: clock))
    func fill() throws {
      for number in 0..<400 { try Self.images(store).save(Self.image(number), for: number) }
    }
    func expectRoom(_ cause: Comment) throws {
      store.context.engine.waitForBackgroundWork()
      // The newest segment remains.
      #expect(try Self.segmentBytes(in: directory.path) < 33 << 20, cause)
    }
    try fill()
    #expect(try Self.segmentBytes(in: directory.path) > 40_000_000)
    clock.advance(by: .seconds(9 * 86_400))
    #expect(try store.sweep() == 400)
    try expectRoom("a sweep")
    try fill()
    try Self.images(store).removeAll()
    try expectRoom("a removal of all entries")
    try fill()
    try store.drop(cache: "images")
    try expectRoom("a drop")
    let segments = store.statistics.segments
    #expect(segments.writtenBytes > 120_000_000 && segments.deletedBytes > 90_000_000)
    #expect(segments.copiedBytes < 33 << 20)
    try store.close()
  }

  @Test("Budgets count a value alike in a segment and in LevelDB.")
  func budgets() throws {
    var held: [Int?] = []
    for threshold in [nil, 1] {
      let directory = try TemporaryDirectory()
      let store = try Store(
        at: URL(filePath: directory.path), options: Self.options(from: threshold))
      let images = try store.cache(
        "images", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: 1_000_000)
      for number in 0..<20 { try images.save(Self.image(number), for: number) }
      for number in 10..<15 { try images.save(Self.image(number, 50_000), for: number) }
      try images.remove(19)
      held.append(store.statistics.caches["images"]?.heldBytes)
      try store.close()
    }
    #expect(held[0] != nil && held[0] == held[1])
  }

  @Test("A threshold below 1 is refused, and a store in memory ignores it.")
  func limits() throws {
    let directory = try TemporaryDirectory()
    for bytes in [0, -1, .min] {
      let isRefused = throwsStoreError(
        where: { if case .invalidArgument = $0 { true } else { false } },
        { try Store(at: URL(filePath: directory.path), options: Self.options(from: bytes)) })
      #expect(isRefused)
    }
    let store = Store.inMemory(options: Self.options(from: 1))
    try Self.images(store).save(Self.image(1), for: 1)
    #expect(try Self.images(store).value(for: 1) == Self.image(1))
    #expect(store.statistics.segments == SegmentStatistics())
    try store.close()
  }
}
