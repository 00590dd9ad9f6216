/// The names and contents of the two files that make a directory a store.
///
/// What they are for is told in `StoreDirectory.swift`. Tools read them too.
package enum StoreMarker {
  package static let fileName = "LARDER"
  /// The guard, in which the owner's process id stands.
  package static let guardFileName = "LARDER.lock"

  /// The newest format of a directory that this library knows, and the one it writes.
  package static let formatVersion = 1
  /// What a marker holds.
  package static let contents = contents(of: formatVersion)
  /// No marker is longer.
  package static let byteLimit = 64

  /// What the marker of a directory in this format holds.
  static func contents(of version: Int) -> String { "larder \(version)\n" }

  /// The format version that a marker's first line names; nil when it is no marker's.
  package static func formatVersion(in bytes: [UInt8]) -> Int? {
    let text = String(decoding: bytes, as: UTF8.self)
    let line = text.prefix { $0 != "\n" }
    guard line.count < text.count, line.hasPrefix("larder "),
      let version = Int(line.dropFirst("larder ".count)), version > 0
    else { return nil }
    return version
  }
}
