import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import LarderInspection

/// `watch` lists each change of a store that another process or thread makes, once and in order.
@Suite final class WatchTests {
  /// A report that can be flushed.
  private struct Output: FlushedOutput {
    var text = ""
    mutating func write(_ string: String) { text += string }
    mutating func flush() {}
    var lines: [Substring] { text.split(separator: "\n") }
  }

  private let directory: TemporaryDirectory
  private let clock = ManualClock(Moment.now())
  private var path: String { directory.path("store") }

  init() throws { directory = try TemporaryDirectory() }

  private func open(separatedValueBytes: Int? = nil) throws -> Store {
    var options = Store.Options()
    options.clock = clock
    options.writeBufferBytes = 64 << 10
    options.compression = false
    options.advanced.separatedValueBytes = separatedValueBytes
    return try Store(at: URL(filePath: path), options: options)
  }

  /// Watches while `steps` are made, one in each pause.
  private func watch(
    _ watching: Watching = Watching(), steps: [() throws -> Void]
  ) throws -> (lines: [Substring], outcome: Outcome) {
    var output = Output()
    var rest = steps[...]
    var failure: (any Error)?
    let outcome = try Inspection.watch(path, watching, style: Style(.csv), to: &output) {
      guard let step = rest.popFirst() else { return false }
      do { try step() } catch { failure = error }
      return failure == nil
    }
    if let failure { throw failure }
    return (output.lines, outcome)
  }

  /// The change, the cache and the key of each row in CSV.
  private func changes(_ lines: [Substring]) -> [String] {
    lines.dropFirst().map { line in
      let cells = line.split(separator: ",", omittingEmptySubsequences: false)
      return "\(cells[0]) \(cells[5]) \(cells[6])"
    }
  }

