import Foundation
import Larder
import LarderTestSupport
import Testing

/// Damage is found before it gets from a backup into a store, or from a store into a backup.
@Suite struct BackupDamageTests {
  /// Expects that a restore is refused with the file's name and creates nothing.
  private func expectRefused(
    _ fixture: BackupFixture, naming name: String, _ comment: String
  ) throws {
    do throws(StoreError) {
      try Backup(at: fixture.backup).restore(to: fixture.restored)
      Issue.record("the restore succeeded: \(comment)")
    } catch {
      switch error {
      case .corrupt(_, _, let message?) where message.contains("/\(name) "): break
      default: Issue.record("\(comment): \(error)")
      }
    }
    try #require(try fixture.names() == ["backup", "store"], "\(comment)")
  }

  @Test("Damage to any byte is refused with the name of the file.")
  func everyByte() throws {
    let fixture = try BackupFixture()
    try fixture.makeBackup()
    var cases = 0
    for name in try FileManager.default.contentsOfDirectory(atPath: fixture.backup).sorted()
    where name != "LARDER.lock" {
      // Damage a new file, because the backup's tables are shared with the store.
      let place = URL(filePath: "\(fixture.backup)/\(name)")
      let bytes = try Data(contentsOf: place)
      try FileManager.default.removeItem(at: place)
      for offset in bytes.indices {
        var damaged = bytes
        damaged[offset] ^= 1 << (offset % 8)
        try damaged.write(to: place)
        try expectRefused(fixture, naming: name, "\(name), byte \(offset)")
        if offset.isMultiple(of: 7) {
          try bytes[..<offset].write(to: place)
          try expectRefused(fixture, naming: name, "\(name), cut to \(offset)")
        }
        cases += 1
      }
      try (bytes + [0]).write(to: place)
      try expectRefused(fixture, naming: name, "\(name), longer")
      try bytes.write(to: place)
    }
    #expect(cases > 1000)
    try fixture.restore()
    #expect(try entriesOfStore(at: fixture.restored) == entriesForBackup)
  }

  @Test("Missing and additional files are refused by name.")
  func missingFiles() throws {
    let fixture = try BackupFixture()
    try fixture.makeBackup()
    let files = FileManager.default
    for name in try files.contentsOfDirectory(atPath: fixture.backup).sorted()
    where !name.hasPrefix("LARDER") {
      let place = "\(fixture.backup)/\(name)"
      try files.moveItem(atPath: place, toPath: fixture.directory.path("store/away"))
      try expectRefused(fixture, naming: name, "without \(name)")
      try files.moveItem(atPath: fixture.directory.path("store/away"), toPath: place)
    }
    for name in ["000099.ldb", "000099.log", "LARDER", "notes.txt"] {
      try Data().write(to: URL(filePath: "\(fixture.backup)/\(name)"))
      try expectRefused(fixture, naming: name, "with \(name)")
      try files.removeItem(atPath: "\(fixture.backup)/\(name)")
    }
    try files.removeItem(atPath: "\(fixture.backup)/LARDER.backup")
    for path in [fixture.backup, fixture.store, fixture.directory.path] {
      #expect(
        performing: { try Backup(at: path) },
        throws: { error in
          guard case StoreError.incompatible(let message) = error else { return false }
          return message.contains("LARDER.backup is missing")
        })
    }
    try fixture.engine.close()
  }

  /// Changes lines of the manifest, and its checksum to match.
  private func rewrite(_ path: String, _ change: (inout [String]) -> Void) throws {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    var lines = text.split(separator: "\n").dropLast().map(String.init)
    change(&lines)
    let covered = lines.map { "\($0)\n" }.joined()
    let sum = hexadecimal(crc32c(Array(covered.utf8)))
    try Data("\(covered)crc32c \(sum)\n".utf8).write(to: URL(filePath: path))
  }

  @Test("Later formats are incompatible.")
  func laterFormats() throws {
    let fixture = try BackupFixture()
    try fixture.makeBackup()
    for (index, line) in [(0, "larder-backup 2"), (1, "store 3")] {
      let manifest = "\(fixture.backup)/LARDER.backup"
      let before = try Data(contentsOf: URL(filePath: manifest))
      try rewrite(manifest) { $0[index] = line }
      #expect(
        performing: { try fixture.restore() },
        throws: { error in
          if case StoreError.incompatible = error { true } else { false }
        })
      try before.write(to: URL(filePath: manifest))
    }
    #expect(try fixture.names() == ["backup", "store"])
  }

  // The checksum does not protect from a forged manifest, so its names must not lead elsewhere.
  @Test(
    "A manifest with a file name that LevelDB does not use is damaged.",
    arguments: [
      "file ../store/CURRENT 16 00000000", "file /etc/passwd 16 00000000", "file LARDER 9 00000000",
      "file CURRENT 16 00000000", "file 000005.ldb -1 00000000", "file 000005.ldb 1", "",
    ])
  func foreignNames(line: String) throws {
    let fixture = try BackupFixture()
    try fixture.makeBackup()
    try rewrite("\(fixture.backup)/LARDER.backup") { $0.append(line) }
    try expectRefused(fixture, naming: "LARDER.backup", line)
  }

  @Test("A store with a damaged log is not backed up.")
  func damagedLog() throws {
    let fixture = try BackupFixture()
    let log = try #require(try Damage.files(in: fixture.store, endingIn: ".log").last)
    let whole = try Data(contentsOf: URL(filePath: log))
    let handle = try #require(FileHandle(forUpdatingAtPath: log))
    // The last record, and one that other records follow.
    for offset in [whole.count - 1, 20] {
      try handle.seek(toOffset: UInt64(offset))
      handle.write(Data([whole[offset] ^ 1]))
      let error = #expect(throws: StoreError.self) { try fixture.makeBackup() }
      let name = (log as NSString).lastPathComponent
      #expect("\(try #require(error))".contains("\(name)"))
      try handle.seek(toOffset: UInt64(offset))
      handle.write(whole[offset..<(offset + 1)])
    }
    #expect(try fixture.names() == ["store"])
    try fixture.makeBackup()
  }

  @Test("A store with a missing or cut table is not backed up.")
  func missingTable() throws {
    let fixture = try BackupFixture()
    let table = try #require(try Damage.files(in: fixture.store, endingIn: ".ldb").first)
    let name = (table as NSString).lastPathComponent
    let whole = try Data(contentsOf: URL(filePath: table))
    try whole.dropLast().write(to: URL(filePath: table))
    #expect(performing: { try fixture.makeBackup() }, throws: { "\($0)".contains(name) })
    try FileManager.default.removeItem(atPath: table)
    #expect(performing: { try fixture.makeBackup() }, throws: { "\($0)".contains("is missing") })
    #expect(try fixture.names() == ["store"])
  }
}
