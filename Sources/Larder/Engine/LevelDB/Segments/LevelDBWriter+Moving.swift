import CLarder

// MARK: - Moving payloads

extension LevelDBWriter {
  /// Appends the payloads of rows to the newest segment, and makes the rows name them there.
  ///
  /// A row that names another payload by now is left alone. Sequences and dates stay as they are.
  mutating func move(_ rows: [MovedRow]) throws(StoreError) {
    if let disabledCause { throw .writesDisabled(cause: disabledCause) }
    guard !reserve.isSpent else { throw .diskFull }
    try logs.prepareToGrow()
    try beginLogIfNeeded()
    let appended = segments?.reader.appendedBytes ?? 0
    defer { segments?.reader.didMove((segments?.reader.appendedBytes ?? 0) - appended) }
    do throws(StoreError) {
      for row in rows { try stage(row) }
    } catch {
      clarder_discard(database)
      noteFailedSync(error)
      throw error
    }
    try write(synced: false, reservation: nil)
  }

  private mutating func stage(_ row: MovedRow) throws(StoreError) {
    guard let format = segments?.reader.format,
      try value.read(row.key.span.bytes, from: database)
    else { return }
    // The head may have changed since the row was read.
    let head = row.key.span.bytes.withUnsafeBytes { key -> [UInt8]? in
      let now = SeparatedRow(value.memory.bytes, under: key, by: format)
      guard let now, now.pointer == row.pointer else { return nil }
      return [UInt8](value.memory.bytes[..<now.headCount])
    }
    guard let head else { return }
    try row.key.span.bytes.withUnsafeBytes { key throws(StoreError) in
      try head.span.bytes.withUnsafeBytes { head throws(StoreError) in
        try row.payload.span.bytes.withUnsafeBytes { payload throws(StoreError) in
          try stageSeparated(key: key, head: head, payload, sequence: row.pointer.sequence)
        }
      }
    }
    logs.willGrow(rows: 1, bytes: row.key.count + head.count + FramePointer.byteCount)
    if reserve.willGrow(bytes: row.payload.count) { restoreReserve() }
  }

  /// Ends the newest segment, if it is still the one with this number.
  ///
  /// - Returns: Its size; nil if it is not.
  mutating func endSegment(_ number: UInt32) throws(StoreError) -> Int? {
    guard let current = currentSegment, current.number == number else { return nil }
    try segments?.endSegment()
    return current.byteCount
  }
}

// MARK: - Removed payloads

extension LevelDBWriter {
  /// The size of the payloads that a batch removes, by which a collection becomes due.
  ///
  /// `payloadBytes` is the size of those that its conditions have found; nil if they were not read.
  /// Other removals are looked up, except for slices that make room: their callers ask for a
  /// collection, or save as much. On a nearly full disk a collection needs room itself, which the
  /// next removals may need; there a save that finds no room asks for it.
  mutating func removedBytes(
    of batch: borrowing WriteBatch, without failed: Set<Int>, _ payloadBytes: Int?
  ) -> Int {
    guard segments?.hasSegments == true, !reserve.isNeeded, let reader = segments?.reader else {
      return 0
    }
    var sum = payloadBytes ?? 0
    guard !batch.isAlwaysAdmitted else { return sum }
    for row in batch.rows where row.kind == .remove {
      guard row.requirement == nil || payloadBytes == nil, row.isKept(without: failed) else {
        continue
      }
      let key = batch.bytes.withBytes { [UInt8](UnsafeRawBufferPointer(rebasing: $0[row.key])) }
      guard key.first == reader.format.keySpace else { continue }
      do throws(StoreError) {
        guard try value.read(key.span.bytes, from: database) else { continue }
      } catch {
        continue
      }
      sum += separatedBytes(under: key)
    }
    return sum
  }

  /// The size of the payload of the value that was read, if it is in a segment; otherwise 0.
  func separatedBytes(under key: [UInt8]) -> Int {
    let format: ValueSeparation
    switch segments {
    case .some(let segments): format = segments.reader.format
    case nil: return 0
    }
    let row = key.withUnsafeBytes { SeparatedRow(value.memory.bytes, under: $0, by: format) }
    return row.map { min($0.pointer.payloadCount, EngineLimits.valueBytes) } ?? 0
  }
}
