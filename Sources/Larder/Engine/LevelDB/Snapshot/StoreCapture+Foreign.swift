// How the logs of another program's database are read.
//
// LevelDB reads logs that no store writes: the sequences of batches may repeat and have gaps, a log
// may be empty or missing, and zeros may fill the rest of a block. A store's opening would take all
// of these for damage. So the captured logs are written anew by the rules of a store: the intact
// batches in their order, with sequences without gaps. They begin above the last sequence of the
// MANIFEST, because every row in the logs is newer than the tables. Where LevelDB ends a log or
// skips a part of it, that part is left out and reported.

/// A part of a write-ahead log that has no readable batch.
package struct LogLoss: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// The end of the log, where a write was cut off.
    case incomplete
    /// The bytes are not a record, and there is a record further on.
    case damaged
    /// An intact record that is not a batch.
    case malformed
  }

  package let log: String
  package let offset: Int
  package let byteCount: Int
  package let kind: Kind
}

extension StoreCapture {
  /// The size from which on a rewritten log is followed by another one.
  private static let logBytes = 4 << 20

  /// Writes the captured logs of another program's database anew, so that they can be opened.
  ///
  /// - Returns: The parts that are left out.
  /// - Throws: ``StoreError/corrupt(_:)`` when the sequences of the database are out of range;
  ///   ``StoreError/io(_:)``, ``StoreError/diskFull``.
  /// - Complexity: A read and a write of the logs. One log and 4 MiB are in memory at a time.
  package func rewriteForeignLogs() throws(StoreError) -> [LogLoss] {
    let names = try files.names(in: directory)
    var numbers = Set(names.compactMap(LogSurvey.number(of:)).filter(manifest.needsLog))
    if manifest.logNumber > 0 { numbers.insert(manifest.logNumber) }
    var targets = numbers.sorted()[...]
    var losses: [LogLoss] = []
    var last = manifest.lastSequence
    var log = LogWriter()
    func writeNext(_ bytes: [UInt8]) throws(StoreError) {
      guard let target = targets.popFirst() else { return }
      try files.create("\(directory)/\(LogSurvey.name(of: target))", with: bytes)
    }
    for number in numbers.sorted() {
      let name = LogSurvey.name(of: number)
      guard let bytes = try files.readIfPresent("\(directory)/\(name)") else { continue }
      try files.remove("\(directory)/\(name)")
      let parts = ForeignLog(bytes, called: name)
      losses += parts.losses
      for batch in parts.batches {
        guard last < LogScan.sequenceLimit - batch.rowCount else {
          throw .corrupt("\(source): the sequences are out of range")
        }
        log.add(withUnsafeBytes(of: (last + 1).littleEndian, Array.init) + batch.bytes.dropFirst(8))
        last += batch.rowCount
      }
      // All logs up to this one were read and removed, so a name is free.
      if log.bytes.count >= Self.logBytes {
        try writeNext(log.bytes)
        log = LogWriter()
      }
    }
    if !log.bytes.isEmpty { try writeNext(log.bytes) }
    // An opening expects the log that the MANIFEST names.
    while !targets.isEmpty { try writeNext([]) }
    return losses
  }
}

/// The batches of a write-ahead log of another program's database.
private struct ForeignLog {
  private(set) var batches: [(bytes: [UInt8], rowCount: UInt64)] = []
  private(set) var losses: [LogLoss] = []

  init(_ bytes: [UInt8], called name: String) {
    var scan = LogScan(bytes, of: .foreignBatches)
    var damage: Int?
    func note(_ kind: LogLoss.Kind, _ place: Range<Int>) {
      losses.append(
        LogLoss(log: name, offset: place.lowerBound, byteCount: place.count, kind: kind))
    }
    func endDamage(at place: Int) {
      if let start = damage, start < place { note(.damaged, start..<place) }
      damage = nil
    }
    while let part = scan.nextPart() {
      switch part {
      case .record(let record):
        endDamage(at: record.start)
        let batch = scan.withBytes(of: record) { batch in
          LogBatch.rows(of: batch).map { rows in ([UInt8](batch), UInt64(rows.count)) }
        }
        if let batch {
          batches.append(batch)
        } else {
          note(.malformed, record.start..<scan.validBytes)
        }
      // One damaged part may be found in pieces.
      case .damaged(let place, _): damage = damage ?? place
      case .torn(let place):
        endDamage(at: place)
        note(.incomplete, place..<bytes.count)
      }
    }
    endDamage(at: bytes.count)
  }
}
