import LarderTestSupport
import LarderTesting
import SimulatedDisk

@testable import Larder

/// A small closed store with every kind of file, and the states that it was in.
struct DamageSpecimen: Sendable {
  typealias State = [String: [UInt8]]
  typealias Opened = (store: Store, cache: Cache<String, [UInt8]>)

  enum Shape: CaseIterable, Sendable {
    /// As a program leaves it: tables on two levels, one log, and copies set aside earlier.
    case closed
    /// The same after a compaction: the last edit in the `MANIFEST` is about tables only.
    case compacted
    /// As a kill leaves it just after LevelDB started a new log: the older one is still needed.
    case twoLogs
    /// As a second power loss leaves it during the recovery from a first one.
    case halfRecovered
  }

  let shape: Shape
  let disk: SimulatedDisk
  /// The state that the tables hold, and then the state after each commit in a log.
  let states: [State]
  /// The index of the state that the undamaged store is in.
  let current: Int
  /// Where the records of each log end, by its path, and 0.
  let edges: [String: Set<Int>]
  /// Where the last intact record of each log begins.
  let lastRecords: [String: Int]

  static let directory = "/store"
  static let cacheName = "notes"

  init(_ shape: Shape) throws {
    var writer = try SpecimenWriter()
    try writer.fill(compacted: shape == .compacted)
    var disk = writer.image()
    if shape == .twoLogs || shape == .halfRecovered { try Self.splitLog(on: disk) }
    let edges = Self.edges(of: Self.logs(on: disk), on: disk)
    if shape == .halfRecovered { disk = try Self.interruptedRecovery(on: disk) }
    // Every opening empties this file in the end, whatever a killed owner left in it.
    disk.setBytes([], of: "\(Self.directory)/\(StoreMarker.guardFileName)")
    self.shape = shape
    self.disk = disk
    self.edges = edges
    lastRecords = Self.lastRecords(of: Self.logs(on: disk), on: disk)
    states = writer.states
    current =
      shape == .halfRecovered
      ? Self.commits(in: disk.bytes(of: Self.logs(on: disk)[0]) ?? []) : states.count - 1
  }

  static func open(_ disk: SimulatedDisk) throws -> Opened {
    var settings = LevelDBOptions()
    settings.files = SimulatedFiles(disk)
    settings.writeBufferBytes = 64 << 10
    settings.blockBytes = 1 << 10
    let engine = try LevelDBEngine(at: directory, options: settings)
    var options = Store.Options()
    options.clock = ManualClock()
    let store = try Store(
      engine: engine, options: options, origin: .disk,
      recovery: engine.recovery.map(RecoveryReport.init))
    let cache = try store.cache(cacheName, of: [UInt8].self, coder: .bytes)
    return (store, cache)
  }

  // MARK: - Logs

  static func logs(on disk: SimulatedDisk) -> [String] {
    disk.names.filter { $0.hasSuffix(".log") && !$0.contains(Recovery.asideName) }
  }

  private static func edges(
    of logs: [String], on disk: SimulatedDisk
  ) -> [String: Set<Int>] {
    var edges: [String: Set<Int>] = [:]
    for log in logs {
      var scan = LogScan(disk.bytes(of: log) ?? [], of: .batches(minimumSequence: 0))
      var places: Set = [0]
      while scan.next() != nil { places.insert(scan.validBytes) }
      edges[log] = places
    }
    return edges
  }

  private static func lastRecords(
    of logs: [String], on disk: SimulatedDisk
  ) -> [String: Int] {
    var places: [String: Int] = [:]
    for log in logs {
      var scan = LogScan(disk.bytes(of: log) ?? [], of: .batches(minimumSequence: 0))
      while let record = scan.next() { places[log] = record.start }
    }
    return places
  }

  /// The number of intact records that change something.
  private static func commits(in log: [UInt8]) -> Int {
    var scan = LogScan(log, of: .batches(minimumSequence: 0))
    var count = 0
    while true {
      let before = scan.nextSequence
      guard scan.next() != nil else { return count }
      if scan.nextSequence != before ?? scan.firstSequence { count += 1 }
    }
  }

