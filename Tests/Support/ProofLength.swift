import Foundation

/// The factor by which tests are longer under `make proof`, which sets `LARDER_PROOF=1`.
///
/// It is 1 in every other run.
package let proofFactor = ProcessInfo.processInfo.environment["LARDER_PROOF"] == "1" ? 20 : 1

/// Whether this run is part of `make proof`.
package var isProof: Bool { proofFactor > 1 }
