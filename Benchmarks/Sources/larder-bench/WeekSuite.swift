import Foundation
import Larder
import Synchronization

/// Ten simulated days of a store with a lifetime of seven days and sweeps in the background.
///
/// It compares the size on disk with the size of the live entries. Each day ends with a scan of all
/// entries, and a wrong one ends the run.
struct WeekSuite {
  static let heading = """
    | day | live entries | live MB | disk MB | disk to live | records | packs \
    | written to saved | longest sweep s | seconds |
    |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
    """

  private static let days = 10
  private static let lifetime = 7 * 86_400.0
  private static let sweepSeconds = 60.0
  private static let smallBytes = 400
  /// Of values whose payloads are in segments.
  private static let largeBytes = 20_000
  private static let refreshedShare = 0.3

  private static let overwrittenKeys = 50
  /// One note for each of the 75 buckets that a lifetime touches, and some for packs that were
  /// written in the middle of a bucket, whose keys are then noted again.
  private static let mostNotesOfAKey = 90
  private static let mostOverwrittenBytes = 1 << 20

  private let scale: BenchScale
  private let workspace: Workspace

  init(_ scale: BenchScale, in workspace: Workspace) {
    (self.scale, self.workspace) = (scale, workspace)
  }

  /// What was written on a day, for each byte saved; nil where that is not available.
  typealias Written = (day: Int, toSaved: Double?)

  /// Returns what the days with small values wrote, and what those with large ones did.
  func run(_ print: (String) -> Void) throws -> (small: [Written], large: [Written]) {
    let small = try simulateDays(print, Values(of: Self.smallBytes), savesADay: scale.savesADay)
    let large = try simulateDays(
      print, Values(of: Self.largeBytes), savesADay: scale.savesADay / 100)
    try overwrite(print, Values(of: Self.smallBytes))
    return (small, large)
  }

  /// A plot of the bytes that were written by day.
  static func plot(
    _ written: (small: [Written], large: [Written]), on machine: Machine
  ) -> String {
    let ticks = written.small.map { (at: Double($0.day), label: "\($0.day)") }
    let lines = [written.small, written.large].enumerated().map { index, days in
      (series: index, points: days.compactMap { day in day.toSaved.map { (Double(day.day), $0) } })
    }
    let panel = LinePanel(
      title: "Bytes written", xTitle: "day", yTitle: "bytes written for each byte saved",
      xTicks: ticks, isXLogarithmic: false, yLabel: Axis.text(_:), lines: lines)
    return Chart(
      title: "Ten days of saves with a lifetime of seven, and sweeps every minute",
      source: "\(machine.summary), \(machine.day)",
      series: ["values of \(smallBytes) bytes", "values of \(largeBytes / 1000) KB, in segments"],
      panels: [panel]
    ).svg()
  }

  /// The saved values, all of one size.
  private struct Values {
    let byteCount: Int
    private let pool: [UInt8]

    init(of byteCount: Int) {
      (self.byteCount, pool) = (byteCount, Plan.makePool(valueBytes: byteCount))
    }

    /// The size of a record with its key.
    var entryBytes: Int { 2 + 16 + 36 + byteCount }

    /// A value that begins with the number of its save; half of the rest is random.
    func value(of save: Int) -> Data {
      let start = save * byteCount % (pool.count - byteCount)
      var value = Data(pool[start..<start + byteCount])
      withUnsafeBytes(of: UInt64(save).littleEndian) { value.replaceSubrange(0..<8, with: $0) }
      return value
    }
  }
}

// MARK: - Ten days

extension WeekSuite {
  /// The number of the last save of each key; saves are numbered in order.
  private struct Model {
    private(set) var lastSaves: [Int32] = []
    private var random = WorkloadRandom(seed: Scale.seed)

    /// Returns the next key to save: in three of ten cases a live one, otherwise a new one.
    mutating func nextKey(isLive: (_ save: Int) -> Bool) -> Int {
      if !lastSaves.isEmpty, Double.random(in: 0..<1, using: &random) < refreshedShare {
        while true {
          let key = Int.random(in: 0..<lastSaves.count, using: &random)
          if isLive(Int(lastSaves[key])) { return key }
        }
      }
      lastSaves.append(0)
      return lastSaves.count - 1
    }

    mutating func record(_ save: Int, of key: Int) { lastSaves[key] = Int32(save) }
  }

