import LarderTestSupport
import LarderTesting
import SimulatedDisk

@testable import Larder

/// A store of two caches whose large values are in segments, and the states that it was in.
struct SegmentLossSpecimen: Sendable {
  /// The values by the name of the cache and the key.
  typealias State = [String: [UInt8]]

  enum Shape: CaseIterable, Sendable {
    /// As a kill leaves it: one segment, without a seal.
    case killed
    /// As a kill leaves it, with a full segment, too.
    case full
    /// As a program leaves it.
    case closed
    /// As a kill leaves it after another opening, which has written no payload.
    case reopened
  }

  /// Where the log ended after a commit.
  struct Edge: Sendable {
    let log: String
    let byte: Int
  }

  /// The entry whose tag was invalidated.
  static let ended = "images c"

  let shape: Shape
  /// A copy of the disk.
  private(set) var disk: SimulatedDisk
  /// No value, and then the state after each commit.
  private(set) var states: [State] = []
  private(set) var edges: [Edge] = []
  /// The index of the state after the last durable write.
  private(set) var durable = 0
  private var state: State = [:]
  private var random = SplitMix64(seed: 3)

  var current: Int { states.count - 1 }

  /// All keys that were ever saved, by their caches.
  var keys: Set<String> { Set(states.flatMap(\.keys)) }

  /// The segments and the last log.
  var paths: [String] {
    let log = Self.log(on: disk)
    return disk.names.filter { $0.hasSuffix(".segment") || $0 == log }
  }

  static func log(on disk: SimulatedDisk) -> String {
    disk.names.last { $0.hasSuffix(".log") && !$0.contains(Recovery.asideName) } ?? ""
  }

  init(_ shape: Shape) throws {
    self.shape = shape
    disk = SimulatedDisk()
    var opened = try Opened(disk, shape)
    note()
    try writeDurably(opened)
    durable = current
    try writePlainly(opened)
    if shape == .closed || shape == .reopened { try opened.store.close() }
    if shape == .reopened {
      opened = try Opened(disk, shape)
      try opened.images.touch("d")
      note()
      try opened.notes.remove("plain 0")
      state["notes plain 0"] = nil
      note()
      try save("last", in: opened.notes)
    }
    let copy = disk.copy()
    if shape != .closed { try opened.store.close() }
    // Every opening empties this file in the end, whatever a killed owner left in it.
    copy.setBytes([], of: "/store/\(StoreMarker.guardFileName)")
    disk = copy
  }

  private mutating func writeDurably(_ opened: Opened) throws {
    for key in ["a", "b"] { try save(key, in: opened.images) }
    try save("c", in: opened.images, tags: ["ended"])
    try opened.store.flush()
    try opened.images.remove("b")
    state["images b"] = nil
    note()
    try opened.store.invalidate(tag: "ended", durability: .processCrash)
    state[Self.ended] = nil
    note()
    for number in 0..<3 { try save("\(number)", in: opened.notes, durability: .powerLoss) }
    try save("d", in: opened.images, durability: .powerLoss)
  }

  private mutating func writePlainly(_ opened: Opened) throws {
    try save("plain 0", in: opened.notes)
    try save("e", in: opened.images)
    try opened.images.remove("a")
    state["images a"] = nil
    note()
    try save("plain 1", in: opened.notes)
    try save("f", in: opened.images)
    try save("plain 2", in: opened.notes)
  }

  private mutating func save(
    _ key: String, in cache: Cache<String, [UInt8]>, tags: [String] = [],
    durability: Durability? = nil
  ) throws {
    let value = random.bytes(cache.name == "images" ? 800 : 20)
    try cache.save(value, for: key, tags: tags, durability: durability)
    state["\(cache.name) \(key)"] = value
    note()
  }

  private mutating func note() {
    let log = Self.log(on: disk)
    states.append(state)
    edges.append(Edge(log: log, byte: disk.bytes(of: log)?.count ?? 0))
  }

  /// The open store.
  struct Opened {
    let store: Store
    let images: Cache<String, [UInt8]>
    let notes: Cache<String, [UInt8]>

    init(_ disk: SimulatedDisk, _ shape: Shape) throws {
      var options = Store.Options()
      options.clock = ManualClock()
      options.memoryBytes = 0
      options.advanced.separatedValueBytes = 200
      var settings = options.engineOptions
      settings.files = SimulatedFiles(disk)
      settings.writeBufferBytes = 64 << 10
      settings.syncsInBackground = false
      settings.collectsInBackground = false
      settings.segmentBytes = shape == .full ? 4 << 10 : 64 << 10
      let engine = try LevelDBEngine(at: "/store", options: settings)
      store = try Store(
        engine: engine, options: options, origin: .disk,
        recovery: engine.recovery.map(RecoveryReport.init))
      images = try store.cache("images", of: [UInt8].self, coder: .bytes)
      notes = try store.cache("notes", of: [UInt8].self, coder: .bytes)
    }

    /// Reads each key; nil if an entry is damaged.
    func read(_ keys: Set<String>) throws -> (values: State, damaged: Set<String>) {
      var (values, damaged): (State, Set<String>) = ([:], [])
      for name in keys {
        let cache = name.hasPrefix(images.name) ? images : notes
        let key = String(name.dropFirst(cache.name.count + 1))
        do {
          values[name] = try cache.value(for: key)
        } catch StoreError.corrupt(cache.name, key, _) {
          damaged.insert(name)
        }
      }
      return (values, damaged)
    }
  }
}
