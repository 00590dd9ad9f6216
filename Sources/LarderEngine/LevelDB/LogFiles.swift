/// LevelDB's write-ahead logs, as far as durability asks for more than LevelDB does.
///
/// LevelDB syncs the log that it writes to. When it starts a new one, the end of the old one stays
/// in the system's memory until its table is written: a synced write in the new log could survive a
/// power loss that earlier ones do not. So after each synced write the older logs that are still
/// there are synced too, and the directory, which has a new name in it. Recovery takes care of a
/// power loss in between: what is in the new log counts only behind a whole old one.
struct LogFiles {
  private let directory: String
  private let lock: any FileGuard
  private let files: any StoreFiles
  private let bufferBytes: Int

  /// All logs below this number are on the device, and it was the newest at the last listing.
  private var newest: UInt64 = 0
  /// No less than what LevelDB's memory for the newest log had grown to at the last listing, and
  /// what it has grown by since.
  ///
  /// As long as both fit its buffer, there is no newer log.
  private var grownBytes = (before: 0, since: 0)
  private var mustList = true
  /// What has been written since the directory was last seen in its place.
  private var unseenBytes = 0

  init(
    in directory: String, under lock: any FileGuard, files: any StoreFiles, bufferBytes: Int
  ) {
    (self.directory, self.files, self.bufferBytes) = (directory, files, bufferBytes)
    self.lock = lock
  }

  /// Throws when the directory has been deleted, moved, or replaced by another one.
  ///
  /// A write to the open files of such a directory succeeds, and means nothing. What LevelDB does
  /// next it does by path: it would make its files in what is there now, and delete files of that.
  func requireInPlace() throws(EngineError) {
    guard try lock.isInPlace() else {
      throw .io("the directory \(directory) is gone, or another one is in its place")
    }
  }

  /// Looks after the directory's place before so much is written that LevelDB starts a new log.
  mutating func prepareToGrow() throws(EngineError) {
    guard unseenBytes >= bufferBytes / 8 else { return }
    try requireInPlace()
    unseenBytes = 0
  }

  /// Counts what is about to be written.
  ///
  /// For each row LevelDB takes a node of up to 12 links, and less than 32 bytes for its numbers.
  mutating func willGrow(rows: Int, bytes: Int) {
    grownBytes.since += bytes + rows * 128
    unseenBytes += bytes + rows * 128
  }

  /// Takes note that there may be a new log, however little was written.
  mutating func mayHaveRotated() { mustList = true }

  /// Waits until all logs but the newest are on the device, and the names of all of them.
  ///
  /// - Complexity: A look at the guard's name; when LevelDB may have started a new log, a listing
  ///   of the directory; when it has, an fsync for each older log that is still there, and one for
  ///   the directory.
  mutating func synchronizeOlder() throws(EngineError) {
    try requireInPlace()
    let grown = grownBytes.before + grownBytes.since + Self.slackBytes
    guard mustList || grown >= bufferBytes else { return }
    let numbers = try files.names(in: directory).compactMap(LogSurvey.number(of:)).sorted()
    if let last = numbers.last, last > newest {
      for number in numbers where number >= newest && number < last { try synchronize(number) }
      try files.synchronizeDirectory(directory)
      newest = last
      // It was started at some moment since the last listing.
      grownBytes.before = 0
    }
    grownBytes = (grownBytes.before + grownBytes.since, 0)
    mustList = false
  }

  /// Where the newest log ends; nil when there is none.
  func end() throws(EngineError) -> LogPosition? {
    let newest = try files.names(in: directory).compactMap(LogSurvey.number(of:)).max()
    guard let newest else { return nil }
    return LogPosition(log: newest, byte: try files.byteCount(of: path(of: newest)) ?? 0)
  }

  /// Whether there is room to write what is in memory into a table.
  ///
  /// Throws when the directory for it is not there.
  ///
  /// `deletedBytes` is the room of files that are deleted first.
  func hasRoom(after deletedBytes: Int) throws(EngineError) -> Bool {
    try requireInPlace()
    let needed = min(grownBytes.before + grownBytes.since, 2 * bufferBytes) + Self.slackBytes
    return try files.availableBytes(in: directory) + UInt64(deletedBytes) >= UInt64(needed)
  }

  private func synchronize(_ number: UInt64) throws(EngineError) {
    do throws(EngineError) {
      try files.synchronize(path(of: number))
    } catch {
      // One that LevelDB has deleted meanwhile is in a table, which it synced before.
      guard try files.kind(of: path(of: number)) == nil else { throw error }
    }
  }

  private func path(of number: UInt64) -> String { "\(directory)/\(LogSurvey.name(of: number))" }

  /// LevelDB takes memory in blocks of this size, and counts whole ones.
  private static let slackBytes = 8 << 10
}

/// A position in a store's logs, and so in the order of its commits.
struct LogPosition: Comparable, Sendable {
  let log: UInt64
  let byte: Int

  static func < (a: LogPosition, b: LogPosition) -> Bool { (a.log, a.byte) < (b.log, b.byte) }
}