  @Test(
    "Puts and removals are listed with cache, key, size and dates.", arguments: [nil, 1] as [Int?])
  func rows(separatedValueBytes: Int?) throws {
    let store = try open(separatedValueBytes: separatedValueBytes)
    let cache = try store.cache("c", of: [UInt8].self, lifetime: .hours(2), coder: .bytes)
    try cache.save([1], for: "before")
    let (lines, outcome) = try watch(
      steps: [
        { try cache.save([UInt8](repeating: 1, count: 5000), for: "k\n") },
        { try cache.remove("k\n") },
        {
          // A cache that is registered while it is watched, and two changes of one batch.
          let later = try store.cache(
            "later", of: Int.self, keyedBy: Int.self, lifetime: .unlimited)
          try store.write { batch in
            batch.save(1, for: -5, in: later)
            batch.remove("before", from: cache)
          }
        },
      ])
    #expect(outcome == .fine)
    #expect(lines.first == "change,batch,storedBytes,savedAt,expiresAt,cache,key")
    #expect(
      changes(lines) == [
        "put c 0x6b0a", "removal c 0x6b0a", "put later -5", "removal c before",
      ])
    let date = try #require(Moment.text(clock.now()))
    let end = try #require(Moment.text(clock.now() + 7200))
    let cells = lines.dropFirst().map { $0.split(separator: ",", omittingEmptySubsequences: false) }
    #expect(cells[0][2...4] == ["5036", Substring(date), Substring(end)], "\(lines)")
    #expect(cells[1][2...4] == ["", "", ""])
    #expect(cells[2][4] == "", "an entry that never expires has a date of expiry")
    #expect(cells[2][1] == cells[3][1] && cells[1][1] != cells[2][1])
  }

  @Test("Nothing is missed or repeated over many logs, and at any place in a block.")
  func logs() throws {
    let store = try open()
    let cache = try store.cache("c", of: [UInt8].self, keyedBy: Int.self, coder: .bytes)
    var random = SplitMix64(seed: testSeed())
    var expected: [String] = []
    var output = Output()
    var steps = 0
    let first = try FileManager.default.contentsOfDirectory(atPath: path).filter {
      $0.hasSuffix(".log")
    }
    _ = try Inspection.watch(path, Watching(), style: Style(.csv), to: &output) {
      do {
        steps += 1
        guard steps < 400 else { return false }
        // At most one log is begun in each pause.
        for _ in 0..<Int.random(in: 0...3, using: &random) {
          let key = Int.random(in: 0..<50, using: &random)
          if Int.random(in: 0..<5, using: &random) == 0 {
            // The removal of an absent key writes nothing.
            if try cache.contains(key) { expected.append("removal c \(key)") }
            try cache.remove(key)
          } else {
            let count = [0, 10, 500, 3000, 20_000].randomElement(using: &random) ?? 0
            try cache.save(random.bytes(count), for: key)
            expected.append("put c \(key)")
          }
        }
        return true
      } catch {
        Issue.record(error)
        return false
      }
    }
    #expect(changes(output.lines) == expected)
    let last = try FileManager.default.contentsOfDirectory(atPath: path).filter {
      $0.hasSuffix(".log")
    }
    #expect(Set(first).isDisjoint(with: last) && expected.count > 300)
  }

  @Test("Changes whose logs are gone before they are read are counted.")
  func missed() throws {
    let store = try open()
    let cache = try store.cache("c", of: [UInt8].self, keyedBy: Int.self, coder: .bytes)
    let (lines, _) = try watch(
      steps: [
        { try cache.save([1], for: 1) },
        {
          for key in 0..<200 { try cache.save([UInt8](repeating: 1, count: 3000), for: key) }
          try store.engine.compact(EngineRange())
          try cache.save([2], for: 1000)
        },
      ])
    let rows = changes(lines)
    #expect(rows.first == "put c 1" && rows.last == "put c 1000")
    let missed = try #require(rows.first { $0.contains(" changes were missed") })
    let count = try #require(Int(missed.prefix { $0.isNumber }))
    // An entry has a row in the expiry index, too, and the engine has rows of its own.
    let shown = rows.count { $0.hasPrefix("put") } - 2
    #expect(count >= 200 - shown && count <= 2 * (200 - shown) + 20, "\(rows.count), \(missed)")
  }

  @Test("`--from-start` begins with what the logs hold, and `--limit` ends it.")
  func fromStart() throws {
    let store = try open()
    let cache = try store.cache("c", of: Int.self)
    let other = try store.cache("other", of: Int.self)
    for key in ["a", "b", "c"] {
      try cache.save(1, for: key)
      try other.save(1, for: key)
    }
    var watching = Watching()
    watching.fromStart = true
    watching.cache = "other"
    #expect(
      changes(try watch(watching, steps: []).lines) == [
        "put other a", "put other b", "put other c",
      ])
    watching.limit = 2
    var pauses = 0
    #expect(
      changes(try watch(watching, steps: [{ pauses += 1 }]).lines) == [
        "put other a", "put other b",
      ])
    #expect(pauses == 0)
    watching = Watching()
    watching.fromStart = true
    watching.listsAll = true
    let all = changes(try watch(watching, steps: []).lines)
    #expect(all.contains("put  metadata cache/other") && all.contains("put  metadata notes"))
  }

  @Test("A damaged part of a log is named, and the rest is listed.")
  func damaged() throws {
    let store = try open()
    let cache = try store.cache("c", of: [UInt8].self, coder: .bytes)
    for key in ["first", "broken", "third"] {
      try cache.save([UInt8](repeating: 7, count: 50), for: key)
    }
    let name = try #require(
      FileManager.default.contentsOfDirectory(atPath: path).first { $0.hasSuffix(".log") })
    try store.close()
    var bytes = try Data(contentsOf: URL(filePath: "\(path)/\(name)"))
    let place = try #require(bytes.range(of: Data("broken".utf8)))
    bytes[place.lowerBound] ^= 1
    try bytes.write(to: URL(filePath: "\(path)/\(name)"))
    var watching = Watching()
    watching.fromStart = true
    let (lines, outcome) = try watch(watching, steps: [])
    #expect(outcome == .damaged)
    let text = lines.joined(separator: "\n")
    #expect(text.contains("\(name), byte ") && text.contains(": damaged, valid again at "))
    #expect(text.contains("first") && text.contains("third") && !text.contains("broken"), "\(text)")
  }

  @Test("A store is required, a format without an end, and nothing in the directory changes.")
  func refused() throws {
    let specimen = try Specimen()
    let before = try FileFacts.all(in: specimen.path)
    var output = Output()
    var watching = Watching()
    watching.fromStart = true
    for style in [Style(), Style(.csv), Style(.jsonl)] {
      _ = try Inspection.watch(specimen.path, watching, style: style, to: &output) { false }
    }
    var redacted = Style()
    redacted.isRedacted = true
    var hidden = Output()
    _ = try Inspection.watch(specimen.path, watching, style: redacted, to: &hidden) { false }
    #expect(output.text.contains("expired") && !hidden.text.contains("expired"))
    #expect(try FileFacts.all(in: specimen.path) == before)
    #expect {
      try Inspection.watch(specimen.path, watching, style: Style(.json), to: &output) { false }
    } throws: {
      ($0 as? InspectionError)?.status == .usage
    }
    for place in [specimen.path + "/none", specimen.directory.path] {
      #expect {
        try Inspection.watch(place, watching, style: Style(), to: &output) { false }
      } throws: {
        ($0 as? InspectionError)?.status == .unavailable
      }
    }
  }

  @Test("The program follows another process, and ends at its limit.")
  func secondProcess() throws {
    var worker = try ChildProcess("CrashWorker", ["follow", path])
    #expect(worker.readLine() == "ready")
    let temporary = try TemporaryDirectory()
    let watch = try Kvinspect(
      ["watch", path, "--limit", "4", "--interval", "10", "--format", "csv"],
      temporary: temporary.path)
    // The names of the columns are written once the place in the log is known.
    let names = Data("change,batch,storedBytes,savedAt,expiresAt,cache,key\n".utf8)
    #expect(try watch.output.fileHandleForReading.read(upToCount: names.count) == names)
    for line in ["save a 1", "remove a", "fill 1", "save b 2"] {
      worker.send(line + "\n")
      #expect(worker.readLine() == "done")
    }
    let result = try watch.finish()
    #expect(result.status == 0 && result.errors == "")
    let rows = result.output.split(separator: "\n").map { line in
      let cells = line.split(separator: ",")
      return "\(cells.first ?? "") \(cells.suffix(2).joined(separator: " "))"
    }
    #expect(
      rows == [
        "put followed a", "removal followed a", "put followed filler 0", "put followed b",
      ])
    worker.kill()
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [])
  }

  @Test("A signal ends the program.")
  func signal() throws {
    let specimen = try Specimen()
    let temporary = try TemporaryDirectory()
    let watch = try Kvinspect(
      ["watch", specimen.path, "--format", "csv"], temporary: temporary.path)
    #expect(try watch.output.fileHandleForReading.read(upToCount: 6) == Data("change".utf8))
    kill(watch.process.processIdentifier, SIGINT)
    #expect(try watch.finish().status == 130)
    #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path) == [])
  }

  // MARK: - Statistics

  @Test("`--statistics` writes what a process has counted since the line before.")
  func statistics() throws {
    var options = Store.Options()
    options.publishesStatistics = true
    let fire = Mutex<(@Sendable () -> Void)?>(nil)
    options.statisticsTrigger = { _, tick in
      fire.withLock { $0 = tick }
      return {}
    }
    let store = try Store(at: URL(filePath: path), options: options)
    let cache = try store.cache("c", of: Int.self, keyedBy: Int.self)
    for key in 0..<10 { try cache.save(key, for: key) }
    fire.withLock { $0 }?()
    var output = Output()
    var steps = 0
    let outcome = try Inspection.watchStatistics(
      of: path, limit: 3, style: Style(.csv), to: &output
    ) {
      steps += 1
      do {
        if steps == 1 { for key in 0..<20 { _ = try cache.value(for: key) } }
        if steps == 3 { for key in 0..<4 { try cache.remove(key) } }
      } catch {
        Issue.record(error)
      }
      fire.withLock { $0 }?()
      return true
    }
    #expect(outcome == .fine)
    #expect(
      output.lines.first
        == "reads,fresh,memory,saves,removals,loads,loadSeconds,expired,evicted,memoryBytes,time")
    // No load, so the sixth field is empty; the memory that values take is a detail.
    let rows = output.lines.dropFirst().map { line in
      line.split(separator: ",").dropLast(2).compactMap { Int($0) }
    }
    #expect(
      rows == [
        [20, 10, rows.first?[2] ?? 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 4, 0, 0, 0],
      ])
    try store.close()
    #expect {
      try Inspection.watchStatistics(of: path, limit: 1, style: Style(), to: &output) { true }
    } throws: {
      ($0 as? InspectionError)?.description == "no process has \(path) open"
    }
    let plain = try open()
    #expect {
      try Inspection.watchStatistics(of: path, limit: 1, style: Style(), to: &output) { true }
    } throws: {
      ($0 as? InspectionError)?.description.contains("publishesStatistics") == true
    }
    try plain.close()
  }
}
