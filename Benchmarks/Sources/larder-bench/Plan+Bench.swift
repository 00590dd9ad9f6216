extension Plan {
  /// Plans to visit `order` among records whose keys and values are given, concatenated.
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

  /// The same plan for records with the given keys, concatenated.
  func keyed(_ keys: [UInt8], keyBytes: Int) -> Plan {
    Plan(
      keys: keys, keyBytes: keyBytes, pool: pool, valueSpan: valueSpan, valueBytes: valueBytes,
      order: order)
  }

  /// All records once, in random order.
  static func shuffled(_ count: Int, seed: UInt64 = Scale.seed) -> [UInt32] {
    var random = WorkloadRandom(seed: seed)
    return sequence(count).shuffled(using: &random)
  }

  func matches(key bytes: RawSpan, _ record: UInt32) -> Bool {
    withKey(record) { areEqual($0, bytes) }
  }
}
