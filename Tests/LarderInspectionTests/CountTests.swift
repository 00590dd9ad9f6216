import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

@testable import LarderInspection

/// `info` shows the byte count of a cache with a budget, and `verify` checks it.
@Suite struct CountTests {
  /// Makes a store with two caches, one of which has a budget and has evicted entries.
  private func fill(_ path: String) throws {
    var options = Store.Options()
    options.clock = ManualClock(Specimen.now)
    let store = try Store(at: URL(filePath: path), options: options)
    let few = try store.cache(
      "few", of: Data.self, lifetime: .unlimited, coder: .bytes, byteBudget: 1000)
    let all = try store.cache("all", of: Data.self, coder: .bytes)
    for number in 0..<20 {
      try few.save(Data(count: 100), for: "\(number)")
      try few.save(Data(count: 90), for: "\(number)")
      try all.save(Data(count: 100), for: "\(number)")
    }
    try store.close()
  }

  private func reports(_ path: String) throws -> (info: String, verification: String, Outcome) {
    let inspection = try Inspection(at: path, now: Specimen.now)
    var (info, verification) = ("", "")
    _ = try inspection.info(style: Style()).write(to: &info)
    let outcome = try inspection.verify(style: Style()).write(to: &verification)
    return (info, verification, outcome)
  }

  @Test("A byte count is shown and checked.")
  func count() throws {
    let temporary = try TemporaryDirectory()
    try fill(temporary.path)
    let (info, verification, outcome) = try reports(temporary.path)
    // Seven entries fit: six old ones of 3 + 126 bytes, and the newest one of 4 + 126.
    let rows = info.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(
      rows.contains { $0.contains("few") && $0.suffix(4) == ["904", "B", "1.0", "KB"] }, "\(info)")
    #expect(rows.contains { $0.contains("all") && $0.suffix(2) == ["-", "-"] }, "\(info)")
    #expect(outcome == .fine, "\(verification)")

    let engine = try LevelDBEngine(at: temporary.path)
    let record = try engine.cursor(over: EngineRange(prefix: [KeySpace.records.rawValue, 1]))
    #expect(try record.next())
    var batch = WriteBatch()
    record.withEntry { key, _ in batch.remove(key) }
    try engine.write(&batch, synced: false)
    try engine.close()
    let (_, found, damage) = try reports(temporary.path)
    #expect(damage == .damaged)
    #expect(found.contains("it holds 775 bytes, but its count is 904"), "\(found)")
  }
}
