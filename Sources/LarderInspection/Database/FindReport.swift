import Larder

extension Inspection {
  /// Every trace of a key in the files of a store: its puts and removals, newest first.
  ///
  /// The files are those that reads use. If the MANIFEST is damaged or one of them is missing, all
  /// files are searched.
  ///
  /// - Parameters:
  ///   - key: A key in the form of `style`; with `isDatabaseKey`, one of the database in hex, and
  ///     then no database is opened, however damaged the store is. It is also one of the database
  ///     if another program wrote that.
  ///   - name: The cache; nil for every cache.
  ///   - isDatabaseKey: Whether `key` is one of the database.
  ///   - directory: The directory of a store, or of any other LevelDB database.
  ///   - style: The style of the report.
  /// - Returns: A report. Its outcome is `damaged` or `unsupported` if a part of the files cannot
  ///   be read.
  /// - Throws: An ``InspectionError`` with the status `notFound` if there is no trace, or `damaged`
  ///   or `unsupported` if it may be in a part that cannot be read; `usage` for a cache of another
  ///   program's database; otherwise as ``Inspection/init(at:now:linking:key:progress:)``.
  /// - Complexity: A read of all logs and tables. One file in memory at a time.
  package static func find(
    _ key: String, cache name: String?, isDatabaseKey: Bool, in directory: String, style: Style
  ) throws(InspectionError) -> Report {
    let path = try FileAccess.directory(directory)
    let keys: [[UInt8]]
    if isDatabaseKey {
      keys = try databaseKeys(of: key, keys: .hex, kind: .bytes)
    } else if try isOfAnotherProgram(path) {
      guard name == nil else {
        throw InspectionError(.usage, "\(path) is not a store, and has no caches")
      }
      keys = try databaseKeys(of: key, keys: style.keys, kind: .text)
    } else {
      keys = try Inspection(at: path, now: Moment.now())
        .databaseKeys(of: key, cache: name, keys: style.keys)
    }
    let snapshot = try snapshotUnlessDamaged(of: path)
    let search = try KeySearch(for: keys, in: snapshot?.path ?? path, of: path)
    guard !search.traces.isEmpty else {
      let faults = search.faults.map { "; \($0)" }.joined()
      throw InspectionError(
        search.outcome == .fine ? .notFound : search.outcome,
        "no trace of \(style.isRedacted ? "the key" : key.shortened)\(faults)")
    }
    return search.report(of: path, access: snapshot == nil ? "files" : "snapshot", style: style)
  }

  /// Whether a directory has a database, but no marker of a store.
  private static func isOfAnotherProgram(_ path: String) throws(InspectionError) -> Bool {
    if try DatabaseFiles.isStore(path) { return false }
    return try DatabaseFiles.names(in: path).contains { DataFile($0) != nil }
  }

  /// A key of the database, as an argument has it.
  private static func databaseKeys(
    of key: String, keys form: KeyForm, kind: KeyKind
  ) throws(InspectionError) -> [[UInt8]] {
    guard let bytes = form.bytes(of: key, kind: kind) else {
      throw InspectionError(.usage, "\(key.shortened) is not a key in \(form.rawValue)")
    }
    return [bytes]
  }

  /// A snapshot of a store or another database that is not opened; nil if its MANIFEST is damaged
  /// or a file is missing, so that no process writes to it.
  private static func snapshotUnlessDamaged(
    of path: String
  ) throws(InspectionError) -> StoreSnapshot? {
    do {
      return try StoreSnapshot(of: path, named: "kvinspect-")
    } catch .corrupt {
      return nil
    } catch {
      throw InspectionError(error)
    }
  }

  /// The keys of the database under which caches have records of a key.
  private func databaseKeys(
    of key: String, cache name: String?, keys form: KeyForm
  ) throws(InspectionError) -> [[UInt8]] {
    var selection = Selection()
    selection.cache = name
    let keys = try caches(in: selection).caches.compactMap { cache in
      form.bytes(of: key, kind: cache.keyKind).map {
        KeySpace.records.prefix(ofCache: cache.id) + $0
      }
    }
    guard !keys.isEmpty else {
      throw InspectionError(.usage, "no cache has keys of the form of \(key.shortened)")
    }
    return keys
  }
}

/// A put or a removal in a file.
private struct Trace {
  let key: [UInt8]
  let file: String
  /// The start of the batch or the block.
  let offset: Int
  let sequence: UInt64
  /// Nil for a removal.
  let valueBytes: Int?
  /// Where the payload is, if not in the file.
  let payload: PayloadPlace?
}

/// A search in the files of a store, or of a snapshot of it.
private struct KeySearch {
  private typealias Found = (traces: [Trace], faults: [String])

  private let keys: Set<[UInt8]>
  private let files: DatabaseFiles
  private var found: Found = ([], [])
  /// The outcome of the faults that were found.
  private var faultOutcome = Outcome.fine

  init(
    for keys: [[UInt8]], in directory: String, of source: String
  ) throws(InspectionError) {
    self.keys = Set(keys)
    files = try DatabaseFiles(at: directory, of: source)
    for name in files.names.sorted() {
      switch DataFile(name) {
      case .log: try search(log: name)
      case .table: try search(table: name)
      default: break
      }
    }
  }

