extension WriteBatch {
  /// Throws if the batch is over ``EngineLimits`` or would change one of the engine's own rows.
  func checkLimits() throws(StoreError) {
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
      let isReserved = bytes.withBytes { bytes in
        row.keyCount > 0 && bytes[row.start] == CommitSequence.keySpace
          && (bytes[row.key].elementsEqual(CommitSequence.key)
            || bytes[row.key].elementsEqual(SyncedPlace.key))
      }
      if isReserved {
        throw .invalidArgument("a row of commit sequences or synced places is the engine's own")
      }
    }
  }
}

extension WriteBatch {
  /// Whether any row is applied when these requirements have failed.
  func hasRow(without failed: Set<Int>) -> Bool {
    if failed.isEmpty { return !rows.isEmpty }
    return !isWhole && rows.contains { $0.isKept(without: failed) }
  }
}

extension WriteBatch.Condition {
  /// The sequence that the value must still carry, and where; nil if it need not.
  var unchanged: (since: UInt64, stamp: Stamp)? {
    switch self {
    case .unchanged(let since, let stamp), .validUnchanged(_, let since, let stamp): (since, stamp)
    case .absent, .present, .damaged, .valid: nil
    }
  }

  /// Whether the condition holds if `value` is under `key`, or nothing if `value` is nil.
  func holds(for value: RawSpan?, under key: RawSpan) -> Bool {
    if ticket?.isRevoked == true { return false }
    if case .valid = self { return true }
    guard let value else { return self == .absent }
    return switch self {
    case .absent: false
    case .present, .valid: true
    case .unchanged(let since, let stamp), .validUnchanged(_, let since, let stamp):
      stamp.sequence(of: value) == since
    case .damaged(let stamp): !stamp.isIntact(value, key: key)
    }
  }

  /// Whether the condition holds for a value in a damaged block of a file; nil if that is unknown.
  ///
  /// It lets an unreadable value be deleted.
  var holdsForUnreadable: Bool? {
    switch self {
    case .present, .damaged: true
    case .unchanged, .validUnchanged: false
    case .absent, .valid: nil
    }
  }
}

extension WriteBatch.Row {
  /// Whether the row is applied when these requirements have failed.
  package func isKept(without failed: Set<Int>) -> Bool {
    guard let requirement, !failed.isEmpty else { return true }
    return !failed.contains(requirement)
  }
}
