import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// One store may be used from any thread at once.
///
/// The thread sanitizer runs these tests, too: see `Scripts/proof`.
@Suite struct ConcurrencyTests {
  @Test("Eight threads share a store, and each reads what it saved.", arguments: StoreKind.allCases)
  func eightThreads(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let notes = try fixture.store.cache("notes", of: Note.self, keyedBy: Int.self)
    let store = fixture.store
    let clock = fixture.clock
    let failures = Mutex<[String]>([])

    onThreads(8) { thread in
      var random = SplitMix64(seed: UInt64(thread))
      do {
        for step in 0..<200 {
          // Each thread owns the keys that are its number modulo 8, and reads all of them.
          let own = Int.random(in: 0..<8, using: &random) * 8 + thread
          let any = Int.random(in: 0..<64, using: &random)
          switch step % 10 {
          case 0:
            try store.write { batch in
              batch.save(Note(title: "\(thread)"), for: own, in: notes)
              batch.save(Note(title: "\(thread)"), for: own, in: notes)
            }
          case 1: try notes.remove(own)
          case 2: try notes.touch(any)
          case 3: try notes.validate()
          case 4:
            let cursor = try notes.entries()
            while let item = try cursor.next() { try check(item.key, item.entry.get().value) }
          case 5: _ = try store.cache("notes", of: Note.self, keyedBy: Int.self)
          case 6: clock.advance(by: .seconds(1))
          default:
            try notes.save(Note(title: "\(thread)"), for: own)
            let value = try notes.value(for: own)
            if value != Note(title: "\(thread)") { throw Mismatch(key: own) }
            if let value = try notes.value(for: any) { try check(any, value) }
          }
        }
      } catch {
        failures.withLock { $0.append("thread \(thread): \(error)") }
      }
    }

    #expect(failures.withLock { $0 } == [])
  }

  @Test("A clear among saves loses no later save.", arguments: StoreKind.allCases)
  func clear(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
    let failures = Mutex<[String]>([])

    onThreads(4) { thread in
      do {
        for round in 0..<50 {
          if thread == 0 {
            try numbers.removeAll()
          } else {
            try numbers.save(round, for: thread)
          }
        }
      } catch {
        failures.withLock { $0.append("\(error)") }
      }
    }
    for thread in 1..<4 { try numbers.save(-1, for: thread) }

    #expect(failures.withLock { $0 } == [])
    for thread in 1..<4 { #expect(try numbers.value(for: thread) == -1) }
    try fixture.reopen()
    #expect(try fixture.rows(in: .records).count == 3)
  }

  @Test("Closing a store ends the reads and writes of other threads with closed.")
  func close() throws {
    for seed in 0..<10 {
      let fixture = try Fixture(.disk)
      defer { fixture.end() }
      let numbers = try fixture.store.cache("numbers", of: Int.self, keyedBy: Int.self)
      let store = fixture.store
      let failures = Mutex<[String]>([])
      onThreads(4) { thread in
        do {
          var round = 0
          while true {
            round += 1
            if thread == 0 && round == 20 + seed * 10 { try store.close() }
            try numbers.save(round, for: thread)
            let cursor = try numbers.keys()
            while try cursor.next() != nil {}
            _ = try numbers.value(for: thread)
          }
        } catch StoreError.closed {
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
      #expect(failures.withLock { $0 } == [])
    }
  }
}

private struct Mismatch: Error { let key: Int }

private func check(_ key: Int, _ value: Note) throws {
  if value != Note(title: "\(key % 8)") { throw Mismatch(key: key) }
}
