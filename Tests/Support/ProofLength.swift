import Foundation

/// How many times longer a test goes on under `make proof`, which sets `LARDER_PROOF=1`.
///
/// 1 in every other run.
package let proofFactor = ProcessInfo.processInfo.environment["LARDER_PROOF"] == "1" ? 20 : 1
