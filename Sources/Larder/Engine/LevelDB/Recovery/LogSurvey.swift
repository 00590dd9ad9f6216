/// The state of the write-ahead logs that a store still needs.
package struct LogSurvey: Sendable {
  package struct Log: Sendable {
    package let number: UInt64
    package let name: String
    package let byteCount: Int
    package let end: LogScan.End
    package let firstSequence: UInt64?
    package let nextSequence: UInt64?
  }

  package enum Finding: Hashable, Sendable {
    case whole
    /// From this byte of the log at this index on, the logs cannot be used, later logs included.
    ///
    /// A power loss leaves unsynced writes in this state.
    case torn(log: Int, at: Int)
    /// Written bytes were changed, and it is unknown what else is lost.
    ///
    /// The log at index `log` is intact up to `at`.
    case damaged(log: Int, at: Int, message: String)
  }

  /// The logs in the order in which they were written.
  package let logs: [Log]
  package let finding: Finding

  /// Reads the logs of a directory that a MANIFEST names.
  ///
  /// - Parameters:
  ///   - manifest: The MANIFEST that names the logs.
  ///   - directory: The store's, for messages.
  ///   - names: The names in it.
  ///   - read: Reads a file by its name.
  /// - Throws: Errors of `read`.
  /// - Complexity: One checksum over each log. One log is in memory at a time.
  package init<E: Error>(
    of manifest: Manifest, in directory: String, names: some Sequence<String>,
    read: (String) throws(E) -> [UInt8]
  ) throws(E) {
    var numbers: [UInt64] = []
    for name in names {
      if let number = Self.number(of: name), manifest.needsLog(number) { numbers.append(number) }
    }
    var logs: [Log] = []
    var expected: UInt64?
    for number in numbers.sorted() {
      let name = Self.name(of: number)
      let bytes = try read(name)
      var scan = LogScan(bytes, of: .batches(minimumSequence: expected ?? 0))
      let end = scan.finish()
      logs.append(
        Log(
          number: number, name: name, byteCount: bytes.count, end: end,
          firstSequence: scan.firstSequence, nextSequence: scan.nextSequence))
      expected = scan.nextSequence ?? expected
    }
    self.logs = logs
    if manifest.logNumber > 0, !numbers.contains(manifest.logNumber) {
      finding = .damaged(
        log: 0, at: 0, message: "\(directory)/\(Self.name(of: manifest.logNumber)) is missing")
    } else {
      finding = Self.firstProblem(of: logs, in: directory)
    }
  }

  private static func firstProblem(of logs: [Log], in directory: String) -> Finding {
    var expected: UInt64?
    for (index, log) in logs.enumerated() {
      if let first = log.firstSequence, let expected, first != expected {
        guard first > expected else {
          return .damaged(
            log: index, at: 0, message: "\(directory)/\(log.name): repeats what earlier logs hold")
        }
        // The end of the previous log is lost, cut off between two records.
        return .torn(log: index, at: 0)
      }
      switch log.end {
      case .complete: break
      case .torn(let place): return .torn(log: index, at: place)
      case .damaged(let place, let next):
        return .damaged(
          log: index, at: place,
          message: "\(directory)/\(log.name): damaged at byte \(place), and valid again at \(next)")
      }
      let isFollowed = logs[(index + 1)...].contains { $0.firstSequence != nil }
      // LevelDB starts a new log only after a write to the last one.
      if log.firstSequence == nil, isFollowed { return .torn(log: index, at: log.byteCount) }
      expected = log.nextSequence ?? expected
    }
    return .whole
  }

  /// The name of the log with this number.
  package static func name(of number: UInt64) -> String {
    let digits = "\(number)"
    return String(repeating: "0", count: max(0, 6 - digits.utf8.count)) + digits + ".log"
  }

  /// The numbers of the logs in a directory, in order.
  static func numbers(in directory: String, _ files: any StoreFiles) throws(StoreError) -> [UInt64]
  {
    try files.names(in: directory).compactMap(number(of:)).sorted()
  }

  /// The number in the name of a log; nil if `name` is not the name of a log.
  package static func number(of name: String) -> UInt64? {
    guard name.hasSuffix(".log"), let number = UInt64(name.dropLast(4)),
      Self.name(of: number) == name
    else { return nil }
    return number
  }
}
