// How a damaged store is captured so that LevelDB opens it and reads all readable entries.
//
// - CURRENT and MANIFEST. If CURRENT does not name an intact MANIFEST, the newest intact one is
//   used. A damaged MANIFEST is cut before the damage, and used only if all files that it names
//   exist: an edit moves entries between files and adds none, so that state is complete. Without
//   such a MANIFEST, old tables, which hold removed entries, cannot be told from live ones for
//   certain. So that is refused, unless a rebuild is asked for: see `Rebuild.swift`.
// - Tables. A table that is missing, or that LevelDB cannot safely open, becomes a short file of
//   zeros. LevelDB then fails to read each key that the table may hold. If the table were left out,
//   older tables would show entries that the lost table had replaced or removed.
// - Segments are taken as they are: a value whose payload is damaged or missing does not match its
//   checksum.
// - Logs. Their intact batches are written into new logs, without gaps between their sequences.
//   The result is as if a lost batch had never been written.

extension StoreCapture {
  /// Captures the readable part of the store in `source`.
  ///
  /// - Parameters:
  ///   - source: The store's directory. No process may write to it meanwhile.
  ///   - directory: The directory for the files, without any LevelDB files.
  ///   - linking: Whether hard links are tried before copying.
  ///   - rebuilding: What a rebuild does if the tables of the store are not known; nil for none.
  ///   - files: The file layer.
  /// - Throws: ``StoreError/corrupt(_:)`` when the tables of the store are not known and
  ///   `rebuilding` is nil; ``StoreError/io(_:)``, ``StoreError/diskFull``.
  init(
    salvaging source: String, into directory: String, linking: Bool, rebuilding: Rebuilding?,
    files: any StoreFiles
  ) throws(StoreError) {
    let names = try files.names(in: source)
    try Self.salvageSegments(among: names, from: source, to: directory, linking: linking, files)
    let method: Method = linking ? .links : .copies
    guard let found = try Self.manifest(in: source, names: names, files: files) else {
      guard let rebuilding else {
        throw .corrupt(
          "\(source): no intact MANIFEST says which tables belong to the store. "
            + "Restore a backup, or start afresh; `kvinspect repair` may rebuild it.")
      }
      var rebuild = try Rebuild(of: source, files: files)
      let manifest = try rebuild.write(to: directory, rebuilding)
      try self.init(of: source, into: directory, manifest: manifest, method: method, files: files)
      self.rebuild = rebuild.report
      return
    }
    let manifest = found.manifest
    let name = "MANIFEST-000001"
    try files.create("\(directory)/\(name)", with: found.bytes)
    try files.create("\(directory)/CURRENT", with: Array("\(name)\n".utf8))
    for (number, table) in manifest.tables {
      try Self.salvageTable(
        Manifest.name(ofTable: number, among: names), number: number, table, from: source,
        to: directory, linking: linking, files)
    }
    try Self.salvageLogs(of: manifest, from: source, names: names, to: directory, files)
    try self.init(of: source, into: directory, manifest: manifest, method: method, files: files)
  }

  private static func salvageSegments(
    among names: Set<String>, from source: String, to directory: String, linking: Bool,
    _ files: any StoreFiles
  ) throws(StoreError) {
    for name in names where DataFile(name)?.isSegment == true {
      let (old, new) = ("\(source)/\(name)", "\(directory)/\(name)")
      if linking, try files.link(old, as: new) == .made { continue }
      guard try files.copy(old, to: new) != nil else { throw .io("\(old) is missing") }
    }
  }

  /// The newest intact MANIFEST, or the intact beginning of one, with its bytes; nil if none is.
  private static func manifest(
    in source: String, names: Set<String>, files: any StoreFiles
  ) throws(StoreError) -> (manifest: Manifest, bytes: [UInt8])? {
    let current = String(
      decoding: try Manifest.current(in: source, files) ?? [], as: UTF8.self
    ).prefix { $0 != "\n" }
    let manifests = names.filter { DataFile($0) == .manifest }
    let ordered = manifests.sorted { a, b in
      if (a == current) != (b == current) { return a == current }
      return (a.count, a) > (b.count, b)
    }
    for name in ordered {
      let bytes = try files.read("\(source)/\(name)", limit: nil)
      var scan = LogScan(bytes, of: .manifest)
      switch scan.finish() {
      case .complete:
        // It names what is live now; what is missing is lost. If there are newer tables, too, then
        // its end was cut off between two edits.
        guard let manifest = Manifest(bytes) else { continue }
        let hasNewerTable = names.contains { name in
          Manifest.number(ofTable: name).map { $0 >= manifest.nextFile } ?? false
        }
        if manifest.missingFile(in: names) == nil || !hasNewerTable { return (manifest, bytes) }
      case .torn(let place), .damaged(let place, _):
        let intact = Array(bytes[..<place])
        if let manifest = Manifest(intact), manifest.missingFile(in: names) == nil {
          return (manifest, intact)
        }
      }
    }
    return nil
  }

