import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Salvaging a damaged store copies everything readable, and nothing else.
@Suite(.timeLimit(.minutes(30))) struct SalvageTests {
  /// The kinds of files that are damaged.
  enum File: CaseIterable { case table, log, manifest, current, marker }

  @Test(
    "Everything readable in a store with a damaged file is salvaged, and no older value reappears.",
    arguments: File.allCases, 0..<(isProof ? 40 : 12))
  func salvaged(file: File, seed: Int) throws {
    let specimen = try SalvageSpecimen(seed: UInt64(seed))
    guard try specimen.damage(file) else { return }
    let old = try specimen.readableNow()
    let store: Store
    do {
      store = try specimen.salvage()
    } catch StoreError.corrupt where file == .manifest {
      // No intact MANIFEST says which tables are live: the store stays as it is.
      #expect(try specimen.isUntouched())
      return
    }
    let cache = try specimen.cache(in: store)
    let wrong = try specimen.differences(in: cache)
    switch file {
    case .table:
      for (key, value) in old { #expect(try cache.value(for: key) == value, "\(key)") }
      for key in wrong {
        // Lost, and not an older value or a removed one.
        #expect(try cache.lookup(for: key).kind == "missing", "\(key)")
      }
    case .log: #expect(wrong.count <= specimen.lostChanges, "\(wrong)")
    case .manifest, .current, .marker: #expect(wrong == [])
    }
    try specimen.saveMore(in: cache)
    try store.close()
    #expect(try Store(at: specimen.directory, options: specimen.options).recovery == nil)
  }

  @Test("A salvage reads no more of a marker than an opening does, and refuses what that refuses.")
  func markers() throws {
    let fixture = try Fixture(.disk)
    let places = try TemporaryDirectory()
    defer { fixture.end() }
    try fixture.store.cache("notes", of: String.self).save("one", for: "a")
    try fixture.store.close()
    let marker = fixture.directory.appending(path: StoreMarker.fileName).path
    func salvage(to name: String) throws {
      try Store.salvage(from: fixture.directory, to: URL(filePath: places.path(name)))
    }
    // More than is read of any file.
    try SystemFiles().truncate(marker, to: SystemFiles.wholeFileLimit + 1)
    try salvage(to: "first")
    var options = Store.Options()
    options.clock = fixture.clock
    let store = try Store(at: URL(filePath: places.path("first")), options: options)
    #expect(try store.cache("notes", of: String.self).value(for: "a") == "one")
    try store.close()

    try SystemFiles().replace(marker, with: Array("larder 9\n".utf8))
    var messages: [String] = []
    for body in [{ try salvage(to: "second") }, { _ = try Store(at: fixture.directory) }] {
      do {
        try body()
      } catch StoreError.incompatible(let message) {
        messages.append(message)
      }
    }
    #expect(messages.count == 2 && messages.first == messages.last, "\(messages)")
  }

  @Test("Dates, schemas and lifetimes are kept, and expired entries stay expired.")
  func datesAreKept() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let short = try fixture.store.cache("short", of: String.self, lifetime: .days(1))
    let long = try fixture.store.cache("long", of: String.self, lifetime: .unlimited)
    try short.save("expired", for: "a")
    fixture.clock.advance(by: .seconds(2 * 86_400))
    try short.save("fresh", for: "b")
    try long.save("unlimited", for: "c")
    try long.save("cleared", for: "d")
    let savedAt = try #require(try short.entry(for: "b")).savedAt
    try long.removeAll()
    try long.save("again", for: "e")
    try fixture.store.close()

    let target = fixture.directory.appendingPathExtension("salvaged")
    defer { remove(target) }
    let report = try Store.salvage(from: fixture.directory, to: target)
    #expect(report.isComplete)
    #expect(report.entries == ["short": 2, "long": 1])
    var options = Store.Options()
    options.clock = fixture.clock
    let store = try Store(at: target, options: options)
    let newShort = try store.cache("short", of: String.self, lifetime: .days(1))
    let newLong = try store.cache("long", of: String.self, lifetime: .unlimited)
    #expect(try newShort.lookup(for: "a").kind == "expired")
    #expect(try newShort.entry(for: "b")?.savedAt == savedAt)
    #expect(try newLong.value(for: "d") == nil)
    #expect(try newLong.value(for: "e") == "again")
    // The index is there: a sweep finds expired entries.
    #expect(try store.sweep() == 1)
    // Sequences and numbers continue behind those that were copied.
    #expect(try newLong.touch("e"))
    #expect(try store.cache("new", of: String.self).value(for: "e") == nil)
    try store.close()
    try fixture.reopen()
  }

  @Test("An open store and an existing target are refused.")
  func refusals() throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let target = fixture.directory.appendingPathExtension("salvaged")
    defer { remove(target) }
    #expect(
      throwsStoreError(where: { if case .locked = $0 { true } else { false } }) {
        try Store.salvage(from: fixture.directory, to: target)
      })
    try fixture.store.close()
    #expect(
      throwsInvalidArgument {
        try Store.salvage(from: fixture.directory, to: fixture.directory)
      })
    #expect(!FileManager.default.fileExists(atPath: target.path(percentEncoded: false)))
    try fixture.reopen()
  }

  @Test("Damage that was met leaves a mark, which only the salvage policy follows.")
  func marks() throws {
    let specimen = try SalvageSpecimen(seed: 8)
    try specimen.damageRecords()
    _ = try specimen.readableNow()
    let mark = specimen.directory.appending(path: LevelDBEngine.damageMarkName)
    #expect(FileManager.default.fileExists(atPath: mark.path(percentEncoded: false)))
    var options = specimen.options
    options.onDamage = .fail
    let store = try Store(at: specimen.directory, options: options)
    #expect(store.recovery == nil)
    try store.close()
    let salvaged = try Store(at: specimen.directory, options: specimen.options)
    let recovery = try #require(salvaged.recovery)
    #expect(recovery.salvage?.losses.isEmpty == false)
    #expect(recovery.setAside?.lastPathComponent == "store.damaged")
    #expect(!FileManager.default.fileExists(atPath: mark.path(percentEncoded: false)))
    try salvaged.close()
  }

  @Test("Deleting a damaged entry does not read it.")
  func deletionsNeedNoRead() throws {
    let specimen = try SalvageSpecimen(seed: 5)
    try specimen.damageRecords()
    var options = specimen.options
    options.onDamage = .fail
    let store = try Store(at: specimen.directory, options: options)
    let cache = try specimen.cache(in: store)
    let damaged = specimen.expected.keys.sorted().filter { key in
      do {
        _ = try cache.value(for: key)
        return false
      } catch {
        return true
      }
    }
    try #require(damaged.count > 2)
    #expect(try cache.remove(damaged[0]))
    #expect(try cache.lookup(for: damaged[0]).kind == "missing")
    let report = try cache.validate()
    #expect(!report.isComplete)
    #expect(report.unreadable == damaged.count - 1)
    for key in damaged { #expect(try cache.lookup(for: key).kind == "missing") }
    try cache.removeAll()
    #expect(try cache.value(for: specimen.expected.keys.sorted()[0]) == nil)
    try store.close()
  }

  private func remove(_ directory: URL) {
    do {
      try FileManager.default.removeItem(at: directory)
    } catch {
      // It was not made.
    }
  }
}

