import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import LarderInspection

/// `kvinspect metrics` writes what a running program counts, as Prometheus reads it.
@Suite final class MetricsTests {
  private let directory: TemporaryDirectory
  private let fire = Mutex<(@Sendable () -> Void)?>(nil)

  init() throws { directory = try TemporaryDirectory() }

  private func open() throws -> Store {
    var options = Store.Options()
    options.publishesStatistics = true
    let tick = Flagged()
    options.statisticsTrigger = { _, body in
      tick.body.withLock { $0 = body }
      return {}
    }
    let store = try Store(at: URL(filePath: directory.path("store")), options: options)
    fire.withLock { $0 = { tick.body.withLock { $0 }?() } }
    return store
  }

  private final class Flagged: Sendable {
    let body = Mutex<(@Sendable () -> Void)?>(nil)
  }

  private func metrics() throws -> String {
    var text = ""
    _ = try Inspection.writeMetrics(of: directory.path("store"), to: &text)
    return text
  }

  @Test("Each line is of the format, and the values are the store's.")
  func format() throws {
    let store = try open()
    let cache = try store.cache("a\"b\\c\nd\u{1B}", of: Int.self, byteBudget: 1 << 20)
    for number in 0..<7 { try cache.save(number, for: "\(number)") }
    for number in 5..<9 { _ = try cache.value(for: "\(number)") }
    fire.withLock { $0 }?()
    let text = try metrics()
    let name = #"a\"b\\c\\u000ad\\u001b"#
    for line in [
      #"larder_reads_total{store="store",cache="\#(name)",outcome="fresh"} 2"#,
      #"larder_reads_total{store="store",cache="\#(name)",outcome="missing"} 2"#,
      #"larder_saves_total{store="store",cache="\#(name)"} 7"#,
      "# TYPE larder_reads_total counter", "# TYPE larder_memory_bytes gauge",
      #"larder_memory_entries{store="store"} 2"#,
    ] {
      #expect(text.split(separator: "\n").contains { $0 == line }, "\(line) in \(text)")
    }
    let value = /[a-z_]+\{([a-z]+="([^"\\]|\\[\\"n])*",?)+\} [0-9]+/
    let comment = /# (HELP|TYPE) [a-z_]+ .+/
    for line in text.split(separator: "\n") {
      #expect(
        line.wholeMatch(of: value) != nil || line.wholeMatch(of: comment) != nil, "\(line)")
    }
    #expect(text.contains("larder_held_bytes"))
    try store.close()
  }

  @Test("Without a program that publishes there are no metrics, and the reason is said.")
  func unavailable() throws {
    let store = try open()
    try store.close()
    let error = #expect(throws: InspectionError.self) { try metrics() }
    #expect(error?.status == .unavailable)
  }
}
