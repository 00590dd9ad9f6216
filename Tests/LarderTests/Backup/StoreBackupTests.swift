import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// A backup of a store can be restored and opened, and failures are reported as store errors.
@Suite final class StoreBackupTests {
  private let directory: TemporaryDirectory
  private var place: URL { URL(filePath: directory.path) }

  init() throws { directory = try TemporaryDirectory() }

  private func withStore(_ body: (Fixture) throws -> Void) throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    try body(fixture)
  }

  private func open(_ name: String, _ clock: ManualClock) throws -> Store {
    var options = Store.Options()
    options.clock = clock
    options.createIfMissing = false
    return try Store(at: place.appending(path: name), options: options)
  }

  @Test("A restored store opens like any other, with the entries and dates of the backup.")
  func restored() throws {
    try withStore { fixture in
      let clock = fixture.clock
      let notes = try fixture.store.cache("notes", of: Note.self, lifetime: .days(2))
      let start = clock.now()
      try notes.save(Note(title: "old"), for: "old")
      clock.advance(by: .seconds(86_400))
      try notes.save(Note(title: "new"), for: "new")
      try fixture.store.backup(to: place.appending(path: "backup"))
      try notes.save(Note(title: "later"), for: "new")
      try notes.remove("old")

      // In the same process, with the store still open.
      try Store.restore(
        from: place.appending(path: "backup"), to: place.appending(path: "restored"))
      let store = try open("restored", clock)
      #expect(store.recovery == nil)
      let copies = try store.cache("notes", of: Note.self, lifetime: .days(2))
      #expect(try copies.entry(for: "old")?.savedAt == start)
      #expect(try copies.value(for: "new") == Note(title: "new"))
      clock.advance(by: .seconds(86_400))
      #expect(try copies.value(for: "old") == nil)
      // Commit sequences continue above those of the backup.
      try copies.save(Note(title: "3"), for: "new")
      #expect(try copies.value(for: "new") == Note(title: "3"))
      #expect(try copies.validate().expired == 1)
      try store.close()
      #expect(try notes.value(for: "new") == Note(title: "later"))
    }
  }

  @Test("The backup's date comes from the store's clock.")
  func date() throws {
    try withStore { fixture in
      try fixture.store.backup(to: place.appending(path: "backup"))
      let backup = try Backup(at: place.appending(path: "backup").path)
      #expect(backup.manifest.date == fixture.clock.now().timeIntervalSinceReferenceDate)
    }
  }

  @Test("Each failure is a store error that names the cause, and leaves nothing behind.")
  func failures() throws {
    try withStore { fixture in
      let backup = place.appending(path: "backup")
      try fixture.store.backup(to: backup)
      #expect(throwsInvalidArgument { try fixture.store.backup(to: backup) })
      let web = try #require(URL(string: "https://example.com/backup"))
      #expect(throwsInvalidArgument { try fixture.store.backup(to: web) })
      #expect(throwsInvalidArgument { try Store.restore(from: web, to: backup) })
      #expect(throwsInvalidArgument { try Store.restore(from: backup, to: fixture.directory) })
      let memory = Store.inMemory()
      #expect(throwsInvalidArgument { try memory.backup(to: place.appending(path: "memory")) })
      #expect(
        performing: { try Store(at: backup) },
        throws: { error in
          guard case StoreError.incompatible(let message) = error else { return false }
          return message.contains("Store.restore(from:to:)")
        })
      var recreating = Store.Options()
      recreating.onDamage = .recreate
      #expect(throws: StoreError.self) { try Store(at: backup, options: recreating) }
      #expect(
        performing: {
          try Store.restore(from: fixture.directory, to: place.appending(path: "restored"))
        }, throws: { if case StoreError.incompatible = $0 { true } else { false } })
      #expect(
        performing: {
          try Store.restore(from: place.appending(path: "none"), to: place.appending(path: "a"))
        }, throws: { if case StoreError.io = $0 { true } else { false } })
      let current = backup.appending(path: "CURRENT")
      try Data("MANIFEST-000001\n".utf8).write(to: current)
      #expect(
        performing: {
          try Store.restore(from: backup, to: place.appending(path: "restored"))
        },
        throws: { error in
          guard case StoreError.corrupt("", "", let file?) = error else { return false }
          return file.contains(current.path)
        })
      try fixture.store.close()
      #expect(
        performing: {
          try fixture.store.backup(to: place.appending(path: "closed"))
        }, throws: { if case StoreError.closed = $0 { true } else { false } })
      #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == ["backup"])
    }
  }

  /// One thread clears a cache, and another one migrates one.
  ///
  /// The backup has all of a batch or nothing of it, and a migration of the restored store
  /// continues.
  @Test("A backup taken during a clear and a migration holds one consistent state.")
  func consistent() throws {
    for _ in 0..<(4 * proofFactor) { try clearAndMigrate(1500) }
  }

  private func clearAndMigrate(_ count: Int) throws {
    let fixture = try Fixture(.disk)
    defer { fixture.end() }
    let old = try fixture.store.cache("old", of: NoteV1.self)
    try fixture.store.write { batch in
      for number in 0..<count { batch.save(NoteV1(name: "\(number)"), for: "\(number)", in: old) }
    }
    try fixture.reopen()
    let store = fixture.store
    let notes = try store.cache("old", of: Note.self, schema: .reading1And2)
    let lists = try store.cache("lists", of: Note.self)
    let isOver = Flag()
    let failures = Mutex<[String]>([])
    let names = (0..<4).map { "\(UUID().uuidString)-\($0)" }
    onThreads(3) { [place] thread in
      do {
        switch thread {
        case 0:
          while !isOver.isRaised {
            try store.write { batch in
              for number in 0..<50 {
                batch.save(Note(title: "\(number)"), for: "\(number)", in: lists)
              }
            }
            try lists.removeAll()
          }
        case 1: try store.migrate(notes)
        default:
          defer { isOver.raise() }
          for name in names { try store.backup(to: place.appending(path: "backup-\(name)")) }
        }
      } catch {
        isOver.raise()
        failures.withLock { $0.append("\(thread): \(error)") }
      }
    }
    #expect(failures.withLock { $0 } == [])
    for name in names {
      let restored = place.appending(path: "restored-\(name)")
      try Store.restore(from: place.appending(path: "backup-\(name)"), to: restored)
      try look(at: restored, fixture.clock, count)
    }
  }

  private func look(at directory: URL, _ clock: ManualClock, _ count: Int) throws {
    let store = try open(directory.lastPathComponent, clock)
    let lists = try store.cache("lists", of: Note.self)
    let keys = try lists.keys()
    var found = 0
    while try keys.next() != nil { found += 1 }
    #expect([0, 50].contains(found))
    let notes = try store.cache("old", of: Note.self, schema: .reading1And2)
    let report = try store.migrate(notes)
    #expect(report.migrated + report.current == count)
    for number in 0..<count {
      try #require(try notes.value(for: "\(number)")?.title == "\(number)")
    }
    let validated = try notes.validate()
    #expect(validated.kept == count)
    try store.close()
  }
}
