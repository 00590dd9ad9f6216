// How a store that may be open and written to is read without changing it.
//
// No file in the store's directory is opened for writing, and neither lock file is locked, or
// opened by a database. Instead, another directory gets, in this order:
//
//   1. All segments, tables and logs of a first listing, as hard links, so that none can
//      disappear.
//   2. Copies of the logs in place of the links, made in ascending order. A later log holds later
//      writes, so the copies hold all writes up to some moment.
//   3. Copies of CURRENT and of the MANIFEST that it names, without an edit that is being written.
//      They are later than the logs: rows that the MANIFEST does not need from a log are in a
//      table.
//   4. The tables and segments that have appeared since. Segments have consecutive numbers: if one
//      of these is missing, it was begun and deleted meanwhile, and rows may name it.
//   5. Then the tables that the MANIFEST does not name are removed from the directory, because they
//      are still being written. LevelDB, opening the captured files, would use their numbers for
//      its own tables and first empty the files of these names, which the store shares.
//   6. A copy of the data keys of a sealed store, which is replaced as a whole.
//
// If the MANIFEST names a table that was deleted meanwhile, or a log that was begun meanwhile, if
// such a segment is missing, or if CURRENT has changed, the capture starts again. Where links are
// refused (another file system, read-only media), tables and segments are copied too. The remaining
// tables are safe to share: LevelDB never writes to a table that is in a MANIFEST, and numbers new
// tables above them all.

