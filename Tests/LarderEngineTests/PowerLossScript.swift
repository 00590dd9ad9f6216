import LarderTestSupport

/// One operation of a script on an engine.
enum ScriptOperation: CustomStringConvertible {
  case put(key: Int, bytes: Int, synced: Bool)
  case batch([(key: Int, bytes: Int)])
  /// A put of another value with the same payload, if the key has one.
  case restamp(key: Int)
  case remove(key: Int)
  /// A remove with a condition that holds if the key exists, or with one that never holds.
  case removeIf(key: Int, holds: Bool)
  case flush
  case reopen
  case compact
  /// A collection of the segments.
  case collect
  /// Unsynced puts until LevelDB has started a new log.
  case fillLog

  var description: String {
    switch self {
    case .put(let key, let bytes, let synced): "put\(synced ? "Synced" : "")(\(key), \(bytes))"
    case .batch(let rows):
      "batch(" + rows.map { "\($0.key): \($0.bytes)" }.joined(separator: ", ") + ")"
    case .restamp(let key): "restamp(\(key))"
    case .remove(let key): "remove(\(key))"
    case .removeIf(let key, let holds): "removeIf(\(key), \(holds))"
    case .flush: "flush"
    case .reopen: "reopen"
    case .compact: "compact"
    case .collect: "collect"
    case .fillLog: "fillLog"
    }
  }
}

extension ScriptOperation {
  /// The bytes that the operation writes, as far as they are known before it.
  var byteCount: Int {
    switch self {
    case .put(_, let bytes, _): bytes
    case .batch(let rows): rows.reduce(0) { $0 + $1.bytes }
    default: 0
    }
  }
}

/// A sequence of operations on few keys.
struct PowerLossScript: Sendable {
  let name: String
  let operations: [ScriptOperation]

  /// The older log has unsynced writes that are in no table yet, and the newer has a synced one.
  static let syncedAfterRotation = PowerLossScript(
    name: "a synced write after a rotation, table pending",
    operations: [
      .put(key: 0, bytes: 100, synced: true), .fillLog, .put(key: 1, bytes: 10, synced: true),
      .put(key: 2, bytes: 40_000, synced: false), .fillLog, .flush, .remove(key: 1),
      .put(key: 3, bytes: 500, synced: false),
    ])

  /// Several log rotations with no synced write in between.
  static let rotations = PowerLossScript(
    name: "rotations, nothing synced",
    operations: [
      .fillLog, .fillLog, .compact, .put(key: 2, bytes: 3000, synced: false), .compact,
      .put(key: 1, bytes: 10, synced: true), .reopen, .put(key: 4, bytes: 50, synced: false),
    ])

  /// Payloads are overwritten and collected, and the last writes are lost with the power.
  static let collections = PowerLossScript(
    name: "collections",
    operations: (0..<10).map { .put(key: $0 % 6, bytes: 20_000, synced: false) } + [
      .collect, .put(key: 0, bytes: 3000, synced: true),
      .put(key: 1, bytes: 30_000, synced: false), .put(key: 2, bytes: 40_000, synced: false),
      .put(key: 3, bytes: 10, synced: false), .collect, .remove(key: 4),
      .put(key: 0, bytes: 30_000, synced: false), .reopen, .collect,
      .put(key: 5, bytes: 12_000, synced: false),
    ])

  /// Payloads are kept while their rows change, and then collected.
  static let keptPayloads = PowerLossScript(
    name: "kept payloads",
    operations: (0..<8).map { .put(key: $0, bytes: 20_000, synced: false) } + [
      .restamp(key: 1), .restamp(key: 2), .put(key: 0, bytes: 30_000, synced: false),
      .put(key: 3, bytes: 20_000, synced: false), .put(key: 4, bytes: 20_000, synced: false),
      .collect, .restamp(key: 1), .restamp(key: 1), .flush, .restamp(key: 2), .collect, .reopen,
      .restamp(key: 1), .put(key: 7, bytes: 20_000, synced: false), .collect,
    ])

  /// A store without segments gets one again.
  static let newSegments = PowerLossScript(
    name: "new segments",
    operations: [
      .put(key: 0, bytes: 20_000, synced: false), .put(key: 1, bytes: 70_000, synced: false),
      .reopen, .remove(key: 0), .remove(key: 1), .collect,
      .put(key: 2, bytes: 20_000, synced: false), .restamp(key: 2),
      .put(key: 3, bytes: 20_000, synced: false), .flush, .restamp(key: 2),
      .put(key: 4, bytes: 10, synced: true),
    ])

  init(name: String, operations: [ScriptOperation]) {
    self.name = name
    self.operations = operations
  }

  /// A random script; the same seed makes the same one.
  init(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let operations = (0..<Int.random(in: 6...20, using: &random)).map { _ in
      PowerLossScript.operation(&random)
    }
    self.init(name: "random script \(seed)", operations: operations)
  }

  private static func operation(_ random: inout SplitMix64) -> ScriptOperation {
    let key = Int.random(in: 0..<8, using: &random)
    switch Int.random(in: 0..<37, using: &random) {
    case 34..<37: return .restamp(key: key)
    case 0..<12: return .put(key: key, bytes: size(&random), synced: false)
    case 12..<15: return .put(key: key, bytes: size(&random), synced: true)
    case 15..<20:
      let count = Int.random(in: 2...5, using: &random)
      return .batch(
        (0..<count).map { _ in (Int.random(in: 0..<8, using: &random), size(&random)) })
    case 20..<22: return .remove(key: key)
    case 22..<25: return .removeIf(key: key, holds: Bool.random(using: &random))
    case 25..<27: return .flush
    case 27..<29: return .reopen
    case 29: return .compact
    case 30..<32: return .collect
    default: return .fillLog
    }
  }

  /// Most values are small; some take several blocks of a log.
  private static func size(_ random: inout SplitMix64) -> Int {
    switch Int.random(in: 0..<8, using: &random) {
    case 0..<4: Int.random(in: 10...200, using: &random)
    case 4..<6: Int.random(in: 201...8000, using: &random)
    default: Int.random(in: 8001...40_000, using: &random)
    }
  }
}

extension ScriptOperation: Sendable {}
