import Foundation

/// The seed of a random test: that of `LARDER_SEED`, which repeats a run, or another one each time.
package func testSeed() -> UInt64 {
  ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) }
    ?? .random(in: 0 ... .max)
}
