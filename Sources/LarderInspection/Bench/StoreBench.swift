import Foundation
import Larder

/// The measured times of a cache.
struct CacheTimes {
  let cache: String
  let coders: [String]
  let records: Int
  /// Includes keys and headers, before compression.
  let bytes: Int
  /// The number of records that were read.
  let sample: Int
  /// Larder and LevelDB alone, with an empty block cache; nil if there are no records.
  let cold: Comparison?
  /// Larder and LevelDB alone, reading a few records repeatedly.
  let hot: Comparison?
  /// Nanoseconds per payload; nil if no payload is JSON or from Larder's binary coder.
  let decode: Double?
  let encode: Double?
}

extension Inspection {
  /// Measures reading and coding the store's records, and reports a row for each cache.
  ///
  /// The inspection cannot be used afterwards.
  ///
  /// - Parameters:
  ///   - settings: The number of rounds.
  ///   - style: The style of the report; `csv` is not supported.
  /// - Returns: A report. Its outcome is `damaged` if unreadable records were left out.
  /// - Throws: An ``InspectionError`` with the status `usage` for the format `csv`, `io` if a read
  ///   fails or a result is wrong.
  package func bench(
    _ settings: BenchSettings, style: Style
  ) throws(InspectionError) -> Report {
    try style.expectNoCSV("bench does")
    let (samples, outcome) = try samples()
    let times: [CacheTimes]
    do {
      // Both sides open the snapshot alternately, so it must be closed here.
      try engine.close()
      times = try samples.values.sorted { $0.order < $1.order }.map { sample in
        try StoreBench(directory: snapshot.path, rounds: settings.rounds, sample).run()
      }
    } catch {
      throw InspectionError(.io, withUserPath("\(error)"))
    }
    return report(of: times, settings, outcome, style: style)
  }

  /// A random sample of each cache's records, with a fixed seed.
  private func samples() throws(InspectionError) -> ([UInt64: StoreBench.Sample], Outcome) {
    var samples: [UInt64: StoreBench.Sample] = [:]
    var outcome = Outcome.fine
    var random = WorkloadRandom(seed: 1)
    try forEachItem(in: Selection(), keys: .auto) { item throws(InspectionError) in
      guard case .record(let record) = item, case .success(let header) = record.content else {
        outcome = .damaged
        return true
      }
      let id = record.cache.id
      let order = samples.count
      samples[id, default: StoreBench.Sample(cache: record.cache.label, order: order)].add(
        StoreBench.SampledRecord(
          key: KeySpace.records.prefix(ofCache: id) + record.key, storedBytes: record.storedBytes,
          coder: header.coder),
        &random)
      return true
    }
    return (samples, damage.isEmpty ? outcome : .damaged)
  }
}

/// Measures reading a sample of a cache's records from a directory that is not open elsewhere.
struct StoreBench {
  /// The key of a record in the sample, and what the scan found there.
  struct SampledRecord {
    let key: [UInt8]
    let storedBytes: Int
    let coder: UInt8
  }

  /// A uniform random sample of a cache's records.
  struct Sample {
    static let limit = 2000

    let cache: String
    /// The position of the cache in the report.
    let order: Int
    private(set) var sampled: [SampledRecord] = []
    private(set) var coders: Set<UInt8> = []
    private(set) var records = 0
    private(set) var bytes = 0

    init(cache: String, order: Int) { (self.cache, self.order) = (cache, order) }

    mutating func add(_ record: SampledRecord, _ random: inout WorkloadRandom) {
      records += 1
      bytes += record.key.count + record.storedBytes
      coders.insert(record.coder)
      if sampled.count < Self.limit { return sampled.append(record) }
      let drawn = Int.random(in: 0..<records, using: &random)
      if drawn < sampled.count { sampled[drawn] = record }
    }
  }

  /// Limits within which all records fit into LevelDB's block cache.
  private static let hot = (records: 64, bytes: 1 << 20)
  private static let hotReads = 2000
  /// The maximum size of the payloads that are kept in memory and coded.
  private static let codedBytes = 8 << 20

  private let directory: URL
  private let rounds: Int
  private let sample: Sample
  private let records: [SampledRecord]

  /// - Parameters:
  ///   - directory: The path of a store's directory, with links resolved. It must not be open.
  ///   - rounds: The number of rounds of A B B A.
  ///   - sample: The records to read; all of them must exist.
  init(directory: String, rounds: Int, _ sample: Sample) {
    self.directory = URL(filePath: directory, directoryHint: .isDirectory)
    (self.rounds, self.sample) = (rounds, sample)
    var random = WorkloadRandom(seed: 2)
    records = sample.sampled.shuffled(using: &random)
  }

  func run() throws -> CacheTimes {
    let payloads = try expectSame()
    let coding = try timeCoding(payloads)
    return CacheTimes(
      cache: sample.cache, coders: sample.coders.sorted().map(coderName), records: sample.records,
      bytes: sample.bytes, sample: records.count, cold: try reading(records, passes: nil),
      hot: try reading(hotRecords, passes: max(1, Self.hotReads / hotRecords.count)),
      decode: coding?.decode, encode: coding?.encode)
  }

