import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderInspection

/// Each command on each kind of place: its exit code and its message, as recorded tables.
@Suite struct ErrorTableTests {
  enum Place: String, CaseIterable {
    case missing, file, empty, foreign, zlib
    case noCurrent, onlyMarker, noMarkerNorCurrent, noManifest, damagedManifest, noTable
    case laterFormat, open
  }

  /// PLACE is the place, OTHER an intact store, NEW a directory that is missing.
  private static let commands = [
    "info PLACE", "ls PLACE", "get PLACE k", "why PLACE k", "top PLACE", "stats PLACE",
    "prefixes PLACE", "ttl PLACE", "verify PLACE", "find PLACE k", "find PLACE 0x6b --database-key",
    "files PLACE", "wal PLACE", "manifest PLACE", "table PLACE", "table PLACE/000005.ldb",
    "diff PLACE OTHER", "diff OTHER PLACE", "digest PLACE", "watch PLACE --from-start --limit 1",
    "watch PLACE --statistics --limit 1", "doctor PLACE", "backup PLACE NEW",
    "restore PLACE NEW", "export PLACE", "import PLACE --dry-run",
    "import --kind files --cache c PLACE --dry-run",
    "import --kind leveldb --cache c PLACE --dry-run", "repair PLACE --output NEW",
    "remove PLACE k --write", "set PLACE k --cache c --value 1 --write", "sweep PLACE --write",
    "compact PLACE --write", "bench --store PLACE --rounds 1",
  ]

  /// A store with one entry in a log and one in a table.
  private static func makeStore(at path: String) throws {
    let store = try Specimen.open(path)
    try store.cache("c", of: Int.self).save(1, for: "k")
    try store.close()
    let engine = try LevelDBEngine(at: path)
    try engine.compact(EngineRange())
    try engine.close()
    let again = try Specimen.open(path)
    try again.cache("c", of: Int.self).save(2, for: "other")
    try again.close()
  }

  private static func remove(_ path: String, _ isRemoved: (String) -> Bool) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: path) where isRemoved(name) {
      try FileManager.default.removeItem(atPath: "\(path)/\(name)")
    }
  }

  private static func make(_ place: Place, at path: String) throws {
    let manager = FileManager.default
    switch place {
    case .missing: return
    case .file: return try Data("text".utf8).write(to: URL(filePath: path))
    case .empty:
      return try manager.createDirectory(atPath: path, withIntermediateDirectories: false)
    case .foreign, .zlib:
      var database = try ForeignDatabase(at: path, lastSequence: 9)
      try database.addTable(4, [("k", "1")], compression: place == .zlib ? 4 : 0)
      return try database.addLog(3, [ForeignDatabase.put(10, "b", "2")])
    default: try makeStore(at: path)
    }
    switch place {
    case .noCurrent: try remove(path) { $0 == "CURRENT" }
    case .onlyMarker: try remove(path) { $0 != "LARDER" }
    case .noMarkerNorCurrent: try remove(path) { $0 == "CURRENT" || $0 == "LARDER" }
    case .noManifest: try remove(path) { $0.hasPrefix("MANIFEST") }
    case .damagedManifest:
      let name = try #require(
        try manager.contentsOfDirectory(atPath: path).first { $0.hasPrefix("MANIFEST") })
      try Damage.flipByte(at: 10, of: "\(path)/\(name)")
    case .noTable: try remove(path) { $0.hasSuffix(".ldb") }
    case .laterFormat: try Data("larder 9\n".utf8).write(to: URL(filePath: "\(path)/LARDER"))
    default: break
    }
  }

  @Test("No error of the engine or the store is shown as Swift writes it.")
  func words() {
    let errors: [any Error] = [
      StoreError.corrupt("x"), StoreError.io("x"), StoreError.incompatible("x"),
      StoreError.invalidArgument("x"), StoreError.readOnly(cause: "x"), StoreError.diskFull,
      StoreError.writesDisabled(cause: "x"), StoreError.corrupt(cache: "x", key: "x", file: nil),
      StoreError.io("x"), StoreError.incompatible("x"), StoreError.invalidArgument("x"),
      StoreError.diskFull, StoreError.locked(pid: 1), StoreError.writesDisabled(cause: "x"),
    ]
    for error in errors {
      let text = InspectionError(error).description
      #expect(text == "x" || text.contains(" ") && !text.contains("("))
    }
  }

  @Test("Each command has a documented exit code and one short message.", arguments: Place.allCases)
  func commands(place: Place) throws {
    let places = try TemporaryDirectory()
    let (path, other) = (places.path("place"), places.path("other"))
    try Self.makeStore(at: other)
    var report = ""
    for (index, command) in Self.commands.enumerated() {
      // A bench of an intact store shows times, and a watch of an idle one does not end.
      if place == .open, ["bench", "watch PLACE --from"].contains(where: command.hasPrefix) {
        continue
      }
      try Self.make(place, at: path)
      let holder = place == .open ? try Specimen.open(path) : nil
      let words = command.split(separator: " ").map { word in
        String(word).replacing("PLACE", with: path).replacing("OTHER", with: other)
          .replacing("NEW", with: places.path("new \(index)"))
      }
      let result = try Kvinspect(words, temporary: places.path).finish()
      try holder?.close()
      if FileManager.default.fileExists(atPath: path) {
        try FileManager.default.removeItem(atPath: path)
      }
      let errors = result.errors
      #expect([0, 1, 2, 3, 4, 5, 6, 64].contains(result.status), "\(command)")
      #expect(errors.count < 500, "\(command): \(errors)")
      #expect(errors.isEmpty || errors.hasPrefix("kvinspect: "), "\(command): \(errors)")
      for word in ["kvinspect-", "corrupt(", "io(", "incompatible(", "Error.", "Optional("] {
        #expect(!errors.contains(word), "\(command): \(errors)")
      }
      report += "\(result.status)  \(command)\n"
      for line in errors.split(separator: "\n") {
        report += "     \(line.replacing("kvinspect: ", with: ""))\n"
      }
    }
    try expectSnapshot(
      report, named: "errors.\(place)",
      masking: [
        (path, "PLACE"), (other, "OTHER"), (places.path, "DIR"),
        ("process \(ProcessInfo.processInfo.processIdentifier)", "process PID"),
      ])
  }
}
