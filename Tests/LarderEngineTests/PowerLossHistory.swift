import Larder
import SimulatedDisk

/// A hash of each value in a store, without the bytes that the commit put into the value.
typealias StoreState = [[UInt8]: Int]

/// Runs a script, and records the store's state for each position in the disk's journal.
///
/// LevelDB's background work continues between operations, in steps that the seed determines. So
/// the same script and seed make the same journal, unless a thread syncs segments.
struct PowerLossHistory {
  let disk: SimulatedDisk
  private(set) var timeline = Timeline<StoreState>([:])
  /// The number of synced writes that ended while an older log was not yet in a table.
  private(set) var syncsWithOlderLog = 0

  /// The number of segments that collections have deleted.
  private(set) var deletedSegments = 0

  private var engine: LevelDBEngine
  private var state: StoreState = [:]
  private var lastMark: UInt64 = 0
  private var background: HeldBackground
  private var isFillingLog = false
  /// Whether payloads stay in LevelDB: rows of pointers alone would take long to fill a log.
  private var isWholeRow = false
  private let threshold: Int?
  private let syncsInBackground: Bool

  /// Payloads from `threshold` bytes on are separated; none if it is nil.
  ///
  /// In half of the histories a thread syncs their segments.
  init(of script: PowerLossScript, seed: UInt64, threshold: Int? = nil) throws {
    self.threshold = threshold
    syncsInBackground = seed.isMultiple(of: 2)
    let disk = SimulatedDisk()
    self.disk = disk
    background = HeldBackground(of: disk, seed: seed)
    defer { disk.releaseBackground() }
    engine = try PowerLossHistory.open(disk, threshold, syncsInBackground)
    for operation in script.operations { try run(operation) }
    background.finish()
    try engine.close()
  }

  static func open(
    _ disk: SimulatedDisk, _ threshold: Int? = nil, _ syncsInBackground: Bool = false
  ) throws -> LevelDBEngine {
    var options = LevelDBOptions()
    options.files = SimulatedFiles(disk)
    options.writeBufferBytes = HeldBackground.writeBufferBytes
    options.maxFileBytes = 1 << 20
    options.separation = .test(from: threshold)
    options.collectsInBackground = false
    options.syncsInBackground = syncsInBackground
    // Some segments of a script are full.
    options.segmentBytes = 64 << 10
    return try LevelDBEngine(at: "/store", options: options)
  }

  /// Opens the store that a crash has left, and reads all of its entries.
  static func reopen(
    _ image: SimulatedDisk, threshold: Int?
  ) throws -> PowerLossSearch<StoreState>.Opened {
    image.holdBackground()
    defer { image.releaseBackground() }
    let engine = try open(image, threshold)
    image.runBackground()
    var state: StoreState = [:]
    for entry in try engine.entries() {
      if entry.value.count >= Stamp.test.end, !isIntact(entry.value, key: entry.key) {
        throw StoreError.corrupt("the value of \(String(decoding: entry.key, as: UTF8.self))")
      }
      state[entry.key] = fingerprint(of: entry.value)
    }
    try engine.close()
    return PowerLossSearch.Opened(state: state, hasSetAside: engine.recovery != nil)
  }

  // MARK: - Operations

  private mutating func run(_ operation: ScriptOperation) throws {
    background.willWrite(operation.byteCount)
    let start = disk.journalCount
    var isDurable = false
    switch operation {
    case .put(let key, let bytes, let synced):
      try write([(key, bytes)], synced: synced)
      isDurable = synced
    case .batch(let rows): try write(rows, synced: false)
    case .restamp(let key): try restamp(key)
    case .remove(let key): try remove(key, if: nil)
    case .removeIf(let key, true): try remove(key, if: .present)
    case .removeIf(let key, false): try remove(key, if: .unchanged(since: 1 << 60, in: .test))
    case .flush:
      try engine.flush()
      isDurable = true
    case .reopen:
      background.finish()
      try engine.close()
      engine = try PowerLossHistory.open(disk, threshold, syncsInBackground)
    case .compact: try background.letRun { try engine.compact(EngineRange()) }
    case .collect:
      let before = segmentCount
      try background.letRun { try engine.collectSegments() }
      deletedSegments += max(0, before - segmentCount)
    case .fillLog: return try fillLog()
    }
    if isDurable, logNames.count > 1 { syncsWithOlderLog += 1 }
    timeline.add(
      state, started: start, acknowledged: disk.journalCount, isDurable: isDurable)
    // Not while a log is filled, so that the next operation can meet a table not yet written.
    if !isFillingLog { background.advance() }
  }

