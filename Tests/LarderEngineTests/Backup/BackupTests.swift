import AcceptanceRows
import Foundation
import Larder
import LarderTestSupport
import SimulatedDisk
import Synchronization
import Testing

/// A backup holds the whole store, shares only its tables, and overwrites nothing.
@Suite(.acceptance) struct BackupTests {
  @Test(
    "A backup holds the store and shares its tables if links are possible.",
    arguments: [true, false])
  func contents(linking: Bool) throws {
    let fixture = try BackupFixture(files: DirectFiles(refusesLinks: !linking))
    try fixture.makeBackup()
    try fixture.restore()

    #expect(try fixture.names() == ["backup", "restored", "store"])
    #expect(try entriesOfStore(at: fixture.restored) == entriesForBackup)
    let names = try FileManager.default.contentsOfDirectory(atPath: fixture.backup)
    #expect(names.count { $0.hasSuffix(".ldb") } == 2)
    for name in names where name != "LARDER.backup" && name != "LARDER.lock" {
      let original = try FileFacts(of: "\(fixture.store)/\(name)").node
      let isShared = try FileFacts(of: "\(fixture.backup)/\(name)").node == original
      #expect(isShared == (linking && name.hasSuffix(".ldb")), "\(name)")
      // The restored store shares no file.
      let copy = "\(fixture.restored)/\(name)"
      if FileManager.default.fileExists(atPath: copy) {
        #expect(try FileFacts(of: copy).node != FileFacts(of: "\(fixture.backup)/\(name)").node)
      }
    }
  }

  @Test(
    "Backups and restorations hold a small part of a large file in memory.",
    arguments: [true, false])
  func pieces(linking: Bool) throws {
    let directory = try TemporaryDirectory()
    let largest = Atomic(0)
    let files = DirectFiles(
      refusesLinks: !linking,
      watch: { call in
        guard case .read(let count) = call else { return }
        _ = largest.max(count, ordering: .relaxed)
      })
    var options = SeparationTests.options(from: 1, segmentBytes: 16 << 20)
    options.files = files
    let engine = try LevelDBEngine(at: directory.path("store"), options: options)
    let tail = [UInt8](repeating: 7, count: 1 << 20)
    for number in 0..<12 { try SeparationTests.put(bytes("key \(number)"), tail, in: engine) }
    largest.store(0, ordering: .relaxed)
    try engine.backup(to: directory.path("backup"), date: 0)
    try engine.close()
    let backup = try Backup(at: directory.path("backup"), files: files)
    #expect(try backup.faults() == [])
    try backup.restore(to: directory.path("restored"))
    #expect((1...1 << 20).contains(largest.load(ordering: .relaxed)))
    let restored = try LevelDBEngine(at: directory.path("restored"), options: options)
    for number in 0..<12 {
      try SeparationTests.expect(tail, under: bytes("key \(number)"), in: restored)
    }
    try restored.close()
  }

  @Test("The backup's manifest has the documented format.")
  func manifest() throws {
    let fixture = try BackupFixture()
    try fixture.makeBackup()
    let text = try String(contentsOfFile: "\(fixture.backup)/LARDER.backup", encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines[..<3] == ["larder-backup 1", "store 1", "date 788918400.1"])
    let names = try FileManager.default.contentsOfDirectory(atPath: fixture.backup).sorted()
    let expected = try names.filter { !$0.hasPrefix("LARDER") }.map { name in
      let bytes = Array(try Data(contentsOf: URL(filePath: "\(fixture.backup)/\(name)")))
      return "file \(name) \(bytes.count) \(hexadecimal(crc32c(bytes)))"
    }
    #expect(lines[3..<(lines.count - 1)].map(String.init) == expected)
    let covered = Array(lines.dropLast().map { "\($0)\n" }.joined().utf8)
    #expect(lines.last.map(String.init) == "crc32c \(hexadecimal(crc32c(covered)))")
  }

  @Test("The documentation's example of a manifest is valid.")
  func documentedExample() throws {
    let tests = URL(filePath: #filePath).deletingLastPathComponent()
    let article = tests.appending(
      path: "../../../Sources/Larder/Documentation.docc/StorageFormat.md")
    let text = try String(contentsOf: article, encoding: .utf8)
    let start = try #require(text.range(of: "```text\nlarder-backup")).lowerBound
    let block = text[start...].split(separator: "```")[0].dropFirst("text\n".count)
    let manifest = try BackupManifest(Array(block.utf8), at: "the example")
    #expect(manifest.date == 788_918_400.1)
    #expect(
      manifest.files.map(\.name) == ["000005.ldb", "000009.log", "CURRENT", "MANIFEST-000004"])
    #expect(manifest.files[0].byteCount == 1834 && manifest.files[0].checksum == 0x0a1b_2c3d)
  }

