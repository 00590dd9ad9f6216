import Foundation
import Larder
import LarderTestSupport
import Testing

/// A write-ahead log that LevelDB has written, and the offsets of its records.
struct WrittenLog {
  let bytes: [UInt8]
  /// The start of each record, and the end of the last one.
  let edges: [Int]

  init(_ bytes: [UInt8]) throws {
    self.bytes = bytes
    var scan = LogScan(bytes, of: .batches(minimumSequence: 0))
    var edges: [Int] = []
    while let record = scan.next() { edges.append(record.start) }
    self.edges = edges + [scan.validBytes]
    try #require(scan.end == .complete && scan.validBytes == bytes.count)
  }

  /// The log of a store with one entry for each of these values.
  init(values: [[UInt8]]) throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    for (index, value) in values.enumerated() { try engine.put(Array("key\(index)".utf8), value) }
    try engine.close()
    let log = try #require(try Damage.files(in: directory.path, endingIn: ".log").last)
    try self.init(Array(try Data(contentsOf: URL(filePath: log))))
  }

  var recordCount: Int { edges.count - 1 }

  /// The index of the record that has the byte at `offset`.
  func record(at offset: Int) -> Int { edges.lastIndex { $0 <= offset } ?? 0 }
}

private func end(of bytes: [UInt8], above sequence: UInt64 = 0) -> LogScan.End {
  var scan = LogScan(bytes, of: .batches(minimumSequence: sequence))
  return scan.finish()
}

private func put(_ mark: UInt8) -> [(key: [UInt8], value: [UInt8])] {
  [([mark], Array(repeating: mark, count: 30))]
}

/// A scan of a log tells a torn end from damage.
@Suite struct LogScanTests {
  private func smallLog() throws -> WrittenLog {
    let log = try WrittenLog(values: (1...8).map { Array(repeating: $0, count: 20) })
    try #require(log.recordCount == 8)
    return log
  }

  @Test("A changed byte is damage, and in the last record a torn end.")
  func changedBytes() throws {
    let log = try smallLog()
    for offset in log.bytes.indices {
      for mask: UInt8 in [0x01, 0x80, 0xFF] {
        var bytes = log.bytes
        bytes[offset] ^= mask
        let index = log.record(at: offset)
        let (start, next) = (log.edges[index], log.edges[index + 1])
        let expected: LogScan.End =
          index == log.recordCount - 1 ? .torn(at: start) : .damaged(at: start, resumingAt: next)
        #expect(end(of: bytes) == expected, "byte \(offset)")
      }
    }
  }

  @Test("A log that is cut or zeroed to its end is torn.")
  func cutsAndZeros() throws {
    let log = try smallLog()
    for count in 0...log.bytes.count {
      let cut = Array(log.bytes.prefix(count))
      let start = log.edges[log.record(at: count)]
      #expect(end(of: cut) == (start == count ? .complete : .torn(at: start)))

      // Zeros in the log itself are unchanged.
      let zeroed = cut + Array(repeating: 0, count: log.bytes.count - count)
      let changed = zip(zeroed, log.bytes).enumerated().first { $0.element.0 != $0.element.1 }
      let place = changed.map { log.edges[log.record(at: $0.offset)] }
      #expect(end(of: zeroed) == place.map { .torn(at: $0) } ?? .complete)
    }
  }

  @Test("Records that span many blocks are read completely.")
  func longRecords() throws {
    var random = SplitMix64(seed: 13)
    let values = [10, 100_000, 20, 32_768, 32_761, 70_000, 5].map { random.bytes($0) }
    let log = try WrittenLog(values: values)
    var scan = LogScan(log.bytes, of: .batches(minimumSequence: 0))
    for value in values {
      guard let record = scan.next() else { break }
      let data = scan.withBytes(of: record) { $0.withUnsafeBytes { Array($0) } }
      #expect(data.suffix(value.count) == value[...] || record.start == 0)
    }
    #expect(scan.finish() == .complete && scan.validBytes == log.bytes.count)

    for offset in stride(from: 0, to: log.bytes.count, by: 613) {
      var bytes = log.bytes
      bytes[offset] ^= 0x10
      let index = log.record(at: offset)
      switch end(of: bytes) {
      case .complete: Issue.record("the changed byte \(offset) was not detected")
      case .torn(let place): #expect(index == 6 && place == log.edges[6])
      case .damaged(let place, let next):
        #expect(place == log.edges[index])
        #expect(log.edges[(index + 1)...].contains(next), "byte \(offset)")
      }
    }
    for count in stride(from: 1, to: log.bytes.count, by: 977) {
      let start = log.edges[log.record(at: count)]
      #expect(end(of: Array(log.bytes.prefix(count))) == .torn(at: start))
    }
  }

  @Test("The filler at the end of a block must be zeros.")
  func filler() {
    for size in 32_720..<32_768 {
      var log = LogWriter()
      log.addBatch(sequence: 1, rows: [([1], Array(repeating: 1, count: size - 32))])
      let first = log.bytes.count
      log.addBatch(sequence: 2, rows: put(2))
      log.addBatch(sequence: 3, rows: put(3))
      #expect(end(of: log.bytes) == .complete)
      let rest = (32_768 - first % 32_768) % 32_768
      guard (1..<7).contains(rest) else { continue }
      var bytes = log.bytes
      bytes[first] = 1
      #expect(end(of: bytes) == .damaged(at: first, resumingAt: 32_768))
      for count in 0...rest {
        #expect(end(of: Array(log.bytes.prefix(first + count))) == .complete)
      }
    }
  }

