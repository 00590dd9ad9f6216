import Larder

extension Inspection {
  /// The edits of a MANIFEST.
  ///
  /// No database is opened.
  ///
  /// - Parameters:
  ///   - path: A MANIFEST, or the directory of a database, whose current one is read.
  ///   - style: The style of the report.
  /// - Returns: A report. Its outcome is `damaged` if an edit cannot be read, except for one that
  ///   was cut off at the end.
  /// - Throws: An ``InspectionError`` with the status `damaged` if CURRENT or the MANIFEST that it
  ///   names is missing, or CURRENT names none; `unavailable`, `io`.
  /// - Complexity: The MANIFEST in memory.
  package static func manifest(
    at path: String, style: Style
  ) throws(InspectionError) -> Report {
    let files = try FileArgument(path) { files throws(InspectionError) in
      let pointers: [DataFile?] = [.current, .manifest]
      if let missing = files.missingFiles.first(where: { pointers.contains(DataFile($0)) }) {
        throw InspectionError(.damaged, "\(files.path)/\(missing) is missing")
      }
      guard let name = files.manifestName else {
        throw InspectionError(.damaged, "\(files.path)/CURRENT names no MANIFEST")
      }
      return [name]
    }
    let name = files.names[0]
    let bytes = try files.bytes(of: name)
    return Report(
      style: style, title: files.title,
      members: [("schemaVersion", reportVersion), ("path", .string("\(files.path)/\(name)"))],
      columns: [
        .init(.number("BYTE"), "offset"), .init("FIELD", "field"), .init(.number("LEVEL"), "level"),
        .init(.number("VALUE"), "value"), .init(.number("SIZE"), "bytes"),
        .init(.name("FIRST KEY"), "firstKey"), .init(.name("LAST KEY"), "lastKey"),
      ]
    ) { add in
      var outcome = Outcome.fine
      func addFault(_ message: String, at place: Int) {
        let cells: [Report.Cell] = [
          .number(place), .text(message), .none, .none, .none, .none, .none,
        ]
        add(Report.Row(cells, tint: .bad))
      }
      var scan = LogScan(bytes, of: .manifest)
      while let part = scan.nextPart() {
        switch part {
        case .record(let record):
          guard let edit = scan.withBytes(of: record, { ManifestEdit($0) }) else {
            outcome = .damaged
            addFault("malformed", at: record.start)
            continue
          }
          for fields in edit.rows(style, inStore: files.isStore) {
            add(Report.Row([.number(record.start)] + fields))
          }
        case .damaged(let place, let next):
          outcome = .damaged
          addFault("damaged, valid again at \(next)", at: place)
        case .torn(let place): addFault("cut off, \(bytes.count - place) bytes", at: place)
        }
      }
      return Report.Ending(outcome: outcome)
    }
  }
}

extension ManifestEdit {
  /// For each field, its name, level, value, size, first key and last key.
  fileprivate func rows(_ style: Style, inStore isStore: Bool) -> [[Report.Cell]] {
    func number(_ name: String, _ value: UInt64?) -> [Report.Cell]? {
      value.map { [.text(name), .none, .sequence($0), .none, .none, .none] }
    }
    /// A key of LevelDB, without its sequence.
    func text(_ key: [UInt8]) -> Report.Cell {
      .text(style.text(ofDatabaseKey: Array(key.dropLast(8)), inStore: isStore))
    }
    var rows: [[Report.Cell]] = []
    if let comparator {
      rows.append([.text("comparator"), .none, .text(comparator), .none, .none, .none])
    }
    rows += [
      number("log", logNumber), number("previous log", previousLogNumber),
      number("next file", nextFile), number("last sequence", lastSequence),
    ].compactMap { $0 }
    for (level, key) in compactions {
      rows.append([.text("compaction"), .number(level), .none, .none, text(key), .none])
    }
    for change in tables {
      switch change {
      case .removed(let level, let number):
        rows.append(
          [.text("table removed"), .number(level), .sequence(number), .none, .none, .none])
      case .added(let level, let number, let bytes, let smallest, let largest):
        rows.append([
          .text("table added"), .number(level), .sequence(number), .bytes(bytes), text(smallest),
          text(largest),
        ])
      }
    }
    return rows
  }
}