  private func simulateDays(
    _ print: (String) -> Void, _ values: Values, savesADay: Int
  ) throws -> [Written] {
    print(
      """
      \(savesADay) saves a day of 16 + \(values.byteCount) bytes, three in ten of a live \
      entry; lifetime 7 days; a sweep every minute

      \(Self.heading)
      """)
    let bench = try Bench(at: workspace.directory("week"), saves: savesADay)
    var model = Model()
    var save = 0
    var days: [Written] = []
    for day in 1...Self.days {
      let writtenBefore = try bytesWritten()
      var longest = Duration.zero
      let time = try ContinuousClock().measure {
        for _ in 0..<savesADay {
          let now = bench.clock.now()
          let key = model.nextKey { now < bench.clock.date(of: $0) + Self.lifetime }
          try bench.cache.save(values.value(of: save), for: UUID(number: key))
          model.record(save, of: key)
          save += 1
          if bench.clock.tick() { longest = max(longest, ContinuousClock().measure(bench.sweep)) }
        }
      }
      let written = try bytesWritten().flatMap { now in writtenBefore.map { now - $0 } }
      let toSaved = written.map { Double($0) / Double(savesADay * values.entryBytes) }
      days.append((day, toSaved))
      let live = try check(model, values, bench)
      let cells =
        ["\(day)", "\(live)"]
        + sizes(live: live * values.entryBytes, disk: try diskBytes(in: bench.directory))
        + [
          "\(try bench.countRows(in: .records))", "\(try bench.countRows(in: .notes))",
          toSaved.map { decimals($0, 2) } ?? "unknown",
          seconds(longest), seconds(time),
        ]
      print("| " + cells.joined(separator: " | ") + " |")
      guard day == Self.days else { continue }
      try bench.engine.compact(EngineRange())
      let compacted = sizes(
        live: live * values.entryBytes, disk: try diskBytes(in: bench.directory))
      print("\ncompacted completely: \(compacted[1]) MB, \(compacted[2]) of the live size")
    }
    try bench.close()
    try workspace.remove("week")
    return days
  }

  /// Checks that a scan shows exactly the live entries, as last saved; returns their number.
  private func check(_ model: Model, _ values: Values, _ bench: Bench) throws -> Int {
    let now = bench.clock.now()
    let limits = model.lastSaves.map { bench.clock.date(of: Int($0)) + Self.lifetime }
    var shown = 0
    let cursor = try bench.cache.entries()
    while let item = try cursor.next() {
      let entry = try item.entry.get()
      let key = item.key.number
      guard limits.indices.contains(key), now < limits[key] else {
        throw WrongResults(description: "key \(key) is listed but not live")
      }
      let save = Int(model.lastSaves[key])
      guard entry.savedAt == bench.clock.date(of: save), entry.value == values.value(of: save)
      else {
        throw WrongResults(description: "key \(key) does not have its last saved value")
      }
      shown += 1
    }
    let live = limits.count { now < $0 }
    guard shown == live else {
      throw WrongResults(description: "\(shown) of \(live) live entries are listed")
    }
    return live
  }
}

// MARK: - The same keys for a week

extension WeekSuite {
  /// Saves the same keys repeatedly for a week.
  private func overwrite(_ print: (String) -> Void, _ values: Values) throws {
    let rounds = Int(Self.lifetime) / scale.secondsBetweenOverwrites
    let bench = try Bench(
      at: workspace.directory("overwritten"), saves: 86_400 / scale.secondsBetweenOverwrites)
    var mostNotes = 0
    for round in 0..<rounds {
      try bench.store.write { batch in
        for key in 0..<Self.overwrittenKeys {
          batch.save(values.value(of: round + key), for: UUID(number: key), in: bench.cache)
        }
      }
      if bench.clock.tick() { bench.sweep() }
      if round % (rounds / 50) == 0 || round == rounds - 1 {
        mostNotes = max(mostNotes, try mostNotesOfAKey(bench))
      }
    }
    try bench.engine.compact(EngineRange())
    let bytes = try diskBytes(in: bench.directory)
    print(
      """

      \(Self.overwrittenKeys) keys saved every \(scale.secondsBetweenOverwrites) s of a week: \
      at most \(mostNotes) notes per key in packs, \(bytes) bytes after compaction
      """)
    for key in 0..<Self.overwrittenKeys {
      guard try bench.cache.value(for: UUID(number: key)) == values.value(of: rounds - 1 + key)
      else {
        throw WrongResults(description: "key \(key) does not have its last saved value")
      }
    }
    guard mostNotes <= Self.mostNotesOfAKey, bytes < Self.mostOverwrittenBytes else {
      throw WrongResults(
        description: "too many notes are left: \(mostNotes) of a key, \(bytes) bytes in all")
    }
    try bench.close()
    try workspace.remove("overwritten")
  }