  @Test("Stale records behind a torn end do not make it damage.")
  func staleRecords() {
    var log = LogWriter()
    for sequence: UInt64 in 10...14 { log.addBatch(sequence: sequence, rows: put(1)) }
    let valid = log.bytes.count
    log.addRaw([9, 9, 9])
    var stale = log
    for sequence: UInt64 in 3...14 { stale.addBatch(sequence: sequence, rows: put(2)) }
    #expect(end(of: stale.bytes) == .torn(at: valid))

    log.addBatch(sequence: 16, rows: put(2))
    #expect(end(of: log.bytes) == .damaged(at: valid, resumingAt: valid + 3))

    // Without an intact record before it, the sequences of earlier logs show which are stale.
    var other = LogWriter()
    other.addRaw([9, 9, 9])
    other.addBatch(sequence: 20, rows: put(2))
    #expect(end(of: other.bytes, above: 21) == .torn(at: 0))
    #expect(end(of: other.bytes, above: 20) == .damaged(at: 0, resumingAt: 3))
  }

  @Test("A gap in the sequences of a log is damage.")
  func sequenceGap() {
    var log = LogWriter()
    log.addBatch(sequence: 5, rows: put(1) + put(2))
    log.addBatch(sequence: 7, rows: [])
    log.addBatch(sequence: 7, rows: put(3))
    #expect(end(of: log.bytes) == .complete)
    var scan = LogScan(log.bytes, of: .batches(minimumSequence: 0))
    _ = scan.finish()
    #expect(scan.firstSequence == 5 && scan.nextSequence == 8)

    let place = log.bytes.count
    var gap = log
    gap.addBatch(sequence: 9, rows: put(4))
    #expect(end(of: gap.bytes) == .damaged(at: place, resumingAt: place))
    log.addBatch(sequence: 7, rows: put(4))
    #expect(end(of: log.bytes) == .torn(at: place))
  }

  @Test("Logs of other programs may repeat sequences, and have gaps and zeros between records.")
  func foreignLog() {
    var log = LogWriter()
    for sequence: UInt64 in [9, 9, 4, 700] { log.addBatch(sequence: sequence, rows: put(1)) }
    log.addRaw(Array(repeating: 0, count: 32_768 - log.bytes.count))
    log.addBatch(sequence: 2, rows: put(2))
    let whole = log.bytes
    func parts(_ bytes: [UInt8]) -> (records: Int, end: LogScan.End?) {
      var scan = LogScan(bytes, of: .foreignBatches)
      var count = 0
      while scan.next() != nil { count += 1 }
      return (count, scan.end)
    }
    for zeros in [0, 1, 6, 7, 40_000] {
      #expect(parts(whole + Array(repeating: 0, count: zeros)) == (5, .complete), "\(zeros)")
    }
    #expect(parts([]) == (0, .complete))
    #expect(parts(whole + [1, 2, 3]) == (5, .torn(at: whole.count)))
    // Zeros that do not fill the block are damage.
    var short = LogWriter()
    short.addBatch(sequence: 1, rows: put(1))
    let place = short.bytes.count
    short.addRaw(Array(repeating: 0, count: 100))
    short.addBatch(sequence: 2, rows: put(2))
    #expect(parts(short.bytes) == (1, .damaged(at: place, resumingAt: place + 100)))
    // In a store's log, a repeated sequence is damage.
    let size = place
    #expect(end(of: whole) == .damaged(at: size, resumingAt: 3 * size))
  }

  @Test("A log with an incomplete last record is torn at its start.")
  func incompleteRecord() {
    var log = LogWriter()
    log.addBatch(sequence: 1, rows: put(1))
    let start = log.bytes.count
    log.addBatch(sequence: 2, rows: [([1], Array(repeating: 7, count: 80_000))])
    #expect(end(of: Array(log.bytes.prefix(65_536))) == .torn(at: start))
    var other = LogWriter()
    other.addRaw(Array(log.bytes.prefix(65_536)))
    other.addBatch(sequence: 3, rows: put(1))
    #expect(end(of: other.bytes) == .damaged(at: start, resumingAt: 65_536))
  }

  @Test("The highest commit of a batch is found.")
  func highestCommit() throws {
    let directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    for index in 0..<3 { try engine.put([UInt8(index)], stampedValue(7), stamped: true) }
    try engine.put("unstamped", String(repeating: "x", count: 50))
    try engine.close()
    let log = try #require(try Damage.files(in: directory.path, endingIn: ".log").last)
    let bytes = Array(try Data(contentsOf: URL(filePath: log)))

    var scan = LogScan(bytes, of: .batches(minimumSequence: 0))
    var commits: [UInt64?] = []
    while let record = scan.next() {
      commits.append(scan.withBytes(of: record) { LogBatch.highestCommit(in: $0, stamp: .test) })
    }
    #expect(commits == [1, 2, 3, nil])
  }

  @Test("Arbitrary bytes are read without a trap.", arguments: [1, 2, 3] as [UInt64])
  func arbitraryBytes(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let log = try smallLog()
    for count in 0..<300 {
      _ = end(of: random.bytes(count * 7))
      var bytes = log.bytes
      for _ in 0..<4 {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      _ = end(of: bytes)
      for start in [0, 6, 12] {
        _ = LogBatch.highestCommit(
          in: Array(bytes[(start + count % 90)...]).span.bytes, stamp: .test)
      }
    }
  }
}
