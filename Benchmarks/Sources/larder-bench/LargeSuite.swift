import Foundation
import Larder

/// Values from 1 KB to 1 MB at random keys, in stores far larger than their write buffers.
///
/// Every store is filled, overwritten twice, and read. The second round of overwriting counts:
/// by then each store compacts or collects as much as it always will. Each has an index by date.
struct LargeSuite {
  /// What one store did with values of one size.
  struct Row {
    let bytes: Int
    let store: String
    /// Nanoseconds for a value: a first save, an overwrite, the slowest of a hundred overwrites, an
    /// overwrite with everything that it causes, until all of it is on the device, and a read.
    var write = 0.0
    var overwrite = 0.0
    var percentile99 = 0.0
    var longest = 0.0
    var settled = 0.0
    var read = 0.0
    /// The bytes given to the device for each byte overwritten; nil if the system does not say.
    var written: Double?
    /// The room that the store takes for each byte of the values, in the end and at its largest.
    var disk = 0.0
    var mostDisk = 0.0
  }

  private static let kinds: [PeerKind] = [
    PeerKind(name: "Larder") { try LarderPeer(at: $0, segments: true) },
    PeerKind(name: "Larder without segments") { try LarderPeer(at: $0, segments: false) },
    .leveldb, .tunedLevelDB, .rocksdb, .blobDB, .sqlite, .lmdb, PeerKind.files.unlimited,
  ]
  private static let variants = 32

  private let scale: BenchScale
  private let workspace: Workspace

  init(_ scale: BenchScale, in workspace: Workspace) {
    (self.scale, self.workspace) = (scale, workspace)
  }

  /// Measures the stores one after another, and prints a row for each.
  func run(only: (String) -> Bool, _ print: (String) -> Void) throws -> [Row] {
    print(Self.heading)
    var rows: [Row] = []
    for bytes in scale.largeSizes {
      let values = values(of: bytes)
      for kind in Self.kinds where only(kind.name) {
        let row = try measure(kind, values)
        print(row.line)
        rows.append(row)
        try workspace.remove("large")
      }
    }
    return rows
  }

  /// Values of one size, which differ in most places; half of each is random.
  private func values(of bytes: Int) -> [Data] {
    let pool = Plan(records: 0, order: [], valueBytes: bytes).pool
    return (0..<Self.variants).map { Data(pool[$0 * 131..<$0 * 131 + bytes]) }
  }

  private func measure(_ kind: PeerKind, _ values: [Data]) throws -> Row {
    let bytes = values[0].count
    let count = max(values.count, (bytes < 20_000 ? 3 : 8) * scale.largeBytes / 8 / bytes)
    let directory = workspace.directory("large")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    var rounds = Rounds(of: try kind.open(directory), values, count, directory)
    var row = Row(bytes: bytes, store: kind.name)

    row.write = try rounds.save()
    _ = try rounds.save()
    try Self.settle()
    let written = bytesWritten()
    let start = ContinuousClock.now
    row.overwrite = try rounds.save()
    let settled = try Self.settle() - start - rounds.sampling
    row.settled = settled / .nanoseconds(1) / Double(count)
    row.written = zip(bytesWritten(), written).map { Double($0 - $1) / Double(count * bytes) }
    row.percentile99 = rounds.times[count * 99 / 100]
    row.longest = rounds.times[count - 1]
    row.read = try rounds.read()
    row.disk = Double(try diskBytes(in: directory)) / Double(count * bytes)
    row.mostDisk = Double(rounds.mostDiskBytes) / Double(count * bytes)
    return row
  }

  /// Waits until this process has nothing to do, and all it has written is on the device.
  ///
  /// Returns the time at which that was so. No store has a call that waits for all its threads.
  @discardableResult private static func settle() throws -> ContinuousClock.Instant {
    while true {
      sync()
      let (start, used, written) = (ContinuousClock.now, processorTime(), bytesWritten())
      Thread.sleep(forTimeInterval: 0.02)
      if processorTime() - used < 0.001, bytesWritten() == written { return start }
    }
  }

  private static func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// The bytes that this process has made the system write to devices; nil if it does not count them.
private func bytesWritten() -> Int? {
  #if os(Linux)
    let lines = try? String(contentsOfFile: "/proc/self/io", encoding: .utf8).split(separator: "\n")
    let line = lines?.first { $0.hasPrefix("write_bytes:") }
    return line?.split(separator: " ").last.flatMap { Int($0) }
  #else
    return nil
  #endif
}

private func zip(_ one: Int?, _ other: Int?) -> (Int, Int)? {
  guard let one, let other else { return nil }
  return (one, other)
}

// MARK: - Saving and reading

/// Rounds of saves, each in another random order, and one of reads.
private struct Rounds {
  /// The number of times that the room on the disk is measured in a round.
  private static let samples = 40

  private let store: any Peer
  private let values: [Data]
  private let count: Int
  private let directory: URL
  private var number = 0

