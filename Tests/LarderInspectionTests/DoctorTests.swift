import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@testable import LarderInspection

/// `doctor` advises what is to be done, and nothing else.
@Suite struct DoctorTests {
  private static func doctor(
    _ path: String, deep: Bool = false, _ style: Style = Style(), now: Date = Specimen.now
  ) throws -> (text: String, status: Outcome) {
    var text = ""
    let status = try Inspection.doctor(path, now: now, isDeep: deep, style: style).write(to: &text)
    return (text, status)
  }

  private static func checks(_ path: String, deep: Bool = false) throws -> [String] {
    try doctor(path, deep: deep, Style(.csv)).text.split(separator: "\n").dropFirst()
      .compactMap { $0.split(separator: ",").first.map(String.init) }
      // What the machine of the test may have.
      .filter { !["disk", "file-system"].contains($0) }
  }

  /// The checks that advise something for these facts.
  private static func checks(_ change: (inout StoreFacts) -> Void) -> [String] {
    var facts = StoreFacts()
    (facts.path, facts.records, facts.liveBytes) = ("/s", 100, 1 << 20)
    change(&facts)
    return facts.findings.map(\.check)
  }

  @Test("A store without problems needs nothing.")
  func fine() throws {
    #expect(Self.checks { _ in } == [])
    let specimen = try Specimen()
    let store = try Specimen.open(specimen.path)
    _ = try store.sweep()
    try store.close()
    for isDeep in [false, true] { #expect(try Self.checks(specimen.path, deep: isDeep) == []) }
  }

  @Test("Each check advises from its limit on, and not below.")
  func limits() {
    #expect(Self.checks { $0.damage = ["a", "b"] } == ["damage"])
    #expect(Self.checks { $0.notedDamage = "a" } == ["noted-damage"])
    #expect(Self.checks { $0.openingFault = "a" } == ["opening"])
    #expect(Self.checks { $0.unsupported = 1 } == ["unsupported"])
    let tenth = (1 << 20) / 10
    #expect(Self.checks { ($0.due.entries, $0.due.bytes) = (1, tenth + 1) } == ["backlog"])
    #expect(Self.checks { ($0.due.entries, $0.due.bytes) = (1, tenth - 1) } == [])
    #expect(Self.checks { $0.tableBytes = 34 << 20 } == [])
    #expect(Self.checks { $0.tableBytes = 34 << 20 | 1 } == ["overwritten"])
    #expect(Self.checks { ($0.separatedBytes, $0.segmentBytes) = (1 << 20, 34 << 20) } == [])
    #expect(Self.checks { ($0.separatedBytes, $0.segmentBytes) = (0, 33 << 20) } == ["segments"])
    #expect(Self.checks { $0.levelZeroTables = 7 } == [])
    #expect(Self.checks { $0.levelZeroTables = 8 } == ["level-0"])
    #expect(Self.checks { $0.logBytes = 32 << 20 } == [])
    #expect(Self.checks { $0.logBytes = 33 << 20 } == ["log"])
    #expect(Self.checks { $0.availableBytes = 64 << 20 } == [])
    #expect(Self.checks { $0.availableBytes = 63 << 20 } == ["disk"])
    #expect(Self.checks { $0.reserveBytes = 1 } == ["disk"])
    #expect(Self.checks { $0.fileSystem = .network("nfs") } == ["file-system"])
    #expect(Self.checks { $0.fileSystem = .memory("tmpfs") } == ["file-system"])
    #expect(Self.checks { $0.endedOwner = 7 } == ["owner"])
    #expect(Self.checks { $0.asideBytes = 7 } == ["aside"])
    #expect(Self.checks { $0.damagedDirectory = "/s.damaged" } == ["set-aside"])
    #expect(Self.checks { $0.hasStaleStatistics = true } == ["statistics"])
  }

  @Test("The counts of a running program are judged once there are enough.")
  func program() throws {
    func checks(reads: Int, fresh: Int, saves: Int, evicted: Int) throws -> [String] {
      var statistics = Statistics.none
      var cache = try CacheStatistics.none
      (cache.reads.fresh, cache.reads.missing) = (fresh, reads - fresh)
      (cache.saves, cache.deletions.cacheBudget.entries) = (saves, evicted)
      statistics.caches["c"] = cache
      return Self.checks { $0.totals = StatisticsTotals(statistics) }
    }
    #expect(try checks(reads: 1000, fresh: 499, saves: 0, evicted: 0) == ["hits"])
    #expect(try checks(reads: 1000, fresh: 500, saves: 0, evicted: 0) == [])
    #expect(try checks(reads: 999, fresh: 0, saves: 0, evicted: 0) == [])
    #expect(try checks(reads: 0, fresh: 0, saves: 1000, evicted: 501) == ["evictions"])
    #expect(try checks(reads: 0, fresh: 0, saves: 1000, evicted: 500) == [])
  }

  @Test("A network file system is recognised by the mount that a path lies in.")
  func mounts() {
    let table = """
      22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
      30 22 0:35 / /mnt/a\\040share rw - nfs4 server:/x rw
      31 22 0:36 / /mnt rw - tmpfs tmpfs rw
      32 22 0:37 / /data rw - xfs /dev/sdb rw
      33 32 0:38 / /data rw - fuse.sshfs host: rw
      a line of another form
      """
    func kind(_ path: String) -> FileSystemKind {
      FileSystemKind(type: FileSystemKind.type(of: path, in: table) ?? "")
    }
    #expect(kind("/mnt/a share/store") == .network("nfs4"))
    #expect(kind("/mnt/a shared") == .memory("tmpfs"))
    #expect(kind("/database") == .local && kind("/") == .local)
    #expect(kind("/data/store") == .network("fuse.sshfs"))
    #expect(FileSystemKind.type(of: "/x", in: "") == nil)
  }

  @Test("Damage is named with the entry, and the exit code is 3.")
  func damage() throws {
    let specimen = try Specimen.withFaults()
    let (text, status) = try Self.doctor(specimen.path)
    #expect(status == .damaged)
    #expect(
      text.contains("damage   The store is damaged: the entry damaged of cache genres.\n"),
      "\(text)")
    #expect(text.contains("\n         kvinspect verify \(specimen.path)\n"))
    #expect(text.contains("1 of 10 records were written by a later version"))
    var redacted = Style()
    redacted.isRedacted = true
    #expect(!(try Self.doctor(specimen.path, redacted).text).contains("entry damaged"))
  }