  private func mostNotesOfAKey(_ bench: Bench) throws -> Int {
    var counts: [[UInt8]: Int] = [:]
    var damaged = 0
    _ = try bench.countRows(in: .notes) { key, value in
      let keys = NotePack(key: key)?.forEachKey(in: value) { counts[Array($0), default: 0] += 1 }
      if keys == nil { damaged += 1 }
    }
    guard damaged == 0 else { throw WrongResults(description: "\(damaged) packs are damaged") }
    return counts.values.max() ?? 0
  }

  private func sizes(live: Int, disk: Int) -> [String] {
    ["\(live / 1_000_000)", "\(disk / 1_000_000)", ratio(disk, live)]
  }

  private func ratio(_ one: Int, _ other: Int) -> String {
    String(format: "%.2f", Double(one) / Double(other))
  }

  private func seconds(_ time: Duration) -> String { String(format: "%.2f", time / .seconds(1)) }

  /// The bytes that this process has given the system to write; nil where that is not available.
  private func bytesWritten() throws -> Int? {
    #if os(Linux)
      let text = try String(contentsOfFile: "/proc/self/io", encoding: .utf8)
      let line = text.split(separator: "\n").first { $0.hasPrefix("wchar:") }
      return line?.split(separator: " ").last.flatMap { Int($0) }
    #else
      return nil
    #endif
  }
}

// MARK: - The measured store

extension WeekSuite {
  /// A store whose background sweeps are triggered by a simulated clock.
  private struct Bench {
    let directory: URL
    let clock: TickingClock
    let engine: LevelDBEngine
    let store: Store
    let cache: Cache<UUID, Data>
    let sweep: () -> Void

    init(at directory: URL, saves savesADay: Int) throws {
      self.directory = directory
      clock = TickingClock(ticksADay: savesADay)
      let fire = Mutex<@Sendable () -> Void>({})
      var options = Store.Options()
      engine = try LevelDBEngine(
        at: directory.path(percentEncoded: false), options: options.engineOptions)
      options.clock = clock
      options.sweepInterval = .seconds(sweepSeconds)
      // Sweeps run on the thread that saves, so that their cost is included in the time.
      options.sweepTrigger = { _, sweep in
        fire.withLock { $0 = sweep }
        return {}
      }
      store = try Store(engine: engine, options: options, origin: .disk)
      cache = try store.cache(
        "items", of: Data.self, keyedBy: UUID.self, lifetime: .seconds(lifetime), coder: .bytes)
      let sweep = fire.withLock { $0 }
      self.sweep = { sweep() }
    }

    /// Counts the cache's rows in a key space; `body` receives each.
    func countRows(
      in space: KeySpace, _ body: (_ key: RawSpan, _ value: RawSpan) -> Void = { _, _ in }
    ) throws -> Int {
      var count = 0
      let cursor = try engine.cursor(over: EngineRange(prefix: space.prefix(ofCache: 1)))
      while try cursor.next() {
        cursor.withEntry(body)
        count += 1
      }
      return count
    }

    func close() throws { try store.close() }
  }

  /// A clock that advances by the same part of a day at each tick.
  private final class TickingClock: WallClock {
    private let ticks = Atomic(0)
    private let seconds: Double

    init(ticksADay: Int) { seconds = 86_400 / Double(ticksADay) }

    func now() -> Date { date(of: ticks.load(ordering: .relaxed)) }
    func uptime() -> Duration { .seconds(Double(ticks.load(ordering: .relaxed)) * seconds) }
    func date(of tick: Int) -> Date {
      Date(timeIntervalSinceReferenceDate: 788_918_400 + Double(tick) * seconds)
    }

    /// Advances, and returns whether a sweep is due.
    func tick() -> Bool {
      let (old, new) = ticks.add(1, ordering: .relaxed)
      return (Double(old) * seconds / sweepSeconds).rounded(.down)
        < (Double(new) * seconds / sweepSeconds).rounded(.down)
    }
  }
}

extension UUID {
  /// A key whose position among the others is independent of its number.
  fileprivate init(number: Int) {
    var random = WorkloadRandom(seed: UInt64(number))
    let bits = (random.next(), UInt64(number))
    self = withUnsafeBytes(of: bits) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }

  fileprivate var number: Int {
    withUnsafeBytes(of: uuid) { Int($0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)) }
  }
}
