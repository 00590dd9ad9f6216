import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Testing

@testable import Larder

/// A store that is closed sweeps what had expired at an earlier closing.
@Suite struct ClosingSweepTests {
  private static let day = Duration.seconds(86_400)

  private let clock = ManualClock()

  /// A store on disk with the default interval, whose cache has entries that expire in an hour.
  private func fixture(
    _ kind: StoreKind = .disk, interval: Duration? = Store.Options().sweepInterval
  ) throws -> Fixture {
    try Fixture(kind, clock: clock) { $0.sweepInterval = interval }
  }

  private func save(_ keys: Range<Int>, in fixture: Fixture) throws {
    let cache = try fixture.store.cache("c", of: Int.self, lifetime: .hours(1))
    try fixture.store.write { batch in
      for key in keys { batch.save(key, for: "\(key)", in: cache) }
    }
  }

  private func records(in fixture: Fixture) throws -> Int {
    try fixture.rows(in: .records).count
  }

  @Test("A program that runs once a day is swept, whether it opens the cache or not.")
  func daily() throws {
    let fixture = try fixture()
    defer { fixture.end() }
    try save(0..<3, in: fixture)
    for left in [3, 3, 0] {
      try fixture.reopen()
      #expect(try records(in: fixture) == left)
      clock.advance(by: Self.day)
    }
    #expect(fixture.store.statistics.sweeps == 0)
    try fixture.store.close()
    #expect(fixture.store.statistics.sweeps == 1)
  }

  @Test("A program that runs once a minute is swept by a date that is an interval old.")
  func often() throws {
    let fixture = try fixture()
    defer { fixture.end() }
    try save(0..<3, in: fixture)
    var minutes = 0
    while try records(in: fixture) > 0, minutes < 200 {
      try fixture.reopen()
      clock.advance(by: .seconds(60))
      minutes += 1
    }
    // They are due in minute 61. The closing of minute 180 sweeps by the date of minute 120, after
    // the one of minute 120 has swept by that of minute 60.
    #expect(minutes == 181)
  }

  @Test("Without an interval nothing is deleted, and the mark gets no date.")
  func noInterval() throws {
    let fixture = try fixture(interval: nil)
    defer { fixture.end() }
    try save(0..<3, in: fixture)
    for _ in 0..<4 {
      try fixture.reopen()
      clock.advance(by: Self.day)
    }
    #expect(try records(in: fixture) == 3)
    #expect(fixture.store.context.notes.closingDate == nil)
  }

  @Test("A date that is wrong at one closing deletes nothing that is fresh by the right one.")
  func wrongOnce() throws {
    let fixture = try fixture()
    defer { fixture.end() }
    try save(0..<3, in: fixture)
    try fixture.reopen()
    let right = clock.now()
    for wrong in [right + 86_400 * 365, right - 86_400 * 365, right + 4000] {
      clock.set(wrong)
      try fixture.reopen()
      clock.set(right)
      try fixture.reopen()
      #expect(try records(in: fixture) == 3, "\(wrong)")
      #expect(fixture.store.context.notes.closingDate == right)
    }
  }

  @Test(
    "A closing by a date that is no date deletes nothing, and keeps the date of the mark.",
    arguments: [Double.nan, .infinity, -.infinity, 1e300, -1e300])
  func noDate(seconds: Double) throws {
    let fixture = try fixture()
    defer { fixture.end() }
    try save(0..<3, in: fixture)
    try fixture.reopen()
    let right = clock.now()
    clock.set(Date(timeIntervalSinceReferenceDate: seconds))
    try fixture.reopen()
    clock.set(right)
    #expect(try records(in: fixture) == 3)
    #expect(fixture.store.context.notes.closingDate == right)
  }

  @Test("A closing deletes about ten thousand entries, and the next ones the rest.")
  func slices() throws {
    let fixture = try fixture()
    defer { fixture.end() }
    try save(0..<25_000, in: fixture)
    clock.advance(by: Self.day)
    try fixture.reopen()
    var left: [Int] = []
    for _ in 0..<3 {
      clock.advance(by: Self.day)
      try fixture.reopen()
      left.append(try records(in: fixture))
    }
    let slice = Sweeper.unaskedSlices * 256
    #expect(left == [25_000 - slice, 25_000 - 2 * slice, 0])
  }