  /// Moves the second half of the log's records to a new log, as if that had been the next one.
  private static func splitLog(on disk: SimulatedDisk) throws {
    let log = logs(on: disk)[0]
    let bytes = disk.bytes(of: log) ?? []
    var scan = LogScan(bytes, of: .batches(minimumSequence: 0))
    var places: [Int] = []
    while let record = scan.next() { places.append(record.start) }
    let middle = places[places.count / 2]
    let last = disk.names.compactMap { path in
      UInt64(path.dropFirst(directory.count + 1).prefix { $0.isNumber })
    }.max()
    let next = "\(directory)/\(LogSurvey.name(of: (last ?? 0) + 1))"
    disk.setBytes(Array(bytes[..<middle]), of: log)
    disk.setBytes(Array(bytes[middle...]), of: next)
  }

  /// The disk when recovery has cut the newer log, but not the older one, whose end is torn.
  private static func interruptedRecovery(on disk: SimulatedDisk) throws -> SimulatedDisk {
    let logs = logs(on: disk)
    disk.edit(logs[0]) { $0.removeLast(3) }
    let torn = disk.bytes(of: logs[0])
    let recovering = disk.copy()
    try open(recovering).store.close()
    let replay = recovering.replay()
    while replay.step() != nil {
      let image = replay.image(.everything)
      if image.bytes(of: logs[1]) == [], image.bytes(of: logs[0]) == torn { return image }
    }
    throw StoreError.corrupt("the newer log is not cut before the older one")
  }
}

/// Makes the store that all shapes come from.
private struct SpecimenWriter {
  let disk = SimulatedDisk()
  private(set) var states: [DamageSpecimen.State] = []
  private var state: DamageSpecimen.State = [:]
  private var opened: DamageSpecimen.Opened
  private var random = SplitMix64(seed: 7)
  /// A larger store has more blocks in its tables, and longer records in its logs.
  private let size = isProof ? 3 : 1

  init() throws {
    opened = try DamageSpecimen.open(disk)
  }

  /// The disk as a kill at this moment would leave it.
  func image() -> SimulatedDisk {
    let replay = disk.replay()
    while replay.step() != nil {}
    return replay.image(.everything)
  }

  mutating func fill(compacted: Bool) throws {
    let keys = (10..<(10 + 10 * size)).map { "key\($0)" }
    for key in keys { try save(key) }
    // An earlier power loss left its copies.
    try reopen { disk in
      let log = DamageSpecimen.logs(on: disk)[0]
      disk.edit(log) { $0 += [1, 2, 3] }
    }
    try engine.compact(EngineRange())
    // These tables overlay the first one, with newer values and deletions.
    for key in keys[1...] { try save(key) }
    try save("new")
    try remove(keys[8])
    try reopen { _ in }
    try save(keys[2])
    try engine.compact(compacted ? EngineRange() : EngineRange(from: [0xFF]))
    // From here on everything is in the log.
    states = [state]
    try save(keys[0])
    try save("newer")
    try remove(keys[3])
    try opened.store.write { [value = newValue(), other = newValue()] batch in
      batch.save(value, for: "left", in: opened.cache)
      batch.save(other, for: "right", in: opened.cache)
      (state["left"], state["right"]) = (value, other)
    }
    states.append(state)
    for key in keys.prefix(2 * size) { try save(key) }
    try opened.store.close()
  }

  private var engine: any StorageEngine { opened.store.context.engine }

  private mutating func reopen(_ change: (SimulatedDisk) -> Void) throws {
    try opened.store.close()
    change(disk)
    opened = try DamageSpecimen.open(disk)
  }

  private mutating func save(_ key: String) throws {
    let value = newValue()
    try opened.cache.save(value, for: key)
    state[key] = value
    states.append(state)
  }

  private mutating func remove(_ key: String) throws {
    try opened.cache.remove(key)
    state[key] = nil
    states.append(state)
  }

  /// Noise, which does not compress.
  private mutating func newValue() -> [UInt8] { random.bytes(100 * size) }
}
