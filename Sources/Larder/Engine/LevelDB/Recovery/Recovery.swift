// Recovery of a store's logs before LevelDB opens it.
//
// LevelDB's own recovery skips unreadable records and everything after them, or refuses to open a
// store whose last write was cut off by a power loss. So the MANIFEST and the logs are first read
// strictly. A damaged store is refused, and nothing is changed. Bytes that a power loss tore are
// set aside in `LARDER.aside`, in place of the copies of the last time, and cut off:
//
//   1. The copies are written and synced, with their names.
//   2. Then the files are cut: the MANIFEST first, then later logs before earlier ones. If this is
//      interrupted, the next opening finds the same tear. A log that is empty by then keeps its
//      copy.
//
// The rows in the logs may name payloads in segments. A payload that was lost, and may never have
// been synced, ends the logs as a torn record does; see `FrameCheck.swift`.
//
// An edit of the MANIFEST is written before the names of its files are durable. It is synced before
// LevelDB acts on it, by deleting files that the edit made obsolete or by writing the next edit. So
// only the last edit may be on the device without the names of its files, and then all files of the
// state before it still exist. If a file is missing that the MANIFEST names, the last edit is cut
// off, provided that all files of the earlier state exist. No entry is lost by that: an edit moves
// entries between files and adds none. Otherwise the files were lost in another way, and the store
// is refused.

/// The bytes that were set aside when a store was opened after a power loss.
package struct Recovery: Hashable, Sendable {
  /// The directory in a store for bytes that were set aside.
  package static let asideName = "LARDER.aside"

  /// A description of the recovery, in English.
  package let summary: String
  /// The commit sequences that are lost; nil if they are unknown.
  package let lostCommits: ClosedRange<UInt64>?
  /// The directory of the bytes.
  package let asidePath: String
  /// The payload whose loss ended the logs, in English; nil if they ended for another reason.
  package let lostPayload: String?
}

/// Prepares a store's files so that LevelDB reads them completely, or refuses them.
///
/// The caller holds the store's guard, and LevelDB does not have the store open.
///
/// - Parameters:
///   - path: The store's directory.
///   - files: The file layer.
///   - stamp: Where the store's values are stamped; nil if that is not known. Then the commits that
///     are set aside are not known either.
///   - separation: The values that may be kept in segments; nil if there are none.
///   - ownsFiles: Whether no other process has the segments open, under other names.
///   - afterFailedSync: Whether this process has failed to sync a segment.
/// - Returns: The bytes set aside; nil unless a power loss left a torn log or MANIFEST.
/// - Throws: ``StoreError/corrupt(_:)`` when a log or the MANIFEST is damaged or missing: nothing
///   was changed. ``StoreError/io(_:)`` and ``StoreError/diskFull`` from the file system.
package func recover(
  directory path: String, files: any StoreFiles, stamp: Stamp?, separation: ValueSeparation? = nil,
  ownsFiles: Bool = true, afterFailedSync: Bool = false
) throws(StoreError) -> Recovery? {
  guard let contents = try StoreContents(of: path, files: files) else { return nil }
  var plan = CutPlan(directory: path, files: files, stamp: stamp, separation: separation)
  plan.add(contents.name, bytes: contents.bytes, keeping: contents.keptBytes)
  var end: (log: Int, place: Int)?
  var lostFrame: FramePointer?
  if case .torn(let index, let place) = contents.survey.finding { end = (index, place) }
  if let separation {
    var check = FrameCheck(in: path, files: files, format: separation)
    end = try check.end(of: contents.survey.logs, before: end)
    lostFrame = check.lost
    // The rows are about to leave the logs.
    try check.synchronize(ownsFiles: ownsFiles, afterFailedSync: afterFailedSync)
  }
  if let end {
    try plan.add(contents.survey.logs, from: end.log, at: end.place)
    let log = "\(path)/\(contents.survey.logs[end.log].name)"
    plan.lostPayload = lostFrame.map { frame in
      "the payload of the row in \(log), byte \(end.place), is missing or damaged in "
        + "\(SegmentHeader.name(of: frame.segment)), byte \(frame.offset)"
    }
  }
  guard !plan.isEmpty else { return nil }
  try plan.setAside()
  try plan.cut()
  return plan.recovery
}

