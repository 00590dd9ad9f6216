extension Plan {
  /// Plans to visit `order` among records whose keys and values are given, concatenated.
  init(keys: [UInt8], keyBytes: Int, values: [UInt8], valueBytes: Int, order: [UInt32]) {
    precondition(values.count / valueBytes == keys.count / keyBytes)
    (self.keys, self.keyBytes, self.order) = (keys, keyBytes, order)
    (pool, valueSpan, self.valueBytes) = (values, values.count, valueBytes)
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