  private static func salvageTable(
    _ name: String?, number: UInt64, _ table: Manifest.Table, from source: String,
    to directory: String, linking: Bool, _ files: any StoreFiles
  ) throws(StoreError) {
    if let name {
      let (old, new) = ("\(source)/\(name)", "\(directory)/\(name)")
      let start = table.bytes - TableFooter.byteCount
      let end =
        start < 0 ? [] : try files.read(old, from: start, count: TableFooter.byteCount)
      if TableFooter(end).isSafe(inTableOf: table.bytes) {
        if linking, try files.link(old, as: new) == .made { return }
        return try files.create(new, with: try files.read(old, limit: nil))
      }
    }
    let lost = LogSurvey.name(of: number).dropLast(3) + "ldb"
    try files.create("\(directory)/\(lost)", with: Array(repeating: 0, count: 48))
  }

  private static func salvageLogs(
    of manifest: Manifest, from source: String, names: Set<String>, to directory: String,
    _ files: any StoreFiles
  ) throws(StoreError) {
    var numbers = names.compactMap(LogSurvey.number(of:)).filter(manifest.needsLog).sorted()
    if manifest.logNumber > 0, !numbers.contains(manifest.logNumber) {
      // LevelDB expects it; what it held is lost.
      numbers.append(manifest.logNumber)
    }
    var next: UInt64?
    for number in numbers.sorted() {
      let name = LogSurvey.name(of: number)
      let bytes = try files.readIfPresent("\(source)/\(name)") ?? []
      var log = LogWriter()
      for record in LogScan.intactBatches(of: bytes, from: next ?? 0) {
        let sequence = next ?? record.sequence
        log.add(withUnsafeBytes(of: sequence.littleEndian, Array.init) + record.bytes.dropFirst(8))
        next = sequence + record.rowCount
      }
      try files.create("\(directory)/\(name)", with: log.bytes)
    }
  }
}

extension LogScan {
  /// The intact batches of a write-ahead log, including those after damage.
  fileprivate static func intactBatches(
    of bytes: [UInt8], from sequence: UInt64
  ) -> [(sequence: UInt64, rowCount: UInt64, bytes: [UInt8])] {
    var scan = LogScan(bytes, of: .batches(minimumSequence: sequence))
    var batches: [(sequence: UInt64, rowCount: UInt64, bytes: [UInt8])] = []
    while let part = scan.nextPart() {
      guard case .record(let record) = part else { continue }
      scan.withBytes(of: record) { batch in
        guard let sequence = LogBatch.sequence(of: batch),
          let rowCount = LogBatch.rowCount(of: batch)
        else { return }
        batches.append((sequence, UInt64(rowCount), [UInt8](batch)))
      }
    }
    return batches
  }
}

extension LevelDBEngine {
  /// Creates a store from the readable part of a damaged one, in a directory that is missing or
  /// empty.
  ///
  /// - Parameters:
  ///   - source: The damaged store's directory. It is only read, and no process may write to it
  ///     meanwhile.
  ///   - target: The new store's directory. Its parent must exist.
  ///   - options: The settings of both engines, with the values that may be kept in segments.
  ///   - rebuilding: What a rebuild does if no intact MANIFEST lists the tables; nil for none.
  ///   - copy: Copies rows from its first argument, which is read-only, to its second one.
  /// - Returns: What a rebuild could not read; nil if a MANIFEST listed the tables.
  /// - Throws: Errors of `copy`; ``StoreError/incompatible(_:)`` for a later format;
  ///   ``StoreError/invalidArgument(_:)`` and
  ///   ``StoreError/locked(pid:)`` for `target`; ``StoreError/corrupt(_:)`` when nothing can be
  ///   salvaged; ``StoreError/io(_:)``, ``StoreError/diskFull``. `target` is then as it was
  ///   before.
  @discardableResult package static func salvage(
    from source: String, to target: String, options: LevelDBOptions = LevelDBOptions(),
    rebuilding: Rebuilding? = nil,
    copying copy: (LevelDBEngine, LevelDBEngine) throws(StoreError) -> Void
  ) throws(StoreError) -> Rebuild.Report? {
    let files = SystemFiles()
    let real = try files.realPath(source)
    _ = try StoreDirectory.readableVersion(in: real, files)
    var new = try NewStore(at: target, outside: real, options: options)
    let snapshot = try StoreSnapshot(salvaging: real, rebuilding: rebuilding)
    let damaged = try snapshot.open(options: options, cause: "it is being salvaged")
    try copy(damaged, new.engine)
    try damaged.close()
    try new.finish()
    return snapshot.capture.rebuild
  }
}
