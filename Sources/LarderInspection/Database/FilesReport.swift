import Larder

extension Inspection {
  /// The files of a database: what each is, and whether it is live.
  ///
  /// No database is opened.
  ///
  /// - Parameters:
  ///   - directory: The directory of a store, or of any other LevelDB database.
  ///   - style: The style of the report.
  /// - Returns: A report. Its outcome is `damaged` if a live file is missing, or no intact MANIFEST
  ///   says which are live.
  /// - Throws: An ``InspectionError`` with the status `unavailable` if there is no database; `io`.
  package static func files(
    in directory: String, style: Style
  ) throws(InspectionError) -> Report {
    let files = try DatabaseFiles(at: directory)
    return Report(
      style: style, title: DatabaseFiles.title(of: files.path),
      members: [("schemaVersion", reportVersion), ("path", .string(files.path))],
      columns: [
        .init("STATE", "state"), .init("KIND", "kind"), .init(.number("LEVEL"), "level"),
        .init(.number("BYTES"), "bytes"), .init("FILE", "file"),
      ]
    ) { add in
      let missing = files.missingFiles
      for name in files.names.union(missing).sorted() {
        let bytes = FileAccess.bytes(of: "\(files.path)/\(name)")
        let (kind, state, level) = files.description(of: name)
        let cells: [Report.Cell] = [
          .text(bytes == nil ? "missing" : state), .text(kind),
          level.map(Report.Cell.number) ?? .none, bytes.map(Report.Cell.bytes) ?? .none,
          .text(name),
        ]
        add(Report.Row(cells, tint: bytes == nil ? .bad : state == "live" ? .good : .gone))
      }
      return Report.Ending(
        outcome: missing.isEmpty && files.manifest != nil ? .fine : .damaged)
    }
  }
}

extension DatabaseFiles {
  /// The kind of a file, whether it is live, and the level of a table.
  fileprivate func description(of name: String) -> (kind: String, state: String, level: Int?) {
    func state(_ isLive: Bool?) -> String { isLive.map { $0 ? "live" : "not live" } ?? "unknown" }
    switch DataFile(name) {
    case .current: return ("names the MANIFEST", "live", nil)
    case .manifest: return ("MANIFEST", state(manifestName.map { $0 == name }), nil)
    case .log: return ("log", state(manifest.map { _ in isLive(name) }), nil)
    case .table: return ("table", state(manifest.map { _ in isLive(name) }), level(of: name))
    case .segment: return ("segment", "live", nil)
    case .keys: return ("copy of the data keys", "live", nil)
    case nil: break
    }
    switch name {
    case StoreMarker.fileName: return ("marks a store", "live", nil)
    case StoreMarker.guardFileName: return ("the owner's lock", "live", nil)
    case KeyFile.newName: return ("copy of the data keys, being written", "not live", nil)
    case StatisticsFile.name: return ("published statistics", "not live", nil)
    case StatisticsFile.newName: return ("published statistics, being written", "not live", nil)
    case ControlFile.name: return ("socket for commands", "not live", nil)
    case ControlFile.newName: return ("socket for commands, being made", "not live", nil)
    case "LOCK": return ("LevelDB's lock", "live", nil)
    case "LOG", "LOG.old": return ("LevelDB's messages", "not live", nil)
    default: return ("other", "unknown", nil)
    }
  }
}
