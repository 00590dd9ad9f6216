import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Testing

@testable import Larder

/// Saves that wait for room on a full disk, beside changes of what they save.
@Suite(.timeLimit(.minutes(10))) struct LoadRoomTests {
  /// What happens to the key or the tag while its save waits.
  enum Change: CaseIterable {
    case none, invalidated, removed, removedByRange
  }

  private let disk = SimulatedDisk()
  private let value = Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) })

  /// A cache on a full disk, on which a collection can make room, and is held when it begins.
  private func fullCache() throws -> Cache<Int, Data> {
    disk.setCapacity(4 << 20)
    var options = Store.Options()
    options.clock = ManualClock()
    options.compression = false
    let store = try Store(on: disk, options: options)
    let cache = try store.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes)
    var filled = 0
    do {
      while true {
        try cache.save(value, for: filled, tags: ["old"])
        filled += 1
      }
    } catch StoreError.diskFull, StoreError.writesDisabled {
      // It is full.
    }
    for number in 0..<filled { try cache.remove(number) }
    store.context.engine.waitForBackgroundWork()
    disk.holdBackground()
    return cache
  }

  private var logs: Int { disk.names.count { $0.hasSuffix(".log") } }

  @Test(
    "A change that ends while a load's save waits for room wins over that save.",
    arguments: Change.allCases)
  func waitingLoad(change: Change) async throws {
    let cache = try fullCache()
    defer { disk.releaseBackground() }
    let before = logs
    async let load = cache.entry(for: 1) { [value] _ in .value(value, tags: ["t"]) }
    // The collection begins a new log, and waits for LevelDB's background.
    await eventually("a save waits for room") { logs > before }
    switch change {
    case .none: break
    case .invalidated: try cache.store.invalidate(tag: "t")
    case .removed: try cache.remove(1)
    case .removedByRange: try cache.remove(in: .upTo(5))
    }
    disk.releaseBackground()
    let entry = try #require(try await load)
    #expect(entry.value == value && entry.isSaved == (change == .none))
    #expect(try cache.value(for: 1) == (change == .none ? value : nil))
    try cache.store.close()
  }

  @Test("A save that waits for room while its tag is invalidated is fresh when it has returned.")
  func waitingSave() async throws {
    let cache = try fullCache()
    defer { disk.releaseBackground() }
    let before = logs
    async let save: Void = cache.store.run { [value] in try cache.save(value, for: 1, tags: ["t"]) }
    await eventually("a save waits for room") { logs > before }
    try cache.store.invalidate(tag: "t")
    disk.releaseBackground()
    try await save
    #expect(try cache.value(for: 1) == value)
    try cache.store.invalidate(tag: "t")
    #expect(try cache.value(for: 1) == nil)
    try cache.store.close()
  }
}
