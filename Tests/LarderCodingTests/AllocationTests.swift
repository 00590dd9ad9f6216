import Foundation
import LarderTestSupport
import Testing

/// A call of the coder stays within its limit of allocations, once the type's shape is cached.
///
/// `AllocationWorker` counts them in a process of its own: `swift run -c release AllocationWorker`.
@Suite struct AllocationTests {
  /// The maximum number of allocations per call, for release and debug builds.
  private struct Limit {
    let encode: Int
    let decode: Int

    init(encode: (release: Int, debug: Int), decode: (release: Int, debug: Int)) {
      #if DEBUG
        self.encode = encode.debug
        self.decode = decode.debug
      #else
        self.encode = encode.release
        self.decode = decode.release
      #endif
    }
  }

  /// The limits are the current counts.
  ///
  /// The goal is that encoding into a buffer with room allocates nothing, and that decoding
  /// allocates as often as making the value by hand. A comment after a limit that is above its
  /// release goal states the goal.
  private static let limits: [String: Limit] = [
    "numbers": Limit(encode: (0, 1), decode: (0, 1)),
    "100 numbers": Limit(encode: (0, 1), decode: (1, 3)),
    "numbers, directly": Limit(encode: (0, 0), decode: (0, 0)),
    "100 numbers, directly": Limit(encode: (1, 1), decode: (1, 1)),  // 0, 1
    "100 items, directly": Limit(encode: (1, 1), decode: (401, 401)),  // encode: 0
    "texts": Limit(encode: (0, 1), decode: (2, 5)),
    "item": Limit(encode: (0, 1), decode: (4, 8)),
    "100 items": Limit(encode: (0, 1), decode: (401, 603)),
    "tree": Limit(encode: (0, 1), decode: (1, 11)),
    "events": Limit(encode: (0, 65), decode: (25, 71)),  // decode: 1
    // Seven of them are the buffers that the values within encode into.
    "8 at the same time": Limit(encode: (7, 15), decode: (4, 33)),  // 7, 0
    "dictionary": Limit(encode: (0, 0), decode: (4, 5)),  // decode: 1
    "1000 doubles": Limit(encode: (0, 0), decode: (1, 2)),
    "100 strings": Limit(encode: (0, 101), decode: (101, 102)),
    "string": Limit(encode: (0, 0), decode: (1, 2)),
    "integer": Limit(encode: (0, 0), decode: (0, 1)),
    "data": Limit(encode: (0, 0), decode: (2, 3)),
  ]

  @Test(
    "Allocations stay within their limits.",
    .enabled("only glibc's allocations can be counted, and not a sanitizer's") {
      try AllocationTests.workerLines().first?.hasPrefix("cannot count") == false
    })
  func allocations() throws {
    var limits = Self.limits
    for line in try Self.workerLines() {
      let parts = line.components(separatedBy: ": ")
      let counts = try #require(parts.last).split(separator: " ").compactMap { Int($0) }
      try #require(parts.count == 2 && counts.count == 3, "\(line)")
      let limit = try #require(limits[parts[0]], "\(line)")
      limits[parts[0]] = nil
      #expect(counts[0] <= limit.encode, "encoding: \(line)")
      #expect(counts[1] <= limit.decode, "decoding: \(line)")
      // Known counts, because a counter that always returns zero would stay within all limits.
      if parts[0] == "numbers" { #expect(counts[2] == 0, "by hand: \(line)") }
      if parts[0] == "texts" { #expect(counts[2] == 2, "by hand: \(line)") }
    }
    #expect(limits.isEmpty, "limits without a count: \(limits.keys)")
  }

  private static func workerLines() throws -> [String] {
    var worker = try ChildProcess("AllocationWorker", [])
    var lines: [String] = []
    while let line = worker.readLine() { lines.append(line) }
    return lines
  }
}