/// A store with tables on several levels and a log, and its expected contents.
final class SalvageSpecimen {
  let directory: URL
  let options: Store.Options
  /// The latest value of each key; nil for one that was removed.
  private(set) var expected: [String: Data?] = [:]
  /// How many of the last changes the damage can have lost.
  private(set) var lostChanges = 0

  private let temporary: TemporaryDirectory
  private let clock = ManualClock()
  private var random: SplitMix64

  init(seed: UInt64) throws {
    random = SplitMix64(seed: seed)
    temporary = try TemporaryDirectory()
    directory = URL(filePath: "\(temporary.path)/store")
    var options = Store.Options()
    options.clock = clock
    options.writeBufferBytes = 64 << 10
    options.advanced.maxFileBytes = 1 << 20
    options.onDamage = .salvage
    self.options = options
    let store = try Store(at: directory, options: options)
    let cache = try cache(in: store)
    let count = Int.random(in: 300..<1500, using: &random)
    for step in 0..<count {
      try change(cache)
      if step == count / 2 { try store.context.engine.compact(EngineRange()) }
    }
    try store.context.engine.compact(EngineRange(from: [0xFF]))
    // These stay in the log.
    for _ in 0..<40 { try change(cache) }
    try store.close()
  }

  func cache(in store: Store) throws -> Cache<String, Data> {
    try store.cache("cache", of: Data.self, coder: .bytes)
  }

