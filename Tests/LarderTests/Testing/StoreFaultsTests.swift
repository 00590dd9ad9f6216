import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// A store whose disk is full or fails when a test says so.
@Suite(.timeLimit(.minutes(10))) struct StoreFaultsTests {
  private let faults = StoreFaults()
  private let store: Store
  private let numbers: Cache<String, Int>

  init() throws {
    store = Store.inMemory(faults: faults)
    numbers = try store.cache("numbers", of: Int.self)
    try numbers.save(1, for: "a")
  }

  private func throwsDiskFull<R>(_ body: () throws -> R) -> Bool {
    throwsStoreError(where: { if case .diskFull = $0 { true } else { false } }, body)
  }

  private func throwsIO<R>(_ body: () throws -> R) -> Bool {
    throwsStoreError(where: { if case .io = $0 { true } else { false } }, body)
  }

  @Test("Without a fault a store in memory is as any other, with its options.")
  func noFault() throws {
    let clock = ManualClock()
    var options = Store.Options()
    options.clock = clock
    options.byteBudget = 10_000
    let store = Store.inMemory(options: options, faults: StoreFaults())
    let notes = try store.cache("notes", of: Data.self, coder: .bytes)
    for number in 0..<100 {
      try notes.save(Data(count: 1000), for: "\(number)")
      clock.advance(by: .seconds(1))
    }
    #expect(try (1..<10).contains(notes.count()))
    let entry = try #require(try notes.entry(for: "99"))
    #expect(entry.age == .seconds(1) && entry.origin == .memory)
  }

  @Test("On a full disk saves throw and write nothing; reads and removals succeed.")
  func diskFull() throws {
    try numbers.save(1, for: "b")
    faults.isDiskFull = true
    #expect(throwsDiskFull { try numbers.save(2, for: "a") })
    #expect(throwsDiskFull { try numbers.update("a") { $0 = 2 } })
    #expect(throwsDiskFull { try store.cache("new", of: Int.self) })
    #expect(
      throwsDiskFull {
        try store.write { batch in
          batch.remove("b", from: numbers)
          batch.save(2, for: "c", in: numbers)
        }
      })
    #expect(try numbers.values(for: ["a", "b", "c"]) == [1, 1, nil])
    try store.flush()

    #expect(try numbers.remove("b"))
    try numbers.removeAll()
    #expect(try numbers.values(for: ["a", "b"]) == [nil, nil])

    faults.isDiskFull = false
    try numbers.save(3, for: "a")
    #expect(try numbers.value(for: "a") == 3)
    _ = try store.cache("new", of: Int.self)
  }

  @Test("A load returns its value although the disk is full, and says why it is not saved.")
  func loadOnFullDisk() async throws {
    faults.isDiskFull = true
    let loaded = try #require(try await numbers.entry(for: "b") { _ in .value(7) })
    #expect(loaded.value == 7 && !loaded.isSaved)
    guard case .diskFull? = loaded.saveFailure else {
      Issue.record("\(loaded)")
      return
    }
    #expect(try numbers.value(for: "b") == nil)
  }

  @Test("When writes fail, every kind of write throws, and nothing is written.")
  func failingWrites() throws {
    faults.failsWrites = true
    #expect(throwsIO { try numbers.save(2, for: "a") })
    #expect(throwsIO { try numbers.remove("a") })
    #expect(throwsIO { try numbers.removeAll() })
    #expect(throwsIO { try store.flush() })
    #expect(throwsIO { try store.cache("new", of: Int.self) })
    #expect(try numbers.value(for: "a") == 1)
    faults.isDiskFull = true
    #expect(throwsIO { try numbers.save(2, for: "a") })
    faults.isDiskFull = false
    faults.failsWrites = false
    try numbers.save(2, for: "a")
    #expect(try numbers.value(for: "a") == 2)
  }

  @Test("When reads fail, lookups and cursors throw, and writes succeed.")
  func failingReads() throws {
    for key in ["b", "c"] { try numbers.save(1, for: key) }
    let cursor = try numbers.keys()
    #expect(try cursor.next() == "a")
    faults.failsReads = true
    #expect(throwsIO { try numbers.value(for: "a") })
    #expect(throwsIO { try numbers.lookup(for: "nothing") })
    #expect(throwsIO { try numbers.contains("a") })
    #expect(throwsIO { try cursor.next() })
    #expect(throwsIO { try numbers.keys().next() })
    #expect(throwsIO { try store.cache("new", of: Int.self) })
    try numbers.save(2, for: "a")
    faults.failsReads = false
    #expect(try cursor.next() == "b")
    #expect(try numbers.value(for: "a") == 2)
  }

  @Test("Faults that were set before apply to a store from its first call.")
  func early() throws {
    let faults = StoreFaults()
    faults.isDiskFull = true
    let store = Store.inMemory(faults: faults)
    #expect(throwsDiskFull { try store.cache("numbers", of: Int.self) })
  }

  @Test("After a close each call throws that, whatever the faults.")
  func closed() throws {
    let cursor = try numbers.keys()
    try store.close()
    faults.failsReads = true
    faults.failsWrites = true
    #expect(throwsClosed { try numbers.value(for: "a") })
    #expect(throwsClosed { try numbers.save(1, for: "a") })
    #expect(throwsClosed { try cursor.next() })
  }
}
