/// The names and contents of the two files that make a directory a store.
///
/// `StoreDirectory.swift` explains them. Tools read them too.
package enum StoreMarker {
  package static let fileName = "LARDER"
  /// The guard, which holds the owner's process id.
  package static let guardFileName = "LARDER.lock"

  /// The newest directory format that this library knows.
  package static let formatVersion = newestVersion
  /// The format of a directory without segments, as every store is created.
  package static let plainVersion = 1
  /// The format of a directory that may have segments.
  package static let segmentVersion = 2
  /// The format of a directory that may have sealed records, and segments.
  package static let sealedVersion = 3
  #if Encryption
    private static let newestVersion = sealedVersion
  #else
    private static let newestVersion = segmentVersion
  #endif
  /// The contents of a new store's marker.
  package static let contents = contents(of: plainVersion)
  /// The largest size of a marker.
  package static let byteLimit = 64

  /// The format of a directory whose marker says `version`, and in which these files are.
  ///
  /// A directory with segments has ``segmentVersion``, and one with data keys ``sealedVersion``,
  /// also if a copy has lost its marker.
  package static func formatVersion(
    _ version: Int, of names: some Sequence<String>
  ) -> Int {
    guard version < sealedVersion else { return version }
    if names.contains(KeyFile.name) { return sealedVersion }
    guard version < segmentVersion else { return version }
    return names.contains { DataFile($0)?.isSegment == true } ? segmentVersion : version
  }

  /// Whether a directory is a store's or a backup's, and not another program's database.
  package static func isPresent(
    in directory: String, _ files: any StoreFiles
  ) throws(StoreError) -> Bool {
    for name in [fileName, BackupManifest.fileName] {
      if try files.kind(of: "\(directory)/\(name)") != nil { return true }
    }
    return false
  }

  /// Throws if a directory at `path` is in a later format than `known`.
  package static func checkKnown(
    _ version: Int, of path: String, upTo known: Int = formatVersion
  ) throws(StoreError) {
    guard version <= known else {
      if version == sealedVersion, known == segmentVersion {
        throw .incompatible(
          "the values in \(path) are sealed: it is opened by programs that are built with the "
            + "package trait Encryption")
      }
      throw .incompatible(
        "\(path) has format version \(version); this version reads formats up to \(known)")
    }
  }

  /// The contents of the marker of a directory in this format.
  package static func contents(of version: Int) -> String { "larder \(version)\n" }

  /// The format version in a marker's first line; nil if `bytes` is not a marker.
  package static func formatVersion(in bytes: [UInt8]) -> Int? {
    let text = String(decoding: bytes, as: UTF8.self)
    let line = text.prefix { $0 != "\n" }
    guard line.count < text.count, line.hasPrefix("larder "),
      let version = Int(line.dropFirst("larder ".count)), version > 0
    else { return nil }
    return version
  }
}