  /// Removes or replaces a random entry.
  func change(_ cache: Cache<String, Data>) throws {
    let key = "key \(Int.random(in: 0..<400, using: &random))"
    if Int.random(in: 0..<4, using: &random) == 0 {
      try cache.remove(key)
      expected[key] = .some(nil)
    } else {
      let value = Data(random.bytes(Int.random(in: 1..<600, using: &random)))
      try cache.save(value, for: key)
      expected[key] = value
    }
  }

  /// Damages one file of a kind; false if there is none.
  func damage(_ kind: SalvageTests.File) throws -> Bool {
    let path = directory.path(percentEncoded: false)
    let names = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    let candidates = names.filter { name in
      switch kind {
      case .table: name.hasSuffix(".ldb")
      case .log: name.hasSuffix(".log")
      case .manifest: name.hasPrefix("MANIFEST-")
      case .current: name == "CURRENT"
      case .marker: name == StoreMarker.fileName
      }
    }
    guard let name = candidates.randomElement(using: &random) else { return false }
    let file = URL(filePath: "\(path)/\(name)")
    var bytes = try Data(contentsOf: file)
    guard !bytes.isEmpty else { return false }
    let at = Int.random(in: 0..<bytes.count, using: &random)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: bytes[at] ^= 0xFF
    case 1: for index in at..<min(at + 64, bytes.count) { bytes[index] = 0 }
    case 2: for index in at..<min(at + 64, bytes.count) { bytes[index] = random.bytes(1)[0] }
    default: bytes = bytes[..<at]
    }
    // Damage within one place of the log loses a batch or two; a cut, all behind it.
    lostChanges = bytes.count > at ? 3 : 40
    try bytes.write(to: file)
    damagedFingerprint = try fingerprint(path)
    return true
  }

  /// Whether the files are those that the damage left, and nothing was put aside.
  func isUntouched() throws -> Bool {
    let names = try FileManager.default.contentsOfDirectory(atPath: temporary.path)
    let path = directory.path(percentEncoded: false)
    let now = try fingerprint(path)
    return names == ["store"] && now == damagedFingerprint
  }

  private var damagedFingerprint: [String: Data] = [:]

  /// The bytes of tables, logs and the MANIFEST.
  private func fingerprint(_ path: String) throws -> [String: Data] {
    var bytes: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: path)
    where name.contains(".ldb") || name.contains(".log") || name.hasPrefix("MANIFEST-") {
      bytes[name] = try Data(contentsOf: URL(filePath: "\(path)/\(name)"))
    }
    return bytes
  }

  /// Damages a block of records, in the middle of the largest table.
  func damageRecords() throws {
    let tables = try Damage.files(
      in: directory.path(percentEncoded: false), endingIn: ".ldb")
    let sizes = try tables.map { try Data(contentsOf: URL(filePath: $0)).count }
    let largest = try #require(zip(tables, sizes).max { $0.1 < $1.1 })
    try Damage.flipByte(at: largest.1 / 2, of: largest.0)
  }

  /// The readable entries of the damaged store; none if it does not open.
  func readableNow() throws -> [String: Data] {
    var options = options
    options.onDamage = .fail
    var readable: [String: Data] = [:]
    do {
      let store = try Store(at: directory, options: options)
      let cache = try cache(in: store)
      for key in expected.keys {
        do {
          if let value = try cache.value(for: key) { readable[key] = value }
        } catch StoreError.corrupt {
          continue
        }
      }
      do throws(StoreError) {
        // Reads the damage that earlier reads did not touch.
        try store.context.engine.compact(EngineRange())
      } catch .corrupt {
        // Most blocks are only read by a compaction.
      } catch .writesDisabled {
        // One in the background has met it.
      }
      try store.close()
    } catch StoreError.corrupt {
      return [:]
    }
    return readable
  }

  /// Opens the store, which salvages it if damage is known.
  func salvage() throws -> Store { try Store(at: directory, options: options) }

  /// The keys that do not have their latest value.
  func differences(in cache: Cache<String, Data>) throws -> [String] {
    try expected.filter { try cache.value(for: $0.key) != $0.value }.map(\.key).sorted()
  }

  /// Saves so much that everything is compacted, damage included, if any was left.
  func saveMore(in cache: Cache<String, Data>) throws {
    let rounds = 500 * proofFactor
    for number in 0..<rounds {
      try cache.save(Data(random.bytes(200)), for: "key \(number % 1000)")
    }
    try cache.core.context.engine.compact(EngineRange())
    #expect(try cache.validate().isComplete)
  }
}