  private mutating func search(log name: String) throws(InspectionError) {
    var scan = LogScan(try files.bytes(of: name), of: files.logKind)
    while let part = scan.nextPart() {
      switch part {
      case .record(let record):
        scan.withBytes(of: record) { batch in
          guard let first = LogBatch.sequence(of: batch), let rows = LogBatch.rows(of: batch) else {
            return note("\(name), byte \(record.start): a malformed batch", .damaged, in: name)
          }
          for (index, row) in rows.enumerated() where keys.contains(row.key) {
            let value = row.value.map { [UInt8](batch.extracting($0)) }
            add(row.key, value, in: name, at: record.start, sequence: first &+ UInt64(index))
          }
        }
      case .damaged(let place, let next):
        note("\(name), byte \(place): damaged, valid again at \(next)", .damaged, in: name)
      case .torn: break
      }
    }
  }

  private mutating func search(table name: String) throws(InspectionError) {
    let bytes = try files.bytes(of: name)
    do throws(TableFile.Fault) {
      let table = try TableFile(bytes)
      // Blocks can be skipped by the order of their keys.
      let isOrdered = files.manifest?.ordersBytes ?? files.isStore
      for place in isOrdered ? Set(keys.flatMap(table.blocks(with:))) : Set(table.blocks) {
        do throws(TableFile.Fault) {
          try search(place, of: table, in: name)
        } catch {
          note("\(name), \(error)", error.outcome, in: name)
        }
      }
    } catch {
      note("\(name), \(error)", error.outcome, in: name)
    }
  }

  private mutating func search(
    _ place: TableFile.Place, of table: TableFile, in name: String
  ) throws(TableFile.Fault) {
    let block = try table.block(at: place)
    var entries = TableFile.Entries(of: block)
    while let entry = try entries.next() {
      guard keys.contains(entry.key) else { continue }
      let value = entry.isRemoval ? nil : Array(block.bytes[entry.value])
      add(entry.key, value, in: name, at: place.offset, sequence: entry.sequence)
    }
  }

  /// Notes a fault, unless the file is one that no read uses, such as an incomplete table.
  private mutating func note(_ fault: String, _ outcome: Outcome, in name: String) {
    guard files.isLive(name) || files.manifest == nil else { return }
    found.faults.append(fault)
    if faultOutcome != .damaged { faultOutcome = outcome }
  }

  private mutating func add(
    _ key: [UInt8], _ value: [UInt8]?, in file: String, at offset: Int, sequence: UInt64
  ) {
    let payload = (files.isStore ? value : nil).flatMap { value in
      value.withUnsafeBytes { value in
        key.withUnsafeBytes { key in
          PayloadPlace(ofRow: value, under: key, by: Record.separation(from: nil))
        }
      }
    }
    found.traces.append(
      Trace(
        key: key, file: file, offset: offset, sequence: sequence, valueBytes: value?.count,
        payload: payload))
  }

  /// All traces, newest first; of an entry that a compaction has copied, the live one first.
  ///
  /// Of batches with the same sequence, the later one replaces the earlier one.
  var traces: [Trace] {
    func rank(_ trace: Trace) -> (UInt64, Int, String, Int) {
      (trace.sequence, files.isLive(trace.file) ? 1 : 0, trace.file, trace.offset)
    }
    return found.traces.sorted { rank($1) < rank($0) }
  }

  /// The parts of the files that cannot be read.
  var faults: [String] { found.faults + faultsOfDatabase }

  private var faultsOfDatabase: [String] {
    let unknown = files.manifest == nil ? ["no intact MANIFEST says which files are live"] : []
    return unknown + files.missingFiles.map { "\($0) is missing" }
  }

  /// `damaged` or `unsupported` if a part of the files cannot be read.
  var outcome: Outcome { faultsOfDatabase.isEmpty ? faultOutcome : .damaged }

  func report(of path: String, access: String, style: Style) -> Report {
    var current: Set<[UInt8]> = []
    var notes: [Report.Fact] = []
    let rows = traces.map { trace in
      let isLive = files.isLive(trace.file)
      // A read finds the newest change in a live file.
      let isCurrent = isLive && current.insert(trace.key).inserted
      let payload = trace.payload.map {
        "\($0.file) at \($0.offset), \(Amount.bytes($0.byteCount))"
      }
      if isCurrent, let payload { notes.append(.init("payload", payload)) }
      let cells: [Report.Cell] = [
        .text(isCurrent ? "current" : isLive ? "replaced" : "not live"),
        .sequence(trace.sequence), .text(trace.file),
        files.level(of: trace.file).map(Report.Cell.number) ?? .none, .number(trace.offset),
        payload.map(Report.Cell.text) ?? .none,
      ]
      let change = changeCells(
        valueBytes: trace.valueBytes, trace.key, inStore: files.isStore, style)
      return Report.Row(cells + change, tint: isCurrent ? .good : .gone)
    }
    notes += faults.map { Report.Fact("damaged", $0) }
    let ending = Report.Ending(
      outcome: outcome, sections: style.isQuiet || notes.isEmpty ? [] : [.facts(notes)])
    let place: [Report.Column] = [
      .init("STATE", "state"), .init(.number("SEQUENCE"), "sequence"), .init("FILE", "file"),
      .init(.number("LEVEL"), "level"), .init(.number("BYTE"), "offset"), .init(nil, "payload"),
    ]
    return Report(
      style: style, title: "\(path.escapedForTerminal) (\(access))",
      members: [
        ("schemaVersion", reportVersion), ("path", .string(path)), ("access", .string(access)),
        ("faults", .array(faults.map(JSONValue.string))),
      ],
      columns: place + changeColumns
    ) { add in
      rows.forEach(add)
      return ending
    }
  }
}
