import Foundation
import Larder

/// Encodes or decodes one value of the benchmarks' suite `coding` again and again, without a store.
///
/// Names of workloads end in `-direct` where a cache's coder is used, which codes `DirectCoding`
/// types directly, also within others; otherwise their `Codable` is used.
enum CodingCounts {
  /// One operation is one item of a hundred, except for single values.
  private static let items = 100

  static func isWorkload(_ name: String) -> Bool {
    name.hasPrefix("encode-") || name.hasPrefix("decode-")
  }

  static func run(_ workload: String, _ count: Int) throws {
    var random = WorkloadRandom(seed: 1)
    let parts = workload.split(separator: "-")
    let isDirect = parts.last == "direct"
    guard parts.count == (isDirect ? 3 : 2) else { throw unknown(workload) }
    let run = Run(isEncoding: parts[0] == "encode", isDirect: isDirect)
    switch parts[1] {
    case "feed": try run(feed(&random), count / items)
    case "characters": try run((0..<items).map { _ in CharacterItem(&random) }, count / items)
    case "small": try run(Small(&random), count)
    case "numbers": try run(Numbers(&random), count)
    case "data": try run(Blob(&random), count)
    case "page": try run(Page(items: feed(&random)), count / items)
    case "rows":
      let rows = feed(&random).enumerated().map { Row(position: $0.offset, item: $0.element) }
      try run(rows, count / items)
    case "named":
      let pairs = feed(&random).map { ($0.id.uuidString, $0) }
      try run(Dictionary(uniqueKeysWithValues: pairs), count / items)
    case "optionals":
      let list = feed(&random).enumerated().map { $0.offset % 4 == 0 ? nil : $0.element }
      try run(list, count / items)
    case "media": try run((0..<items).map { _ in Media(&random) }, count / items)
    default: throw unknown(workload)
    }
  }

  private static func feed(_ random: inout WorkloadRandom) -> [FeedItem] {
    (0..<items).map { _ in FeedItem(&random) }
  }

  private static func unknown(_ workload: String) -> UsageError {
    UsageError(description: "unknown workload \(workload)")
  }

  private struct Run {
    let isEncoding: Bool
    let isDirect: Bool

    func callAsFunction<Value: Codable & Equatable & Sendable>(
      _ value: Value, _ count: Int
    ) throws {
      let coder = Coder<Value>.binary
      var buffer = ByteBuffer()
      // The coder learns a type's fields with the first values.
      for step in 0..<(count + 10) where isEncoding || step < 10 {
        buffer.truncate(to: 0)
        if isDirect {
          try coder.encode(value, &buffer)
        } else {
          try Binary.encode(value, into: &buffer)
        }
      }
      let bytes = Array(buffer)
      var last = value
      for _ in 0..<(isEncoding ? 1 : count + 10) {
        last =
          isDirect
          ? try coder.decode(bytes.span.bytes)
          : try Binary.decode(Value.self, from: bytes.span.bytes)
      }
      guard last == value else { throw UsageError(description: "a value is wrong") }
    }
  }
}
