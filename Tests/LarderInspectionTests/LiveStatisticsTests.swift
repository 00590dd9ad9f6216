import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import LarderInspection

/// The statistics that a running process publishes are shown, and those of a killed one are not.
@Suite struct LiveStatisticsTests {
  private static func info(_ path: String, _ style: Style = Style()) throws -> String {
    var text = ""
    #expect(
      try Inspection(at: path, now: Specimen.now).info(style: style).write(to: &text) == .fine)
    return text
  }

  @Test("`info` shows the statistics of another process until it ends, however it ends.")
  func liveAndStale() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    var worker = try ChildProcess("CrashWorker", ["follow", path])
    #expect(worker.readLine() == "ready")
    let live = try Self.info(path)
    #expect(live.contains("owner    process \(worker.id)\nlog "), "\(live)")
    // The worker counts each second, and a busy machine may be late.
    #expect(live.contains(/\nopen for [0-9hms ]+, last counted 20/), "\(live)")
    #expect(live.contains("\nreads    0\nsaves    0, removals 0, loads 0\n"))
    let json = try Self.info(path, Style(.jsonl))
    #expect(json.contains("\"statistics\":{") && json.contains("\"statisticsAreLive\":true"))

    worker.kill()
    let stale = try Self.info(path)
    let line = "stale    LARDER.statistics of process \(worker.id), which is not the owner\n"
    #expect(stale.contains(line) && !stale.contains("reads"), "\(stale)")
    #expect(try Self.info(path, Style(.jsonl)).contains("\"statisticsAreLive\":false"))
    // Nor are they those of the next owner.
    let store = try Specimen.open(path)
    #expect(try Self.info(path).contains(line))
    try store.close()

    var next = try ChildProcess("CrashWorker", ["follow", path])
    #expect(next.readLine() == "ready")
    #expect(try Self.info(path).contains("\nopen for "))
    next.kill()
  }

  @Test("Counts of all caches are added up.")
  func totals() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("store")
    var options = Store.Options()
    options.publishesStatistics = true
    let fire = Mutex<(@Sendable () -> Void)?>(nil)
    options.statisticsTrigger = { _, tick in
      fire.withLock { $0 = tick }
      return {}
    }
    let store = try Store(at: URL(filePath: path), options: options)
    for name in ["a", "b"] {
      let cache = try store.cache(name, of: Int.self)
      for number in 0..<1000 { try cache.save(number, for: "\(number)") }
      for number in 990..<1010 { _ = try cache.value(for: "\(number)") }
      for _ in 0..<20 { _ = try cache.value(for: "999") }
      try cache.remove("0")
    }
    fire.withLock { $0 }?()
    let text = try Self.info(path)
    #expect(text.contains("\nreads    80, 75.0 % of them fresh, "), "\(text)")
    #expect(text.contains("\nsaves    2,000, removals 2, loads 0\n"))
    #expect(text.contains("\ndeleted  0 expired entries, 0 for budgets\n"))
    try store.close()
    #expect(!(try Self.info(path)).contains("reads"))
  }

  @Test("A file that is not readable is said to be so, and hides nothing else.")
  func unreadable() throws {
    let specimen = try Specimen()
    try Data("{".utf8).write(to: URL(filePath: "\(specimen.path)/LARDER.statistics"))
    let text = try Self.info(specimen.path)
    #expect(text.contains("stale    LARDER.statistics of another version or program, which"))
    #expect(text.contains("genres"))
    var files = ""
    #expect(try Inspection.files(in: specimen.path, style: Style()).write(to: &files) == .fine)
    #expect(files.contains("not live  published statistics "), "\(files)")
  }
}
