// A strict reader of LevelDB's logs: its write-ahead logs and its MANIFEST.
//
// A log is a sequence of blocks of 32 KiB. A block holds chunks; one begins with
//
//   offset  bytes  field
//   0       4      CRC32C over type and data, masked, little-endian
//   4       2      length of the data, little-endian
//   6       1      type: 1 whole record, 2 first, 3 middle, 4 last part of one
//
// and fewer than seven bytes at the end of a block are zeros. A record of a write-ahead log is a
// batch, and a batch begins with
//
//   0       8      LevelDB's sequence of its first row, little-endian
//   8       4      the number of its rows, little-endian
//
// LevelDB treats an unreadable record as the end of the log, or skips it. So this reader checks the
// log first. A record cut off at the end was being written when the power was lost. An unreadable
// record with a valid one after it was changed after it had been written.

/// Reads the complete records of a log, and finds out how the log ends.
package struct LogScan {
  package enum Kind: Sendable {
    case manifest
    /// A write-ahead log, whose sequences have no gaps.
    ///
    /// A batch with a sequence below `minimumSequence` was left on the device by another file.
    /// After a torn record it is no sign of damage.
    case batches(minimumSequence: UInt64)
    /// A write-ahead log of another program's database, as LevelDB reads it.
    ///
    /// Sequences may repeat and have gaps. Zeros between records fill the rest of their block.
    case foreignBatches
  }

  package enum End: Hashable, Sendable {
    case complete
    /// There is no complete record from here on.
    case torn(at: Int)
    /// The bytes here are not a record, and there is a record further on.
    case damaged(at: Int, resumingAt: Int)
  }

  /// A part of a log that may be damaged.
  package enum Part: Sendable {
    case record(Record)
    /// The bytes here are not a record; the next part begins at `resumingAt` or after it.
    case damaged(at: Int, resumingAt: Int)
    /// There is no complete record from here on.
    case torn(at: Int)
  }

  /// The place of a complete record.
  package struct Record: Sendable {
    /// The start of its first chunk.
    package let start: Int
    fileprivate let place: Range<Int>
    /// The data, if it is in more than one chunk.
    fileprivate let joined: [UInt8]?
  }

  private static let blockBytes = 32 << 10
  private static let headerBytes = 7
  /// LevelDB's sequences are below this.
  static let sequenceLimit: UInt64 = 1 << 56

  private enum ChunkType {
    static let full: UInt8 = 1
    static let first: UInt8 = 2
    static let middle: UInt8 = 3
    static let last: UInt8 = 4
  }

  /// The end of the log; nil until ``next()`` has returned nil.
  package private(set) var end: End?
  /// The end of the last complete record.
  package private(set) var validBytes = 0
  /// The sequence of the first batch.
  package private(set) var firstSequence: UInt64?
  /// The sequence that the next batch must have; nil for a foreign log.
  package private(set) var nextSequence: UInt64?

  private let bytes: [UInt8]
  private let isOfBatches: Bool
  private let isForeign: Bool
  private var minimumSequence: UInt64
  /// The place where ``nextPart()`` last continued after damage.
  private var lastResumption = -1
  private var hasReportedTear = false

  package init(_ bytes: [UInt8], of kind: Kind) {
    self.bytes = bytes
    switch kind {
    case .manifest: (isOfBatches, isForeign, minimumSequence) = (false, false, 0)
    case .batches(let sequence): (isOfBatches, isForeign, minimumSequence) = (true, false, sequence)
    case .foreignBatches: (isOfBatches, isForeign, minimumSequence) = (true, true, 0)
    }
  }

  /// Lends the data of a record to `body`.
  package func withBytes<R, E: Error>(
    of record: Record, _ body: (RawSpan) throws(E) -> R
  ) throws(E) -> R {
    if let joined = record.joined { return try body(joined.span.bytes) }
    return try body(bytes.span.bytes.extracting(record.place))
  }

  /// Reads to the end of the log, and returns it.
  package mutating func finish() -> End {
    while true {
      if let end { return end }
      _ = next()
    }
  }

  /// The next complete record; nil at the end, or at the first malformed record.
  package mutating func next() -> Record? {
    guard end == nil else { return nil }
    var at = validBytes
    var start = at
    var joined: [UInt8]?
    while true {
      let chunkStart = skippingFiller(from: at)
      if joined == nil { start = chunkStart ?? at }
      guard let chunkStart else { return stop(at: start, searchingFrom: at) }
      if chunkStart == bytes.count {
        end = joined == nil ? .complete : .torn(at: start)
        return nil
      }
      if isForeign, joined == nil, let next = endOfZeros(from: chunkStart) {
        at = next
        continue
      }
      guard let chunk = chunk(at: chunkStart) else {
        return stop(at: start, searchingFrom: chunkStart)
      }
      at = chunk.data.upperBound
      switch chunk.type {
      case ChunkType.full where joined == nil:
        return accept(Record(start: start, place: chunk.data, joined: nil), endingAt: at)
      case ChunkType.first where joined == nil: joined = Array(bytes[chunk.data])
      case ChunkType.middle where joined != nil: joined?.append(contentsOf: bytes[chunk.data])
      case ChunkType.last where joined != nil:
        joined?.append(contentsOf: bytes[chunk.data])
        return accept(Record(start: start, place: start..<at, joined: joined), endingAt: at)
      default: return stop(at: start, searchingFrom: chunkStart)
      }
    }
  }

  /// The next part of the log, across damage; nil at the end.
  ///
  /// A record after damage may have any later sequence.
  package mutating func nextPart() -> Part? {
    if let record = next() { return .record(record) }
    switch end {
    case .damaged(let place, let next):
      // A first chunk whose continuation is lost is found at the same place again.
      lastResumption = max(next, lastResumption + 1)
      minimumSequence = nextSequence ?? minimumSequence
      (end, nextSequence, validBytes) = (nil, nil, lastResumption)
      return .damaged(at: place, resumingAt: next)
    case .torn(let place) where !hasReportedTear:
      hasReportedTear = true
      return .torn(at: place)
    case .torn, .complete, nil: return nil
    }
  }

  private mutating func accept(_ record: Record, endingAt place: Int) -> Record? {
    if isOfBatches {
      let header = withBytes(of: record) { (LogBatch.sequence(of: $0), LogBatch.rowCount(of: $0)) }
      guard case (let sequence?, let rowCount?) = header, sequence < Self.sequenceLimit,
        sequence == nextSequence ?? sequence
      else { return stop(at: record.start, searchingFrom: record.start) }
      firstSequence = firstSequence ?? sequence
      if !isForeign { nextSequence = sequence + UInt64(rowCount) }
    }
    validBytes = place
    return record
  }

  private mutating func stop(at place: Int, searchingFrom start: Int) -> Record? {
    end =
      placeOfRecord(from: start).map { .damaged(at: place, resumingAt: $0) } ?? .torn(at: place)
    return nil
  }
}

