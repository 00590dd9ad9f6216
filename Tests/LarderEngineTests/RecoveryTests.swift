import Foundation
import Larder
import LarderTestSupport
import Testing

/// A closed store with ten stamped entries in its log, "key0" to "key9", one per commit.
private final class LoggedStore {
  let directory: TemporaryDirectory
  let log: WrittenLog
  /// The number of the log.
  let number: UInt64

  var path: String { directory.path }

  init() throws {
    directory = try TemporaryDirectory()
    let engine = try LevelDBEngine(at: directory.path)
    for index in 0..<10 {
      try engine.put(bytes("key\(index)"), stampedValue(UInt8(index + 1)), stamped: true)
    }
    try engine.close()
    let file = try #require(try Damage.files(in: directory.path, endingIn: ".log").last)
    log = try WrittenLog(Array(try Data(contentsOf: URL(filePath: file))))
    number = try #require(LogSurvey.number(of: (file as NSString).lastPathComponent))
  }

  /// The name of the log that follows the first one by `index`.
  func name(_ index: Int = 0) -> String { LogSurvey.name(of: number + UInt64(index)) }

  /// The bytes of some of the ten records.
  func records(_ range: Range<Int>) -> [UInt8] {
    Array(log.bytes[log.edges[range.lowerBound]..<log.edges[range.upperBound]])
  }

  func write(_ bytes: [UInt8], to name: String) throws {
    try Data(bytes).write(to: URL(filePath: "\(path)/\(name)"))
  }

  func read(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(filePath: "\(path)/\(name)")))
  }

  var manifest: String {
    get throws {
      try #require(
        try FileManager.default.contentsOfDirectory(atPath: path).first {
          $0.hasPrefix("MANIFEST")
        })
    }
  }

  func asideNames() throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: "\(path)/LARDER.aside"))
  }

  /// Expects that recovery throws `corrupt` and changes nothing; returns the message.
  func refusal() throws -> String {
    let before = try FileFacts.all(in: path)
    do throws(StoreError) {
      _ = try recover(directory: path, files: DirectFiles(), stamp: .test)
      Issue.record("recovery succeeded")
      return ""
    } catch {
      #expect(try FileFacts.all(in: path) == before)
      guard case .corrupt(_, _, let message?) = error else { throw error }
      return message
    }
  }

  /// Expects exactly the first `count` of the ten entries.
  func expectEntries(_ count: Int) throws {
    let engine = try LevelDBEngine(at: path)
    let keys = try engine.entries().map { String(decoding: $0.key, as: UTF8.self) }
    #expect(keys == (0..<count).map { "key\($0)" })
    try engine.put("after", "wards")
    try engine.close()
  }
}

/// Recovery sets aside the torn end that a power loss leaves, and refuses damage.
@Suite struct RecoveryTests {
  @Test("An intact store is not changed.")
  func intactStore() throws {
    let store = try LoggedStore()
    let before = try FileFacts.all(in: store.path)
    #expect(try recover(directory: store.path, files: DirectFiles(), stamp: .test) == nil)
    #expect(try FileFacts.all(in: store.path) == before)
    try store.expectEntries(10)

    let empty = try TemporaryDirectory()
    #expect(try recover(directory: empty.path, files: DirectFiles(), stamp: .test) == nil)
  }

