/// The file in a sealed store's directory that has a copy of its data keys.
///
/// Without a data key, nothing that it sealed can be read, so the keys are in two places: if
/// LevelDB's files are damaged, the copy is read.
package enum KeyFile {
  package static let name = "LARDER.keys"
  /// The file while it is written.
  package static let newName = "LARDER.keys.new"
  /// The largest file that is read: some 80,000 keys.
  fileprivate static let byteLimit = 16 << 20
}

extension LevelDBEngine {
  package func markSealed() throws(StoreError) {
    try enter()
    defer { leave() }
    try StoreDirectory.require(StoreMarker.sealedVersion, in: path, options.files)
  }

  package func isMarkedSealed() throws(StoreError) -> Bool {
    try StoreDirectory.formatVersion(in: path, options.files) >= StoreMarker.sealedVersion
  }

  package func keep(keys: [UInt8]) throws(StoreError) {
    try enter()
    defer { leave() }
    let new = "\(path)/\(KeyFile.newName)"
    try options.files.replace(new, with: keys)
    try options.files.move(new, to: "\(path)/\(KeyFile.name)")
    try options.files.synchronizeDirectory(path)
  }

  package func keptKeys() throws(StoreError) -> [UInt8]? {
    try options.files.readIfPresent("\(path)/\(KeyFile.name)", limit: KeyFile.byteLimit)
  }
}
