import LarderTestSupport

/// A change of one cache, by the numbers of cache and key.
enum CacheChange: Sendable, CustomStringConvertible {
  case save(cache: Int, key: Int, bytes: Int)
  case remove(cache: Int, key: Int)
  case removeAll(cache: Int)

  var description: String {
    switch self {
    case .save(let cache, let key, let bytes): "save(\(cache), \(key), \(bytes))"
    case .remove(let cache, let key): "remove(\(cache), \(key))"
    case .removeAll(let cache): "removeAll(\(cache))"
    }
  }
}

/// An operation of a script.
enum StoreOperation: Sendable, CustomStringConvertible {
  case change(CacheChange, synced: Bool)
  case batch([CacheChange], synced: Bool)
  case touch(cache: Int, key: Int)
  /// Reads a value, and saves it again with a suffix.
  case update(cache: Int, key: Int)
  /// Ends the entries of all caches with a tag; see ``OpenStore/tag(of:)``.
  case invalidate(tag: Int)
  /// Removes the keys whose number begins with a digit.
  case removeRange(cache: Int, digit: Int)
  case validate(cache: Int)
  /// Drops a cache, and opens it again.
  case drop(cache: Int)
  case sweep
  /// Saves a new key in the cache with the budget, which may evict others.
  case saveWithinBudget(bytes: Int)
  /// Opens the store with the next schema version, and migrates one cache.
  case migrate(cache: Int)
  case advance(seconds: Int)
  case flush
  case reopen
  /// Suspends the store and resumes it.
  case suspend
  case compact
  /// Saves without syncing until LevelDB has started a new log.
  case fillLog

  var description: String {
    switch self {
    case .change(let change, let synced): "\(change)\(synced ? " synced" : "")"
    case .batch(let changes, let synced): "batch \(changes)\(synced ? " synced" : "")"
    case .touch(let cache, let key): "touch(\(cache), \(key))"
    case .update(let cache, let key): "update(\(cache), \(key))"
    case .invalidate(let tag): "invalidate(\(tag))"
    case .removeRange(let cache, let digit): "removeRange(\(cache), \(digit))"
    case .validate(let cache): "validate(\(cache))"
    case .drop(let cache): "drop(\(cache))"
    case .sweep: "sweep"
    case .saveWithinBudget(let bytes): "saveWithinBudget(\(bytes))"
    case .migrate(let cache): "migrate(\(cache))"
    case .advance(let seconds): "advance(\(seconds))"
    case .flush: "flush"
    case .reopen: "reopen"
    case .suspend: "suspend"
    case .compact: "compact"
    case .fillLog: "fillLog"
    }
  }
}

extension StoreOperation {
  /// Roughly how many bytes it writes.
  var byteCount: Int {
    let changes: [CacheChange]
    switch self {
    case .change(let change, _): changes = [change]
    case .batch(let all, _): changes = all
    case .touch, .update: return 4000
    case .saveWithinBudget(let bytes): return bytes + 1000
    default: return 0
    }
    return changes.reduce(0) { sum, change in
      guard case .save(_, _, let bytes) = change else { return sum + 500 }
      return sum + bytes + 200
    }
  }
}

/// Operations on three caches with few keys, and one with a budget and a new key each time.
struct PowerLossScript: Sendable {
  let name: String
  let operations: [StoreOperation]

