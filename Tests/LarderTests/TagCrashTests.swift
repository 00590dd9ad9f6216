import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// Kills between and during saves, updates, invalidations of tags, removals of ranges and sweeps,
/// while reads restart lifetimes.
@Suite struct TagCrashTests {
  /// The entries that the worker's changes leave.
  private struct Entries: Equatable {
    /// The value and the tag of each key; the tag of an entry that only updates have made is nil.
    var values: [String: (value: Int, tag: String?)] = [:]

    mutating func apply(_ change: String) throws {
      let words = change.split(separator: " ").map(String.init)
      switch words.first {
      case "save": values[words[1]] = (try #require(Int(words[2])), words[3])
      case "invalidate": values = values.filter { $0.value.tag != words[1] }
      case "update":
        let (value, tag) = values[words[1]] ?? (0, nil)
        values[words[1]] = (value + 1, tag)
      case "remove": values = values.filter { !$0.key.hasPrefix(words[1]) }
      default: Issue.record("the worker said \(change)")
      }
    }

    static func == (left: Self, right: Self) -> Bool {
      left.values.mapValues(\.value) == right.values.mapValues(\.value)
    }
  }

  @Test("After a kill the entries are those before or after the change under way.")
  func kills() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let temporary = try TemporaryDirectory()
    var entries = Entries()
    var changes = 0
    for round in 0..<(10 * proofFactor) {
      let place: Comment = "seed \(seed), round \(round)"
      var worker = try ChildProcess(
        "CrashWorker", ["tag", temporary.path, "\(UInt64.random(in: 0 ... .max, using: &random))"])
      var underWay: String?
      var lines = Int.random(in: 1...2000, using: &random)
      while let line = worker.readLine() {
        if line == "done", let change = underWay.take() {
          try entries.apply(change)
          changes += 1
        } else {
          underWay = line
        }
        lines -= 1
        if lines == 0 { worker.kill() }
      }
      var after = entries
      if let underWay { try after.apply(underWay) }
      let found = try read(temporary.path)
      // A range is removed in slices; these ranges have one.
      #expect(found == entries || found == after, place)
      entries.values = found.values.mapValues { ($0.value, $0.tag) }
    }
    #expect(changes > 100)
  }

  /// Reads the store in two openings, with a sweep between them.
  private func read(_ path: String) throws -> Entries {
    var found = [Entries(), Entries()]
    for index in found.indices {
      let store = try Store(at: URL(filePath: path))
      let cache = try store.cache("a", of: Int.self, lifetime: .unlimited)
      let cursor = try cache.entries()
      while let item = try cursor.next() {
        let entry = try item.entry.get()
        found[index].values[item.key] = (entry.value, entry.tags.first)
      }
      try store.sweep()
      try store.close()
    }
    #expect(found[0] == found[1])
    return found[0]
  }
}
