import Foundation
import LarderTestSupport
import LarderTesting
import SimulatedDisk
import Synchronization
import Testing

@testable import Larder

/// A migration loses nothing among other writers, when it is killed, and in a power loss.
@Suite struct MigrationCrashTests {
  @Test(
    "Migrating while seven threads save, touch and remove loses no change of theirs.",
    arguments: StoreKind.allCases)
  func otherWriters(kind: StoreKind) throws {
    let seed = testSeed()
    for round in 0..<(6 * proofFactor) {
      try othersSaveAndRemove(kind, seed: seed &+ UInt64(round))
    }
  }

  /// Seven threads change notes of their own, and an eighth migrates until they have ended.
  private func othersSaveAndRemove(_ kind: StoreKind, seed: UInt64) throws {
    let count = 700
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    try fixture.saveOldNotes(count)
    try fixture.reopen()
    let store = fixture.store
    let notes = try store.cache("notes", of: Note.self, schema: .reading1And2)
    let names = (0..<count).map { fixture.key($0) }
    let models = Mutex<[Int: Note?]>([:])
    let failures = Mutex<[String]>([])
    let working = Mutex(7)

    onThreads(8) { thread in
      var random = SplitMix64(seed: seed &+ UInt64(thread))
      var model: [Int: Note?] = [:]
      do {
        if thread == 7 {
          repeat { try store.migrate(notes) } while working.withLock { $0 } > 0
          return
        }
        defer { working.withLock { $0 -= 1 } }
        for step in 0..<150 {
          let number = Int.random(in: 0..<(count / 7), using: &random) * 7 + thread
          switch Int.random(in: 0..<4, using: &random) {
          case 0:
            try notes.remove(names[number])
            model[number] = .some(nil)
          case 1:
            let note = Note(title: "\(thread) \(step)")
            try notes.save(note, for: names[number])
            model[number] = note
          default: try notes.touch(names[number])
          }
        }
      } catch {
        failures.withLock { $0.append("thread \(thread): \(error)") }
      }
      models.withLock { $0.merge(model) { one, _ in one } }
    }

    #expect(failures.withLock { $0 } == [], "seed \(seed)")
    let saved = models.withLock { $0 }
    for number in 0..<count {
      let expected = saved[number] ?? Note(title: "\(number)", body: "was 1")
      let found = try notes.value(for: names[number])
      try #require(found == expected, "seed \(seed), \(number)")
    }
    let left = saved.values.count { $0 == nil }
    #expect(try store.migrate(notes).current == count - left, "seed \(seed)")
    try fixture.expectNoted(notes)
  }