  @Test("A closing sweeps entries whose notes a kill has lost, and entries of invalidated tags.")
  func afterKill() throws {
    let fixture = try fixture(.segments)
    defer { fixture.end() }
    try save(0..<3, in: fixture)
    let cache = try fixture.store.cache("c", of: Int.self, lifetime: .hours(1))
    try cache.save(4, for: "tagged", lifetime: .unlimited, tags: ["t"])
    try fixture.store.invalidate(tag: "t")
    // As after a kill: the engine ends without the notes.
    try fixture.engine.close()
    try fixture.reopen()
    for left in [4, 0] {
      clock.advance(by: Self.day)
      try fixture.reopen()
      #expect(try records(in: fixture) == left)
    }
  }

  @Test(
    "Opening and closing writes nothing within an interval, nor ever in a store without records.")
  func quiet() throws {
    let fixture = try fixture()
    defer { fixture.end() }
    func metadata() throws -> [[UInt8]] { try fixture.rows(in: .metadata).map(\.value) }
    let new = try metadata()
    clock.advance(by: Self.day)
    try fixture.reopen()
    #expect(try metadata() == new)
    try save(0..<3, in: fixture)
    try fixture.reopen()
    let saved = try metadata()
    clock.advance(by: .seconds(3599))
    try fixture.reopen()
    #expect(try metadata() == saved)
    clock.advance(by: .seconds(1))
    try fixture.reopen()
    #expect(try metadata() != saved)
  }

  @Test("A mark of an earlier version has no date, and a closing gives it one.")
  func olderMark() throws {
    let fixture = try fixture(interval: nil)
    defer { fixture.end() }
    try save(0..<3, in: fixture)
    try fixture.reopen()
    let value = try #require(
      try fixture.rows(in: .metadata).first { $0.key == Metadata.notes }?.value)
    let body = try #require(Metadata.body(of: value, under: Metadata.notes))
    #expect(body.count == 17)
    try fixture.store.close()
    let store = try Store(at: fixture.directory)
    #expect(store.context.notes.isComplete && store.context.notes.closingDate == nil)
    try store.close()
    let again = try Store(at: fixture.directory)
    #expect(again.context.notes.closingDate != nil)
    try again.close()
    try fixture.reopen()
  }

  @Test("A store that is read-only, in memory, or closed already sweeps nothing.")
  func others() throws {
    let fixture = try fixture()
    defer { fixture.end() }
    try save(0..<3, in: fixture)
    try fixture.reopen()
    clock.advance(by: Self.day)
    try fixture.reopen()
    clock.advance(by: Self.day)
    var options = Store.Options()
    options.clock = clock
    options.access = .readOnly
    let readOnly = try Store(at: fixture.directory, options: options)
    try readOnly.close()
    #expect(readOnly.statistics.sweeps == 0)
    #expect(try records(in: fixture) == 3)
    try fixture.store.close()
    try fixture.store.close()
    #expect(fixture.store.statistics.sweeps == 1)
  }

  @Test("A store on a full disk is swept when it is closed, and can be written again.")
  func fullDisk() throws {
    let disk = SimulatedDisk()
    disk.setCapacity(8 << 20)
    var random = SplitMix64(seed: 1)
    let noise = Data(random.bytes(5000))
    var options = Store.Options()
    options.clock = clock
    func open() throws -> (store: Store, pictures: Cache<Int, Data>) {
      let store = try Store(on: disk, options: options)
      let pictures = try store.cache(
        "pictures", of: Data.self, keyedBy: Int.self, lifetime: .hours(1), coder: .bytes)
      return (store, pictures)
    }
    var (store, pictures) = try open()
    try pictures.save(noise, for: -1, lifetime: .unlimited)
    var count = 0
    while count < 10_000 {
      do {
        try pictures.save(noise, for: count)
      } catch StoreError.diskFull {
        break
      }
      count += 1
    }
    #expect(count < 10_000)
    for _ in 0..<3 {
      try store.close()
      clock.advance(by: Self.day)
      (store, pictures) = try open()
    }
    #expect(try pictures.lookup(for: 1).kind == "missing")
    #expect(try pictures.value(for: -1) == noise)
    try pictures.save(noise, for: 1)
    try store.close()
  }
}
