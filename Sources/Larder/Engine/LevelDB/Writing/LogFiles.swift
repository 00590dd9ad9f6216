/// Makes LevelDB's write-ahead logs more durable than LevelDB does.
///
/// LevelDB syncs only the log that it writes to. After it starts a new log, the end of the old one
/// stays in the system's memory until its table is written: a synced write in the new log could
/// survive a power loss that earlier writes do not. So after a synced write the older logs that
/// still exist are synced too, and the directory for the new name. If the power is lost before
/// that, recovery uses the new log only if the old one is complete.
struct LogFiles {
  private let directory: String
  private let lock: any FileGuard
  private let files: any StoreFiles
  private let bufferBytes: Int

  /// The newest log at the last listing; all logs before it are on the device.
  private var newest: UInt64 = 0
  /// The rows in the newest log: at most those written before the last listing, and those since.
  ///
  /// While the memory for both fits the write buffer, there is no newer log.
  private var rows = (before: Rows(), since: Rows())
  private var mustList = true
  /// The bytes written since the directory was last checked.
  private var unseenBytes = 0

  init(
    in directory: String, under lock: any FileGuard, files: any StoreFiles, bufferBytes: Int
  ) {
    (self.directory, self.files, self.bufferBytes) = (directory, files, bufferBytes)
    self.lock = lock
  }

  /// Throws if the directory was deleted, moved, or replaced by another one.
  ///
  /// A write to the open files of such a directory succeeds without effect. LevelDB opens its next
  /// files by path: it would create and delete files in the directory that is there now.
  func requireInPlace() throws(StoreError) {
    guard try lock.isInPlace() else { throw .io(replaced: directory) }
  }

  /// Checks the directory, if enough was written that LevelDB may start a new log.
  mutating func prepareToGrow() throws(StoreError) {
    guard unseenBytes >= bufferBytes / 8 else { return }
    try requireInPlace()
    unseenBytes = 0
  }

  /// Counts rows that are about to be written, and the bytes of their keys and values.
  mutating func willGrow(rows count: Int, bytes: Int) {
    let new = Rows(count: count, bytes: bytes)
    rows.since += new
    unseenBytes += new.memoryBytes
  }

  /// Notes that LevelDB may have started a new log, regardless of the bytes written.
  mutating func mayHaveRotated() { mustList = true }

  /// Notes that a new log was begun.
  mutating func didBegin() {
    rows = (Rows(), Rows())
    mustList = true
  }

  /// Whether LevelDB's memory may be full, so that the next write may begin a new log.
  var mayBeFull: Bool {
    (rows.before + rows.since).memoryBytes + Self.slackBytes >= bufferBytes
  }

  /// Waits until all logs but the newest, and the names of all logs, are on the device.
  ///
  /// - Complexity: One check of the guard's name; if LevelDB may have started a new log, a listing
  ///   of the directory; if it has, an fsync for each older log, and one for the directory.
  mutating func synchronizeOlder() throws(StoreError) {
    try requireInPlace()
    guard mustList || mayBeFull else { return }
    let numbers = try numbers()
    if let last = numbers.last, last > newest {
      for number in numbers where number >= newest && number < last { try synchronize(number) }
      try files.synchronizeDirectory(directory)
      newest = last
      // The log was started at some moment since the last listing.
      rows.before = Rows()
    }
    rows = (rows.before + rows.since, Rows())
    mustList = false
  }

  /// The numbers of the logs, in order.
  func numbers() throws(StoreError) -> [UInt64] {
    try LogSurvey.numbers(in: directory, files)
  }

  /// The end of the newest log; nil if there is no log.
  func end() throws(StoreError) -> LogPosition? {
    guard let newest = try numbers().last else { return nil }
    return LogPosition(log: newest, byte: try files.byteCount(of: path(of: newest)) ?? 0)
  }

  private func synchronize(_ number: UInt64) throws(StoreError) {
    do throws(StoreError) {
      try files.synchronize(path(of: number))
    } catch {
      // If LevelDB has deleted the log meanwhile, its rows are in a table that was synced before.
      guard try files.kind(of: path(of: number)) == nil else { throw error }
    }
  }

  private func path(of number: UInt64) -> String { "\(directory)/\(LogSurvey.name(of: number))" }

  /// LevelDB allocates memory in blocks, and counts whole blocks.
  private static let slackBytes = 8 << 10

  /// A number of rows, and the bytes of their keys and values.
  private struct Rows {
    var count = 0
    var bytes = 0

    /// The most that they can take in LevelDB's memory: for each row a node of up to 12 links, and
    /// less than 32 bytes for its numbers.
    var memoryBytes: Int { bytes + count * 128 }

    static func + (a: Rows, b: Rows) -> Rows {
      Rows(count: a.count + b.count, bytes: a.bytes + b.bytes)
    }

    static func += (a: inout Rows, b: Rows) { a = a + b }
  }
}

/// A position in a store's logs, and so in the order of its commits.
struct LogPosition: Comparable, Sendable {
  let log: UInt64
  let byte: Int

  static func < (a: LogPosition, b: LogPosition) -> Bool { (a.log, a.byte) < (b.log, b.byte) }
}
