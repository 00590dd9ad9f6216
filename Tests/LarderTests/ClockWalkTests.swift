import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// A store agrees with a plain dictionary while its clock is set at random.
///
/// `make proof` runs longer. A failure names its seed. To run it again, put the seed into the
/// argument list.
@Suite struct ClockWalkTests {
  private static let keys = ["", "a", "ab", "b", "k1", "k2"]
  private static let coders: [Coder<Int>] = [.binary, .json]

  @Test(
    "The store and the model agree at every step.", arguments: StoreKind.allCases,
    [1, 2026, 6_221_244_877_226_620_622, 16_558_991_035_694_553_860, UInt64.random(in: 0 ... .max)])
  func agree(kind: StoreKind, seed: UInt64) throws {
    let fixture = try Fixture(kind, timer: HandTimer())
    defer { fixture.end() }
    let clock = fixture.clock
    var random = SplitMix64(seed: seed)
    var model = Model()
    var cache = try open(fixture, .binary)
    model.sweepReads(clock, isNew: true)

    for step in 0..<(isProof ? 60_000 : 1500) {
      let place: Comment = "seed \(seed), step \(step)"
      let key = Self.keys.randomElement(using: &random) ?? ""
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<22:
        try cache.save(step, for: key)
        model.entries[key] = (step, clock.now())
        model.hasSaved = true
      case 22..<27:
        #expect(try cache.touch(key) == (model.entries[key] != nil), place)
        model.entries[key]?.savedAt = clock.now()
      case 27..<30:
        #expect(try cache.remove(key) == (model.entries[key] != nil), place)
        model.entries[key] = nil
      case 30..<45: clock.set(.turned(from: clock.now(), by: &random))
      case 45..<60: clock.advance(by: .seconds(Double.random(in: 0...700, using: &random)))
      case 60..<63: clock.advance(by: .seconds(Double.random(in: 0...500_000, using: &random)))
      case 63..<83:
        let (isAllowed, isCertain) = model.sweepReads(clock, isNew: false)
        fixture.timer?.fire()
        let gone = try takeMissing(from: &model, cache, at: clock.now(), place)
        #expect(isAllowed || gone.isEmpty, place)
        #expect(!isCertain || model.due(at: clock.now()).isEmpty, place)
      case 83..<89:
        let swept = try fixture.store.sweep()
        #expect(try takeMissing(from: &model, cache, at: clock.now(), place).count == swept, place)
        #expect(model.due(at: clock.now()).isEmpty, place)
        guard clock.now().timeIntervalSinceReferenceDate.isFinite else { continue }
        #expect(try fixture.disagreement(at: clock.now()) == nil, place)
      case 89..<92:
        let expired = model.expired(at: clock.now())
        #expect(try cache.validate().expired == expired.count, place)
        for key in expired { model.entries[key] = nil }
      case 92..<96: try fixture.store.migrate(cache)
      default:
        let date = kind.isOnDisk ? model.close(at: clock.now()) : nil
        try fixture.reopen()
        cache = try open(fixture, Self.coders.randomElement(using: &random) ?? .binary)
        model.sweepReads(clock, isNew: true)
        if let date {
          _ = try takeMissing(from: &model, cache, at: date, place)
          #expect(model.due(at: date).isEmpty, place)
        }
      }
      try expectSame(cache, model, clock.now(), place)
    }
  }

  private func open(_ fixture: Fixture, _ coder: Coder<Int>) throws -> Cache<String, Int> {
    try fixture.store.cache(
      "cache", of: Int.self,
      lifetime: .fresh(for: .seconds(Model.fresh), thenStaleFor: .seconds(Model.stale)),
      coder: coder)
  }

  /// Removes the entries from the model that a sweep by `date` deleted; all of them must have
  /// expired by then.
  ///
  /// An entry may be deleted before it must be, through an earlier note of its key.
  private func takeMissing(
    from model: inout Model, _ cache: Cache<String, Int>, at date: Date, _ place: Comment
  ) throws -> Set<String> {
    let expired = model.expired(at: date)
    let gone = Set(try model.entries.keys.filter { try cache.lookup(for: $0).kind == "missing" })
    #expect(gone.isSubset(of: expired), place)
    for key in gone { model.entries[key] = nil }
    return gone
  }

  private func expectSame(
    _ cache: Cache<String, Int>, _ model: Model, _ now: Date, _ place: Comment
  ) throws {
    var fresh: [String: Int] = [:]
    for key in Self.keys {
      let kind = model.kind(of: key, at: now)
      let lookup = try cache.lookup(for: key)
      #expect(lookup.kind == kind, place)
      switch lookup {
      case .fresh(let entry), .stale(let entry):
        #expect(entry.value == model.entries[key]?.value, place)
        #expect(entry.savedAt == model.entries[key]?.savedAt, place)
        if kind == "fresh" { fresh[key] = entry.value }
      case .expired, .missing: break
      }
    }
    var shown: [String: Int] = [:]
    let cursor = try cache.entries()
    while let item = try cursor.next() { shown[item.key] = try item.entry.get().value }
    #expect(shown == fresh, place)
  }
}

