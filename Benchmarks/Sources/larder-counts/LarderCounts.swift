// A fixed script that `Scripts/counts` runs under valgrind: a number of operations of one kind on a
// new store. The cost of one operation is the difference between runs with two numbers of
// operations, which removes the cost of set-up and end. The store keeps no values in memory, except
// for the workloads `...-resident` and `...-resident-int`. The workloads `encode-...` and
// `decode-...` use the coder without a store.

import Foundation
import Larder

@main struct LarderCounts {
  struct Small: Codable, Sendable, Equatable {
    var id: Int
    var name: String
  }

  /// All records fit into LevelDB's write buffer, so that no compaction runs.
  private static let records = 1000

  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let count = Int(arguments[2]) else {
      throw UsageError(description: "usage: larder-counts WORKLOAD COUNT")
    }
    let workload = arguments[1]
    if CodingCounts.isWorkload(workload) { return try CodingCounts.run(workload, count) }
    let directory = FileManager.default.temporaryDirectory
      .appending(path: "larder-counts-\(UUID().uuidString)")
    var options = Store.Options()
    if !workload.contains("-resident") { options.memoryBytes = 0 }
    let store = try Store(at: directory, options: options)
    if workload.contains("-resident") {
      try runResident(workload, count, in: store)
    } else {
      try run(workload, count, in: store)
    }
    try store.close()
    try FileManager.default.removeItem(at: directory)
  }

  private static func run(_ workload: String, _ count: Int, in store: Store) throws {
    let bytes = try store.cache(
      "bytes", of: Data.self, keyedBy: Int.self, lifetime: .unlimited, coder: .bytes)
    // Other workloads have no budget: a budget makes the store count every commit.
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
    if workload.hasPrefix("scan-") {
      // One operation is one step of a cursor.
      for _ in 0..<(count / records) { try scan(workload, bytes, typed) }
      return
    }
    if workload == "values" {
      // One operation is one key of a hundred.
      for start in 0..<(count / 100) {
        let wanted = (0..<100).map { keys[(start * 100 + $0) % records] }
        try check(typed.values(for: wanted).allSatisfy { $0 != nil })
      }
      return
    }
    for step in 0..<count {
      let record = step % records
      switch workload {
      case "save-bytes": try bytes.save(data, for: record)
      case "save-with-lifetime", "save-with-budget": try dated.save(data, for: record)
      case "save-typed":
        try typed.save(Small(id: record, name: keys[record]), for: keys[record])
      case "save-if": try check(bytes.save(data, for: record, if: .present))
      case "invalidate":
        try store.invalidate(tag: "user:\(record)", durability: .processCrash)
      case "get-bytes": try check(bytes.value(for: record) == data)
      case "get-typed": try check(typed.value(for: keys[record])?.id == record)
      case "get-missing": try check(bytes.value(for: -1 - record) == nil)
      default: throw UsageError(description: "unknown workload \(workload)")
      }
    }
  }

  /// Runs a workload on values that are in memory.
  private static func runResident(_ workload: String, _ count: Int, in store: Store) throws {
    let texts = try store.cache("texts", of: Small.self, keyedBy: String.self)
    let numbers = try store.cache("numbers", of: Small.self, keyedBy: Int.self)
    // A save removes the value from memory, so each save needs a key of its own.
    let records = workload == "save-resident" ? 10 * records : records
    let keys = (0..<records).map { "key \($0)" }
    for record in 0..<records {
      let value = Small(id: record, name: keys[record])
      if workload == "get-resident-int" {
        try numbers.save(value, for: record)
        try check(numbers.value(for: record) == value)
      } else {
        try texts.save(value, for: keys[record])
        try check(texts.value(for: keys[record]) == value)
      }
    }
    try check(store.statistics.memory.entries == records)
    guard workload != "save-resident" || count <= records else {
      throw UsageError(description: "save-resident takes a COUNT up to \(records)")
    }
    // The loops compare no names, which would take as long as a hit.
    switch workload {
    case "get-resident":
      for step in 0..<count {
        try check(texts.value(for: keys[step % records])?.id == step % records)
      }
    case "get-resident-int":
      for step in 0..<count {
        try check(numbers.value(for: step % records)?.id == step % records)
      }
    case "save-resident":
      for record in 0..<count {
        try texts.save(Small(id: record, name: keys[record]), for: keys[record])
      }
    default: throw UsageError(description: "unknown workload \(workload)")
    }
    // Each save has removed one value.
    let removed = workload == "save-resident" ? count : 0
    try check(store.statistics.memory.entries == records - removed)
  }

  private static func scan(
    _ workload: String, _ bytes: Cache<Int, Data>, _ typed: Cache<String, Small>
  ) throws {
    var sum = 0
    switch workload {
    case "scan-keys":
      let cursor = try bytes.keys()
      while try cursor.next() != nil { sum += 1 }
    case "scan-bytes":
      let cursor = try bytes.entries()
      while let item = try cursor.next() { sum += try item.entry.get().value.count / 100 }
    case "scan-backwards":
      let cursor = try bytes.entries(order: .descending)
      while let item = try cursor.next() { sum += try item.entry.get().value.count / 100 }
    case "scan-typed":
      let cursor = try typed.entries()
      while let item = try cursor.next() { sum += try item.entry.get().value.id >= 0 ? 1 : 0 }
    default: throw UsageError(description: "unknown workload \(workload)")
    }
    try check(sum == records)
  }

  private static func check(_ isRight: Bool) throws {
    guard isRight else { throw UsageError(description: "a value is wrong") }
  }
}

struct UsageError: Error, CustomStringConvertible {
  let description: String
}
