import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Entries that previews and tests make without a store.
@Suite struct MadeEntryTests {
  @Test("A made entry is the same as one that a store returns.")
  func entry() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self)
    let note = Note(title: "t")
    let lifetime = Lifetime.fresh(for: .hours(2), thenStaleFor: .days(1))
    // The second tag in both normalization forms, one of them for each entry.
    try notes.save(note, for: "k", lifetime: lifetime, validator: "v", tags: ["a", "\u{E9}"])
    fixture.clock.advance(by: .seconds(90))
    let stored = try #require(try notes.entry(for: "k"))
    let made = Entry(
      value: note, age: .seconds(90), lifetime: lifetime, validator: "v",
      tags: ["a", "e\u{301}"])

    #expect(made.value == stored.value)
    #expect(made.savedAt == stored.savedAt)
    #expect(made.age == stored.age)
    #expect(made.origin == stored.origin)
    #expect(made.validator == stored.validator)
    #expect(made.tags.map { Array($0.utf8) } == stored.tags.map { Array($0.utf8) })
    #expect(made.lifetime == stored.lifetime)
  }

  @Test("By default a made entry was saved and read at the date that a clock begins with.")
  func defaults() {
    let entry = Entry(value: 1)
    #expect(entry.value == 1 && entry.age == .zero && entry.origin == .memory)
    #expect(entry.savedAt == ManualClock().now())
    #expect(entry.validator == nil && entry.tags == [] && entry.lifetime == nil)
    let date = Date(timeIntervalSinceReferenceDate: 0.1)
    let early = Entry(value: 1, savedAt: date, age: .seconds(-5), origin: .disk)
    #expect(early.savedAt == date && early.age == .seconds(-5) && early.origin == .disk)
  }

  @Test("The version of a made entry is not that of an entry of a store.")
  func version() throws {
    let store = Store.inMemory()
    let numbers = try store.cache("numbers", of: Int.self)
    let made = Entry(value: 1)
    try numbers.save(1, for: "k")
    #expect(try numbers.save(2, for: "k", if: .unchanged(since: made)) == false)
    #expect(try numbers.save(2, for: "other", if: .unchanged(since: made)) == false)
    #expect(try numbers.value(for: "k") == 1)
  }

  @Test("A preview can make each case of a lookup.")
  func lookups() {
    let metadata = EntryMetadata(age: .seconds(60), payloadBytes: 5, validator: "v")
    #expect(metadata.savedAt == ManualClock.start && metadata.age == .seconds(60))
    #expect(metadata.payloadBytes == 5 && metadata.validator == "v" && !metadata.isInvalidated)
    let invalidated = EntryMetadata(age: .zero, validator: "v", isInvalidated: true)
    #expect(invalidated.isInvalidated && invalidated.validator == nil)
    let lookups: [Lookup<Int>] = [
      .fresh(Entry(value: 1)), .stale(Entry(value: 1)), .expired(metadata), .missing,
    ]
    #expect(lookups.map(\.kind) == ["fresh", "stale", "expired", "missing"])
  }

  @Test("By default a made loaded value was loaded and saved.")
  func loaded() {
    let loaded = LoadedEntry(value: 1)
    #expect(loaded.value == 1 && loaded.origin == .loaded && loaded.isSaved)
    #expect(loaded.savedAt == nil && loaded.age == .zero)
    #expect(!loaded.isStale && !loaded.isRefreshing)
    #expect(loaded.saveFailure == nil && loaded.loadFailure == nil)
  }

  @Test("A made loaded value has what it was made with, and is not saved after a failure.")
  func loadedInDetail() {
    let stale = LoadedEntry(
      value: 1, savedAt: ManualClock.start, age: .seconds(9), origin: .disk, isStale: true,
      isRefreshing: true, loadFailure: CancellationError())
    #expect(stale.savedAt == ManualClock.start && stale.age == .seconds(9))
    #expect(stale.origin == .disk && stale.isStale && stale.isRefreshing && stale.isSaved)
    #expect(stale.loadFailure is CancellationError)
    let unsaved = LoadedEntry(value: 1, saveFailure: .diskFull)
    #expect(!unsaved.isSaved)
    guard case .diskFull? = unsaved.saveFailure else {
      Issue.record("\(unsaved)")
      return
    }
    #expect(!LoadedEntry(value: 1, isSaved: false).isSaved)
  }

  @Test("A test can call a load with a previous entry.")
  func previous() async throws {
    let load: Cache<String, Int>.Load = { previous in
      previous?.validator == "v" ? .unchanged : .value((previous?.value ?? 0) + 1)
    }
    guard case .unchanged = try await load(Previous(value: 1, validator: "v")).content,
      case .value(2, _, _, _) = try await load(Previous(value: 1)).content,
      case .value(1, _, _, _) = try await load(Previous(value: nil)).content
    else {
      Issue.record("the load got other entries")
      return
    }
    #expect(Previous(value: 1).savedAt == ManualClock.start)
  }
}