  @Test("A damaged log is refused and not changed.")
  func damagedLog() throws {
    let store = try LoggedStore()
    for index in 0..<9 {
      for offset in [0, 4, 6, 7, 20] {
        var bytes = store.log.bytes
        bytes[store.log.edges[index] + offset] ^= 1
        try store.write(bytes, to: store.name())
        let (start, next) = (store.log.edges[index], store.log.edges[index + 1])
        #expect(
          try store.refusal()
            == "\(store.path)/\(store.name()): damaged at byte \(start), and valid again at \(next)"
        )
      }
    }
  }

  @Test("A torn end is set aside.", arguments: [true, false])
  func tornEnd(isZeroed: Bool) throws {
    for count in [1, 7, 60, 400] {
      let store = try LoggedStore()
      var bytes = Array(store.log.bytes.dropLast(count))
      if isZeroed { bytes += Array(repeating: 0, count: count) }
      let index = store.log.record(at: store.log.bytes.count - count)
      let place = store.log.edges[index]
      try store.write(bytes, to: store.name())

      let recovery = try recover(directory: store.path, files: DirectFiles(), stamp: .test)

      if place == bytes.count {
        #expect(recovery == nil)
      } else {
        let tail = Array(bytes[place...])
        #expect(try store.read("LARDER.aside/\(store.name())") == tail)
        #expect(try store.read(store.name()) == Array(bytes.prefix(place)))
        #expect(recovery?.asidePath == "\(store.path)/LARDER.aside")
        let part = "\(store.name()) from byte \(place) on (\(tail.count) bytes)"
        #expect(recovery?.summary.contains(part) == true)
        #expect(recovery?.lostCommits == nil)
        #expect(recovery?.summary.contains("The last writes are lost. A power loss takes") == true)
        #expect(try recover(directory: store.path, files: DirectFiles(), stamp: .test) == nil)
      }
      try store.expectEntries(index)
    }
  }

  @Test("No record after a torn end is applied.")
  func laterLogs() throws {
    let store = try LoggedStore()
    // The second log ends between two records, or within one.
    for cut in [0, 3] {
      try store.write(store.records(0..<3), to: store.name())
      try store.write(store.records(3..<6).dropLast(cut), to: store.name(1))
      try store.write(store.records(7..<9), to: store.name(2))
      try store.write(store.records(9..<10), to: store.name(3))
      let files = DirectFiles()

      let recovery = try #require(try recover(directory: store.path, files: files, stamp: .test))

      let later = [store.name(3), store.name(2)]
      #expect(files.cut == later + (cut > 0 ? [store.name(1)] : []))
      #expect(try store.asideNames() == Set(files.cut))
      #expect(try store.read("LARDER.aside/\(store.name(2))") == store.records(7..<9))
      #expect(recovery.lostCommits == (cut > 0 ? 6...10 : 7...10))
      #expect(recovery.summary.contains(cut > 0 ? "at least 5." : "at least 4."))
      #expect(try recover(directory: store.path, files: DirectFiles(), stamp: .test) == nil)
    }
    try store.expectEntries(5)
  }

  @Test("Logs with continuous sequences are kept.")
  func continuousLogs() throws {
    let store = try LoggedStore()
    try store.write(store.records(0..<3), to: store.name())
    try store.write(store.records(3..<10), to: store.name(1))
    try store.write([], to: store.name(2))
    #expect(try recover(directory: store.path, files: DirectFiles(), stamp: .test) == nil)
    try store.expectEntries(10)
  }

  @Test("An empty log before one with records is a torn end.")
  func emptyLog() throws {
    let store = try LoggedStore()
    try store.write([], to: store.name())
    try store.write(store.records(0..<10), to: store.name(1))
    let recovery = try #require(
      try recover(directory: store.path, files: DirectFiles(), stamp: .test))
    #expect(recovery.lostCommits == nil)
    #expect(try store.asideNames() == [store.name(1)])
    try store.expectEntries(0)
  }

  @Test("A log that repeats records of an earlier one is refused.")
  func repeatedLog() throws {
    let store = try LoggedStore()
    try store.write(store.records(0..<5), to: store.name())
    try store.write(store.records(4..<10), to: store.name(1))
    #expect(try store.refusal().contains(store.name(1)))
  }

  @Test("An interrupted recovery is completed by the next one.")
  func interruptedRecovery() throws {
    for cuts in 0...2 {
      let store = try LoggedStore()
      try store.write(store.records(0..<5).dropLast(4), to: store.name())
      try store.write(store.records(5..<8), to: store.name(1))
      try store.write(store.records(8..<10), to: store.name(2))
      #expect(throws: StoreError.io("the power is gone")) {
        try recover(directory: store.path, files: DirectFiles(allowedCuts: cuts), stamp: .test)
      }

      let recovery = try #require(
        try recover(directory: store.path, files: DirectFiles(), stamp: .test))

      #expect(recovery.lostCommits == 5...10)
      #expect(try store.asideNames() == Set((0...2).map(store.name)))
      #expect(try store.read("LARDER.aside/\(store.name(1))") == store.records(5..<8))
      #expect(try store.read("LARDER.aside/\(store.name(2))") == store.records(8..<10))
      try store.expectEntries(4)
    }
  }

  @Test("Only the files of the last recovery are kept aside.")
  func asideCopies() throws {
    let store = try LoggedStore()
    try FileManager.default.createDirectory(
      atPath: "\(store.path)/LARDER.aside", withIntermediateDirectories: false)
    try store.write([1], to: "LARDER.aside/000001.log")
    #expect(try recover(directory: store.path, files: DirectFiles(), stamp: .test) == nil)
    #expect(try store.asideNames() == ["000001.log"])
    try store.write(store.log.bytes.dropLast(), to: store.name())
    #expect(try recover(directory: store.path, files: DirectFiles(), stamp: .test) != nil)
    #expect(try store.asideNames() == [store.name()])
  }

  @Test("A damaged or incomplete MANIFEST is refused, except for a torn end.")
  func manifest() throws {
    let store = try LoggedStore()
    let name = try store.manifest
    let whole = try store.read(name)

    // An incomplete tail does not take effect.
    for tail in [[7, 7, 7], Array(repeating: UInt8(0), count: 100), Array(whole.prefix(20))] {
      try store.write(whole + tail, to: name)
      let recovery = try #require(
        try recover(directory: store.path, files: DirectFiles(), stamp: .test))
      #expect(try store.read("LARDER.aside/\(name)") == tail)
      #expect(try store.read(name) == whole)
      #expect(recovery.lostCommits == nil && recovery.summary.contains(name))
      #expect(recovery.summary.contains("No entry is lost."))
    }

    var scan = LogScan(whole, of: .manifest)
    var edges: [Int] = []
    while let record = scan.next() { edges.append(record.start) }
    try #require(edges.count > 1)
    for offset in 0..<edges[edges.count - 1] {
      var bytes = whole
      bytes[offset] ^= 0x04
      try store.write(bytes, to: name)
      #expect(try store.refusal() == "\(store.path)/\(name) is damaged")
    }
    try store.write(whole, to: name)

    try FileManager.default.removeItem(atPath: "\(store.path)/\(store.name())")
    #expect(try store.refusal() == "\(store.path)/\(store.name()) is missing")
    try FileManager.default.removeItem(atPath: "\(store.path)/\(name)")
    #expect(try store.refusal() == "\(store.path)/\(name) is missing")
    for text in ["", "\n", "MANIFEST-000002", "MANIFEST-x\n", "000002\n"] {
      try store.write(bytes(text), to: "CURRENT")
      #expect(try store.refusal() == "\(store.path)/CURRENT names no MANIFEST")
    }
  }
}
