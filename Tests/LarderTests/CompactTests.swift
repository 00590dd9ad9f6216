import AcceptanceRows
import Foundation
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@testable import Larder

/// `Store.compact` gives back room in a store that is open, and changes no entry.
@Suite(.acceptance, .timeLimit(.minutes(5))) struct CompactTests {
  private static let valueBytes = 20_000

  private func value(_ number: Int) -> Data {
    Data(repeating: UInt8(number % 251), count: Self.valueBytes)
  }

  /// A store of 300 values of which every third is kept.
  private func fill(
    _ directory: borrowing TemporaryDirectory, segments: Bool
  ) throws -> (store: Store, cache: Cache<Int, Data>) {
    var options = Store.Options()
    options.compression = false
    if !segments { options.advanced.separatedValueBytes = nil }
    let store = try Store(at: URL(filePath: directory.path("store")), options: options)
    let cache = try store.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes)
    for number in 0..<300 { try cache.save(value(number), for: number) }
    let other = try store.cache("other", of: Data.self, keyedBy: Int.self, coder: .bytes)
    for number in 0..<50 { try other.save(value(number), for: number) }
    try store.drop(cache: "other")
    for number in 0..<300 where number % 3 > 0 { try cache.remove(number) }
    return (store, cache)
  }

  private func expectKept(_ cache: Cache<Int, Data>) throws {
    for number in 0..<300 {
      #expect(try cache.value(for: number) == (number % 3 == 0 ? value(number) : nil))
    }
  }

  @Test(
    "It gives back the room of removed values, and reports its progress.",
    arguments: [false, true])
  func compact(segments: Bool) async throws {
    let directory = try TemporaryDirectory()
    let (store, cache) = try fill(directory, segments: segments)
    let fractions = Mutex<[Double]>([])
    let report = try await store.compact { fraction in fractions.withLock { $0.append(fraction) } }
    #expect(report.bytesBefore > 250 * Self.valueBytes)
    #expect(report.bytesAfter < 130 * Self.valueBytes, "\(report)")
    let reported = fractions.withLock { $0 }
    #expect(reported.first == 0 && reported.last == 1)
    #expect(reported == reported.sorted() && reported.count > 3)
    try expectKept(cache)
    try store.close()
    let again = try Store(at: URL(filePath: directory.path("store")))
    try expectKept(again.cache("pictures", of: Data.self, keyedBy: Int.self, coder: .bytes))
    try again.close()
  }

  @Test("A cancelled call ends early, loses nothing, and the next one does the rest.")
  func cancel() async throws {
    let directory = try TemporaryDirectory()
    let (store, cache) = try fill(directory, segments: true)
    for limit in [0, 0.4, 0.5, 0.7] {
      let task = Task {
        try await store.compact { fraction in
          if fraction >= limit { withUnsafeCurrentTask { $0?.cancel() } }
        }
      }
      await #expect(throws: CancellationError.self) { try await task.value }
      try expectKept(cache)
    }
    let report = try await store.compact()
    #expect(report.bytesAfter < 130 * Self.valueBytes, "\(report)")
    try expectKept(cache)
    try store.close()
  }

  @Test("Entries that are saved, read and removed meanwhile are as they should be.")
  func beside() async throws {
    let directory = try TemporaryDirectory()
    let (store, cache) = try fill(directory, segments: true)
    let isDone = Atomic(false)
    async let compactions: Void = {
      defer { isDone.store(true, ordering: .relaxed) }
      for _ in 0..<5 { try await store.compact() }
    }()
    try await store.run {
      var round = 0
      while !isDone.load(ordering: .relaxed) {
        round += 1
        let key = 1000 + round % 40
        try cache.save(value(round), for: key)
        #expect(try cache.value(for: key) == value(round))
        if round.isMultiple(of: 3) { #expect(try cache.remove(key)) }
      }
    }
    try await compactions
    try expectKept(cache)
    try store.close()
  }

  @Test("It throws typed errors for a store that is closed, or open for reading only.")
  func errors() async throws {
    let directory = try TemporaryDirectory()
    let (store, _) = try fill(directory, segments: true)
    try store.close()
    await #expect { try await store.compact() } throws: { error in
      if case StoreError.closed = error { true } else { false }
    }
    var options = Store.Options()
    options.access = .readOnly
    let reading = try Store(at: URL(filePath: directory.path("store")), options: options)
    await #expect { try await reading.compact() } throws: { error in
      if case StoreError.readOnly = error { true } else { false }
    }
    try reading.close()
    let memory = Store.inMemory()
    #expect(try await memory.compact() == CompactionReport())
  }
}
