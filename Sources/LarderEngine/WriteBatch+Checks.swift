extension WriteBatch {
  /// Refuses a batch that is over ``EngineLimits`` or would change the engine's own row.
  func checkLimits() throws(EngineError) {
    guard bytes.count <= EngineLimits.batchBytes else {
      throw .invalidArgument(
        "a batch of \(bytes.count) bytes is over the limit of \(EngineLimits.batchBytes)")
    }
    for row in rows {
      guard row.keyCount <= EngineLimits.keyBytes else {
        throw .invalidArgument(
          "a key of \(row.keyCount) bytes is over the limit of \(EngineLimits.keyBytes)")
      }
      guard row.valueCount <= EngineLimits.valueBytes else {
        throw .invalidArgument(
          "a value of \(row.valueCount) bytes is over the limit of \(EngineLimits.valueBytes)")
      }
      if row.keyCount == CommitSequence.key.count, bytes[row.key] == CommitSequence.key[...] {
        throw .invalidArgument("the row of reserved commit sequences is the engine's own")
      }
    }
  }
}

extension WriteBatch.Condition {
  /// Whether the condition holds for a value with this sequence; nil when it carries none.
  func holds(exists: Bool, sequence: UInt64?) -> Bool {
    switch self {
    case .absent: !exists
    case .present: exists
    case .unchanged(let since): exists && sequence == since
    }
  }
}
