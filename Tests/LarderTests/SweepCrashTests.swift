import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Kills during sweeps lose no live entry.
@Suite struct SweepCrashTests {
  private static let count = 20_000
  private static let kept = 100

  @Test("A killed sweep loses no live entry, and the next one continues.")
  func kills() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let temporary = try TemporaryDirectory()
    let directory = URL(filePath: temporary.path)
    try fill(directory)
    var saved: Set<Int> = [0]
    var kills = 0
    var isDone = false
    while !isDone {
      var worker = try ChildProcess(
        "CrashWorker", ["sweep", temporary.path, "\(seed &+ UInt64(kills))"])
      var lines = kills < 12 ? Int.random(in: 1...40, using: &random) : .max
      while let line = worker.readLine() {
        if line == "done" {
          isDone = true
        } else {
          saved.insert(try #require(Int(line), "\(line), seed \(seed)"))
        }
        lines -= 1
        if lines == 0 {
          worker.kill()
          kills += 1
        }
      }
      try #require(isDone || lines <= 0, "the worker ended by itself, seed \(seed)")
    }
    #expect(kills > 0)

    var store = try Store(at: directory)
    try store.sweep()
    let numbers = try cache(in: store)
    for number in saved { try #require(try numbers.value(for: number) == -number, "seed \(seed)") }
    var left = 0
    let keys = try numbers.keys()
    while let key = try keys.next() {
      left += 1
      // The worker may have saved one more than it reported.
      let value = try numbers.value(for: key)
      try #require(value == (key < Self.count ? -key : key - Self.count), "seed \(seed)")
    }
    #expect(left >= saved.count + Self.kept)
    try store.close()

    // A sweep finds every remaining entry by its note.
    let clock = ManualClock(Date(timeIntervalSinceReferenceDate: 4e9))
    var options = Store.Options()
    options.clock = clock
    store = try Store(at: directory, options: options)
    let swept = try store.sweep()
    #expect(swept == left, "seed \(seed)")
    try store.close()
    let engine = try LevelDBEngine(at: temporary.path)
    for space in [KeySpace.records, .notes] {
      #expect(try !engine.cursor(over: EngineRange(prefix: [space.rawValue])).next())
    }
    try engine.close()
  }

  /// Saves numbers in 2009, and some in 2101, which must be kept.
  private func fill(_ directory: URL) throws {
    let clock = ManualClock(Date(timeIntervalSinceReferenceDate: 2.6e8))
    var options = Store.Options()
    options.clock = clock
    let store = try Store(at: directory, options: options)
    let numbers = try cache(in: store)
    for start in stride(from: 0, to: Self.count, by: 1000) {
      try store.write { batch in
        for number in start..<(start + 1000) { batch.save(number, for: number, in: numbers) }
      }
      clock.advance(by: .seconds(10_000))
    }
    clock.set(Date(timeIntervalSinceReferenceDate: 3.16e9))
    for number in 0..<Self.kept { try numbers.save(number, for: Self.count + number) }
    try store.close()
  }

  private func cache(in store: Store) throws -> Cache<Int, Int> {
    try store.cache("numbers", of: Int.self, keyedBy: Int.self, lifetime: .days(10))
  }
}
