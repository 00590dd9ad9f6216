import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// An inspection changes nothing in the store's directory, even if another process has it open.
@Suite struct SafetyTests {
  /// Runs all commands on the store.
  private func runEverything(at path: String, linking: Bool) throws {
    for format in [ReportFormat.table, .json] {
      let inspection = try Inspection(at: path, now: Specimen.now, linking: linking)
      #expect(inspection.method == (linking ? .links : .copies))
      _ = try inspection.infoReport(Style(format))
      _ = try inspection.listReport(Selection(), Style(format))
      _ = try? inspection.getReport("fresh", Style(format))
      _ = try? inspection.payload(of: "fresh", cache: nil, keys: .auto)
      var text = ""
      #expect(
        try inspection.digest(of: Selection(), style: Style(format)).write(to: &text) == .fine)
      let settings = try BenchSettings(rounds: 1, records: nil)
      #expect(try inspection.bench(settings, style: Style(format)).write(to: &text) == .fine)
      #expect(try Inspection.files(in: path, style: Style(format)).write(to: &text) == .fine)
      for listsEntries in [true, false] {
        #expect(
          try Inspection.logs(
            at: path, listsEntries: listsEntries, style: Style(format)
          ).write(to: &text) == .fine)
      }
      for isDeep in [false, true] {
        _ = try Inspection.doctor(
          path, now: Specimen.now, isDeep: isDeep, style: Style(format)
        ).write(to: &text)
      }
      #expect(try Inspection.manifest(at: path, style: Style(format)).write(to: &text) == .fine)
      #expect(
        try Inspection.find(
          "fresh", cache: nil, isDatabaseKey: false, in: path, style: Style(format)
        ).write(to: &text)
          == .fine)
    }
  }

  @Test("The directory of a closed store does not change.", arguments: [true, false])
  func closedStore(linking: Bool) throws {
    let specimen = try Specimen()
    try specimen.withEngine { try $0.compact(EngineRange()) }
    let before = try FileFacts.all(in: specimen.path)

    try runEverything(at: specimen.path, linking: linking)

    #expect(try FileFacts.all(in: specimen.path) == before)
  }

  @Test(
    "A store that another process has open does not change and stays locked.",
    arguments: [true, false])
  func openStore(linking: Bool) throws {
    let specimen = try Specimen()
    var holder = try ChildProcess("CrashWorker", ["hold", specimen.path])
    #expect(holder.readLine() == "ready")
    let before = try FileFacts.all(in: specimen.path)

    try runEverything(at: specimen.path, linking: linking)
    let owner = try Inspection(at: specimen.path, now: Specimen.now).infoReport().text

    #expect(try FileFacts.all(in: specimen.path) == before)
    #expect(owner.contains("owner    process \(holder.id)\n"))
    #expect {
      try LevelDBEngine(at: specimen.path)
    } throws: { error in
      if case StoreError.locked(holder.id) = error { true } else { false }
    }
  }

  #if os(Linux)
    /// A process that opens and closes a file loses its own locks on it.
    ///
    /// If the inspection did so, LevelDB's lock, which belongs to this process, would be lost.
    @Test("Neither lock file is opened.")
    func lockFiles() throws {
      let specimen = try Specimen()
      let store = try Specimen.open(specimen.path)
      let nodes = try ["LOCK", "LARDER.lock"].map {
        try FileFacts(of: specimen.directory.path("store/\($0)")).node
      }
      func lockedNodes() throws -> Set<UInt64> {
        let table = String(
          decoding: try Data(contentsOf: URL(filePath: "/proc/locks")), as: UTF8.self)
        return Set(
          table.split(separator: "\n").compactMap { line in
            line.split(separator: " ").first { $0.filter { $0 == ":" }.count == 2 }
              .flatMap { UInt64($0.split(separator: ":").last ?? "") }
          })
      }
      #expect(try lockedNodes().isSuperset(of: nodes))

      try runEverything(at: specimen.path, linking: true)

      #expect(try lockedNodes().isSuperset(of: nodes))
      try store.close()
    }
  #endif

  // A table is in the directory before the MANIFEST names it. LevelDB would use its number again
  // when it opens the snapshot, and truncate the shared file.
  @Test("Tables that are still being written are not shared.", arguments: [true, false])
  func unfinishedTables(linking: Bool) throws {
    let specimen = try Specimen()
    for number in 1...60 {
      let name = "store/\(String(repeating: "0", count: number < 10 ? 5 : 4))\(number).ldb"
      let path = specimen.directory.path(name)
      if !FileManager.default.fileExists(atPath: path) {
        try Data("being written".utf8).write(to: URL(filePath: path))
      }
    }
    let before = try FileFacts.all(in: specimen.path)

    try runEverything(at: specimen.path, linking: linking)

    #expect(try FileFacts.all(in: specimen.path) == before)
  }

  @Test("The private directory is deleted after an inspection.")
  func privateDirectories() throws {
    let specimen = try Specimen()
    var inspection: Inspection? = try specimen.inspect()
    let place = try #require(inspection?.snapshot.path)
    #expect(FileAccess.isDirectory(place))
    var status = stat()
    #expect(stat(place, &status) == 0 && status.st_mode & 0o777 == 0o700)

    inspection = nil

    #expect(!FileAccess.isDirectory(place))
  }

  @Test("A path without a store is refused and not changed.")
  func notAStore() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path("file")
    try Data().write(to: URL(filePath: file))
    let foreign = directory.path("foreign")
    try FileManager.default.createDirectory(atPath: foreign, withIntermediateDirectories: false)
    try Data("MANIFEST-000001\n".utf8).write(to: URL(filePath: foreign + "/CURRENT"))
    let before = try FileFacts.all(in: directory.path)

    for (path, expected) in [
      (directory.path("none"), Outcome.unavailable), (file, .unavailable),
      (directory.path, .unavailable), (foreign, .unsupported),
    ] {
      #expect { try Inspection(at: path, now: Specimen.now) } throws: {
        outcome(of: $0) == expected
      }
    }
    #expect(try FileFacts.all(in: directory.path) == before)
  }

  @Test("Later formats are refused.")
  func laterFormats() throws {
    let specimen = try Specimen()
    let marker = URL(filePath: specimen.directory.path("store/LARDER"))
    try Data("larder 3\n".utf8).write(to: marker)

    #expect { try specimen.inspect() } throws: { outcome(of: $0) == .unsupported }
  }
}
