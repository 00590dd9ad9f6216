import Larder

/// The files of a LevelDB database, read without opening it: a store's, or another program's.
struct DatabaseFiles {
  let path: String
  let names: Set<String>
  /// The name of the MANIFEST that CURRENT names; nil if there is none.
  let manifestName: String?
  /// The live tables and logs; nil if the MANIFEST is missing or damaged.
  let manifest: Manifest?
  /// Whether it is a store's or a backup's, and not another program's.
  let isStore: Bool

  /// Reads the MANIFEST and lists the files in a directory.
  ///
  /// The database may be in use: a live file counts as missing only if the MANIFEST still names it
  /// afterwards.
  ///
  /// - Parameters:
  ///   - directory: The directory of the database.
  ///   - source: The directory that was captured; nil for no snapshot.
  /// - Throws: An ``InspectionError`` with the status `unavailable` if there is no database, or if
  ///   its files change too fast; `io`.
  init(at directory: String, of source: String? = nil) throws(InspectionError) {
    path = try FileAccess.directory(directory, of: "database")
    isStore = try Self.isStore(source ?? path)
    var current = try Self.manifest(in: path)
    for _ in 0..<Self.mostReads {
      let names = try Self.names(in: path)
      guard names.contains(where: { DataFile($0) != nil }) else {
        throw InspectionError(.unavailable, "there is no database at \(path)")
      }
      let missing = Self.missingFiles(among: names, current, isStore: isStore)
      let isWhole = current.manifest != nil && missing.isEmpty
      let next = isWhole ? current : try Self.manifest(in: path)
      if next == current {
        (self.names, manifestName, manifest) = (names, current.name, current.manifest)
        return
      }
      current = next
    }
    throw InspectionError(.unavailable, "the files of \(path) change faster than they are listed")
  }

  /// A database whose live files change as often as this while they are listed is given up.
  private static let mostReads = 100

  private struct Current: Equatable {
    var name: String?
    var manifest: Manifest?

    static func == (a: Current, b: Current) -> Bool {
      a.name == b.name && a.manifest?.tables == b.manifest?.tables
        && a.manifest?.logNumber == b.manifest?.logNumber
    }
  }

  private static func manifest(in path: String) throws(InspectionError) -> Current {
    guard let current = try FileAccess.read("\(path)/CURRENT", limit: 1024) else {
      return Current()
    }
    let name = String(decoding: current.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    guard DataFile(name) == .manifest else { return Current() }
    // A larger file is damaged.
    let limit = SystemFiles.wholeFileLimit
    guard FileAccess.bytes(of: "\(path)/\(name)") ?? 0 <= limit else { return Current(name: name) }
    let bytes = try FileAccess.read("\(path)/\(name)", limit: limit)
    return Current(name: name, manifest: bytes.flatMap { Manifest($0) })
  }

  /// Whether a directory has a store's marker.
  static func isStore(_ path: String) throws(InspectionError) -> Bool {
    do {
      return try StoreMarker.isPresent(in: path, SystemFiles())
    } catch {
      throw InspectionError(error)
    }
  }

  static func names(in path: String) throws(InspectionError) -> Set<String> {
    do {
      return try SystemFiles().names(in: path)
    } catch {
      throw InspectionError(error)
    }
  }

  /// The names of live files that are missing, as far as they are known.
  var missingFiles: [String] {
    Self.missingFiles(
      among: names, Current(name: manifestName, manifest: manifest), isStore: isStore)
  }

  private static func missingFiles(
    among names: Set<String>, _ current: Current, isStore: Bool
  ) -> [String] {
    let needed = ["CURRENT"] + (current.name.map { [$0] } ?? [])
    // LevelDB opens a database without its newest log; a store never lacks it.
    let file =
      isStore ? current.manifest?.missingFile(in: names) : current.manifest?.missingTable(in: names)
    return needed.filter { !names.contains($0) } + (file.map { [$0] } ?? [])
  }

  /// How its logs are read.
  var logKind: LogScan.Kind { LogScan.Kind(ofStore: isStore) }

  func bytes(of name: String) throws(InspectionError) -> [UInt8] {
    try FileAccess.bytes(of: name, in: path)
  }

  /// The names of the logs, in the order in which they were written.
  var logs: [String] {
    names.compactMap { name in LogSurvey.number(of: name).map { ($0, name) } }
      .sorted { $0.0 < $1.0 }.map(\.1)
  }

  /// Whether reads use the log or table of that name; false if no MANIFEST says so.
  func isLive(_ name: String) -> Bool {
    switch DataFile(name) {
    case .table(let number): manifest?.tables[number] != nil
    case .log(let number): manifest?.needsLog(number) == true
    default: false
    }
  }

  /// The level of a table; nil if it is not live, or no table.
  func level(of name: String) -> Int? {
    guard case .table(let number) = DataFile(name) else { return nil }
    return manifest?.tables[number]?.level
  }
}

/// The argument of a command that reads one kind of file: a file, or a database's directory.
struct FileArgument {
  /// The directory.
  let path: String
  /// The names of the files in it.
  let names: [String]
  /// Whether the directory is a store's or a backup's, and not another program's.
  let isStore: Bool

