import Foundation
import LarderTestSupport
import Testing

/// The memory of a process with values in memory, which `AllocationWorker` measures from outside.
@Suite(
  .enabled("only glibc's allocations can be counted, and not a sanitizer's") {
    try workerLines(["usage"]).first?.hasPrefix("cannot count") == false
  })
struct MemoryUseTests {
  @Test("A read whose value is in memory allocates nothing.")
  func hits() throws {
    let temporary = try TemporaryDirectory()
    let lines = try workerLines(["hits", temporary.path])
    try #require(lines.count == 3)
    for line in lines {
      let counts = line.split(separator: " ").suffix(2).compactMap { Int($0) }
      try #require(counts.count == 2, "\(line)")
      #expect(counts[0] == 0, "\(line)")
      // A read from disk allocates, so the counter works.
      #expect(counts[1] > 0, "\(line)")
    }
  }

  @Test("A process grows by the memory for values, and not by much more or less.")
  func growth() throws {
    let temporary = try TemporaryDirectory()
    let limit = 32 << 20
    let lines = try workerLines(["memory", temporary.path, "\(limit)", "mixed"])
    let numbers = try #require(lines.first).split(separator: " ").compactMap { Int($0) }
    try #require(numbers.count == 4 && numbers[0] == limit, "\(lines)")
    let growth = numbers[1]
    #expect(growth <= limit + limit / 4, "\(lines)")
    #expect(growth >= limit * 2 / 5, "\(lines)")
  }
}

/// The lines that the worker prints.
private func workerLines(_ arguments: [String]) throws -> [String] {
  var worker = try ChildProcess("AllocationWorker", arguments)
  var lines: [String] = []
  while let line = worker.readLine() { lines.append(line) }
  return lines
}
