import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Random scans across slices, during which entries change, agree with a sorted dictionary.
///
/// A failure names its seed. To run it again, put the seed into the argument list.
@Suite struct ScanModelTests {
  static let seeds: [UInt64] = [7, .random(in: 0 ... .max)]

  @Test(
    "A scan returns each entry that stays the same, once and in order, and no other.",
    arguments: StoreKind.allCases, seeds)
  func agree(kind: StoreKind, seed: UInt64) throws {
    let fixture = try Fixture(kind, cursorSliceEntries: 3)
    defer { fixture.end() }
    var run = ScanRun(
      cache: try fixture.store.cache(
        "numbers", of: Int.self, keyedBy: Int.self,
        lifetime: .fresh(for: .seconds(100), thenStaleFor: .seconds(50))),
      clock: fixture.clock, random: SplitMix64(seed: seed))
    for step in 0..<(isProof ? 20_000 : 500) {
      let problem = try run.scan()
      #expect(problem == nil, "seed \(seed), step \(step)")
      for _ in 0..<5 { try run.change() }
      fixture.clock.set(
        fixture.clock.now() + Double(Int.random(in: -10...20, using: &run.random)))
    }
  }
}

/// A cache, and the same entries as a dictionary.
private struct ScanRun {
  private struct Entry: Hashable {
    var value: Int
    var savedAt: Date
  }

  /// An entry as a scan shows it.
  private struct Seen: Hashable {
    let key: Int
    /// Nil if the entry has expired.
    let value: Int?
    let savedAt: Date
  }

  let cache: Cache<Int, Int>
  let clock: ManualClock
  var random: SplitMix64
  private var entries: [Int: Entry] = [:]
  private var lastValue = 0

  init(cache: Cache<Int, Int>, clock: ManualClock, random: SplitMix64) {
    (self.cache, self.clock, self.random) = (cache, clock, random)
  }

  /// Saves, touches or removes a random entry.
  mutating func change() throws {
    let key = Int.random(in: -20...20, using: &random)
    lastValue += 1
    switch Int.random(in: 0..<4, using: &random) {
    case 0:
      try cache.remove(key)
      entries[key] = nil
    case 1:
      try cache.touch(key)
      entries[key]?.savedAt = clock.now()
    default:
      try cache.save(lastValue, for: key)
      entries[key] = Entry(value: lastValue, savedAt: clock.now())
    }
  }

  /// Scans a random range while entries change; returns what is wrong, or nil.
  mutating func scan() throws -> String? {
    let lower = Int.random(in: -22...22, using: &random)
    let upper = Int.random(in: -22...22, using: &random)
    let isWhole = Bool.random(using: &random)
    let range: KeyRange<Int> = isWhole ? .all : .from(lower, upTo: upper)
    let states = EntryStates(rawValue: UInt8.random(in: 0..<8, using: &random))
    let order: ScanOrder = Bool.random(using: &random) ? .ascending : .descending
    let changes = Int.random(in: 0..<3, using: &random)
    func selected() -> Set<Seen> {
      let keys = entries.keys.filter { isWhole || lower <= $0 && $0 < upper }
      return Set(keys.compactMap { seen($0, in: states) })
    }

    var (always, sometimes) = (selected(), selected())
    var found: [Seen] = []
    let cursor = try cache.lookups(in: range, states: states, order: order)
    while let item = try cursor.next() {
      found.append(Self.seen(item.key, try item.found.get()))
      for _ in 0..<changes {
        try change()
        always.formIntersection(selected())
        sometimes.formUnion(selected())
      }
    }
    let keys = found.map(\.key)
    let ordered = order == .ascending ? keys : keys.reversed()
    guard zip(ordered, ordered.dropFirst()).allSatisfy(<) else { return "\(order): \(keys)" }
    guard always.isSubset(of: found) else { return "missing: \(always.subtracting(found))" }
    let extra = Set(found).subtracting(sometimes)
    guard extra.isEmpty else { return "extra: \(extra)" }
    return try cursor.next() == nil ? nil : "an entry behind the end"
  }

  /// An entry as a scan of these states shows it; nil if it is in another state.
  private func seen(_ key: Int, in states: EntryStates) -> Seen? {
    guard let entry = entries[key] else { return nil }
    let age = clock.now().timeIntervalSince(entry.savedAt)
    let state: EntryStates = age < 100 ? .fresh : age < 150 ? .stale : .expired
    guard states.contains(state) else { return nil }
    return Seen(key: key, value: state == .expired ? nil : entry.value, savedAt: entry.savedAt)
  }

  private static func seen(_ key: Int, _ found: Lookup<Int>) -> Seen {
    switch found {
    case .fresh(let entry), .stale(let entry):
      Seen(key: key, value: entry.value, savedAt: entry.savedAt)
    case .expired(let metadata): Seen(key: key, value: nil, savedAt: metadata.savedAt)
    case .missing: Seen(key: key, value: nil, savedAt: .distantPast)
    }
  }
}