/// The MANIFEST that CURRENT names, and the logs that it needs, all without damage.
private struct StoreContents {
  /// The name of the MANIFEST.
  let name: String
  let bytes: [UInt8]
  /// The number of bytes of the MANIFEST that are kept.
  let keptBytes: Int
  let survey: LogSurvey

  /// Nil if there is no CURRENT.
  init?(of path: String, files: any StoreFiles) throws(StoreError) {
    guard let current = try Manifest.current(in: path, files) else { return nil }
    let text = String(decoding: current, as: UTF8.self)
    name = String(text.dropLast())
    guard text.last == "\n", name.hasPrefix("MANIFEST-"),
      UInt64(name.dropFirst("MANIFEST-".count)) != nil
    else { throw .corrupt("\(path)/CURRENT names no MANIFEST") }
    guard try files.kind(of: "\(path)/\(name)") != nil else {
      throw .corrupt("\(path)/\(name) is missing")
    }
    bytes = try files.read("\(path)/\(name)", limit: nil)
    guard let manifest = Manifest(bytes) else { throw .corrupt("\(path)/\(name) is damaged") }

    let names = try files.names(in: path)
    guard let missing = manifest.missingFile(in: names) else {
      survey = try Self.survey(of: manifest, in: path, names: names, files: files)
      if case .torn(let place) = manifest.end { keptBytes = place } else { keptBytes = bytes.count }
      if case .damaged(_, _, let message) = survey.finding { throw .corrupt(message) }
      try manifest.requireSafeTables(in: path, names: names, files: files)
      return
    }
    // A torn end is the last edit; the one before it was synced.
    guard manifest.end == .complete,
      let earlier = Manifest(Array(bytes[..<manifest.lastEdit])),
      try earlier.isWhole(beside: manifest, in: path, names: names, files: files)
    else { throw .corrupt("\(path)/\(missing) is missing") }
    survey = try Self.survey(of: earlier, in: path, names: names, files: files)
    keptBytes = manifest.lastEdit
    if case .damaged = survey.finding { throw .corrupt("\(path)/\(missing) is missing") }
    try earlier.requireSafeTables(in: path, names: names, files: files)
  }

  private static func survey(
    of manifest: Manifest, in path: String, names: Set<String>, files: any StoreFiles
  ) throws(StoreError) -> LogSurvey {
    try LogSurvey(of: manifest, in: path, names: names) { name throws(StoreError) in
      try files.read("\(path)/\(name)", limit: nil)
    }
  }
}

extension Manifest {
  /// Whether all files exist, and in full length those that `later` does not name.
  fileprivate func isWhole(
    beside later: Manifest, in path: String, names: Set<String>, files: any StoreFiles
  ) throws(StoreError) -> Bool {
    guard missingFile(in: names) == nil else { return false }
    for (number, table) in tables where later.tables[number] == nil {
      guard let name = Self.name(ofTable: number, among: names) else { return false }
      if try files.byteCount(of: "\(path)/\(name)") != table.bytes { return false }
    }
    return true
  }
}

/// The bytes to set aside and cut off.
private struct CutPlan {
  private struct Cut {
    let name: String
    /// The number of bytes that the file keeps.
    let kept: Int
    let bytes: [UInt8]
    /// Whether an interrupted opening has made the cut already.
    var isDone = false
  }

  private let directory: String
  private let files: any StoreFiles
  private let stamp: Stamp?
  private let separation: ValueSeparation?
  /// The MANIFEST, then logs in their order.
  private var cuts: [Cut] = []
  private var lastCommitKept: UInt64?
  private var lastCommitLost: UInt64?
  var lostPayload: String?

  init(
    directory: String, files: any StoreFiles, stamp: Stamp?, separation: ValueSeparation?
  ) {
    self.directory = directory
    self.files = files
    self.stamp = stamp
    self.separation = separation
  }

  var isEmpty: Bool { cuts.allSatisfy(\.isDone) }