  @Test("A backup does not open as a store.")
  func notAStore() throws {
    let fixture = try BackupFixture()
    try fixture.makeBackup()
    let before = try FileFacts.all(in: fixture.backup)
    let error = #expect(throws: StoreError.self) { try LevelDBEngine(at: fixture.backup) }
    #expect("\(try #require(error))".contains("restore"))
    #expect(try FileFacts.all(in: fixture.backup) == before)
  }

  // A backup that is opened by force becomes a database that writes and deletes files. The tables
  // that it shares with the store do not change.
  @Test("Opening a backup by force and deleting it does not harm the store.")
  func forcedOpening() throws {
    let fixture = try BackupFixture()
    try fixture.makeBackup()
    try FileManager.default.removeItem(atPath: "\(fixture.backup)/LARDER.backup")
    try Data("larder 1\n".utf8).write(to: URL(filePath: "\(fixture.backup)/LARDER"))
    let before = try FileFacts.all(in: fixture.store)
    var options = LevelDBOptions()
    options.reusesLogs = true
    let forced = try LevelDBEngine(at: fixture.backup, options: options)
    #expect(try forced.entries() == entriesForBackup)
    for number in 0..<2000 {
      try forced.put(Array("\(number % 10)".utf8), [UInt8](repeating: 7, count: 10_000))
    }
    try forced.compact(EngineRange())
    try forced.close()
    #expect(try FileFacts.all(in: fixture.store) == before)

    try FileManager.default.removeItem(atPath: fixture.backup)
    #expect(try fixture.engine.entries() == entriesForBackup)
    try fixture.engine.compact(EngineRange())
    try fixture.engine.close()
    #expect(try entriesOfStore(at: fixture.store) == entriesForBackup)
  }

  @Test("Later writes of the store, and its deletion, do not harm the backup.")
  func laterWrites() throws {
    let fixture = try BackupFixture()
    try fixture.makeBackup()
    for number in 0..<200 { try fixture.engine.put("0-\(number)", "other") }
    try fixture.engine.compact(EngineRange())
    try fixture.engine.close()
    try FileManager.default.removeItem(atPath: fixture.store)
    try fixture.restore()
    #expect(try entriesOfStore(at: fixture.restored) == entriesForBackup)
  }

