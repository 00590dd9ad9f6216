// What happens to a store's logs before LevelDB opens it.
//
// LevelDB's own recovery passes over what it cannot read, and everything behind it, or refuses to
// open a store whose last write was cut off by a power loss. So the MANIFEST and the logs are read
// strictly first. What is damaged is refused, and nothing is changed. What a power loss tore off is
// set aside in `LARDER.aside`, where the copy of the last time it happened is kept, and cut off:
//
//   1. the copies are written and synced, their names too;
//   2. then files are cut, the MANIFEST first, then later logs before earlier ones. If this ends
//      early, the next opening finds the same tear. A log that is empty by then keeps its copy.
//
// An edit of the MANIFEST is written before the names of the files that it tells of are durable. It
// is synced before LevelDB does what stands on it: delete what the edit made needless, or write the
// next edit. So only the last edit may have outlived the names of its files, and then everything is
// there that the state before it needs. When a file is missing that the MANIFEST names, its last
// edit is cut off, if that leaves a state whose files are there. Nothing is lost by that: an edit
// moves entries between files and adds none. Otherwise files went in another way, and the store is
// refused.

/// What was set aside when a store was opened after a power loss.
package struct Recovery: Hashable, Sendable {
  /// The directory in a store that has what was set aside.
  package static let asideName = "LARDER.aside"

  /// What was found and done, in English.
  package let summary: String
  /// The commit sequences that are gone; nil when they are not known.
  package let lostCommits: ClosedRange<UInt64>?
  /// Where the bytes are now.
  package let asidePath: String
}

/// Makes a store's files such that LevelDB reads all of them, or refuses them.
///
/// The store's guard must be held, and LevelDB must not have the store open.
///
/// - Parameters:
///   - path: The store's directory.
///   - files: What the store's files are reached through.
///   - stamp: Where the store's values are stamped; nil if that is not known. Then the commits that
///     are set aside are not known either.
/// - Returns: What was set aside; nil for nothing, which is what there is but for power losses.
/// - Throws: ``EngineError/corrupt(_:)`` when a log or the MANIFEST is damaged or missing, and then
///   nothing was changed. ``EngineError/io(_:)`` and ``EngineError/diskFull`` from the file system.
package func recover(
  directory path: String, files: any StoreFiles, stamp: Stamp?
) throws(EngineError) -> Recovery? {
  guard let contents = try StoreContents(of: path, files: files) else { return nil }
  var plan = CutPlan(directory: path, files: files, stamp: stamp)
  plan.add(contents.name, bytes: contents.bytes, keeping: contents.keptBytes)
  if case .torn(let index, let place) = contents.survey.finding {
    try plan.add(contents.survey.logs, from: index, at: place)
  }
  guard !plan.isEmpty else { return nil }
  try plan.setAside()
  try plan.cut()
  return plan.recovery
}

/// The MANIFEST that CURRENT names, and the logs that it needs, without damage.
private struct StoreContents {
  /// The MANIFEST's.
  let name: String
  let bytes: [UInt8]
  /// How many bytes of the MANIFEST count.
  let keptBytes: Int
  let survey: LogSurvey

  /// Nil when there is no CURRENT.
  init?(of path: String, files: any StoreFiles) throws(EngineError) {
    let current = "\(path)/CURRENT"
    guard try files.kind(of: current) != nil else { return nil }
    let text = String(decoding: try files.read(current, limit: 64), as: UTF8.self)
    name = String(text.dropLast())
    guard text.last == "\n", name.hasPrefix("MANIFEST-"),
      UInt64(name.dropFirst("MANIFEST-".count)) != nil
    else { throw .corrupt("\(current) names no MANIFEST") }
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
  ) throws(EngineError) -> LogSurvey {
    try LogSurvey(of: manifest, in: path, names: names) { name throws(EngineError) in
      try files.read("\(path)/\(name)", limit: nil)
    }
  }
}

extension Manifest {
  /// Whether all files are there, those that `later` no longer names in their full length.
  fileprivate func isWhole(
    beside later: Manifest, in path: String, names: Set<String>, files: any StoreFiles
  ) throws(EngineError) -> Bool {
    guard missingFile(in: names) == nil else { return false }
    for (number, table) in tables where later.tables[number] == nil {
      guard let name = Self.name(ofTable: number, among: names) else { return false }
      let bytes = try files.read("\(path)/\(name)", limit: table.bytes + 1)
      if bytes.count != table.bytes { return false }
    }
    return true
  }
}

/// What is to be set aside and cut off.
private struct CutPlan {
  private struct Cut {
    let name: String
    /// How many bytes the file keeps.
    let kept: Int
    let bytes: [UInt8]
    /// Whether an opening that ended early has done it.
    var isDone = false
  }

  private let directory: String
  private let files: any StoreFiles
  private let stamp: Stamp?
  /// The MANIFEST, then logs in their order.
  private var cuts: [Cut] = []
  private var lastCommitKept: UInt64?
  private var lastCommitLost: UInt64?

  init(directory: String, files: any StoreFiles, stamp: Stamp?) {
    self.directory = directory
    self.files = files
    self.stamp = stamp
  }

  var isEmpty: Bool { cuts.allSatisfy(\.isDone) }

  private var aside: String { "\(directory)/\(Recovery.asideName)" }

  mutating func add(_ name: String, bytes: [UInt8], keeping place: Int) {
    guard place < bytes.count else { return }
    cuts.append(Cut(name: name, kept: place, bytes: Array(bytes[place...])))
  }

  /// Plans to cut the log at `index` at `place`, and all of those behind it.
  mutating func add(
    _ logs: [LogSurvey.Log], from index: Int, at place: Int
  ) throws(EngineError) {
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

  /// Notes the commits that a log has, on both sides of where it is cut.
  private mutating func note(_ bytes: [UInt8], keeping kept: Int) {
    guard let stamp else { return }
    var scan = LogScan(bytes, of: .batches(minimumSequence: 0))
    while let record = scan.next() {
      let highest = scan.withBytes(of: record) { LogBatch.highestCommit(in: $0, stamp: stamp) }
      guard let commit = highest else { continue }
      if record.start < kept {
        lastCommitKept = max(lastCommitKept ?? 0, commit)
      } else {
        lastCommitLost = max(lastCommitLost ?? 0, commit)
      }
    }
  }

  /// Copies what is going to be cut off, and waits until it is on the device.
  func setAside() throws(EngineError) {
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

  func cut() throws(EngineError) {
    // A MANIFEST comes first: what its end would have said has not happened, whatever the logs say.
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
    return Recovery(
      summary: "The last writes before a power loss had not reached the disk as a whole. "
        + "What is left of them was moved to \(Recovery.asideName): "
        + parts.joined(separator: ", ") + ".",
      lostCommits: lost, asidePath: aside)
  }
}