  /// Each operation once, and those of several writes more often.
  static let everything = PowerLossScript(
    name: "every operation",
    operations: [
      .change(.save(cache: 0, key: 0, bytes: 100), synced: false),
      .change(.save(cache: 1, key: 0, bytes: 100), synced: true),
      .change(.save(cache: 0, key: 0, bytes: 300), synced: false), .touch(cache: 0, key: 0),
      .change(.remove(cache: 1, key: 0), synced: false),
      .batch(
        [
          .save(cache: 0, key: 1, bytes: 50), .removeAll(cache: 0),
          .save(cache: 0, key: 2, bytes: 60), .save(cache: 2, key: 1, bytes: 2000),
          .remove(cache: 2, key: 7),
        ], synced: false),
      .advance(seconds: 100), .change(.save(cache: 0, key: 3, bytes: 70), synced: false),
      .advance(seconds: 60), .validate(cache: 0), .fillLog, .advance(seconds: 200), .sweep,
      .batch([.save(cache: 0, key: 4, bytes: 3000), .remove(cache: 0, key: 3)], synced: true),
      .change(.removeAll(cache: 0), synced: false), .flush,
      .change(.save(cache: 0, key: 5, bytes: 40), synced: false), .compact,
      .change(.removeAll(cache: 2), synced: false), .reopen, .validate(cache: 0),
      .change(.save(cache: 1, key: 6, bytes: 80), synced: false), .drop(cache: 1),
      .change(.save(cache: 1, key: 7, bytes: 80), synced: false),
      .change(.save(cache: 2, key: 7, bytes: 80), synced: false), .invalidate(tag: 3),
      .change(.save(cache: 2, key: 7, bytes: 90), synced: false), .update(cache: 2, key: 7),
      .sweep, .touch(cache: 2, key: 7), .update(cache: 1, key: 3), .removeRange(cache: 2, digit: 7),
      .touch(cache: 0, key: 5), .migrate(cache: 0), .migrate(cache: 1), .reopen,
      .saveWithinBudget(bytes: 3000), .saveWithinBudget(bytes: 3000), .suspend,
      .change(.save(cache: 0, key: 8, bytes: 90), synced: false), .reopen,
      .saveWithinBudget(bytes: 3000), .change(.removeAll(cache: 3), synced: false),
      .saveWithinBudget(bytes: 5000), .saveWithinBudget(bytes: 4000), .drop(cache: 3),
      .saveWithinBudget(bytes: 4000), .reopen,
      // A closing sweeps what had expired at an earlier one.
      .change(.save(cache: 0, key: 4, bytes: 90), synced: false),
      .change(.save(cache: 0, key: 6, bytes: 90), synced: true), .advance(seconds: 700), .reopen,
      .change(.save(cache: 0, key: 7, bytes: 90), synced: false), .advance(seconds: 700), .suspend,
      .advance(seconds: 700), .reopen,
    ])

  private init(name: String, operations: [StoreOperation]) {
    self.name = name
    self.operations = operations
  }

  /// A random script; the same seed makes the same one.
  init(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let operations = (0..<Int.random(in: 6...16, using: &random)).map { _ in
      PowerLossScript.operation(&random)
    }
    self.init(name: "random script \(seed)", operations: operations)
  }

  private static func operation(_ random: inout SplitMix64) -> StoreOperation {
    let cache = cache(&random)
    let isSynced = Int.random(in: 0..<5, using: &random) == 0
    switch Int.random(in: 0..<52, using: &random) {
    case 0..<11: return .change(save(&random), synced: isSynced)
    case 11..<17:
      let count = Int.random(in: 2...5, using: &random)
      return .batch((0..<count).map { _ in change(&random) }, synced: isSynced)
    case 17..<19: return .change(.remove(cache: cache, key: key(&random)), synced: false)
    case 19..<21: return .change(.removeAll(cache: cache), synced: false)
    case 21..<24: return .touch(cache: cache, key: key(&random))
    case 24: return .validate(cache: cache)
    case 25..<27: return .advance(seconds: Int.random(in: 1...120, using: &random))
    case 27: return .flush
    case 28: return Bool.random(using: &random) ? .suspend : .reopen
    case 29: return .compact
    case 30..<32: return .migrate(cache: cache)
    case 32..<34: return .sweep
    case 34..<40: return .saveWithinBudget(bytes: Int.random(in: 100...4000, using: &random))
    case 40: return .change(.removeAll(cache: 3), synced: false)
    case 45..<48: return .update(cache: cache, key: key(&random))
    case 48..<51: return .invalidate(tag: Bool.random(using: &random) ? 1 : 3)
    case 51: return .removeRange(cache: cache, digit: key(&random))
    case 41..<43: return .drop(cache: Int.random(in: 0..<4, using: &random))
    default: return .fillLog
    }
  }

  private static func change(_ random: inout SplitMix64) -> CacheChange {
    switch Int.random(in: 0..<8, using: &random) {
    case 0: .removeAll(cache: cache(&random))
    case 1: .remove(cache: cache(&random), key: key(&random))
    default: save(&random)
    }
  }

  private static func save(_ random: inout SplitMix64) -> CacheChange {
    let bytes =
      Int.random(in: 0..<8, using: &random) == 0
      ? Int.random(in: 8000...30_000, using: &random) : Int.random(in: 10...3000, using: &random)
    return .save(cache: cache(&random), key: key(&random), bytes: bytes)
  }

  private static func cache(_ random: inout SplitMix64) -> Int {
    Int.random(in: 0..<3, using: &random)
  }
  private static func key(_ random: inout SplitMix64) -> Int {
    Int.random(in: 0..<6, using: &random)
  }
}