  private var aside: String { "\(directory)/\(Recovery.asideName)" }

  mutating func add(_ name: String, bytes: [UInt8], keeping place: Int) {
    guard place < bytes.count else { return }
    cuts.append(Cut(name: name, kept: place, bytes: Array(bytes[place...])))
  }

  /// Plans to cut the log at `index` at `place`, and all logs after it.
  mutating func add(
    _ logs: [LogSurvey.Log], from index: Int, at place: Int
  ) throws(StoreError) {
    for (number, log) in logs.enumerated() {
      let bytes = try files.read("\(directory)/\(log.name)", limit: nil)
      let kept = number < index ? bytes.count : number == index ? min(place, bytes.count) : 0
      note(bytes, keeping: kept)
      add(log.name, bytes: bytes, keeping: kept)
      let copy = "\(aside)/\(log.name)"
      if number >= index, bytes.isEmpty, try files.kind(of: copy) != nil {
        let bytes = try files.read(copy, limit: nil)
        note(bytes, keeping: 0)
        cuts.append(Cut(name: log.name, kept: 0, bytes: bytes, isDone: true))
      }
    }
  }

  /// Notes the commits of a log, before and after its cut.
  private mutating func note(_ bytes: [UInt8], keeping kept: Int) {
    guard let stamp else { return }
    var scan = LogScan(bytes, of: .batches(minimumSequence: 0))
    while let record = scan.next() {
      let highest = scan.withBytes(of: record) {
        LogBatch.highestCommit(in: $0, stamp: stamp, separation: separation)
      }
      guard let commit = highest else { continue }
      if record.start < kept {
        lastCommitKept = max(lastCommitKept ?? 0, commit)
      } else {
        lastCommitLost = max(lastCommitLost ?? 0, commit)
      }
    }
  }

  /// Copies the bytes to cut off, and waits until the copies are on the device.
  func setAside() throws(StoreError) {
    try files.makeDirectory(aside)
    let done = cuts.filter(\.isDone).map(\.name)
    for name in try files.names(in: aside).sorted() where !done.contains(name) {
      try files.remove("\(aside)/\(name)")
    }
    for cut in cuts where !cut.isDone {
      try files.replace("\(aside)/\(cut.name)", with: cut.bytes)
    }
    try files.synchronizeDirectory(aside)
    try files.synchronizeDirectory(directory)
  }

  func cut() throws(StoreError) {
    // A MANIFEST comes first: its torn edit has not happened, whatever the logs contain.
    let logs = cuts.filter { !$0.name.hasPrefix("MANIFEST") }
    let manifest = cuts.filter { $0.name.hasPrefix("MANIFEST") }
    for cut in manifest + logs.reversed() where !cut.isDone {
      try files.truncate("\(directory)/\(cut.name)", to: cut.kept)
    }
  }

  var recovery: Recovery {
    let parts = cuts.map { cut in
      cut.kept > 0
        ? "\(cut.name) from byte \(cut.kept) on (\(cut.bytes.count) bytes)"
        : "all of \(cut.name) (\(cut.bytes.count) bytes)"
    }
    var lost: ClosedRange<UInt64>?
    if let lastCommitKept, let lastCommitLost, lastCommitKept < lastCommitLost {
      lost = (lastCommitKept + 1)...lastCommitLost
    }
    let reason = lostPayload.map { ": " + $0 } ?? ""
    return Recovery(
      summary: "The last writes are incomplete, as after a power loss\(reason). \(loss(of: lost)) "
        + "The incomplete bytes were moved to \(aside): \(parts.joined(separator: ", ")).",
      lostCommits: lost, asidePath: aside, lostPayload: lostPayload)
  }

  /// The writes that a user has to repeat, in English.
  private func loss(of lost: ClosedRange<UInt64>?) -> String {
    guard cuts.contains(where: { !$0.name.hasPrefix("MANIFEST") }) else {
      return "No entry is lost."
    }
    let count = lost.map { ", at least \($0.count)" } ?? ""
    return "The last writes are lost\(count). A power loss takes only writes after the last flush "
      + "or durable write; damage to the end of a log may take more."
  }
}
