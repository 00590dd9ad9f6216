import Foundation

/// The seed of a random test, from `LARDER_SEED` to repeat a run, otherwise random.
package func testSeed() -> UInt64 {
  ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) }
    ?? .random(in: 0 ... .max)
}
