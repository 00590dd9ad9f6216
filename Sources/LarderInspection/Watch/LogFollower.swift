import Larder

/// Follows the write-ahead logs of a database that another process writes to.
///
/// It reads files only, from the block on in which the last record ended. A log stays open until
/// everything in it was read, so that LevelDB may delete it meanwhile.
struct LogFollower {
  struct Change {
    let key: [UInt8]
    /// Nil for a removal.
    let value: [UInt8]?
  }

  enum Event {
    /// A batch, with LevelDB's sequence of its first change.
    case batch(sequence: UInt64, [Change])
    /// Changes from this sequence on; their logs were deleted before they were read.
    case missed(from: UInt64, count: UInt64)
    case damaged(String)
  }

  private static let blockBytes = 32 << 10

  private struct Log {
    let number: UInt64
    let file: any StoreFile
    /// The end of the last complete record.
    var validBytes = 0
    /// The size when it was last read.
    var byteCount = 0
  }

  private let path: String
  private let files = SystemFiles()
  private var log: Log?
  /// The sequence that the next batch has unless changes are missed.
  private var nextSequence: UInt64?

  /// Begins at the end of the newest log in a directory, or at the start of the oldest one.
  ///
  /// - Throws: An ``InspectionError`` with the status `unavailable` or `io`.
  init(of path: String, fromStart: Bool) throws(InspectionError) {
    self.path = path
    while log == nil {
      let numbers = try logNumbers()
      guard let number = fromStart ? numbers.first : numbers.last else { return }
      // Nil if it was deleted meanwhile; then there is another one.
      log = try open(number)
    }
    if !fromStart { try read { _ in } }
  }

  /// Calls `body` for what was written since the last call.
  ///
  /// - Throws: As ``init(of:fromStart:)``.
  /// - Complexity: A listing of the directory, and a read of what is new.
  mutating func poll(_ body: (Event) -> Void) throws(InspectionError) {
    // Listed first: a log is complete once there is a later one.
    var later = try logNumbers()[...]
    while true {
      try read(body)
      let current = log?.number
      later = later.drop { number in current.map { number <= $0 } ?? false }
      guard let next = later.popFirst() else { return }
      // If it was deleted meanwhile, the next log shows how many changes were missed.
      if let opened = try open(next) { log = opened }
    }
  }

  private func logNumbers() throws(InspectionError) -> [UInt64] {
    try DatabaseFiles.names(in: path).compactMap(LogSurvey.number(of:)).sorted()
  }

  private func open(_ number: UInt64) throws(InspectionError) -> Log? {
    do {
      return try files.openFile("\(path)/\(LogSurvey.name(of: number))", forWriting: false)
        .map { Log(number: number, file: $0) }
    } catch {
      throw InspectionError(error)
    }
  }

  /// Reads what is new in the current log.
  private mutating func read(_ body: (Event) -> Void) throws(InspectionError) {
    guard var log else { return }
    defer { self.log = log }
    guard try !FileAccess.read(log.file, from: log.byteCount, limit: 1).isEmpty else { return }
    // Chunks are found from the start of a block on. Records before `validBytes` were reported, and
    // the first bytes of the block may be the end of one.
    let base = log.validBytes - log.validBytes % Self.blockBytes
    let bytes = try FileAccess.read(log.file, from: base)
    log.byteCount = base + bytes.count
    let reported = log.validBytes - base
    var scan = LogScan(bytes, of: .batches(minimumSequence: nextSequence ?? 0))
    while let part = scan.nextPart() {
      switch part {
      case .record(let record) where record.start >= reported:
        scan.withBytes(of: record) { report($0, at: base + record.start, of: log, body) }
        log.validBytes = base + scan.validBytes
      case .damaged(let place, let next) where place >= reported:
        let name = LogSurvey.name(of: log.number)
        body(.damaged("\(name), byte \(base + place): damaged, valid again at \(base + next)"))
        log.validBytes = base + next
      case .record, .damaged, .torn: break
      }
    }
  }

  private mutating func report(
    _ batch: RawSpan, at place: Int, of log: Log, _ body: (Event) -> Void
  ) {
    guard let sequence = LogBatch.sequence(of: batch), let rows = LogBatch.rows(of: batch) else {
      return body(
        .damaged("\(LogSurvey.name(of: log.number)), byte \(place): a malformed batch"))
    }
    if let nextSequence, sequence > nextSequence {
      body(.missed(from: nextSequence, count: sequence - nextSequence))
    }
    nextSequence = sequence + UInt64(rows.count)
    body(
      .batch(
        sequence: sequence,
        rows.map { row in
          Change(key: row.key, value: row.value.map { [UInt8](batch.extracting($0)) })
        }))
  }
}
