import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Testing

@testable import Larder

/// A store publishes its statistics in its directory, at no cost for its calls.
@Suite struct PublishedStatisticsTests {
  private static let name = "LARDER.statistics"

  private let timer = HandTimer()

  private func fixture(_ kind: StoreKind = .disk) throws -> Fixture {
    try Fixture(kind) { [timer] options in
      options.publishesStatistics = true
      options.statisticsTrigger = timer.trigger
    }
  }

  private func file(of fixture: Fixture) -> URL { fixture.directory.appending(path: Self.name) }

  private func published(in fixture: Fixture) throws -> PublishedStatistics? {
    PublishedStatistics(try Data(contentsOf: file(of: fixture)))
  }

  private func names(in fixture: Fixture) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: fixture.directory.path)
      .filter { $0.hasPrefix("LARDER.statistics") }
  }

  @Test("The file has the statistics, the process, the time and the time since the opening.")
  func content() throws {
    let fixture = try fixture()
    defer { fixture.end() }
    #expect(timer.interval == .seconds(1))
    let cache = try fixture.store.cache("cache", of: Int.self, byteBudget: 1 << 20)
    try cache.save(1, for: "a")
    _ = try cache.value(for: "a")
    _ = try cache.value(for: "b")
    fixture.clock.advance(by: .seconds(90))
    #expect(try published(in: fixture)?.statistics.caches == [:])
    timer.fire()
    let found = try #require(try published(in: fixture))
    #expect(found.statistics == fixture.store.statistics)
    #expect(found.statistics.caches["cache"]?.reads.missing == 1)
    #expect(found.statistics.caches["cache"]?.heldBytes ?? 0 > 0)
    #expect(found.process == getpid())
    #expect(found.uptime == 90)
    #expect(found.time == fixture.clock.now().timeIntervalSince1970)
    #expect(try names(in: fixture) == [Self.name])
  }

  @Test("The file is replaced only if a count has changed.")
  func unchanged() throws {
    let fixture = try fixture()
    defer { fixture.end() }
    let cache = try fixture.store.cache("cache", of: Int.self)
    timer.fire()
    let before = try FileFacts(of: file(of: fixture).path)
    fixture.clock.advance(by: .seconds(1))
    timer.fire()
    #expect(try FileFacts(of: file(of: fixture).path) == before)
    _ = try cache.value(for: "a")
    timer.fire()
    #expect(try FileFacts(of: file(of: fixture).path) != before)
  }

  @Test("Closing the store removes the file, and so does its last reference.", arguments: [0, 1])
  func ended(way: Int) throws {
    let directory = try TemporaryDirectory()
    var options = Store.Options()
    options.publishesStatistics = true
    options.statisticsTrigger = timer.trigger
    var store: Store? = try Store(at: URL(filePath: directory.path("store")), options: options)
    let file = directory.path("store/\(Self.name)")
    #expect(FileManager.default.fileExists(atPath: file))
    if way == 0 { try store?.close() } else { store = nil }
    #expect(!FileManager.default.fileExists(atPath: file))
    #expect(!timer.isRunning)
    // A timer that fires while the store is closed.
    try store?.engine.publish(statistics: [1])
    #expect(!FileManager.default.fileExists(atPath: file))
  }

  @Test("Nothing is published by default, by a store in memory, or by one that only reads.")
  func unpublished() throws {
    let plain = try Fixture(.disk)
    defer { plain.end() }
    #expect(try names(in: plain).isEmpty)
    try plain.store.close()
    let memory = try fixture(.memory)
    defer { memory.end() }
    var options = Store.Options()
    options.publishesStatistics = true
    options.statisticsTrigger = timer.trigger
    options.access = .readOnly
    let reader = try Store(at: plain.directory, options: options)
    #expect(timer.interval == nil)
    #expect(try names(in: plain).isEmpty)
    try reader.close()
  }

  @Test("The calls of a store make no further call of the disk, and publishing syncs nothing.")
  func cost() throws {
    func calls(publishing: Bool) throws -> (saves: Int, publications: (all: Int, syncs: Int)) {
      let disk = SimulatedDisk()
      let (store, _) = try open(disk, publishing: publishing)
      let cache = try store.cache("cache", of: Int.self, keyedBy: Int.self)
      let start = disk.counts
      for key in 0..<100 {
        try cache.save(key, for: key)
        _ = try cache.value(for: key)
      }
      let saved = disk.counts
      timer.fire()
      let end = disk.counts
      try store.close()
      return (saved.all - start.all, (end.all - saved.all, end.syncs - saved.syncs))
    }
    let (with, without) = (try calls(publishing: true), try calls(publishing: false))
    #expect(with.saves == without.saves)
    #expect(with.publications.all > 0 && with.publications.syncs == 0)
  }

  private func open(
    _ disk: SimulatedDisk, publishing: Bool = true
  ) throws -> (Store, LevelDBEngine) {
    var engineOptions = LevelDBOptions()
    engineOptions.files = SimulatedFiles(disk)
    engineOptions.writeBufferBytes = 64 << 10
    var options = Store.Options()
    options.publishesStatistics = publishing
    options.statisticsTrigger = timer.trigger
    let engine = try LevelDBEngine(at: "/store", options: engineOptions)
    return (try Store(engine: engine, options: options, origin: .disk), engine)
  }

  @Test("A failure to publish fails no call, and the next second publishes.")
  func faults() throws {
    let disk = SimulatedDisk()
    let (store, _) = try open(disk)
    let cache = try store.cache("cache", of: Int.self)
    let path = "/store/\(Self.name)"
    let before = disk.bytes(of: path)
    #expect(before != nil)
    // Each call of a publication fails once, and then all of them.
    for call in 1...12 {
      try cache.save(call, for: "a")
      let done = disk.counts.mutating
      disk.fail(
        atCall: done + (call - 1) % 4 + 1, [.eio, .enospc, .shortWrite][call % 3],
        forever: call > 4)
      timer.fire()
      disk.heal()
      try cache.save(call, for: "b")
      #expect(disk.bytes(of: path) != nil)
    }
    timer.fire()
    #expect(
      disk.bytes(of: path).flatMap { PublishedStatistics(Data($0)) }?.statistics
        == store.statistics)
    #expect(disk.bytes(of: path + ".new") == nil)
    try store.close()
    #expect(disk.bytes(of: path) == nil)
  }

  @Test("On a full disk a store publishes nothing or everything, and leaves no part of a file.")
  func fullDisk() throws {
    let disk = SimulatedDisk()
    disk.setCapacity(4 << 20)
    let (store, engine) = try open(disk)
    let cache = try store.cache("cache", of: Data.self, keyedBy: Int.self, coder: .bytes)
    var random = SplitMix64(seed: 1)
    var isFull = false
    for key in 0..<10_000 where !isFull {
      do {
        try cache.save(Data(random.bytes(5000)), for: key)
      } catch StoreError.diskFull {
        isFull = true
      }
    }
    #expect(isFull)
    engine.waitForBackgroundWork()
    let rest = try SimulatedFiles(disk).availableBytes(in: "/store")
    disk.setBytes(Array(repeating: 1, count: Int(rest)), of: "/rest")
    let path = "/store/\(Self.name)"
    let before = disk.bytes(of: path)
    timer.fire()
    #expect(disk.bytes(of: path) == before && before != nil)
    #expect(disk.bytes(of: path + ".new") == nil)
    disk.setCapacity(64 << 20)
    timer.fire()
    #expect(disk.bytes(of: path) != before)
    try store.close()
  }

  @Test("Nothing is written into a directory that has taken the place of the store's.")
  func movedDirectory() throws {
    let fixture = try fixture()
    let aside = fixture.directory.appendingPathExtension("aside")
    try FileManager.default.moveItem(at: fixture.directory, to: aside)
    try FileManager.default.createDirectory(
      at: fixture.directory, withIntermediateDirectories: false)
    try fixture.engine.publish(statistics: [1])
    #expect(try names(in: fixture).isEmpty)
    fixture.end()
    try FileManager.default.removeItem(at: aside)
  }

  @Test("A store with the files of a killed process is copied, salvaged and opened.")
  func leftover() throws {
    let fixture = try Fixture(.segments)
    let cache = try fixture.store.cache("cache", of: Int.self)
    try cache.save(7, for: "a")
    try fixture.store.close()
    for suffix in ["", ".new"] {
      try Data("{}".utf8).write(
        to: fixture.directory.appending(path: Self.name + suffix))
    }
    try fixture.reopen()
    let places = try TemporaryDirectory()
    let (backup, copy) = (places.path("backup"), places.path("copy"))
    try fixture.store.backup(to: URL(filePath: backup))
    try Store.restore(from: URL(filePath: backup), to: URL(filePath: copy))
    try fixture.store.close()
    let report = try Store.salvage(
      from: fixture.directory, to: URL(filePath: places.path("salvaged")))
    #expect(report.entries == ["cache": 1])
    for place in [backup, copy, places.path("salvaged")] {
      let names = try FileManager.default.contentsOfDirectory(atPath: place)
      #expect(!names.contains { $0.hasPrefix(Self.name) }, "\(place)")
    }
    // The next store that publishes replaces both.
    var options = Store.Options()
    options.publishesStatistics = true
    options.statisticsTrigger = timer.trigger
    let next = try Store(at: fixture.directory, options: options)
    #expect(try published(in: fixture)?.process == getpid())
    #expect(try names(in: fixture) == [Self.name])
    try next.close()
    #expect(try names(in: fixture).isEmpty)
    try FileManager.default.removeItem(at: fixture.directory)
  }

  @Test("The content of another version, or of a damaged file, is not read.")
  func unreadable() throws {
    let fixture = try fixture()
    defer { fixture.end() }
    let text = try String(contentsOf: file(of: fixture), encoding: .utf8)
    #expect(PublishedStatistics(Data(text.utf8)) != nil)
    let later = text.replacing("\"larderStatistics\":1", with: "\"larderStatistics\":2")
    #expect(later != text && PublishedStatistics(Data(later.utf8)) == nil)
    #expect(PublishedStatistics(Data(text.dropLast().utf8)) == nil)
    #expect(PublishedStatistics(Data()) == nil)
  }
}