  /// Finds the file at `path`, or those that `names` selects of the database at `path`.
  ///
  /// - Throws: An ``InspectionError`` with the status `unavailable` or `io`.
  init(
    _ path: String, inDatabase names: (DatabaseFiles) throws(InspectionError) -> [String]
  ) throws(InspectionError) {
    guard let real = try FileAccess.realPath(path) else {
      throw InspectionError(.unavailable, "there is no file at \(path)")
    }
    if FileAccess.isDirectory(real) {
      let files = try DatabaseFiles(at: real)
      (self.path, self.names, isStore) = (files.path, try names(files), files.isStore)
      return
    }
    let slash = real.lastIndex(of: "/") ?? real.startIndex
    self.path = String(real[..<slash])
    self.names = [String(real[real.index(after: slash)...])]
    isStore = try DatabaseFiles.isStore(self.path)
  }

  /// The first line of a table: what is read, and that no database is opened.
  var title: String { DatabaseFiles.title(of: names.count == 1 ? "\(path)/\(names[0])" : path) }

  func bytes(of name: String) throws(InspectionError) -> [UInt8] {
    try FileAccess.bytes(of: name, in: path)
  }
}

extension LogScan.Kind {
  /// How a whole log of a store is read, or one of another program.
  init(ofStore isStore: Bool) {
    self = isStore ? .batches(minimumSequence: 0) : .foreignBatches
  }
}

extension FileAccess {
  /// The bytes of a file that was listed.
  ///
  /// - Throws: An ``InspectionError`` with the status `unavailable` if it is missing by now; `io`.
  fileprivate static func bytes(
    of name: String, in path: String
  ) throws(InspectionError) -> [UInt8] {
    let limit = SystemFiles.wholeFileLimit
    guard bytes(of: "\(path)/\(name)") ?? 0 <= limit else {
      throw InspectionError(.io, "\(path)/\(name) has more than \(limit) bytes")
    }
    guard let bytes = try read("\(path)/\(name)", limit: limit) else {
      throw InspectionError(.unavailable, "\(path)/\(name) was deleted meanwhile")
    }
    return bytes
  }
}

extension DatabaseFiles {
  /// The first line of a table that was read from files, without opening a database.
  static func title(of path: String) -> String { "\(path.escapedForTerminal) (files)" }
}

extension Style {
  /// A key of the database, as reports of files show it.
  ///
  /// A store's key is shown as its space, the number of its cache, and the key in it. Everything
  /// else in it, and with ``KeyForm/hex`` every key, is shown as `0x` and hex. A key of another
  /// program's database is shown as a key of text, so that it can be searched for.
  func text(ofDatabaseKey key: [UInt8], inStore isStore: Bool) -> String {
    if isRedacted { return Self.redactedText(of: key) }
    guard isStore else { return keys.text(of: key, kind: .text) }
    guard keys != .hex, let space = key.first.flatMap(KeySpace.init) else {
      return KeyForm.hex(key)
    }
    var at = 1
    switch space {
    case .metadata: return "metadata " + KeyForm.utf8.text(of: Array(key.dropFirst()), kind: .bytes)
    case .records, .unshared:
      guard let id = readVarint(key.span.bytes, at: &at) else { return KeyForm.hex(key) }
      let name = space == .records ? "record" : "unshared"
      return "\(name) #\(id) " + KeyForm.utf8.text(of: Array(key[at...]), kind: .bytes)
    case .expiry: return KeyForm.hex(key)
    case .notes:
      guard let pack = NotePack(key: key.span.bytes) else { return KeyForm.hex(key) }
      return "notes #\(pack.cacheID) \(pack.bucket) \(pack.number)"
    }
  }
}
