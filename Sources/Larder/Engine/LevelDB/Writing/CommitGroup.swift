/// The group of batches that is being staged.
struct CommitGroup {
  /// A batch, and the conditions that failed.
  struct Member {
    let batch: UnsafeMutablePointer<WriteBatch>
    let failed: Set<Int>
  }

  /// Whether the group has one batch, whose rows no other batch needs to read.
  let isAlone: Bool
  /// Whether the participant counts the batches.
  let isCounted: Bool
  var isEmpty = true
  var members: [Member] = []
  var reservation: UInt64?
  /// The size of the payloads in segments that the batches remove.
  var removedBytes = 0
  /// Why a payload could not be appended to a segment; the group is then not written.
  var failure: StoreError?
  /// Nil until the first batch is counted.
  var sizes: StagedSizes?

  init(isAlone: Bool, isCounted: Bool) {
    self.isAlone = isAlone
    self.isCounted = isCounted
  }

  /// Asks the participant to admit a batch.
  ///
  /// - Returns: The budget that it would exceed; nil if it was admitted.
  mutating func admit(
    _ batch: borrowing WriteBatch, without failed: Set<Int>, by participant: any CommitParticipant,
    stored: (UnsafeRawBufferPointer) -> Int?
  ) -> Shortage? {
    var sizes = self.sizes.take() ?? StagedSizes(isAlone: isAlone)
    defer { self.sizes = sizes }
    return sizes.admit(batch, without: failed, by: participant, stored: stored)
  }

  /// Reads the value that the staged batches leave under a key.
  ///
  /// - Returns: Whether there is a value; nil if no batch changes the key.
  func read(_ key: [UInt8], into value: inout ValueBuffer) -> Bool? {
    for member in members.reversed() {
      let found: Bool? = member.batch.pointee.bytes.withBytes { bytes in
        let row = member.batch.pointee.rows.last { row in
          row.keyCount == key.count && row.isKept(without: member.failed)
            && bytes[row.key].elementsEqual(key)
        }
        guard let row else { return nil }
        guard row.kind != .remove else { return false }
        value.assign(bytes.bytes.extracting(row.value))
        return true
      }
      if let found { return found }
    }
    return nil
  }
}