  private mutating func fillLog() throws {
    let last = logNames.max() ?? ""
    isFillingLog = true
    defer { isFillingLog = false }
    for key in 8..<60 where logNames.max() ?? "" <= last {
      isWholeRow = threshold != nil && key % 4 > 0
      defer { isWholeRow = false }
      try run(.put(key: key % 16, bytes: 9000 + key, synced: false))
    }
  }

  private var segmentCount: Int { disk.names.count { $0.hasSuffix(".segment") } }

  private var logNames: [String] { disk.names.filter { $0.hasSuffix(".log") } }

  private mutating func write(_ rows: [(key: Int, bytes: Int)], synced: Bool) throws {
    var batch = WriteBatch()
    for row in rows {
      let key = PowerLossHistory.key(row.key)
      let value = newValue(row.bytes)
      if value.count > Stamp.test.end, !isWholeRow {
        batch.putSeparable(key, value)
      } else {
        batch.put(key.span.bytes, stamp: value.count >= Stamp.test.end ? .test : nil) {
          $0.append(value)
        }
      }
      state[key] = PowerLossHistory.fingerprint(of: value)
    }
    try engine.write(&batch, synced: synced)
  }

  private mutating func restamp(_ key: Int) throws {
    let key = PowerLossHistory.key(key)
    guard var value = try engine.value(key), let since = sequence(of: value) else { return }
    background.willWrite(value.count)
    value.replaceSubrange(0..<20, with: newValue(20))
    value.replaceSubrange(
      Stamp.test.offset..<Stamp.test.end, with: [UInt8](repeating: 0, count: 12))
    var batch = WriteBatch()
    let same = batch.require(key.span.bytes, .unchanged(since: since, in: .test))
    batch.putSeparable(key, value, if: same, keepsPayload: true)
    try engine.write(&batch, synced: false)
    state[key] = PowerLossHistory.fingerprint(of: value)
  }

  private mutating func remove(_ key: Int, if condition: WriteBatch.Condition?) throws {
    let key = PowerLossHistory.key(key)
    var batch = WriteBatch()
    let requirement = condition.map { batch.require(key.span.bytes, $0) }
    batch.remove(key, if: requirement)
    try engine.write(&batch, synced: false)
    if condition == nil || condition == .present { state[key] = nil }
  }

  private static func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

  /// A unique value that compresses well.
  private mutating func newValue(_ count: Int) -> [UInt8] {
    lastMark += 1
    var value = withUnsafeBytes(of: lastMark.littleEndian) { [UInt8]($0) }
    value += Array(repeating: UInt8(truncatingIfNeeded: lastMark), count: count - value.count)
    guard value.count >= Stamp.test.end else { return value }
    value.replaceSubrange(
      20..<Stamp.test.end, with: Array(repeating: 0, count: Stamp.test.end - 20))
    return value
  }

  // MARK: - States

  /// A hash of a value without its stamp.
  static func fingerprint(of value: [UInt8]) -> Int {
    var hasher = Hasher()
    hasher.combine(value.count)
    value.withUnsafeBytes { value in
      if value.count < Stamp.test.end { return hasher.combine(bytes: value) }
      hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: value[..<Stamp.test.offset]))
      hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: value[Stamp.test.end...]))
    }
    return hasher.finalize()
  }
}