/// A store's files at one moment, captured in another directory.
package struct StoreCapture {
  /// The way in which the files were captured.
  package enum Method: String, Sendable {
    /// Tables are hard links to the store's tables.
    case links
    /// Links were refused, so all files were copied.
    case copies
  }

  /// The number of attempts; one fails if a table is deleted between being named and being linked.
  private static let tries = 50

  package private(set) var method: Method
  package private(set) var manifest = Manifest()
  /// What a rebuild could not read; nil unless the store was rebuilt.
  package var rebuild: Rebuild.Report?

  let source: String
  let directory: String
  let files: any StoreFiles
  private var linked: Set<String> = []
  private var manifestName = ""

  private enum Attempt {
    case whole
    /// CURRENT, or the MANIFEST that it named, has changed.
    case changed
    case missing(file: String, names: Set<String>)
  }

  /// Captures the store in `source`.
  ///
  /// - Parameters:
  ///   - source: The store's directory.
  ///   - directory: The directory for the files, without any LevelDB files.
  ///   - linking: Whether hard links are tried before copying.
  ///   - files: The file layer.
  /// - Throws: ``StoreError/corrupt(_:)`` when a file of the store is missing or its MANIFEST is
  ///   damaged; ``StoreError/io(_:)``, also when the store changes faster than it can be captured;
  ///   ``StoreError/diskFull``. Some files may then be in `directory`.
  package init(
    of source: String, into directory: String, linking: Bool = true, files: any StoreFiles
  ) throws(StoreError) {
    (self.source, self.directory, self.files) = (source, directory, files)
    method = linking ? .links : .copies
    var seen: Set<String>?
    for _ in 0..<Self.tries {
      switch try attempt() {
      case .whole:
        try copyKeys()
        return
      case .changed: seen = nil
      case .missing(let file, let names):
        // The directory has not changed, and still the file is missing.
        if seen == names {
          // LevelDB opens a database without its newest log.
          guard LogSurvey.number(of: file) != nil, try !StoreMarker.isPresent(in: source, files)
          else { throw .corrupt("\(source)/\(file) is missing") }
          return
        }
        seen = names
      }
      for name in try files.names(in: directory) where DataFile(name) != nil {
        try remove(name)
      }
    }
    throw .io("\(source) changes faster than it can be captured")
  }

  /// Describes files that were captured in another way.
  init(
    of source: String, into directory: String, manifest: Manifest, method: Method,
    files: any StoreFiles
  ) throws(StoreError) {
    (self.source, self.directory, self.files) = (source, directory, files)
    (self.manifest, self.method) = (manifest, method)
    try copyKeys()
  }

  /// Copies the file with the data keys.
  ///
  /// It may be newer than the captured rows, which count.
  private func copyKeys() throws(StoreError) {
    _ = try files.copy("\(source)/\(KeyFile.name)", to: "\(directory)/\(KeyFile.name)")
  }

  /// Whether a file is a hard link to the store's file, and not a copy.
  func isLinked(_ name: String) -> Bool { linked.contains(name) }

  /// Waits until the captured part of the store's MANIFEST, and all names, are on the device.
  ///
  /// This is needed before tables are shared permanently. If a power loss took back the edit that
  /// names a table, LevelDB would use the table's number again, and empty the file of that name.
  func makeSourceDurable() throws(StoreError) {
    try files.synchronize("\(source)/\(manifestName)")
    try files.synchronizeDirectory(source)
  }

  private mutating func attempt() throws(StoreError) -> Attempt {
    let first = try files.names(in: source)
    for name in first.sorted() where DataFile(name)?.isSegment == true { try transfer(name) }
    for name in first.sorted() where DataFile(name)?.isTable == true { try transfer(name) }
    try copyLogs(among: first)
    if try files.kind(of: "\(source)/CURRENT") == nil {
      return .missing(file: "CURRENT", names: first)
    }
    guard try copyManifest() else { return .changed }

    let later = try files.names(in: source)
    for name in later where !first.contains(name) && DataFile(name)?.isTable == true {
      try transfer(name)
    }
    guard try captureSegments(among: later, after: first) else { return .changed }
    if let missing = try keepNeeded() { return .missing(file: missing, names: later) }
    // The log was begun meanwhile; rows of the log before it may be neither here nor in a table.
    let log = LogSurvey.name(of: manifest.logNumber)
    if manifest.logNumber > 0, try files.kind(of: "\(directory)/\(log)") == nil {
      return .missing(file: log, names: later)
    }
    return .whole
  }

  /// Captures the segments that were begun since the first listing, and the end of copied ones.
  ///
  /// False if one was deleted meanwhile.
  private mutating func captureSegments(
    among names: Set<String>, after first: Set<String>
  ) throws(StoreError) -> Bool {
    let old = first.compactMap(SegmentHeader.number(of:)).max() ?? 0
    let new = names.compactMap(SegmentHeader.number(of:)).max() ?? 0
    for number in names.compactMap(SegmentHeader.number(of:)) {
      let name = SegmentHeader.name(of: number)
      let isNew = number > old
      guard isNew || !isLinked(name) else { continue }
      let held = try files.byteCount(of: "\(directory)/\(name)")
      guard let count = try files.byteCount(of: "\(source)/\(name)"), count != held else {
        continue
      }
      // A segment that was copied while it was appended to.
      if held != nil { try remove(name) }
      try transfer(name)
    }
    guard new > old else { return true }
    for number in (old + 1)...new {
      let name = SegmentHeader.name(of: number)
      if try files.kind(of: "\(directory)/\(name)") == nil { return false }
    }
    return true
  }

  /// Replaces the links to segments that are still appended to by copies.
  ///
  /// A segment without a seal may be one that its process did not end, or the newest one.
  mutating func copyOpenSegments() throws(StoreError) {
    for name in try files.names(in: directory).sorted() {
      guard DataFile(name)?.isSegment == true, isLinked(name) else { continue }
      let path = "\(directory)/\(name)"
      guard try !SegmentHeader.isSealed(path, files) else { continue }
      try remove(name)
      guard try files.copy("\(source)/\(name)", to: path) != nil else {
        throw .io("\(source)/\(name) is missing")
      }
    }
  }

  private mutating func transfer(_ name: String) throws(StoreError) {
    let (old, new) = ("\(source)/\(name)", "\(directory)/\(name)")
    if method == .links {
      switch try files.link(old, as: new) {
      case .made:
        linked.insert(name)
        return
      case .missing: return
      case .refused: method = .copies
      }
    }
    _ = try files.copy(old, to: new)
  }

  private mutating func copyLogs(among names: Set<String>) throws(StoreError) {
    let logs = names.compactMap(LogSurvey.number(of:)).sorted().map(LogSurvey.name)
    if method == .links { for name in logs { try transfer(name) } }
    for name in logs {
      let isHere = try files.kind(of: "\(directory)/\(name)") != nil
      let origin = isHere ? "\(directory)/\(name)" : "\(source)/\(name)"
      guard let bytes = try files.readIfPresent(origin) else { continue }
      if isHere { try remove(name) }
      try files.create("\(directory)/\(name)", with: bytes)
    }
  }

  /// Copies CURRENT and the MANIFEST that it names; false if CURRENT changes meanwhile.
  private mutating func copyManifest() throws(StoreError) -> Bool {
    guard let current = try Manifest.current(in: source, files) else { return false }
    let name = String(decoding: current.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    guard case .manifest = DataFile(name) else {
      throw .corrupt("\(source)/CURRENT names no MANIFEST")
    }
    let bytes = try files.readIfPresent("\(source)/\(name)")
    guard try Manifest.current(in: source, files) == current else { return false }
    guard let bytes else { throw .corrupt("\(source)/\(name) is missing") }
    guard let manifest = Manifest(bytes) else { throw .corrupt("\(source)/\(name) is damaged") }
    var whole = bytes[...]
    if case .torn(let place) = manifest.end { whole = bytes[..<place] }
    try files.create("\(directory)/CURRENT", with: current)
    try files.create("\(directory)/\(name)", with: Array(whole))
    (self.manifest, manifestName) = (manifest, name)
    return true
  }

  /// Removes the tables and logs that the MANIFEST does not need, and returns a missing table.
  private mutating func keepNeeded() throws(StoreError) -> String? {
    for name in try files.names(in: directory) {
      switch DataFile(name) {
      case .log(let number) where !manifest.needsLog(number): try remove(name)
      case .table(let number):
        guard let table = manifest.tables[number] else {
          try remove(name)
          continue
        }
        if !isLinked(name), try files.byteCount(of: "\(directory)/\(name)") != table.bytes {
          // The table was still being written when it was copied; by now it is complete.
          try remove(name)
          try transfer(name)
        }
      default: break
      }
    }
    return manifest.missingTable(in: try files.names(in: directory))
  }

  private mutating func remove(_ name: String) throws(StoreError) {
    try files.remove("\(directory)/\(name)")
    linked.remove(name)
  }
}

// MARK: - The logs

extension StoreCapture {
  /// Cuts the captured logs before their first unreadable record.
  ///
  /// The rest can then be opened, in the state of an earlier moment. The store's own files stay
  /// unchanged.
  ///
  /// - Returns: The logs before the cut.
  package func cutLogs() throws(StoreError) -> LogSurvey {
    let names = try files.names(in: directory)
    let survey = try LogSurvey(of: manifest, in: source, names: names) {
      name throws(StoreError) in try files.read("\(directory)/\(name)", limit: nil)
    }
    switch survey.finding {
    case .whole: break
    case .torn(let index, let place), .damaged(let index, let place, _):
      for (number, log) in survey.logs.enumerated() where number >= index {
        let kept = number == index ? min(place, log.byteCount) : 0
        try files.truncate("\(directory)/\(log.name)", to: kept)
      }
    }
    return survey
  }
}

/// The kind of a file with a store's data, by its name.
package enum DataFile: Hashable {
  case current
  case manifest
  case log(UInt64)
  case table(UInt64)
  case segment(UInt32)
  /// The copy of the data keys of a sealed store, see ``KeyFile``.
  case keys

  /// Nil if a store has no data in a file of that name.
  package init?(_ name: String) {
    if name == "CURRENT" {
      self = .current
    } else if name.hasPrefix("MANIFEST-"), UInt64(name.dropFirst(9)) != nil {
      self = .manifest
    } else if let number = LogSurvey.number(of: name) {
      self = .log(number)
    } else if let number = Manifest.number(ofTable: name) {
      self = .table(number)
    } else if let number = SegmentHeader.number(of: name) {
      self = .segment(number)
    } else if name == KeyFile.name {
      self = .keys
    } else {
      return nil
    }
  }

  var isTable: Bool {
    if case .table = self { true } else { false }
  }

  var isSegment: Bool {
    if case .segment = self { true } else { false }
  }
}
