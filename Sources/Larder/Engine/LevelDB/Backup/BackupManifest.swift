// LARDER.backup, the file that makes a directory a backup. It consists of lines of text:
//
//   larder-backup 1                   the format version of the backup
//   store 1                           the format version of the store
//   date 788918400.1                  its start, in seconds since 2001-01-01 00:00 UTC
//   file 000007.ldb 1834 0a1b2c3d     a file's name, size in bytes, and CRC32C; sorted by name
//   ...
//   crc32c 9f8e7d6c                   the CRC32C of all lines before this one
//
// The first and the last line are the same in every version, so that a later version can be told
// from damage.
//
// The checksum is CRC32C because the library has it: Linux has no stronger digest without another
// dependency. It detects damage, not forgery.

/// The manifest of a backup.
package struct BackupManifest: Hashable, Sendable {
  package struct File: Hashable, Sendable {
    package let name: String
    let digest: FileDigest

    package var byteCount: Int { digest.byteCount }
    package var checksum: UInt32 { digest.checksum }
  }

  package static let fileName = "LARDER.backup"
  /// The largest manifest, of a million files.
  static let byteLimit = 64 << 20
  /// The newest backup format that this library knows, and the one it writes.
  package static let formatVersion = 1

  let storeFormatVersion: Int
  /// In seconds since 2001-01-01 00:00 UTC, by the clock of the store.
  package let date: Double
  package let files: [File]

  init(storeFormatVersion: Int, date: Double, files: [File]) {
    (self.storeFormatVersion, self.date, self.files) = (storeFormatVersion, date, files)
  }

  /// The bytes of the file.
  var bytes: [UInt8] {
    var text = "larder-backup \(Self.formatVersion)\nstore \(storeFormatVersion)\ndate \(date)\n"
    for file in files {
      text += "file \(file.name) \(file.byteCount) \(Self.hexadecimal(file.checksum))\n"
    }
    let sum = Array(text.utf8).withUnsafeBytes { crc32c($0) }
    return Array("\(text)crc32c \(Self.hexadecimal(sum))\n".utf8)
  }

  /// Reads the bytes of the file at `path`.
  ///
  /// - Throws: ``StoreError/incompatible(_:)`` when the backup or its store has a later format
  ///   version; ``StoreError/corrupt(_:)`` when the file is damaged. Both name the file.
  package init(_ bytes: [UInt8], at path: String) throws(StoreError) {
    let damage = StoreError.corrupt("\(path) is damaged")
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    // The file ends with the end of its last line.
    guard lines.count > 4, lines[lines.count - 1].isEmpty else { throw damage }
    let last = lines[lines.count - 2]
    let sum = bytes[..<last.startIndex].withUnsafeBytes { crc32c($0) }
    guard last.elementsEqual("crc32c \(Self.hexadecimal(sum))".utf8) else { throw damage }
    var words = lines.dropLast(2).map { line in
      String(decoding: line, as: UTF8.self).split(separator: " ")
    }[...]
    guard let version = Self.number("larder-backup", words.popFirst()) else { throw damage }
    try StoreMarker.checkKnown(version, of: path, upTo: Self.formatVersion)
    guard let store = Self.number("store", words.popFirst()) else { throw damage }
    guard store <= StoreMarker.formatVersion else {
      throw .incompatible("\(path) is of a store with format version \(store)")
    }
    guard let line = words.popFirst(), line.count == 2, line[0] == "date",
      let date = Double(line[1])
    else { throw damage }
    let files = words.compactMap(Self.file)
    guard files.count == words.count, Set(files.map(\.name)).count == files.count,
      files.contains(where: { $0.name == "CURRENT" })
    else { throw damage }
    // The backup of a store that was opened for reading only may say 1, if an earlier version of
    // this library made it.
    self.init(
      storeFormatVersion: StoreMarker.formatVersion(store, of: files.map(\.name)), date: date,
      files: files)
  }

  private static func number(_ name: String, _ words: [Substring]?) -> Int? {
    guard let words, words.count == 2, words[0] == name, let number = Int(words[1]), number > 0
    else { return nil }
    return number
  }

  private static func file(_ words: [Substring]) -> File? {
    // Only names of LevelDB's files are accepted, none of which leads out of the directory.
    guard words.count == 4, words[0] == "file", DataFile(String(words[1])) != nil,
      let byteCount = Int(words[2]), byteCount >= 0, let checksum = UInt32(words[3], radix: 16)
    else { return nil }
    return File(
      name: String(words[1]), digest: FileDigest(byteCount: byteCount, checksum: checksum))
  }

  private static func hexadecimal(_ number: UInt32) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }
}