  /// The nanoseconds of each save of the last round, in order of size.
  private(set) var times: [Double] = []
  /// The time that measuring the disk took in the last round.
  private(set) var sampling = Duration.zero
  private(set) var mostDiskBytes = 0

  init(of store: any Peer, _ values: [Data], _ count: Int, _ directory: URL) {
    (self.store, self.values, self.count, self.directory) = (store, values, count, directory)
  }

  /// Saves all keys; returns the nanoseconds for one of them.
  mutating func save() throws -> Double {
    number += 1
    let order = Plan.shuffled(count, seed: Scale.seed + UInt64(number)).map { Int($0) }
    times = []
    times.reserveCapacity(count)
    (sampling, mostDiskBytes) = (.zero, 0)
    for (step, key) in order.enumerated() {
      if step.isMultiple(of: max(1, count / Self.samples)) {
        sampling += try ContinuousClock().measure {
          mostDiskBytes = max(mostDiskBytes, try diskBytes(in: directory))
        }
      }
      let start = ContinuousClock.now
      try store.put(key, value(of: key).span.bytes, expires: PeerSuite.now + PeerSuite.lifetime)
      times.append((ContinuousClock.now - start) / .nanoseconds(1))
    }
    let sum = times.reduce(0, +)
    times.sort()
    return sum / Double(count)
  }

  /// Reads all keys; returns the nanoseconds for one of them.
  func read() throws -> Double {
    let order = Plan.shuffled(count, seed: Scale.seed).map { Int($0) }
    let time = try timed(expecting: count) {
      var right = 0
      for key in order where try store.get(key, { areEqual($0, value(of: key).span.bytes) }) {
        right += 1
      }
      return right
    }
    return time / .nanoseconds(1) / Double(count)
  }

  private func value(of key: Int) -> Data { values[(key + 7 * number) % values.count] }
}

/// Larder, used like the other stores.
private final class LarderPeer: Peer {
  private let store: Store
  private let cache: Cache<Int, Data>

  init(at directory: URL, segments: Bool) throws {
    var options = Store.Options.withoutMemory
    if !segments { options.advanced.separatedValueBytes = nil }
    store = try Store(at: directory, options: options)
    cache = try store.cache(
      "values", of: Data.self, keyedBy: Int.self, lifetime: .days(7), coder: .bytes)
  }

  func put(_ key: Int, _ value: RawSpan, expires: Double?) throws {
    try withData(value) { try cache.save($0, for: key) }
  }

  func batch(_ body: () throws -> Void) throws { try body() }

  func get(_ key: Int, _ body: (RawSpan) throws -> Bool) throws -> Bool {
    guard let value = try cache.value(for: key) else { return false }
    return try body(value.span.bytes)
  }

  func sweep(at now: Double) throws -> Int { try store.sweep() }
}

// MARK: - Output

extension LargeSuite {
  private static let heading = """
    | value | store | save \u{B5}s | overwrite \u{B5}s | 99 % \u{B5}s \
    | longest ms | all work \u{B5}s | read \u{B5}s \
    | written \u{F7} saved | disk \u{F7} live | largest |
    |---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
    """

  /// A plot of the times over the size of a value.
  static func plot(_ rows: [Row], on machine: Machine) -> String {
    var (stores, sizes) = ([String](), [Int]())
    for row in rows {
      if !stores.contains(row.store) { stores.append(row.store) }
      if !sizes.contains(row.bytes) { sizes.append(row.bytes) }
    }
    let ticks = sizes.map { (at: Double($0), label: name(of: $0)) }
    let works: [(String, KeyPath<Row, Double>)] = [
      ("save", \.write), ("overwrite", \.overwrite),
      ("overwrite, all work done and on the device", \.settled), ("read", \.read),
    ]
    let panels = works.map { work, time in
      LinePanel(
        title: work, xTitle: "size of a value", yTitle: "time for one value", xTicks: ticks,
        isYLogarithmic: true, yLabel: Axis.text(nanoseconds:),
        lines: stores.enumerated().map { index, store in
          let rows = rows.filter { $0.store == store }
          return (series: index, points: rows.map { (Double($0.bytes), $0[keyPath: time]) })
        })
    }
    return Chart(
      title: "Values by their size (both axes are logarithmic)",
      source: "\(machine.summary), \(machine.day)", series: stores, panels: panels, columns: 2
    ).svg()
  }

  fileprivate static func name(of bytes: Int) -> String {
    bytes < 1_000_000 ? "\(bytes / 1000) KB" : "\(bytes / 1_000_000) MB"
  }
}

extension LargeSuite.Row {
  fileprivate var line: String {
    func micro(_ time: Double) -> String { decimals(time / 1e3, time < 1e5 ? 1 : 0) }
    let cells = [
      LargeSuite.name(of: bytes), store, micro(write), micro(overwrite), micro(percentile99),
      decimals(longest / 1e6, 1), micro(settled), micro(read),
      written.map { decimals($0, 2) } ?? "-", decimals(disk, 2), decimals(mostDisk, 2),
    ]
    return "| \(cells.joined(separator: " | ")) |"
  }
}
