import Foundation
import Larder

/// Plays the keys of standard input through a cache with a byte budget, in a store on disk.
///
/// All entries have the same size. A key that is not found is saved.
struct BudgetHits {
  /// The number of entries that the budget has room for.
  let capacity: Int
  /// The seconds from one key to the next.
  let step: Double

  /// Prints the counts, and on the last line the share of hits in per cent.
  func run(_ print: (String) -> Void) throws {
    try Workspace.withTemporary { workspace in
      let budget = capacity * (try BudgetedStore.entryBytes(of: Self.value, in: workspace))
      let clock = SteppingClock()
      let opened = try BudgetedStore(
        at: workspace.directory("budget"), budget: budget, clock: clock)
      var numbers = KeyNumbers()
      var (requests, hits) = (0, 0)
      try forEachLine { line in
        clock.advance(by: step)
        requests += 1
        let key = Self.key(numbers.number(of: line))
        if try opened.cache.value(for: key) != nil {
          hits += 1
        } else {
          try opened.cache.save(Self.value, for: key)
        }
      }
      guard try opened.countedBytes() <= budget else {
        throw WrongResults(description: "the entries exceed the budget of \(budget) bytes")
      }
      try opened.store.close()
      print("budget, capacity \(capacity): \(hits) hits of \(requests) requests")
      print(percent(hits, of: requests))
    }
  }

  private static let value = Data(repeating: 7, count: 100)

  /// A key whose place among the others does not depend on its number.
  private static func key(_ number: Int) -> Int { number &* -7_046_029_254_386_353_131 }
}