  @Test("`--deep` finds damage in segments and in the index, which the cheap check does not read.")
  func deep() throws {
    let specimen = try Specimen(separatedValueBytes: 1)
    let segment = try #require(
      Damage.files(in: specimen.path, endingIn: ".segment").first)
    let count = try Data(contentsOf: URL(filePath: segment)).count
    try Damage.flipByte(at: count / 2, of: segment)
    #expect(!(try Self.checks(specimen.path)).contains("damage"))
    #expect(try Self.checks(specimen.path, deep: true).contains("damage"))
  }

  @Test("A store that cannot be opened gets a report, and one that is not there an error.")
  func unopened() throws {
    let specimen = try Specimen()
    let manifest = try #require(
      FileManager.default.contentsOfDirectory(atPath: specimen.path).first {
        $0.hasPrefix("MANIFEST-")
      })
    try Data("no manifest".utf8).write(to: URL(filePath: "\(specimen.path)/\(manifest)"))
    let (text, status) = try Self.doctor(specimen.path)
    #expect(status == .damaged)
    #expect(text.contains("damage   The store cannot be opened: "), "\(text)")
    #expect(text.contains("kvinspect repair \(specimen.path) --output \(specimen.path).repaired\n"))
    #expect {
      try Self.doctor(specimen.path + "/none")
    } throws: {
      ($0 as? InspectionError)?.status == .unavailable
    }
  }

  @Test("Files that earlier programs left are named.")
  func leftovers() throws {
    let specimen = try Specimen()
    let files = FileManager.default
    try files.createDirectory(
      atPath: "\(specimen.path)/LARDER.aside", withIntermediateDirectories: false)
    try files.createDirectory(
      atPath: "\(specimen.path).damaged", withIntermediateDirectories: false)
    try Data("{}".utf8).write(to: URL(filePath: "\(specimen.path)/LARDER.statistics"))
    try Data("block 7\n".utf8).write(to: URL(filePath: "\(specimen.path)/LARDER.damaged"))
    var worker = try ChildProcess("CrashWorker", ["hold", specimen.directory.path("other")])
    #expect(worker.readLine() == "ready")
    worker.kill()
    try files.removeItem(atPath: "\(specimen.path)/LARDER.lock")
    try files.copyItem(
      atPath: specimen.directory.path("other/LARDER.lock"), toPath: "\(specimen.path)/LARDER.lock")
    let checks = try Self.checks(specimen.path)
    #expect(
      checks.filter { $0 != "backlog" }
        == ["noted-damage", "owner", "aside", "set-aside", "statistics"])
  }

  @Test("The report has each format, and paths can be pasted into a shell.")
  func formats() throws {
    let specimen = try Specimen()
    let place = specimen.directory.path("it's here")
    try FileManager.default.moveItem(atPath: specimen.path, toPath: place)
    let text = try Self.doctor(place, now: Specimen.now + 365 * 86_400).text
    #expect(text.contains("kvinspect sweep '\(place.replacing("'", with: "'\\''"))' --write\n"))
    let json = try Self.doctor(place, Style(.json), now: Specimen.now + 365 * 86_400).text
    let document = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    let rows = try #require(document?["rows"] as? [[String: String]])
    #expect(rows.contains { $0["check"] == "backlog" && $0["severity"] == "advice" })
    for format in [ReportFormat.csv, .jsonl] {
      #expect(
        try Self.doctor(place, Style(format), now: Specimen.now + 365 * 86_400).text
          .contains("backlog"))
    }
  }
}

extension Statistics {
  static var none: Statistics { Store.inMemory().statistics }
}

extension CacheStatistics {
  static var none: CacheStatistics {
    get throws {
      let store = Store.inMemory()
      _ = try store.cache("c", of: Int.self)
      return try #require(store.statistics.caches["c"])
    }
  }
}
