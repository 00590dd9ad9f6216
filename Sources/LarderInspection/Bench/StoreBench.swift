import Foundation
import Larder
import LarderBytes
import LarderEngine

/// What was measured of a cache.
struct CacheTimes {
  let cache: String
  let coders: [String]
  let records: Int
  /// With keys and headers, before compression.
  let bytes: Int
  /// How many of the records were read.
  let sample: Int
  /// Reads with nothing in LevelDB's block cache, by Larder and by LevelDB; nil without records.
  let cold: Comparison?
  /// Reads of few records again and again.
  let hot: Comparison?
  /// Nanoseconds for one payload; nil where none is Larder's binary coder's or JSON.
  let decode: Double?
  let encode: Double?
}

extension Inspection {
  /// Measures reading the store's own records from the snapshot, and their payloads' coding, and
  /// writes a row for each cache.
  ///
  /// - Parameters:
  ///   - settings: How many rounds.
  ///   - style: How the report is written; not as `csv`.
  ///   - output: Where to.
  /// - Returns: That it was fine, or that something is damaged; what could be read was measured.
  /// - Throws: An ``InspectionError`` with the status `usage` for a form that there is not, `io`,
  ///   also for a wrong result. The inspection cannot be used any more.
  package func bench(
    _ settings: BenchSettings, style: Style, to output: inout some TextOutputStream
  ) throws(InspectionError) -> Outcome {
    try style.expectNoCSV()
    let (samples, outcome) = try samples()
    let times: [CacheTimes]
    do {
      // Both sides open the snapshot in turns, for which it must not be open.
      try engine.close()
      times = try samples.values.sorted { $0.order < $1.order }.map { sample in
        try StoreBench(directory: snapshot.path, rounds: settings.rounds, sample).run()
      }
    } catch {
      throw InspectionError(.io, inUsersWords("\(error)"))
    }
    write(times, settings, style: style, to: &output)
    return outcome
  }

  /// Some records of each cache, by a seed: as good as any, and the same each time.
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
        StoreBench.Place(
          key: KeySpace.records.prefix(ofCache: id) + record.key, storedBytes: record.storedBytes,
          coder: header.coder),
        &random)
      return true
    }
    return (samples, damage.isEmpty ? outcome : .damaged)
  }
}

/// Reads a sample of a cache's records from a directory that nobody else has open.
struct StoreBench {
  /// Where a record is, and what is known of it.
  struct Place {
    let key: [UInt8]
    let storedBytes: Int
    let coder: UInt8
  }

  /// Records drawn from all of a cache, each as likely.
  struct Sample {
    static let limit = 2000

    let cache: String
    /// The cache's place among all.
    let order: Int
    private(set) var places: [Place] = []
    private(set) var coders: Set<UInt8> = []
    private(set) var records = 0
    private(set) var bytes = 0

    init(cache: String, order: Int) { (self.cache, self.order) = (cache, order) }

    mutating func add(_ place: Place, _ random: inout WorkloadRandom) {
      records += 1
      bytes += place.key.count + place.storedBytes
      coders.insert(place.coder)
      if places.count < Self.limit { return places.append(place) }
      let drawn = Int.random(in: 0..<records, using: &random)
      if drawn < places.count { places[drawn] = place }
    }
  }

  /// What LevelDB's block cache holds with certainty: few records, of few bytes.
  private static let hot = (records: 64, bytes: 1 << 20)
  private static let hotReads = 2000
  /// How many bytes of payloads are held and coded.
  private static let codedBytes = 8 << 20

  private let directory: URL
  private let rounds: Int
  private let sample: Sample
  private let places: [Place]

  /// - Parameters:
  ///   - directory: A store's directory, its path without links, that nobody has open.
  ///   - rounds: How many rounds of A B B A.
  ///   - sample: Which records to read; they must all be there.
  init(directory: String, rounds: Int, _ sample: Sample) {
    self.directory = URL(filePath: directory, directoryHint: .isDirectory)
    (self.rounds, self.sample) = (rounds, sample)
    var random = WorkloadRandom(seed: 2)
    places = sample.places.shuffled(using: &random)
  }