/// The expected behavior of a store with a clock, in the simplest form.
private struct Model {
  static let fresh = 432_000.0
  static let stale = 172_800.0
  /// A 64th of both.
  private static let delay = 9450.0

  var entries: [String: (value: Int, savedAt: Date)] = [:]
  /// The uptimes, in seconds, at which background sweeps read the clock since the store was opened,
  /// and how far the date was ahead of the uptime.
  private var readings: [(uptime: Double, offset: Double)] = []
  var hasSaved = false
  /// The date at which the store was closed that the next closing may sweep by.
  private var closingDate: Date?

  /// Notes that the store is closed; returns the date that this sweeps by.
  mutating func close(at now: Date) -> Date? {
    guard now.timeIntervalSinceReferenceDate.isFinite else { return nil }
    let last = closingDate
    if let last, now >= last, now.timeIntervalSince(last) < 600 { return nil }
    if hasSaved {
      closingDate = Date(
        timeIntervalSinceReferenceDate: now.timeIntervalSinceReferenceDate.rounded(.down))
    }
    return last.flatMap { $0 <= now ? $0 : nil }
  }

  func kind(of key: String, at now: Date) -> String {
    guard let savedAt = entries[key]?.savedAt else { return "missing" }
    guard savedAt.timeIntervalSinceReferenceDate.isFinite else { return "expired" }
    if now < savedAt + Self.fresh { return "fresh" }
    return now < savedAt + Self.fresh + Self.stale ? "stale" : "expired"
  }

  func expired(at now: Date) -> Set<String> {
    guard now.timeIntervalSinceReferenceDate.isFinite else { return [] }
    return Set(entries.keys.filter { kind(of: $0, at: now) == "expired" })
  }

  /// The keys of entries that a sweep must delete: they expired a 64th of the lifetime ago.
  ///
  /// An entry without a date is due as if it had been saved in the distant past; one of minus
  /// infinity, whose span has the widest bucket, from 2001 on.
  func due(at now: Date) -> Set<String> {
    let earlier = now - Self.delay
    return expired(at: now).filter { key in
      guard let savedAt = entries[key]?.savedAt else { return false }
      let seconds = savedAt.timeIntervalSinceReferenceDate
      guard seconds.isFinite else {
        let isPast = seconds == -.infinity
        return (isPast ? Date(timeIntervalSinceReferenceDate: 0) : .distantPast + Self.stale)
          <= earlier
      }
      return kind(of: key, at: earlier) == "expired"
    }
  }

  /// Notes that a background sweep read the clock; returns whether it may delete, and whether it
  /// must.
  ///
  /// It may if there was a reading at least ten minutes ago, and the date has stayed within an hour
  /// of the uptime in all readings since. It must if the date was not set at all since.
  @discardableResult mutating func sweepReads(
    _ clock: ManualClock, isNew: Bool
  ) -> (isAllowed: Bool, isCertain: Bool) {
    let uptime = clock.uptime() / .seconds(1)
    let offset = clock.now().timeIntervalSinceReferenceDate - uptime
    if isNew { readings = [] }
    readings.append((uptime, offset))
    func hasKept(to seconds: Double) -> Bool {
      readings.indices.contains { first in
        uptime - readings[first].uptime >= 600
          && readings[first...].allSatisfy { abs($0.offset - readings[first].offset) <= seconds }
      }
    }
    let isAllowed = hasKept(to: 3600.001)
    let isCertain = hasKept(to: 0.001)
    // Readings before a jump are of no use.
    if let last = readings.lastIndex(where: { !(abs($0.offset - offset) <= 10_000) }) {
      readings.removeFirst(last + 1)
      if readings.isEmpty { readings = [(uptime, offset)] }
    }
    return (isAllowed, isCertain)
  }
}

extension Date {
  /// A random date that a clock might be set to.
  fileprivate static func turned(from now: Date, by random: inout SplitMix64) -> Date {
    let start = ManualClock().now()
    // No few of these steps add up to an hour, within the rounding of a date.
    let steps = [61.0, 1700, 3601, 86_400, 604_800, 691_200, 3e7]
    switch Int.random(in: 0..<40, using: &random) {
    case 0: return Date(timeIntervalSinceReferenceDate: .nan)
    case 1: return Date(timeIntervalSinceReferenceDate: .infinity)
    case 2: return Date(timeIntervalSinceReferenceDate: -.infinity)
    case 3: return .distantFuture
    case 4: return .distantPast
    case 5: return Date(timeIntervalSince1970: 0x7FFF_FFFF)
    case 6: return Date(timeIntervalSince1970: 0xFFFF_FFFF)
    case 7..<12: return start
    default:
      let base = now.timeIntervalSinceReferenceDate.isFinite ? now : start
      let seconds = steps.randomElement(using: &random) ?? 0
      return base + (Bool.random(using: &random) ? seconds : -seconds)
    }
  }
}