// MARK: - Chunks

extension LogScan {
  private struct Chunk {
    let type: UInt8
    let data: Range<Int>
  }

  /// The start of the chunk at or after `offset`; nil if the filler before it is not zeros.
  private func skippingFiller(from offset: Int) -> Int? {
    let rest = Self.blockBytes - offset % Self.blockBytes
    guard rest < Self.headerBytes else { return offset }
    let next = min(offset + rest, bytes.count)
    return bytes[offset..<next].allSatisfy { $0 == 0 } ? next : nil
  }

  /// The end of the block at `offset`, or of the file; nil if the bytes before it are not zeros.
  private func endOfZeros(from offset: Int) -> Int? {
    let end = min(offset - offset % Self.blockBytes + Self.blockBytes, bytes.count)
    return bytes[offset..<end].allSatisfy { $0 == 0 } ? end : nil
  }

  /// The chunk at `offset`; nil if it is not valid.
  private func chunk(at offset: Int) -> Chunk? {
    bytes.withUnsafeBytes { bytes in
      guard let data = Self.data(at: offset, in: bytes) else { return nil }
      let type = bytes[offset + 6]
      guard (ChunkType.full...ChunkType.last).contains(type) else { return nil }
      let stored = UInt32(
        littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
      let covered = UnsafeRawBufferPointer(rebasing: bytes[(offset + 6)..<data.upperBound])
      let sum = crc32c(covered)
      guard stored == maskedForLevelDB(sum) else { return nil }
      return Chunk(type: type, data: data)
    }
  }

  /// The data of a chunk at `offset`; nil if they would extend beyond the block or the file.
  private static func data(at offset: Int, in bytes: UnsafeRawBufferPointer) -> Range<Int>? {
    let blockEnd = min(offset - offset % blockBytes + blockBytes, bytes.count)
    let start = offset + headerBytes
    guard start <= blockEnd else { return nil }
    let length = Int(bytes[offset + 4]) | Int(bytes[offset + 5]) << 8
    return start + length <= blockEnd ? start..<(start + length) : nil
  }

  /// The first place from `start` on with a record that can follow the records before.
  private func placeOfRecord(from start: Int) -> Int? {
    guard start + Self.headerBytes <= bytes.count else { return nil }
    return bytes.withUnsafeBytes { raw in
      for place in start...(raw.count - Self.headerBytes) {
        let type = raw[place + 6]
        guard type == ChunkType.full || type == ChunkType.first,
          let data = Self.data(at: place, in: raw),
          !isOfBatches || mayBeginBatch(data, type: type, in: raw),
          chunk(at: place) != nil
        else { continue }
        return place
      }
      return nil
    }
  }

  /// Whether a batch may begin with these bytes, by its sequence.
  private func mayBeginBatch(
    _ data: Range<Int>, type: UInt8, in bytes: UnsafeRawBufferPointer
  ) -> Bool {
    var header = Array(bytes[data].prefix(8))
    if header.count < 8, type == ChunkType.first {
      let place = data.upperBound + Self.blockBytes - 1
      let following = chunk(at: place - place % Self.blockBytes)
      if let following { header += bytes[following.data].prefix(8 - header.count) }
    }
    guard header.count == 8 else { return false }
    let sequence = header.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return sequence >= nextSequence ?? minimumSequence && sequence < Self.sequenceLimit
  }
}

/// Writes LevelDB's log format: the blocks and chunks that ``LogScan`` reads.
package struct LogWriter {
  private static let blockBytes = 32 << 10
  private static let headerBytes = 7

  package private(set) var bytes: [UInt8] = []

  package init() {}

  /// Appends a record.
  package mutating func add(_ record: [UInt8]) {
    var rest = record[...]
    var isFirst = true
    repeat {
      var room = Self.blockBytes - bytes.count % Self.blockBytes
      if room < Self.headerBytes {
        bytes += Array(repeating: 0, count: room)
        room = Self.blockBytes
      }
      let data = rest.prefix(room - Self.headerBytes)
      rest = rest.dropFirst(data.count)
      // 1 is a whole record; 2, 3 and 4 are the first, a middle and the last part of one.
      let type: UInt8 = rest.isEmpty ? (isFirst ? 1 : 4) : (isFirst ? 2 : 3)
      let covered = [type] + data
      let sum = covered.withUnsafeBytes { crc32c($0) }
      let masked = maskedForLevelDB(sum)
      bytes += withUnsafeBytes(of: masked.littleEndian, Array.init)
      bytes += withUnsafeBytes(of: UInt16(data.count).littleEndian, Array.init)
      bytes += covered
      isFirst = false
    } while !rest.isEmpty
  }

  /// Appends bytes unchanged.
  package mutating func addRaw(_ more: [UInt8]) { bytes += more }
}
