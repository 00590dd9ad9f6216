import Crypto
import Foundation
import LarderTestSupport
import LarderTesting
import Testing

@testable import Larder

/// A process that replaces keys and seals entries is killed.
@Suite(.timeLimit(.minutes(5))) struct SealKillTests {
  @Test("After a kill, the key or its successor opens the store, and every saved value is there.")
  func kill() throws {
    let seed = testSeed()
    var random = SplitMix64(seed: seed)
    let sealed = try SealedStore()
    var number = 1
    var saved: [Int: Int] = [:]
    // The number of the last value that may have been saved.
    var count = 0
    try sealed.with(.key(id: "1", key(1))) { _ in }
    for round in 0..<(12 * proofFactor) {
      var worker = try ChildProcess("SealWorker", [sealed.path, "\(number)", "\(count)"])
      // A round of the worker has some 30 lines.
      for _ in 0..<random.below(60) { take(worker.readLine(), &number, &saved) }
      worker.kill()
      while let line = worker.readLine() { take(line, &number, &saved) }

      let opening = [number, number + 1].filter { number in
        let id = "\(number)"
        do {
          return try sealed.error(opening: .key(id: id, key(UInt8(truncatingIfNeeded: number))))
            == nil
        } catch {
          Issue.record(error)
          return false
        }
      }
      try #require(opening.count == 1, "seed \(seed), round \(round): \(opening) open the store")
      number = opening[0]
      try sealed.with(.key(id: "\(number)", key(UInt8(truncatingIfNeeded: number)))) { store in
        let cache = try store.cache("c", of: String.self, keyedBy: Int.self)
        for (key, least) in saved {
          let entry = try #require(try cache.lookup(for: key).entry)
          let found = try #require(Int(entry.value.prefix { $0 != " " }))
          // A save that was not acknowledged may have been written.
          #expect(found >= least, "seed \(seed), round \(round)")
          count = max(count, found)
          #expect(entry.validator == Validator("\(found)"))
        }
      }
      #expect(try sealed.filesWithMarker() == [], "seed \(seed), round \(round)")
    }
    #expect(saved.count == 20)
  }

  /// Notes what a line of the worker says.
  private func take(_ line: String?, _ number: inout Int, _ saved: inout [Int: Int]) {
    let words = line?.split(separator: " ").map(String.init) ?? []
    switch (words.first, words.dropFirst().compactMap { Int($0) }) {
    case ("replaced", let numbers): number = numbers[0]
    case ("saved", let numbers): saved[numbers[0]] = numbers[1]
    case ("replacing", _), ("sealing", _), ("compacting", _): break
    default: Issue.record("the worker says \(line ?? "nothing")")
    }
  }
}