  @Test("A killed migration loses nothing, and the next one continues.")
  func kills() throws {
    let isProof = proofFactor > 1
    let count = isProof ? 1_000_000 : 20_000
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let directory = try TemporaryDirectory()
    // The worker uses the system's clock.
    let start = Date()
    let clock = ManualClock(start)
    try fill(directory.path, count, clock)

    var kills = 0
    var done: [Int] = []
    // The worker migrates 64 numbers for each byte that it receives, which makes this the least
    // number of kills.
    let fewest = isProof ? 40 : 8
    let most = count / 64 / (fewest + 1)
    while done.isEmpty {
      var worker = try ChildProcess("CrashWorker", ["migrate", directory.path])
      let steps = Int.random(in: 1...most, using: &random)
      worker.send(String(repeating: ".", count: steps))
      let awaited = Int.random(in: (steps / 2)..<steps, using: &random)
      var lines: [String] = []
      while lines.count < awaited, let line = worker.readLine() {
        lines.append(line)
      }
      worker.kill()
      // It may have got further than we have read.
      while let line = worker.readLine() { lines.append(line) }
      for line in lines {
        let words = line.split(separator: " ")
        if words[0] == "done" { done = words.dropFirst().compactMap { Int($0) } }
        try #require(["at", "done"].contains(words[0]), "seed \(seed): \(line)")
      }
      if done.isEmpty { kills += 1 }
      try #require(kills < 100 * fewest, "it comes no further, seed \(seed)")
      let numbers = try look(directory.path, clock, schema: Self.reading1)
      for _ in 0..<100 {
        let number = Int.random(in: 0..<count, using: &random)
        try #require(try numbers.value(for: number) == number, "seed \(seed)")
      }
      try numbers.store.close()
    }

    try #require(done.count == 2)
    // All of it again: it had ended, and was killed before it said so.
    #expect(
      done[0] + done[1] == count && (done[1] <= kills * 256 || done[1] == count),
      "\(done), \(kills) kills, seed \(seed)")
    #expect(kills >= fewest)
    let numbers = try look(directory.path, clock, schema: Schema(version: 3))
    for number in 0..<count {
      let entry = try numbers.entry(for: number)
      try #require(entry?.value == number, "seed \(seed)")
      try #require(entry?.savedAt == start + Double(number) / 1000, "seed \(seed)")
    }
    try numbers.store.close()
    print("migration: \(count) records, \(kills) kills, \(done[1]) looked at twice, seed \(seed)")
  }

  private static let reading1 = Schema<Int>(version: 3).reading(1, as: String.self) {
    Int($0) ?? -1
  }
  private static let lifetime = Lifetime.days(3000)

  /// Saves numbers as version 1 had them, each a millisecond later.
  private func fill(_ path: String, _ count: Int, _ clock: ManualClock) throws {
    var options = Store.Options()
    options.clock = clock
    let store = try Store(at: URL(filePath: path), options: options)
    let numbers = try store.cache(
      "numbers", of: String.self, keyedBy: Int.self, lifetime: Self.lifetime)
    let start = clock.now()
    for number in 0..<count {
      clock.set(start + Double(number) / 1000)
      try numbers.save("\(number)", for: number)
    }
    try store.close()
  }

  private func look(
    _ path: String, _ clock: ManualClock, schema: Schema<Int>
  ) throws -> Cache<Int, Int> {
    var options = Store.Options()
    options.clock = clock
    let store = try Store(at: URL(filePath: path), options: options)
    return try store.cache(
      "numbers", of: Int.self, keyedBy: Int.self, lifetime: Self.lifetime, schema: schema)
  }

  @Test("A power loss at any file call of a migration leaves every entry readable.")
  func crashAtEveryFileCall() throws {
    let count = 520
    let disk = try filledDisk(count)
    disk.holdBackground()
    defer { disk.releaseBackground() }
    let interrupted = InterruptedEngine(try engine(on: disk))
    let store = try Store(engine: interrupted, origin: .disk)
    let notes = try store.cache("notes", of: Note.self, schema: .reading1And2)
    var timeline = Timeline(0)
    var started = disk.journalCount
    var writes = 0
    func arm() {
      interrupted.beforeNextWrite = {
        // The previous write was a slice, which is now acknowledged.
        if writes > 0 {
          timeline.add(
            min(writes * 256, count), started: started, acknowledged: disk.journalCount,
            isDurable: false)
        }
        writes += 1
        started = disk.journalCount
        arm()
      }
    }
    arm()
    try store.migrate(notes)
    #expect(writes == 4)
    // The last write removes the mark, and makes everything before it durable.
    timeline.add(count, started: started, acknowledged: disk.journalCount, isDurable: true)
    interrupted.beforeNextWrite = nil
    disk.runBackground()
    try store.close()

    var search = PowerLossSearch(of: disk, timeline, script: "a migration") { image in
      try look(at: image, count)
    }
    search.run()
    let counts = search.counts
    #expect(counts.violations.isEmpty, "\(counts.violations.joined(separator: "\n"))")
    #expect(counts.states > 100)
    print("power loss of a migration: \(counts)")
  }

  private func name(_ number: Int) -> String { String(format: "%04d", number) }

  private func engine(on disk: SimulatedDisk) throws -> LevelDBEngine {
    var options = LevelDBOptions()
    options.files = SimulatedFiles(disk)
    return try LevelDBEngine(at: "/store", options: options)
  }

  /// A disk on which a store has notes of version 1, all of it durable.
  private func filledDisk(_ count: Int) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let store = try Store(engine: engine(on: disk), origin: .disk)
    let old = try store.cache("notes", of: NoteV1.self)
    try store.write { batch in
      for number in 0..<count { batch.save(NoteV1(name: "\(number)"), for: name(number), in: old) }
    }
    try store.close()
    let replay = disk.replay()
    _ = replay.steps()
    return replay.image(.everything)
  }

  /// Opens the store that a crash left, and returns how many notes are migrated.
  ///
  /// Of every fourth one a copy is migrated to the end.
  private func look(at image: SimulatedDisk, _ count: Int) throws -> PowerLossSearch<Int>.Opened {
    let engine = try engine(on: image)
    var versions: [UInt32] = []
    let rows = try engine.cursor(over: EngineRange(prefix: [KeySpace.records.rawValue]))
    while try rows.next() {
      let record = try rows.withEntry { key, bytes in try Record(bytes, under: key) }
      versions.append(record.schemaVersion)
    }
    try engine.close()
    if image.hash.isMultiple(of: 4) || proofFactor > 1 { try finish(on: image.copy(), count) }
    return PowerLossSearch.Opened(
      state: versions.count { $0 == 3 }, hasSetAside: engine.recovery != nil)
  }

  private func finish(on copy: SimulatedDisk, _ count: Int) throws {
    let store = try Store(engine: self.engine(on: copy), origin: .disk)
    let notes = try store.cache("notes", of: Note.self, schema: .reading1And2)
    try store.migrate(notes)
    let all = try notes.entries()
    var right = 0
    while let item = try all.next() {
      guard try item.entry.get().value == Note(title: "\(right)", body: "was 1") else { break }
      right += 1
    }
    let again = try store.migrate(notes)
    guard right == count, again.current == count else { throw WrongNote(number: right) }
    try store.close()
  }
}

private struct WrongNote: Error { let number: Int }
