/// Changes that are applied together or not at all.
///
/// Keys and values lie one after another in one buffer, so that a payload is encoded straight into
/// the bytes that the engine writes. For the same key, later rows replace earlier ones.
package struct WriteBatch: ~Copyable {
  /// A condition on the state before the batch; rows that require it are applied only if it holds.
  package enum Condition: Hashable, Sendable {
    /// There is no value under the key.
    case absent
    /// There is a value under the key, readable or not.
    case present
    /// The value under the key still carries this commit sequence in its stamp.
    case unchanged(since: UInt64, in: Stamp)
    /// There is a value under the key that does not match its stamp, or cannot be read.
    case damaged(Stamp)
    /// The ticket was not revoked; the key does not matter.
    case valid(WriteTicket)
    /// The ticket was not revoked, and the value is the one of ``unchanged(since:in:)``.
    case validUnchanged(WriteTicket, since: UInt64, in: Stamp)

    /// The ticket of the condition; nil if it has none.
    package var ticket: WriteTicket? {
      switch self {
      case .valid(let ticket), .validUnchanged(let ticket, _, _): ticket
      case .absent, .present, .unchanged, .damaged: nil
      }
    }
  }

  package enum Kind: UInt8, Sendable {
    case put
    case remove
  }

  /// One change: the place of its key in ``bytes``, and right after it the value of a put.
  package struct Row: Sendable {
    package let kind: Kind
    /// The writer's remark on the change for a participant; the engine does not read it.
    package let note: UInt8
    /// The stamp in the value of a put, which the commit fills in; nil if it has none.
    package let stamp: Stamp?
    /// Whether the payload is that of the value which `requirement` finds unchanged.
    let keepsPayload: Bool
    package let start: Int
    package let keyCount: Int
    package let valueCount: Int
    /// The size of the payload at the end of the value, which may be kept in a segment; 0 if none
    /// may.
    package let payloadCount: Int
    /// Index into ``requirements``; nil if the row is unconditional.
    package let requirement: Int?

    package var key: Range<Int> { start..<(start + keyCount) }
    package var value: Range<Int> { (start + keyCount)..<(start + keyCount + valueCount) }
    /// The part of the value before the payload, and the payload.
    var head: Range<Int> { value.lowerBound..<(value.upperBound - payloadCount) }
    var payload: Range<Int> { (value.upperBound - payloadCount)..<value.upperBound }
    /// The size of key and value once the row is applied.
    package var size: Int { kind == .remove ? 0 : keyCount + valueCount }
  }

  package struct Requirement: Sendable {
    package let key: [UInt8]
    package let condition: Condition
  }

  package private(set) var bytes = ByteBuffer()
  package private(set) var rows: [Row] = []
  package private(set) var requirements: [Requirement] = []

  /// Whether no row is applied unless all conditions hold, also those that no row names.
  package var isWhole = false

  /// Whether its puts release more room than they take, as those of a clear do.
  package var isClearing = false

  /// Whether it may be written on a full disk although it frees no room.
  ///
  /// Opening a cache does: a cache must be open to be read and cleared.
  package var mayUseReserve = false

  /// Whether a ``CommitParticipant`` must admit it, because it makes room.
  package var isAlwaysAdmitted = false

  /// Whether it agrees with the shared tier of a cache, whose records no other batch may change.
  package var isOfTier = false

  /// The value of ``StorageEngine/writeCount`` before the caller read the state that its conditions
  /// describe.
  ///
  /// If it is unchanged at the commit, the conditions hold and are not checked. With nil, the
  /// default, they are checked. A batch whose conditions name a ticket leaves it nil.
  package var writeCountBeforeReading: Int?

  #if Encryption
    /// The use of the data key that sealed its first sealed record; nil if it has none.
    var heldKey: AnyObject?
  #endif

  /// The conditions that failed, while the batch is being written; otherwise nil.
  ///
  /// Until its write has ended, the participant was notified only that it is about to begin.
  var failedInWrite: Set<Int>?

  /// Whether a write of the batch has failed that may have taken effect, or still take it.
  var isInDoubt = false

  /// Whether the engine may write the batch again after a failure.
  ///
  /// Not if a condition could fail because of the first write: the batch would count as refused.
  var isRepeatable: Bool { requirements.isEmpty || !isInDoubt }

  /// The budget for which the participant refused the batch in its last write; nil if it did not.
  var shortage: Shortage?

  package init() {}

  package var isEmpty: Bool { rows.isEmpty }

  /// Whether it may use the reserve of a full disk.
  package var freesRoom: Bool {
    isClearing || mayUseReserve || (!rows.isEmpty && rows.allSatisfy { $0.kind == .remove })
  }

  /// Removes all rows and keeps the memory for the next ones.
  package mutating func reset() {
    bytes.truncate(to: 0)
    // Most batches have one or two; the call that removes all takes longer.
    while rows.popLast() != nil {}
    isWhole = false
    isClearing = false
    mayUseReserve = false
    isAlwaysAdmitted = false
    isOfTier = false
    writeCountBeforeReading = nil
    isInDoubt = false
    #if Encryption
      heldKey = nil
    #endif
    if !requirements.isEmpty { requirements.removeAll(keepingCapacity: true) }
  }

  /// Adds a condition, and returns its index, by which rows name it.
  package mutating func require(_ key: RawSpan, _ condition: Condition) -> Int {
    require([UInt8](key), condition)
  }

  /// Adds a condition, without copying the key.
  package mutating func require(_ key: [UInt8], _ condition: Condition) -> Int {
    requirements.append(Requirement(key: key, condition: condition))
    return requirements.count - 1
  }

  /// Removes all conditions; no row may name one.
  package mutating func removeRequirements() {
    precondition(rows.allSatisfy { $0.requirement == nil }, "a row names a condition")
    requirements.removeAll(keepingCapacity: true)
  }

  package mutating func put(_ key: RawSpan, _ value: RawSpan, if requirement: Int? = nil) {
    let start = append(key)
    append(value)
    addRow(.put, from: start, keyCount: key.byteCount, if: requirement)
  }

  /// Adds a put whose value `body` appends to the buffer; an error of `body` takes the row back.
  ///
  /// A value with a `stamp` reaches to its ``Stamp/end`` and leaves it zero.
  package mutating func put<E: Error>(
    _ key: RawSpan, stamp: Stamp? = nil, if requirement: Int? = nil, note: UInt8 = 0,
    encoding body: (inout ByteBuffer) throws(E) -> Void
  ) throws(E) {
    let start = append(key)
    do {
      try body(&bytes)
    } catch {
      bytes.truncate(to: start)
      throw error
    }
    addRow(
      .put, from: start, keyCount: key.byteCount, stamp: stamp, if: requirement, note: note)
  }

  /// Adds a put whose value is only a stamp.
  package mutating func put(_ key: RawSpan, stamp: Stamp) {
    put(key, stamp: stamp) { $0.append(zeros: stamp.end) }
  }

  /// Adds a put whose value ends with a payload that may be kept in a segment.
  ///
  /// `body` appends the value, and returns the size of the payload. The stamp lies before it. An
  /// error of `body` takes the row back.
  ///
  /// With `keepsPayload`, the payload is that of the value which `requirement` describes, an
  /// ``Condition/unchanged(since:in:)`` or ``Condition/validUnchanged(_:since:in:)``. It is not
  /// written again if it is in a segment.
  package mutating func putSeparable<E: Error>(
    _ key: RawSpan, stamp: Stamp, if requirement: Int? = nil, keepsPayload: Bool = false,
    note: UInt8 = 0, encoding body: (inout ByteBuffer) throws(E) -> Int
  ) throws(E) {
    let start = append(key)
    let payloadCount: Int
    do {
      payloadCount = try body(&bytes)
    } catch {
      bytes.truncate(to: start)
      throw error
    }
    addRow(
      .put, from: start, keyCount: key.byteCount, stamp: stamp, payloadCount: payloadCount,
      keepsPayload: keepsPayload, if: requirement, note: note)
  }

  /// Adds a put whose key and value the closures append to the buffer.
  package mutating func put(
    if requirement: Int? = nil, key: (inout ByteBuffer) -> Void, value: (inout ByteBuffer) -> Void
  ) {
    let start = bytes.count
    key(&bytes)
    let keyCount = bytes.count - start
    value(&bytes)
    addRow(.put, from: start, keyCount: keyCount, if: requirement)
  }

  package mutating func remove(_ key: RawSpan, if requirement: Int? = nil, note: UInt8 = 0) {
    let start = append(key)
    addRow(.remove, from: start, keyCount: key.byteCount, if: requirement, note: note)
  }

  /// Whether a row puts or removes `key`.
  ///
  /// - Complexity: One comparison for each row.
  package func hasRow(under key: [UInt8]) -> Bool {
    bytes.withBytes { bytes in
      rows.contains { $0.keyCount == key.count && bytes[$0.key].elementsEqual(key) }
    }
  }

  /// Fills in the stamp of every row that has one.
  ///
  /// The engine calls this once the sequence is known.
  mutating func stamp(with sequence: UInt64) {
    for row in rows {
      guard let stamp = row.stamp else { continue }
      bytes.withMutableBytes { buffer in
        stamp.seal(
          value: UnsafeMutableRawBufferPointer(rebasing: buffer[row.value]),
          key: UnsafeRawBufferPointer(rebasing: buffer[row.key]), sequence: sequence)
      }
    }
  }

  @discardableResult
  private mutating func append(_ more: RawSpan) -> Int {
    let start = bytes.count
    bytes.append(more)
    return start
  }

  private mutating func addRow(
    _ kind: Kind, from start: Int, keyCount: Int, stamp: Stamp? = nil, payloadCount: Int = 0,
    keepsPayload: Bool = false, if requirement: Int?, note: UInt8 = 0
  ) {
    let valueCount = bytes.count - start - keyCount
    if let stamp {
      precondition(valueCount - payloadCount >= stamp.end, "no room for a stamp")
    }
    // A save has two rows: without this the array grows twice.
    if rows.capacity == 0 { rows.reserveCapacity(2) }
    rows.append(
      Row(
        kind: kind, note: note, stamp: stamp, keepsPayload: keepsPayload, start: start,
        keyCount: keyCount, valueCount: valueCount, payloadCount: payloadCount,
        requirement: requirement))
  }
}
