// A fixed script to be run under valgrind: so many operations of one kind, on a store that is made
// for it. What one operation takes is the difference between two counts of operations, so that what
// comes before and after does not matter. Run by `Scripts/counts`.

import Foundation
import Larder

@main struct LarderCounts {
  struct Small: Codable, Sendable, Equatable {
    var id: Int
    var name: String
  }

  /// As many as fit into LevelDB's memory: no compaction comes in between.
  private static let records = 1000

  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let count = Int(arguments[2]) else {
      throw Misuse(description: "usage: larder-counts WORKLOAD COUNT")
    }
    let directory = FileManager.default.temporaryDirectory
      .appending(path: "larder-counts-\(UUID().uuidString)")
    let store = try Store(at: directory)
    try run(arguments[1], count, in: store)
    try store.close()
    try FileManager.default.removeItem(at: directory)
  }

  private static func run(_ workload: String, _ count: Int, in store: Store) throws {
    let bytes = try store.cache(
      "bytes", of: Data.self, keyedBy: Int.self, lifetime: .unlimited, coder: .bytes)
    // Only there, for a budget anywhere in a store has each commit counted.
    let budget = workload == "save-with-budget" ? 1 << 30 : nil
    let dated = try store.cache(
      "dated", of: Data.self, keyedBy: Int.self, coder: .bytes, byteBudget: budget)
    let typed = try store.cache("typed", of: Small.self, keyedBy: String.self)
    let data = Data(repeating: 7, count: 100)
    let keys = (0..<records).map { "key \($0)" }
    for record in 0..<records {
      try bytes.save(data, for: record)
      try typed.save(Small(id: record, name: keys[record]), for: keys[record])
    }
    for step in 0..<count {
      let record = step % records
      switch workload {
      case "save-bytes": try bytes.save(data, for: record)
      case "save-with-lifetime", "save-with-budget": try dated.save(data, for: record)
      case "save-typed":
        try typed.save(Small(id: record, name: keys[record]), for: keys[record])
      case "get-bytes": try check(bytes.value(for: record) == data)
      case "get-typed": try check(typed.value(for: keys[record])?.id == record)
      case "get-missing": try check(bytes.value(for: -1 - record) == nil)
      default: throw Misuse(description: "no workload \(workload)")
      }
    }
  }

  private static func check(_ isRight: Bool) throws {
    guard isRight else { throw Misuse(description: "a wrong value") }
  }
}

struct Misuse: Error, CustomStringConvertible {
  let description: String
}
