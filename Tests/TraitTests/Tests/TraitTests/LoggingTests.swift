import Foundation
import InMemoryLogging
import Larder
import LarderTesting
import Logging
import Testing

/// With the trait `Logging`, a store logs to swift-log.
@Suite struct LoggingTests {
  private let handler = InMemoryLogHandler()

  /// Options whose logger keeps all messages.
  private func options() -> Store.Options {
    var options = Store.Options()
    options.logger = Logger(label: "test") { _ in handler }
    options.logger.logLevel = .trace
    return options
  }

  private func withDirectory(_ body: (URL) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory
      .appending(path: "larder-logging-\(UUID().uuidString)")
    try body(directory)
    try FileManager.default.removeItem(at: directory)
  }

  @Test("Failed and slow loads are logged, and other loads and cancelled ones are not.")
  func loads() async throws {
    struct Refused: Error {}
    let clock = ManualClock()
    var options = options()
    options.clock = clock
    options.slowLoad = .seconds(2)
    let cache = try Store.inMemory(options: options).cache("logged", of: Int.self)
    for (key, seconds) in [("quick", 1), ("slow", 2)] {
      _ = try await cache.value(for: key) {
        clock.advance(by: .seconds(seconds))
        return 1
      }
    }
    await #expect(throws: CancellationError.self) {
      _ = try await cache.value(for: "cancelled") { throw CancellationError() }
    }
    await #expect(throws: Refused.self) {
      _ = try await cache.value(for: "failed") { throw Refused() }
    }
    #expect(
      handler.entries == [
        InMemoryLogHandler.Entry(
          level: .notice, message: "a load was slow",
          metadata: ["cache": "logged", "keys": "1", "seconds": "2.0"]),
        InMemoryLogHandler.Entry(
          level: .notice, message: "a load failed",
          metadata: [
            "cache": "logged", "keys": "1", "seconds": "0.0", "error": "\(Refused())",
          ]),
      ])
  }

  @Test("Evicted entries are logged with their number and bytes.")
  func evictions() throws {
    let store = Store.inMemory(options: options())
    let cache = try store.cache("logged", of: Data.self, byteBudget: 1000)
    for key in 0..<10 { try cache.save(Data(count: 200), for: "\(key)") }
    let deletions = try #require(store.statistics.caches["logged"]).deletions.cacheBudget
    #expect(deletions.entries > 0)
    #expect(handler.entries.allSatisfy { $0.level == .debug && $0.metadata["budget"] == "cache" })
    func sum(_ name: String) -> Int {
      handler.entries.reduce(0) { $0 + (Int("\($1.metadata[name] ?? "")") ?? 0) }
    }
    #expect(sum("entries") == deletions.entries)
    #expect(sum("bytes") == deletions.bytes)
  }

  @Test("A recovery at opening is logged with its summary.")
  func recovery() throws {
    try withDirectory { directory in
      let store = try Store(at: directory)
      try store.cache("logged", of: String.self).save("a value", for: "a key")
      try store.close()
      try damage("log", in: directory)

      var options = options()
      options.onDamage = .salvage
      let reopened = try Store(at: directory, options: options)
      let recovery = try #require(reopened.recovery)
      #expect(
        handler.entries == [
          InMemoryLogHandler.Entry(
            level: .warning, message: "the store was recovered when it was opened",
            metadata: [
              "summary": "\(recovery.summary)",
              "set-aside": "\(try #require(recovery.setAside).path())",
            ])
        ])
      try reopened.close()
    }
  }

  @Test("Each read that finds damage is logged with its key.")
  func damagedRead() throws {
    try withDirectory { directory in
      var options = options()
      options.writeBufferBytes = 64 << 10
      options.memoryBytes = 0
      let store = try Store(at: directory, options: options)
      let keys = (0..<100).map { "key \($0)" }
      let cache = try store.cache("logged", of: Data.self)
      for key in keys { try cache.save(Data(count: 4000), for: key) }
      try store.close()
      try damage("ldb", in: directory)

      let reopened = try Store(at: directory, options: options)
      #expect(handler.entries.isEmpty)
      let damaged = try reopened.cache("logged", of: Data.self)
      var unreadable: [Logger.MetadataValue] = []
      for key in keys {
        do {
          _ = try damaged.value(for: key)
        } catch StoreError.corrupt(_, let key, _) {
          unreadable.append("\(key)")
        }
      }
      #expect(!unreadable.isEmpty)
      #expect(handler.entries.map { $0.metadata["key"] } == unreadable)
      #expect(
        handler.entries.allSatisfy { entry in
          entry.level == .warning && entry.message == "a part of the store is damaged"
            && entry.metadata["cache"] == "logged"
        })
      try reopened.close()
    }
  }

  /// Changes a byte in the middle of each file with an extension.
  private func damage(_ pathExtension: String, in directory: URL) throws {
    let files = try FileManager.default.contentsOfDirectory(
      at: directory, includingPropertiesForKeys: nil)
    for file in files where file.pathExtension == pathExtension {
      var bytes = try Data(contentsOf: file)
      bytes[bytes.count / 2] ^= 0xFF
      try bytes.write(to: file)
    }
  }
}
