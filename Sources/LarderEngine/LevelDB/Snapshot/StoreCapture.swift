// How a store that may be open and written to is read without touching it.
//
// Nothing in the store's directory is opened for writing, and neither lock file is locked or opened
// by way of a database. Instead another directory gets, in this order:
//
//   1. every table and every log of a first listing, as hard links, so that none can go away;
//   2. in place of the links to logs copies of them, made in ascending order: a later log holds
//      later writes, so what the copies hold is everything up to some moment;
//   3. a copy of CURRENT and of the MANIFEST that it names, without an edit that is only being
//      written. They are later than the logs: what the MANIFEST no longer takes from a log it has
//      in a table;
//   4. the tables that have appeared since.
//   5. Then tables that the MANIFEST does not name are taken out again. That must be: they are
//      still being written, and LevelDB, opening the captured files, would give their numbers to
//      tables of its own. It empties the file of that name first, which by the link is the store's.
//
// When the MANIFEST names a table that has been deleted meanwhile, or a log that has been begun, or
// CURRENT has changed, it is done over. Where links are refused (another file system, read-only
// media) tables are copied too. The tables that stay are safe to share: LevelDB never writes to a
// table that is in a MANIFEST, and numbers new ones above them all.

/// A store's files as they were at one moment, in another directory.
package struct StoreCapture {
  /// How the files came there.
  package enum Method: String, Sendable {
    /// Tables are hard links to the store's.
    case links
    /// Links were refused, so everything was copied.
    case copies
  }

  /// How often it is tried: each time a table was deleted between being named and being linked.
  private static let tries = 50

  package private(set) var method: Method
  package private(set) var manifest = Manifest()

  private let source: String
  private let directory: String
  private let files: any StoreFiles
  private var linked: Set<String> = []
  private var manifestName = ""

  private enum Attempt {
    case whole
    /// CURRENT, or the MANIFEST that it named, is another one now.
    case changed
    case missing(file: String, names: Set<String>)
  }

  /// Captures the store in `source`.
  ///
  /// - Parameters:
  ///   - source: The store's directory.
  ///   - directory: Where the files are to be, a directory without any of LevelDB's.
  ///   - linking: Whether hard links are tried before copying.
  ///   - files: Where both are.
  /// - Throws: ``EngineError/corrupt(_:)`` when a file of the store is missing or its MANIFEST is
  ///   damaged; ``EngineError/io(_:)``, also when the store changes faster than it can be captured;
  ///   ``EngineError/diskFull``. Some files may be in `directory` then.
  package init(
    of source: String, into directory: String, linking: Bool = true, files: any StoreFiles
  ) throws(EngineError) {
    (self.source, self.directory, self.files) = (source, directory, files)
    method = linking ? .links : .copies
    var seen: Set<String>?
    for _ in 0..<Self.tries {
      switch try attempt() {
      case .whole: return
      case .changed: seen = nil
      case .missing(let file, let names):
        // Nobody works on the store, and still the file is not there.
        if seen == names { throw .corrupt("\(source)/\(file) is missing") }
        seen = names
      }
      for name in try files.names(in: directory) where LevelDBFile(name) != nil {
        try remove(name)
      }
    }
    throw .io("\(source) changes faster than it can be captured")
  }

  /// Describes files that were captured in another way.
  init(
    of source: String, into directory: String, manifest: Manifest, method: Method,
    files: any StoreFiles
  ) {
    (self.source, self.directory, self.files) = (source, directory, files)
    (self.manifest, self.method) = (manifest, method)
  }

  /// Whether a file is the store's own, by another name, and not a copy.
  func isLinked(_ name: String) -> Bool { linked.contains(name) }

  /// Waits until the store's MANIFEST, as far as it was captured, and all names are on the device.
  ///
  /// Needed before tables are shared for good. If a power loss took back the edit that names a
  /// table, LevelDB would give the table's number again, and empty the file of that name.
  func makeSourceDurable() throws(EngineError) {
    try files.synchronize("\(source)/\(manifestName)")
    try files.synchronizeDirectory(source)
  }

  private mutating func attempt() throws(EngineError) -> Attempt {
    let first = try files.names(in: source)
    for name in first.sorted() where LevelDBFile(name)?.isTable == true { try transfer(name) }
    try copyLogs(among: first)
    guard try copyManifest() else { return .changed }

    let later = try files.names(in: source)
    for name in later where !first.contains(name) && LevelDBFile(name)?.isTable == true {
      try transfer(name)
    }
    if let missing = try keepNeeded() { return .missing(file: missing, names: later) }
    // A log that was begun meanwhile; what it took the place of may be neither here nor in a table.
    let log = LogSurvey.name(of: manifest.logNumber)
    if manifest.logNumber > 0, try files.kind(of: "\(directory)/\(log)") == nil {
      return .missing(file: log, names: later)
    }
    return .whole
  }

  private mutating func transfer(_ name: String) throws(EngineError) {
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
    if let bytes = try files.readIfPresent(old) { try files.create(new, with: bytes) }
  }

  private mutating func copyLogs(among names: Set<String>) throws(EngineError) {
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

  /// Copies CURRENT and the MANIFEST that it names; false when it names another one afterwards.
  private mutating func copyManifest() throws(EngineError) -> Bool {
    guard let current = try files.readIfPresent("\(source)/CURRENT") else { return false }
    let name = String(decoding: current.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    guard case .manifest = LevelDBFile(name) else {
      throw .corrupt("\(source)/CURRENT names no MANIFEST")
    }
    let bytes = try files.readIfPresent("\(source)/\(name)")
    guard try files.readIfPresent("\(source)/CURRENT") == current else { return false }
    guard let bytes else { throw .corrupt("\(source)/\(name) is missing") }
    guard let manifest = Manifest(bytes) else { throw .corrupt("\(source)/\(name) is damaged") }
    var whole = bytes[...]
    if case .torn(let place) = manifest.end { whole = bytes[..<place] }
    try files.create("\(directory)/CURRENT", with: current)
    try files.create("\(directory)/\(name)", with: Array(whole))
    (self.manifest, manifestName) = (manifest, name)
    return true
  }

  /// Leaves only the tables and logs that the MANIFEST needs; answers a table that is not there.
  private mutating func keepNeeded() throws(EngineError) -> String? {
    for name in try files.names(in: directory) {
      switch LevelDBFile(name) {
      case .log(let number) where !manifest.needsLog(number): try remove(name)
      case .table(let number):
        guard let table = manifest.tables[number] else {
          try remove(name)
          continue
        }
        if !isLinked(name), try files.byteCount(of: "\(directory)/\(name)") != table.bytes {
          // It was still being written when it was copied; by now it is whole.
          try remove(name)
          try transfer(name)
        }
      default: break
      }
    }
    let names = try files.names(in: directory)
    let missing = manifest.tables.keys.sorted().first {
      Manifest.name(ofTable: $0, among: names) == nil
    }
    return missing.map { "table \($0)" }
  }

  private mutating func remove(_ name: String) throws(EngineError) {
    try files.remove("\(directory)/\(name)")
    linked.remove(name)
  }
}

// MARK: - The logs

extension StoreCapture {
  /// Ends the captured logs before the first thing in them that cannot be read.
  ///
  /// So the rest can be opened, as it was at an earlier moment. The store's own files stay as they
  /// are.
  ///
  /// - Returns: The logs as they were before.
  package func cutLogs() throws(EngineError) -> LogSurvey {
    let names = try files.names(in: directory)
    let survey = try LogSurvey(of: manifest, in: source, names: names) {
      name throws(EngineError) in try files.read("\(directory)/\(name)", limit: nil)
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

/// What the name of one of LevelDB's files says.
enum LevelDBFile: Hashable {
  case current
  case manifest
  case log(UInt64)
  case table(UInt64)

  /// Nil when LevelDB has no file of that name that belongs to its data.
  init?(_ name: String) {
    if name == "CURRENT" {
      self = .current
    } else if name.hasPrefix("MANIFEST-"), UInt64(name.dropFirst(9)) != nil {
      self = .manifest
    } else if let number = LogSurvey.number(of: name) {
      self = .log(number)
    } else if let number = Manifest.number(ofTable: name) {
      self = .table(number)
    } else {
      return nil
    }
  }

  var isTable: Bool {
    if case .table = self { true } else { false }
  }
}