  func run() throws -> CacheTimes {
    let payloads = try expectSame()
    let coding = try timeCoding(payloads)
    return CacheTimes(
      cache: sample.cache, coders: sample.coders.sorted().map(coderName), records: sample.records,
      bytes: sample.bytes, sample: places.count, cold: try reading(places, passes: nil),
      hot: try reading(hotPlaces, passes: max(1, Self.hotReads / hotPlaces.count)),
      decode: coding?.decode, encode: coding?.encode)
  }

  /// The first ones that stay in LevelDB's block cache; one at least.
  private var hotPlaces: [Place] {
    var bytes = 0
    let few = places.prefix(Self.hot.records).prefix { place in
      bytes += place.storedBytes
      return bytes <= Self.hot.bytes
    }
    return few.isEmpty ? Array(places.prefix(1)) : Array(few)
  }

  // MARK: - Reading

  private func openEngine() throws -> LevelDBEngine {
    var options = LevelDBOptions()
    options.createIfMissing = false
    options.readOnlyCause = "kvinspect only reads"
    return try LevelDBEngine(at: directory.path(percentEncoded: false), options: options)
  }

  /// Reads once behind an opening, or so often behind a read that is not timed.
  private func reading(_ places: [Place], passes: Int?) throws -> Comparison {
    let reads = places.count * (passes ?? 1)
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
        let time = try timing { try read(places, from: engine) }
        try engine.close()
        return time
      },
      b: {
        let side = try LevelDBSide(at: directory)
        defer { side.close() }
        return try timing { try read(places, from: side) }
      })
    return try contest.measure(rounds: rounds)
  }

  /// Reads as a cache does, up to a payload of its own: how many records were whole.
  private func read(_ places: [Place], from engine: LevelDBEngine) throws -> Int {
    var buffer = ValueBuffer()
    var right = 0
    for place in places where try engine.get(place.key.span.bytes, into: &buffer) {
      let payload = try buffer.withBytes { bytes in
        let record = try Record(bytes, under: place.key.span.bytes)
        return bytes.extracting(record.payload).withUnsafeBytes { Data($0) }
      }
      if payload.count < place.storedBytes { right += 1 }
    }
    return right
  }

  private func read(_ places: [Place], from side: LevelDBSide) throws -> Int {
    var right = 0
    for place in places {
      let count = try side.get(place.key.span.bytes) { $0.byteCount }
      if count == place.storedBytes { right += 1 }
    }
    return right
  }

  /// Reads all of the sample on both sides, which must find the same, and returns the first
  /// payloads.
  private func expectSame() throws -> [(bytes: [UInt8], coder: UInt8)] {
    let engine = try openEngine()
    let found = try places.map { try engine.get($0.key.span.bytes) }
    try engine.close()
    let side = try LevelDBSide(at: directory)
    defer { side.close() }
    var payloads: [(bytes: [UInt8], coder: UInt8)] = []
    var held = 0
    for (place, bytes) in zip(places, found) {
      let other = try side.get(place.key.span.bytes) { [UInt8]($0) }
      guard let bytes, bytes == other else {
        throw WrongResults(description: "a record of cache \(sample.cache) is read in two ways")
      }
      held += bytes.count
      guard held <= Self.codedBytes || payloads.isEmpty else { continue }
      let record = try Record(bytes.span.bytes, under: place.key.span.bytes)
      payloads.append((Array(bytes[record.payload]), place.coder))
    }
    return payloads
  }

  // MARK: - Coding

  /// Decodes and encodes payloads as values without types; nil when no coder can be read so.
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

  /// Nanoseconds for one of so many: the median of as many runs as a side has in a contest.
  private func time(_ count: Int, _ work: () throws -> Int) throws -> Double {
    _ = try timed(expecting: count, work)
    return median(
      try (0..<(2 * rounds)).map { _ in
        try timed(expecting: count, work) / .nanoseconds(count)
      })
  }
}
