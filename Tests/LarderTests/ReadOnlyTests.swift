import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// A store that is opened read-only shows what was saved, and writes nothing.
@Suite(.timeLimit(.minutes(30))) struct ReadOnlyTests {
  private let clock = ManualClock()

  private var readOnly: Store.Options {
    var options = Store.Options()
    options.clock = clock
    options.access = .readOnly
    return options
  }

  private func isReadOnly<R>(_ body: () throws -> R) -> Bool {
    throwsStoreError(where: { if case .readOnly = $0 { true } else { false } }, body)
  }

  /// The names, sizes and dates of a directory's files.
  private func listing(_ directory: URL) throws -> [String: String] {
    let path = directory.path(percentEncoded: false)
    var listing: [String: String] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: path) {
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
      let size = attributes[.size].map { "\($0)" } ?? ""
      let date = attributes[.modificationDate].map { "\($0)" } ?? ""
      listing[name] = "\(size) \(date)"
    }
    return listing
  }

  @Test("It reads what was saved, and every call that would write throws.")
  func readsAndRefusesWrites() throws {
    let fixture = try Fixture(.disk, clock: clock)
    defer { fixture.end() }
    let words = try fixture.store.cache("words", of: String.self)
    try words.save("one", for: "a")
    try words.save("two", for: "b")
    try fixture.store.close()
    let before = try listing(fixture.directory)

    let store = try Store(at: fixture.directory, options: readOnly)
    let cache = try store.cache("words", of: String.self)
    #expect(try cache.value(for: "a") == "one")
    #expect(try cache.value(for: "c") == nil)
    #expect(isReadOnly { try cache.save("x", for: "a") })
    #expect(isReadOnly { try cache.remove("a") })
    #expect(isReadOnly { try cache.removeAll() })
    #expect(isReadOnly { try cache.touch("a") })
    #expect(isReadOnly { try cache.validate() })
    #expect(isReadOnly { try store.sweep() })
    #expect(isReadOnly { try store.drop(cache: "words") })
    #expect(isReadOnly { try store.migrate(cache) })
    #expect(isReadOnly { try store.flush() })
    #expect(isReadOnly { try store.write { $0.save("x", for: "a", in: cache) } })
    #expect(try cache.value(for: "a") == "one")
    #expect(try store.contents()["words"]?.fresh.entries == 2)
    try store.close()
    #expect(try listing(fixture.directory) == before)
  }

  @Test("A cache that the store does not have is empty, and other settings are not written.")
  func unknownCachesAreEmpty() throws {
    let fixture = try Fixture(.disk, clock: clock)
    defer { fixture.end() }
    try fixture.store.cache("words", of: String.self).save("one", for: "a")
    try fixture.store.close()
    let store = try Store(at: fixture.directory, options: readOnly)
    #expect(try store.cache("new", of: String.self).value(for: "a") == nil)
    let words = try store.cache("words", of: String.self, lifetime: .days(1), byteBudget: 1)
    #expect(try words.value(for: "a") == "one")
    clock.advance(by: .seconds(2 * 86_400))
    #expect(try words.value(for: "a") == nil)
    #expect(throwsInvalidArgument { try store.cache("words", of: String.self, keyedBy: Int.self) })
    try store.close()
  }

  @Test("Expired entries are hidden and stay, and no interval sweeps them.")
  func nothingIsSwept() throws {
    let fixture = try Fixture(.disk, clock: clock)
    defer { fixture.end() }
    try fixture.store.cache("words", of: String.self).save("one", for: "a")
    try fixture.store.close()
    clock.advance(by: .seconds(8 * 86_400))
    var options = readOnly
    options.sweepInterval = .seconds(1)
    options.byteBudget = 1
    let store = try Store(at: fixture.directory, options: options)
    #expect(try store.cache("words", of: String.self).value(for: "a") == nil)
    #expect(try store.contents()["words"]?.expired.entries == 1)
    try store.close()
  }

  @Test("A missing store is not created.")
  func missingStores() throws {
    let directory = try TemporaryDirectory()
    let missing = URL(filePath: "\(directory.path)/missing")
    #expect(throws: StoreError.self) { try Store(at: missing, options: readOnly) }
    #expect(!FileManager.default.fileExists(atPath: missing.path(percentEncoded: false)))
  }

  @Test("It reads a store that this process has open, as it was at the opening.")
  func readsAnOpenStore() throws {
    let fixture = try Fixture(.disk, clock: clock)
    defer { fixture.end() }
    let words = try fixture.store.cache("words", of: String.self)
    for round in 0..<20 {
      try words.save("value \(round)", for: "a")
      let store = try Store(at: fixture.directory, options: readOnly)
      let seen = try store.cache("words", of: String.self)
      try words.save("later", for: "a")
      #expect(try seen.value(for: "a") == "value \(round)")
      try store.close()
    }
  }

  @Test("It reads a store that another process has open and writes to.")
  func readsAnotherProcessStore() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let words = try fixture.store.cache("words", of: String.self)
    try words.save("kept", for: "a")
    try fixture.store.close()
    let path = fixture.directory.path(percentEncoded: false)
    var writer = try ChildProcess("CrashWorker", ["write", path, "7"])
    for _ in 0..<50 { _ = writer.readLine() }
    for _ in 0..<20 {
      let store = try Store(at: fixture.directory, options: readOnly)
      #expect(try store.cache("words", of: String.self).value(for: "a") == "kept")
      try store.close()
      let line = writer.readLine()
      #expect(line != nil)
    }
    #expect(
      throwsStoreError(where: { if case .locked = $0 { true } else { false } }) {
        try Store(at: fixture.directory)
      })
    writer.kill()
    try fixture.reopen()
  }

  @Test("It leaves nothing behind in the temporary directory.")
  func leavesNothing() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try fixture.store.cache("words", of: String.self).save("one", for: "a")
    try fixture.store.close()
    let snapshot = try StoreSnapshot(
      of: fixture.directory.path(percentEncoded: false), named: "larder-test-")
    let path = snapshot.path
    let engine = try snapshot.open(cause: "a test")
    #expect(FileManager.default.fileExists(atPath: path))
    try engine.close()
    withExtendedLifetime(engine) {
      #expect(FileManager.default.fileExists(atPath: path))
    }
  }

  @Test("A snapshot in memory shows the same.")
  func inMemory() throws {
    let fixture = try Fixture(.disk, clock: clock)
    defer { fixture.end() }
    let words = try fixture.store.cache("words", of: String.self)
    for number in 0..<500 { try words.save("value \(number)", for: "\(number)") }
    try fixture.engine.compact(EngineRange())
    for number in 0..<100 { try words.save("new \(number)", for: "\(number)") }
    let snapshot = try StoreSnapshot(inMemoryOf: fixture.directory.path(percentEncoded: false))
    _ = try snapshot.cutLogs()
    let store = try Store(
      engine: snapshot.open(cause: "a test"), options: readOnly, origin: .disk)
    let seen = try store.cache("words", of: String.self)
    for number in 0..<500 {
      #expect(
        try seen.value(for: "\(number)") == (number < 100 ? "new \(number)" : "value \(number)"))
    }
    try store.close()
  }

  @Test(
    "A store on a full volume without a reserve can be read.",
    .enabled("no volume of this kind can be mounted") { SmallVolume.isAllowed(.tmpfs) })
  func fullVolume() throws {
    let volume = try SmallVolume(.tmpfs, megabytes: 8)
    let directory = volume.directory.appending(path: "store")
    do {
      let store = try Store(at: directory)
      let words = try store.cache("words", of: String.self)
      for number in 0..<1000 { try words.save("value \(number)", for: "\(number)") }
      try store.close()
    }
    let reserve = directory.appending(path: "LARDER.reserve")
    try FileManager.default.removeItem(at: reserve)
    try volume.fill()
    #expect(
      throwsStoreError(where: { if case .diskFull = $0 { true } else { false } }) {
        try Store(at: directory)
      })
    let store = try Store(at: directory, options: readOnly)
    let words = try store.cache("words", of: String.self)
    for number in 0..<1000 { #expect(try words.value(for: "\(number)") == "value \(number)") }
    try store.close()
  }
}