  @Test("Backups and restored stores need an empty or a new directory.")
  func targets() throws {
    let fixture = try BackupFixture()
    let made = FileManager.default
    try made.createDirectory(atPath: fixture.backup, withIntermediateDirectories: false)
    try fixture.makeBackup()
    let before = try FileFacts.all(in: fixture.backup)
    try Data().write(to: URL(filePath: fixture.directory.path("file")))
    let isRefused = { (error: any Error) in
      if case StoreError.invalidArgument = error { true } else { false }
    }
    for target in [
      fixture.backup, fixture.backup + "/", fixture.directory.path("file"), fixture.store,
      fixture.store + "/inside", "/", "", fixture.directory.path("a\0b"),
    ] {
      #expect(performing: { try fixture.engine.backup(to: target, date: 0) }, throws: isRefused)
    }
    for target in [fixture.backup, fixture.directory.path("file"), fixture.backup + "/inside"] {
      #expect(
        performing: { try Backup(at: fixture.backup).restore(to: target) }, throws: isRefused)
    }
    #expect(
      performing: {
        try fixture.engine.backup(to: fixture.directory.path("none/backup"), date: 0)
      }, throws: { if case StoreError.io = $0 { true } else { false } })
    #expect(try FileFacts.all(in: fixture.backup) == before)
    #expect(try fixture.names() == ["backup", "file", "store"])
  }

  @Test("Symbolic links are followed, and redundant separators are allowed.")
  func paths() throws {
    let fixture = try BackupFixture()
    let place = fixture.directory.path("place")
    let files = FileManager.default
    try files.createDirectory(atPath: place, withIntermediateDirectories: false)
    try files.createSymbolicLink(
      atPath: fixture.directory.path("link"), withDestinationPath: place)
    try files.createSymbolicLink(
      atPath: fixture.directory.path("inside"), withDestinationPath: fixture.store)
    try fixture.engine.backup(to: fixture.directory.path("link"), date: 0)
    try Backup(at: fixture.directory.path("link//.")).restore(to: "\(fixture.restored)//")
    #expect(try entriesOfStore(at: fixture.restored) == entriesForBackup)
    #expect(throws: StoreError.self) {
      try fixture.engine.backup(to: fixture.directory.path("inside/backup"), date: 0)
    }
  }

  @Test("Leftovers of a killed process are removed, and other files are not.")
  func leftovers() throws {
    let fixture = try BackupFixture()
    let files = FileManager.default
    for name in ["backup", "restored"] {
      let place = fixture.partial(name)
      try files.createDirectory(atPath: place, withIntermediateDirectories: false)
      try Data().write(to: URL(filePath: "\(place)/something"))
      #expect(throws: StoreError.invalidArgument("\(place) is in the way")) {
        if name == "backup" { try fixture.makeBackup() } else { try fixture.restore() }
      }
      #expect(files.fileExists(atPath: "\(place)/something"))
      try Data("7\n".utf8).write(to: URL(filePath: "\(place)/LARDER.lock"))
      if name == "backup" { try fixture.makeBackup() } else { try fixture.restore() }
    }
    #expect(try entriesOfStore(at: fixture.restored) == entriesForBackup)
    #expect(try fixture.names() == ["backup", "restored", "store"])
  }

  @Test("One of several simultaneous backups to one path succeeds.")
  func sameTarget() throws {
    let fixture = try BackupFixture()
    let outcomes = Mutex<[StoreError?]>([])
    let (engine, backup) = (fixture.engine, fixture.backup)
    for round in 0..<20 {
      onThreads(4) { _ in
        do throws(StoreError) {
          try engine.backup(to: "\(backup)-\(round)", date: 0)
          outcomes.withLock { $0.append(nil) }
        } catch {
          outcomes.withLock { $0.append(error) }
        }
      }
      try Backup(at: "\(backup)-\(round)").restore(to: "\(fixture.restored)-\(round)")
      #expect(try entriesOfStore(at: "\(fixture.restored)-\(round)") == entriesForBackup)
    }
    let all = outcomes.withLock { $0 }
    #expect(all.count { $0 == nil } == 20)
    for case let error? in all {
      switch error {
      case .locked, .invalidArgument, .io: break
      default: Issue.record(error)
      }
    }
    #expect(try fixture.names().allSatisfy { !$0.hasSuffix("partial") })
  }

  @Test("A backup is locked while it is moved to its final path.")
  func moveToTarget() throws {
    let work = Mutex<(engine: LevelDBEngine?, path: String)>((nil, ""))
    let failures = Mutex<[StoreError]>([])
    let fixture = try BackupFixture(
      files: DirectFiles(watch: { call in
        let (engine, path) = work.withLock { $0 }
        guard call == .move, let engine else { return }
        do throws(StoreError) {
          try engine.backup(to: path, date: 0)
        } catch {
          failures.withLock { $0.append(error) }
        }
      }))
    work.withLock { $0 = (fixture.engine, fixture.backup) }
    try fixture.makeBackup()
    work.withLock { $0.engine = nil }
    #expect(failures.withLock { $0 } == [.locked(pid: ProcessInfo.processInfo.processIdentifier)])
    try fixture.restore()
    #expect(try entriesOfStore(at: fixture.restored) == entriesForBackup)
  }

  @Test("A closed store cannot be backed up.")
  func closedStore() throws {
    let fixture = try BackupFixture()
    try fixture.engine.close()
    #expect(throws: StoreError.closed) { try fixture.makeBackup() }
    #expect(try fixture.names() == ["store"])
  }

  @Test("A directory that has replaced the store's is not backed up.")
  func replacedDirectory() throws {
    let fixture = try BackupFixture()
    try FileManager.default.moveItem(
      atPath: fixture.store, toPath: fixture.directory.path("moved"))
    try LevelDBEngine(at: fixture.store).close()
    let error = #expect(throws: StoreError.self) { try fixture.makeBackup() }
    #expect("\(try #require(error))".contains("another one is in its place"))
    #expect(try fixture.names() == ["moved", "store"])
  }

  @Test("A backup on another file system copies every file.")
  func otherFileSystem() throws {
    let fixture = try BackupFixture()
    let files = FileManager.default
    func fileSystem(of path: String) throws -> Int? {
      try files.attributesOfItem(atPath: path)[.systemNumber] as? Int
    }
    let here = try fileSystem(of: fixture.store)
    let places = try ["/dev/shm", files.temporaryDirectory.path].filter { place in
      try files.isWritableFile(atPath: place) && fileSystem(of: place) != here
    }
    guard let place = places.first else {
      print("backups: this machine has no second file system; only the tests' files refuse links")
      return
    }
    let backup = "\(place)/larder-\(UUID().uuidString)"
    defer { try? files.removeItem(atPath: backup) }
    try fixture.engine.backup(to: backup, date: 0)
    try Backup(at: backup).restore(to: fixture.restored)
    #expect(try entriesOfStore(at: fixture.restored) == entriesForBackup)
  }
}

func crc32c(_ bytes: [UInt8]) -> UInt32 { bytes.withUnsafeBytes { crc32c($0) } }

func hexadecimal(_ number: UInt32) -> String { String(format: "%08x", number) }
