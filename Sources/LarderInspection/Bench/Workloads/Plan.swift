import Foundation

/// Which records a run visits, in which order, and their keys and values.
///
/// Both sides follow the same plan, made before the time starts. Record `r` has the key `r` in
/// decimal, padded to 16 digits, and a value derived from `r`, so that reads can be verified.
struct Plan: Sendable {
  let keys: [UInt8]
  let pool: [UInt8]
  /// Values start in the pool below this offset.
  let valueSpan: Int
  var order: [UInt32]
  let keyBytes: Int
  let valueBytes: Int

  /// Plans to visit `order`, the numbers of records below `records`.
  ///
  /// A `suffix` is appended to every key, so that no key exists in a database filled without it.
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

  /// Makes at least `bytes` bytes, in pieces of a value: random characters, repeated once.
  static func makePool(
    _ bytes: Int = Scale.poolBytes, valueBytes: Int = Scale.valueBytes
  ) -> [UInt8] {
    var random = WorkloadRandom(seed: Scale.seed)
    var pool: [UInt8] = []
    while pool.count < bytes {
      let count = Int(Double(valueBytes) * Scale.compressedShare)
      let piece = (0..<count).map { _ in UInt8.random(in: 32...126, using: &random) }
      for offset in 0..<valueBytes { pool.append(piece[offset % count]) }
    }
    return pool
  }

  // MARK: - Orders

  static func sequence(_ count: Int) -> [UInt32] { (0..<UInt32(count)).map { $0 } }

  /// `count` records drawn at random, with repetition, from the first `records`.
  static func random(_ count: Int, from records: Int, seed: UInt64 = Scale.seed) -> [UInt32] {
    var random = WorkloadRandom(seed: seed)
    return (0..<count).map { _ in UInt32.random(in: 0..<UInt32(records), using: &random) }
  }

  /// The same records, with only the last `count` visits of the order.
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
