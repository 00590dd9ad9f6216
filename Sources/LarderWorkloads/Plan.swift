import Foundation

/// Which records are visited in which order, and what they hold.
///
/// Both sides follow the same plan, made before the time starts. Record `r` has the key `r` in
/// decimal, padded to 16 digits, and a value that follows from `r`, so that a read can be checked.
struct Plan: Sendable {
  let keys: [UInt8]
  let pool: [UInt8]
  /// Values begin in the pool below this.
  let valueSpan: Int
  private(set) var order: [UInt32]
  let keyBytes: Int
  let valueBytes: Int

  /// Plans to visit `order`, which names records below `records`.
  ///
  /// With a `suffix` behind every key, no key is in a database that was filled without.
  init(
    records: Int, order: [UInt32], suffix: String = "", valueBytes: Int = Scale.valueBytes
  ) {
    var keys: [UInt8] = []
    for record in 0..<records {
      let digits = String(record)
      let zeros = String(repeating: "0", count: Scale.keyBytes - digits.count)
      keys.append(contentsOf: (zeros + digits + suffix).utf8)
    }
    self.keys = keys
    self.order = order
    keyBytes = Scale.keyBytes + suffix.utf8.count
    self.valueBytes = valueBytes
    pool = Plan.makePool(max(Scale.poolBytes, 2 * valueBytes))
    valueSpan = pool.count - valueBytes
  }

  /// Plans to visit `order` among records whose keys and values are given, one behind the other.
  init(keys: [UInt8], keyBytes: Int, values: [UInt8], valueBytes: Int, order: [UInt32]) {
    precondition(values.count / valueBytes == keys.count / keyBytes)
    self.init(
      keys: keys, keyBytes: keyBytes, pool: values, valueSpan: values.count,
      valueBytes: valueBytes, order: order)
  }

  private init(
    keys: [UInt8], keyBytes: Int, pool: [UInt8], valueSpan: Int, valueBytes: Int, order: [UInt32]
  ) {
    (self.keys, self.keyBytes, self.order) = (keys, keyBytes, order)
    (self.pool, self.valueSpan, self.valueBytes) = (pool, valueSpan, valueBytes)
  }

  /// The same plan for records whose keys these are, one behind the other.
  func keyed(_ keys: [UInt8], keyBytes: Int) -> Plan {
    Plan(
      keys: keys, keyBytes: keyBytes, pool: pool, valueSpan: valueSpan, valueBytes: valueBytes,
      order: order)
  }

  /// So many bytes and more, in pieces: half random, and the same bytes once more.
  static func makePool(
    _ bytes: Int = Scale.poolBytes, valueBytes: Int = Scale.valueBytes
  ) -> [UInt8] {
    var random = SplitMix64(seed: Scale.seed)
    var pool: [UInt8] = []
    while pool.count < bytes {
      let count = Int(Double(valueBytes) * Scale.compressedShare)
      let piece = (0..<count).map { _ in UInt8.random(in: 32...126, using: &random) }
      for at in 0..<valueBytes { pool.append(piece[at % count]) }
    }
    return pool
  }

  // MARK: - Orders

  static func sequence(_ count: Int) -> [UInt32] { (0..<UInt32(count)).map { $0 } }

  /// `count` records drawn from the first `records`, each as likely at every draw.
  static func random(_ count: Int, from records: Int, seed: UInt64 = Scale.seed) -> [UInt32] {
    var random = SplitMix64(seed: seed)
    return (0..<count).map { _ in UInt32.random(in: 0..<UInt32(records), using: &random) }
  }

  /// All records once, in no order.
  static func shuffled(_ count: Int, seed: UInt64 = Scale.seed) -> [UInt32] {
    var random = SplitMix64(seed: seed)
    return sequence(count).shuffled(using: &random)
  }

  /// The same records, of which only the last ones of the order are visited.
  func visitingLast(_ count: Int) -> Plan {
    var plan = self
    plan.order = Array(order.suffix(count))
    return plan
  }

  // MARK: - Records

  func withKey<R, E: Error>(_ record: UInt32, _ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    let start = Int(record) * keyBytes
    return try body(keys.span.bytes.extracting(start..<start + keyBytes))
  }

  func withValue<R, E: Error>(_ record: UInt32, _ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    let start = Int(record) * valueBytes % valueSpan
    return try body(pool.span.bytes.extracting(start..<start + valueBytes))
  }

  /// Whether `bytes` is the value of `record`.
  func matches(_ bytes: RawSpan, _ record: UInt32) -> Bool {
    withValue(record) { areEqual($0, bytes) }
  }

  func matches(key bytes: RawSpan, _ record: UInt32) -> Bool {
    withKey(record) { areEqual($0, bytes) }
  }
}

/// Compares bytes with `memcmp`, as the C++ side does.
func areEqual(_ one: RawSpan, _ other: RawSpan) -> Bool {
  guard one.byteCount == other.byteCount else { return false }
  return one.withUnsafeBytes { one in
    other.withUnsafeBytes { other in
      guard let left = one.baseAddress, let right = other.baseAddress else { return true }
      return memcmp(left, right, one.count) == 0
    }
  }
}