  /// The first records that fit into LevelDB's block cache; at least one.
  private var hotRecords: [SampledRecord] {
    var bytes = 0
    let few = records.prefix(Self.hot.records).prefix { record in
      bytes += record.storedBytes
      return bytes <= Self.hot.bytes
    }
    return few.isEmpty ? Array(records.prefix(1)) : Array(few)
  }

  // MARK: - Reading

  private func openEngine() throws -> LevelDBEngine {
    var options = LevelDBOptions()
    options.createIfMissing = false
    options.readOnlyCause = "kvinspect only reads"
    return try LevelDBEngine(at: directory.path(percentEncoded: false), options: options)
  }

  /// Measures one pass after opening, or `passes` passes after an untimed one.
  private func reading(_ records: [SampledRecord], passes: Int?) throws -> Comparison {
    let reads = records.count * (passes ?? 1)
    func timing(_ pass: () throws -> Int) throws -> Duration {
      if passes != nil { _ = try pass() }
      return try timed(expecting: reads) {
        try (0..<(passes ?? 1)).reduce(0) { right, _ in try right + pass() }
      }
    }
    let contest = Contest(
      name: sample.cache, operations: reads,
      a: {
        let engine = try openEngine()
        let time = try timing { try read(records, from: engine) }
        try engine.close()
        return time
      },
      b: {
        let side = try LevelDBSide(at: directory)
        defer { side.close() }
        return try timing { try read(records, from: side) }
      })
    return try contest.measure(rounds: rounds)
  }

  /// Reads records like a cache, up to copying the payload; returns the number of intact ones.
  private func read(_ records: [SampledRecord], from engine: LevelDBEngine) throws -> Int {
    var buffer = ValueBuffer()
    var right = 0
    for sampled in records where try engine.get(sampled.key.span.bytes, into: &buffer) {
      let payload = try buffer.withBytes { bytes in
        let record = try Record(bytes, under: sampled.key.span.bytes)
        return bytes.extracting(record.payload).withUnsafeBytes { Data($0) }
      }
      if payload.count < sampled.storedBytes { right += 1 }
    }
    return right
  }

  private func read(_ records: [SampledRecord], from side: LevelDBSide) throws -> Int {
    var right = 0
    for sampled in records {
      let count = try side.get(sampled.key.span.bytes) { $0.byteCount }
      if count == sampled.storedBytes { right += 1 }
    }
    return right
  }

  /// Checks that both sides read the same records, and returns the first payloads.
  private func expectSame() throws -> [(bytes: [UInt8], coder: UInt8)] {
    let engine = try openEngine()
    let found = try records.map { try engine.get($0.key.span.bytes) }
    try engine.close()
    let side = try LevelDBSide(at: directory)
    defer { side.close() }
    var payloads: [(bytes: [UInt8], coder: UInt8)] = []
    var held = 0
    for (sampled, bytes) in zip(records, found) {
      let other = try side.get(sampled.key.span.bytes) { [UInt8]($0) }
      guard let bytes, bytes == other else {
        throw WrongResults(
          description: "Larder and LevelDB read different bytes in cache \(sample.cache)")
      }
      held += bytes.count
      guard held <= Self.codedBytes || payloads.isEmpty else { continue }
      let record = try Record(bytes.span.bytes, under: sampled.key.span.bytes)
      // Without the key there is nothing to code.
      if record.isSealed { continue }
      var payload = ByteBuffer()
      guard record.appendPayload(in: bytes.span.bytes, to: &payload) else {
        throw WrongResults(
          description: "a payload of cache \(sample.cache) cannot be decompressed")
      }
      payloads.append((Array(payload), sampled.coder))
    }
    return payloads
  }

  // MARK: - Coding

  /// Measures coding the payloads as generic values; nil if no coder supports that.
  private func timeCoding(
    _ all: [(bytes: [UInt8], coder: UInt8)]
  ) throws -> (decode: Double, encode: Double)? {
    let payloads = all.compactMap { payload in
      UntypedPayload(payload.bytes, coder: payload.coder).map { (payload, $0) }
    }
    guard !payloads.isEmpty else { return nil }
    let decode = try time(payloads.count) {
      payloads.reduce(0) { right, payload in
        UntypedPayload(payload.0.bytes, coder: payload.0.coder) == nil ? right : right + 1
      }
    }
    let encode = try time(payloads.count) {
      var buffer = ByteBuffer()
      var right = 0
      for payload in payloads where try payload.1.encode(into: &buffer) > 0 { right += 1 }
      return right
    }
    return (decode, encode)
  }

  /// Nanoseconds per operation: the median of as many runs as one side has in a contest.
  private func time(_ count: Int, _ work: () throws -> Int) throws -> Double {
    _ = try timed(expecting: count, work)
    return median(
      try (0..<(2 * rounds)).map { _ in
        try timed(expecting: count, work) / .nanoseconds(count)
      })
  }
}
