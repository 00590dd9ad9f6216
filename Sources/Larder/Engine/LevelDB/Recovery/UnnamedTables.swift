/// Tables that the MANIFEST does not name, left by a compaction that failed.
///
/// LevelDB deletes them at the end of an opening. On a full disk, an opening may need their room
/// before that.
///
/// LevelDB must not be writing tables meanwhile, and the MANIFEST must be complete.
struct UnnamedTables {
  private var paths: [String] = []
  /// The total size of the tables.
  private(set) var byteCount = 0
  private let files: any StoreFiles

  /// Finds the tables in a store's directory; finds none if the MANIFEST cannot be read.
  init(in directory: String, files: any StoreFiles) throws(StoreError) {
    self.files = files
    let current = try Manifest.current(in: directory, files) ?? []
    let name = String(decoding: current.dropLast(), as: UTF8.self)
    guard case .manifest = DataFile(name),
      let bytes = try files.readIfPresent("\(directory)/\(name)"), let manifest = Manifest(bytes),
      manifest.end == .complete
    else { return }
    for name in try files.names(in: directory) {
      guard case .table(let number) = DataFile(name), manifest.tables[number] == nil else {
        continue
      }
      paths.append("\(directory)/\(name)")
      byteCount += try files.byteCount(of: "\(directory)/\(name)") ?? 0
    }
  }

  func remove() throws(StoreError) {
    for path in paths { try files.remove(path) }
  }
}
