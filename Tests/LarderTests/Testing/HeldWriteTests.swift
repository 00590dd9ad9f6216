import Dispatch
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// Writes that a test holds, as a very slow disk does.
@Suite(.timeLimit(.minutes(10))) struct HeldWriteTests {
  private let faults = StoreFaults()
  private let store: Store
  private let numbers: Cache<String, Int>

  init() throws {
    store = Store.inMemory(faults: faults)
    numbers = try store.cache("numbers", of: Int.self)
  }

  /// Saves a number on a thread of the store.
  private func save(_ number: Int, for key: String) -> Task<Void, any Error> {
    Task { try await store.run { try numbers.save(number, for: key) } }
  }

  @Test("Held writes wait until they are released, and reads do not wait.")
  func held() async throws {
    try numbers.save(1, for: "a")
    faults.holdWrites()
    let saves = [save(2, for: "a"), save(3, for: "b")]
    try await faults.waitForHeldWrites(2)
    #expect(faults.heldWrites == 2)
    #expect(try numbers.values(for: ["a", "b"]) == [1, nil])
    faults.releaseWrites()
    for save in saves { try await save.value }
    #expect(faults.heldWrites == 0)
    #expect(try numbers.values(for: ["a", "b"]) == [2, 3])
    try numbers.save(4, for: "a")
  }

  @Test("A wait for held writes ends at the number it was called with.")
  func waits() async throws {
    faults.holdWrites()
    try await faults.waitForHeldWrites(0)
    // No write is released before both have ended.
    async let first = {
      try await faults.waitForHeldWrites(1)
      return faults.heldWrites
    }()
    async let second = {
      try await faults.waitForHeldWrites(3)
      return faults.heldWrites
    }()
    var saves = [save(1, for: "a"), save(1, for: "b")]
    #expect([1, 2].contains(try await first))
    try await faults.waitForHeldWrites(2)
    saves.append(save(1, for: "c"))
    #expect(try await second == 3)
    faults.releaseWrites()
    for save in saves { try await save.value }
  }

  @Test("The caller of a load waits for a save that is held.")
  func load() async throws {
    faults.holdWrites()
    let returned = Flag()
    async let value = {
      defer { returned.raise() }
      return try await numbers.value(for: "a") { 7 }
    }()
    try await faults.waitForHeldWrites(1)
    #expect(!returned.isRaised)
    faults.releaseWrites()
    #expect(try await value == 7)
    #expect(try numbers.value(for: "a") == 7)
  }

  @Test("Other faults apply to a held write when it is released.")
  func otherFaults() async throws {
    faults.holdWrites()
    let save = save(1, for: "a")
    try await faults.waitForHeldWrites(1)
    faults.isDiskFull = true
    faults.releaseWrites()
    await #expect { try await save.value } throws: {
      if case StoreError.diskFull = $0 { true } else { false }
    }
    #expect(try numbers.value(for: "a") == nil)
  }

  @Test("Closing a store ends its held writes, and not those of another store.")
  func close() async throws {
    let otherStore = Store.inMemory(faults: faults)
    let others = try otherStore.cache("others", of: Int.self)
    faults.holdWrites()
    let save = save(1, for: "a")
    let otherSave = Task { try await otherStore.run { try others.save(1, for: "a") } }
    try await faults.waitForHeldWrites(2)
    try store.close()
    await #expect { try await save.value } throws: {
      if case StoreError.closed = $0 { true } else { false }
    }
    #expect(faults.heldWrites == 1)
    // A write of a closed store is not held either.
    #expect(throwsClosed { try numbers.save(2, for: "a") })
    #expect(faults.heldWrites == 1)
    faults.releaseWrites()
    try await otherSave.value
    #expect(try others.value(for: "a") == 1)
  }

  @Test("A write that is never released fails after a time, and writes nothing.")
  func limit() throws {
    let faults = StoreFaults(holdLimit: .nanoseconds(0))
    let store = Store.inMemory(faults: faults)
    let numbers = try store.cache("numbers", of: Int.self)
    faults.holdWrites()
    #expect(
      throwsStoreError(where: { if case .io = $0 { true } else { false } }) {
        try numbers.save(1, for: "a")
      })
    #expect(faults.heldWrites == 0)
    #expect(try numbers.value(for: "a") == nil)
    faults.releaseWrites()
    try numbers.save(1, for: "a")
  }

  @Test("A cancelled wait for held writes throws.")
  func cancelled() async throws {
    let wait = Task { try await faults.waitForHeldWrites(1) }
    wait.cancel()
    await #expect(throws: CancellationError.self) { try await wait.value }
  }

  @Test("Writes of many threads are each held and released, or not held.")
  func race() throws {
    let faults = faults, numbers = numbers
    onThreads(4) { thread in
      for round in 0..<500 {
        if thread == 0 {
          faults.holdWrites()
          faults.releaseWrites()
        } else {
          #expect(throws: Never.self) { try numbers.save(round, for: "\(thread)") }
        }
      }
    }
    #expect(faults.heldWrites == 0)
    for thread in 1...3 { #expect(try numbers.value(for: "\(thread)") == 499) }
  }
}
