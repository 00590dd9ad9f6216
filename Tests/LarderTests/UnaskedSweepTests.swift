import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// Background sweeps delete expired entries in slices, and end with their store.
@Suite struct UnaskedSweepTests {
  @Test("Nothing is deleted in the first ten minutes.", arguments: StoreKind.allCases)
  func firstTenMinutes(kind: StoreKind) throws {
    let bench = try Bench(kind)
    defer { bench.end() }
    for _ in 0..<10 {
      bench.timer.fire()
      #expect(try bench.records() == 3)
      bench.clock.advance(by: .seconds(59))
    }
    bench.clock.advance(by: .seconds(10))
    bench.timer.fire()
    #expect(try bench.records() == 0)
    #expect(bench.timer.interval == .seconds(60))
  }

  @Test("One sweep handles about ten thousand rows, and the next one continues.")
  func slices() throws {
    let bench = try Bench(.memory)
    defer { bench.end() }
    try bench.store?.write { batch in
      for key in 0..<25_000 { batch.save(key, for: "\(key)", in: bench.cache) }
    }
    bench.clock.advance(by: .seconds(1000))
    var left = [Int]()
    for _ in 0..<3 {
      bench.timer.fire()
      left.append(try bench.records())
    }
    let slice = Sweeper.unaskedSlices * 256
    #expect(left == [25_003 - slice, 25_003 - 2 * slice, 0])
    #expect(try bench.rows() == 0)
  }

  @Test("An entry saved into a half-swept bucket is not skipped.")
  func halfSweptBucket() throws {
    let bench = try Bench(.memory)
    defer { bench.end() }
    let start = bench.clock.now()
    try bench.store?.write { batch in
      for key in 0..<11_000 { batch.save(key, for: "\(key)", in: bench.cache) }
    }
    bench.clock.advance(by: .seconds(1000))
    bench.timer.fire()
    #expect(try bench.records() > 0)
    // The key sorts before the one that the sweep has reached.
    bench.clock.set(start)
    try bench.cache.save(1, for: "")
    bench.clock.set(start + 1000)
    bench.timer.fire()
    #expect(try bench.records() == 0)
  }

  @Test(
    "A range that became empty is compacted, and one with other entries is not.",
    arguments: [true, false])
  func compaction(hasOthers: Bool) throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let engine = InterruptedEngine(fixture.engine)
    let timer = HandTimer()
    var options = Store.Options()
    options.clock = fixture.clock
    options.sweepInterval = .seconds(60)
    options.sweepTrigger = timer.trigger
    let store = try Store(engine: engine, options: options, origin: .disk)
    let cache = try store.cache(
      "cache", of: [UInt8].self, keyedBy: Int.self, lifetime: .seconds(10_000), coder: .bytes)
    let count = EmptiedRange.tolerated.unasked
    // Random, because the files are compressed.
    var random = SplitMix64(seed: 1)
    func save(_ offset: Int) throws {
      for start in stride(from: 0, to: count, by: 1000) {
        try store.write { batch in
          for key in start..<start + 1000 {
            batch.save(random.bytes(100), for: 2 * key + offset, in: cache)
          }
        }
      }
    }
    try save(0)
    fixture.clock.advance(by: .seconds(9000))
    if hasOthers { try save(1) }
    try fixture.engine.compact(EngineRange())

    fixture.clock.advance(by: .seconds(1200))
    let sweeps = (count + Sweeper.unaskedSlices * 256 - 1) / (Sweeper.unaskedSlices * 256)
    for _ in 1..<sweeps { timer.fire() }
    #expect(engine.compacted.isEmpty)
    timer.fire()
    #expect(try fixture.rows(in: .records).count == (hasOthers ? count : 0))
    let spaces = engine.compacted.map { $0.lower.first }
    #expect(spaces == (hasOthers ? [] : [KeySpace.records.rawValue]))
  }

  @Test("The timer ends when the store is closed or freed.")
  func ends() throws {
    let closed = try Bench(.disk)
    defer { closed.end() }
    #expect(closed.timer.isRunning)
    try closed.store?.close()
    #expect(!closed.timer.isRunning)

    let freed = try Bench(.memory)
    freed.forget()
    #expect(!freed.timer.isRunning)
    freed.timer.fire()
  }

  @Test("Without an interval there is no timer, and an invalid interval is refused.")
  func intervals() throws {
    let timer = HandTimer()
    var options = Store.Options()
    options.sweepTrigger = timer.trigger
    options.sweepInterval = nil
    _ = try Store(engine: InMemoryEngine(), options: options, origin: .memory)
    #expect(timer.interval == nil)
    options.sweepInterval = Store.Options().sweepInterval
    _ = try Store(engine: InMemoryEngine(), options: options, origin: .memory)
    #expect(timer.interval == .seconds(3600))
    for interval in [.milliseconds(999), .seconds(-1), .seconds(31_536_001)] as [Duration] {
      options.sweepInterval = interval
      #expect {
        try Store(engine: InMemoryEngine(), options: options, origin: .memory)
      } throws: { error in
        if case StoreError.invalidArgument = error { true } else { false }
      }
    }
  }

  @Test("The system timer fires, and ends.", .timeLimit(.minutes(30)))
  func systemTimer() async {
    let fired = Watched(0)
    let end = systemIntervalTimer(.milliseconds(1)) { fired.change { $0 += 1 } }
    await fired.wait { $0 > 0 }
    end()
    #expect(fired.read { $0 } > 0)
  }
}

/// A store with three entries and a timer.
private final class Bench {
  let clock = ManualClock()
  let timer = HandTimer()
  private let fixture: Fixture
  private(set) var store: Store?
  private var opened: Cache<String, Int>?

  init(_ kind: StoreKind) throws {
    fixture = try Fixture(kind)
    var options = Store.Options()
    options.clock = clock
    options.sweepInterval = .seconds(60)
    options.sweepTrigger = timer.trigger
    let store = try Store(engine: fixture.engine, options: options, origin: .disk)
    let cache = try store.cache("cache", of: Int.self, lifetime: .seconds(100))
    for key in ["a", "b", "c"] { try cache.save(1, for: key) }
    self.store = store
    opened = cache
  }

  var cache: Cache<String, Int> {
    guard let opened else { preconditionFailure("the store was forgotten") }
    return opened
  }

  func records() throws -> Int { try fixture.rows(in: .records).count }
  func rows() throws -> Int { try fixture.notes().count }

  func forget() {
    opened = nil
    store = nil
  }

  func end() { fixture.end() }
}
