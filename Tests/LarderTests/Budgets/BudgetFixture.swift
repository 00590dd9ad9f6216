import Foundation

@testable import Larder

extension Fixture {
  /// The bytes that the records of each cache take, by its id: the expected counts.
  func heldBytes() throws -> [UInt64: Int] {
    var bytes: [UInt64: Int] = [:]
    for (key, value) in try rows(in: .records) {
      var offset = 1
      guard let id = readVarint(key.span.bytes, at: &offset) else { continue }
      bytes[id, default: 0] += key.count + value.count
    }
    return bytes
  }

  /// How many bytes a cache is said to hold; nil when it is not counted.
  func countedBytes<Key, Value>(_ cache: Cache<Key, Value>) -> Int? {
    store.context.budgets.accounting.count(cache.core.id)?.bytes
  }

  /// An error in the counts, in memory or on disk; nil if there is none.
  func miscount<Key, Value>(of cache: Cache<Key, Value>) throws -> String? {
    let held = try heldBytes()[cache.core.id] ?? 0
    guard let counted = countedBytes(cache) else { return "not counted" }
    guard counted == held else { return "\(counted) counted, \(held) held" }
    let key = Metadata.bytes(cache.core.id)
    let onDisk = try engine.get(key.span.bytes).flatMap { Metadata.count(in: $0, under: key) }
    return onDisk == held ? nil : "\(onDisk.map { "\($0)" } ?? "nothing") on disk"
  }
}

/// A payload of `count` bytes.
func bytes(_ count: Int, _ byte: UInt8 = 7) -> Data { Data(repeating: byte, count: count) }
