import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Entries that a test damages.
@Suite(.timeLimit(.minutes(10))) struct DamagedEntryTests {
  @Test(
    "A damaged entry is an error for its key alone, also if its value was in memory.",
    arguments: StoreKind.allCases)
  func damaged(kind: StoreKind) throws {
    let fixture = try Fixture(kind)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self)
    for key in ["a", "b"] { try numbers.save(1, for: key) }
    #expect(try numbers.values(for: ["a", "b"]) == [1, 1])

    try numbers.damageEntry(for: "a")
    #expect(throwsCorrupt("numbers", "a") { try numbers.value(for: "a") })
    #expect(try numbers.value(for: "b") == 1)
    // A second change of the byte would repair it.
    try numbers.damageEntry(for: "a")
    #expect(throwsCorrupt("numbers", "a") { try numbers.lookup(for: "a") })
  }

  @Test("An entry stays damaged until it is saved, removed or deleted by validate.")
  func cured() throws {
    let store = Store.inMemory()
    let numbers = try store.cache("numbers", of: Int.self)
    for key in ["a", "b", "c", "d"] {
      try numbers.save(1, for: key)
      try numbers.damageEntry(for: key)
    }
    try numbers.save(2, for: "a")
    #expect(try numbers.remove("b"))
    #expect(throwsCorrupt("numbers", "c") { try numbers.value(for: "c") })
    #expect(try numbers.validate().unreadable == 2)
    #expect(try numbers.values(for: ["a", "b", "c", "d"]) == [2, nil, nil, nil])
  }

  @Test("Only an entry can be damaged, fresh or not.")
  func missing() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let bytes = try fixture.store.cache(
      "bytes", of: Data.self, lifetime: .seconds(10), coder: .bytes)
    #expect(throwsInvalidArgument { try bytes.damageEntry(for: "a") })
    // The smallest record: its payload is empty.
    try bytes.save(Data(), for: "a")
    fixture.clock.advance(by: .seconds(20))
    #expect(try bytes.lookup(for: "a").kind == "expired")
    try bytes.damageEntry(for: "a")
    #expect(throwsCorrupt("bytes", "a") { try bytes.lookup(for: "a") })
    try fixture.store.close()
    #expect(throwsClosed { try bytes.damageEntry(for: "a") })
  }

  @Test("Faults and held writes do not keep an entry from being damaged.")
  func withFaults() throws {
    let faults = StoreFaults()
    let numbers = try Store.inMemory(faults: faults).cache("numbers", of: Int.self)
    try numbers.save(1, for: "a")
    faults.isDiskFull = true
    faults.failsWrites = true
    faults.failsReads = true
    faults.holdWrites()
    try numbers.damageEntry(for: "a")
    faults.failsReads = false
    #expect(throwsCorrupt("numbers", "a") { try numbers.value(for: "a") })
  }

  @Test("A load replaces a damaged entry; damage during the load does not stop its save.")
  func load() async throws {
    let numbers = try Store.inMemory().cache("numbers", of: Int.self)
    try numbers.save(1, for: "a")
    try numbers.damageEntry(for: "a")
    let loaded = try await numbers.entry(for: "a") { previous in
      #expect(previous == nil)
      try numbers.damageEntry(for: "a")
      return .value(2)
    }
    #expect(loaded?.isSaved == true)
    #expect(try numbers.value(for: "a") == 2)
  }

  @Test("Observers are not notified of damage.")
  func observers() async throws {
    let store = Store.inMemory()
    let bytes = try store.cache("bytes", of: Data.self, coder: .bytes)
    let changes = bytes.changes()
    try bytes.save(Data([1]), for: "a")
    try bytes.damageEntry(for: "a")
    try bytes.save(Data([2]), for: "b")
    try store.close()
    var found: [String?] = []
    for await change in changes { found.append(change.key) }
    #expect(found == ["a", "b"])
  }

  @Test("A save that comes during the damage is not replaced by the entry before it.")
  func race() throws {
    let fixture = try Fixture(.memory)
    defer { fixture.end() }
    let numbers = try fixture.store.cache("numbers", of: Int.self)
    for round in 0..<500 {
      try numbers.save(-1, for: "a")
      onThreads(2) { thread in
        #expect(throws: Never.self) {
          if thread == 0 {
            try numbers.damageEntry(for: "a")
          } else {
            try numbers.save(round, for: "a")
          }
        }
      }
      var record = try fixture.onlyRecord()
      if throwsCorrupt("numbers", "a", { try numbers.value(for: "a") }) {
        record.value[record.value.count - 1] ^= 0xFF
        try fixture.put(record.value, under: record.key)
      }
      #expect(try numbers.value(for: "a") == round)
    }
  }
}
