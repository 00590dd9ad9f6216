import Foundation
import LarderTestSupport

/// Values that do not compress.
///
/// All have the same size, and values of adjacent numbers differ.
enum Pictures {
  static let byteCount = 20_000

  private static let noise = {
    var random = SplitMix64(seed: 1)
    return random.bytes(2 * byteCount)
  }()

  static func value(_ number: Int) -> Data {
    Data(noise[(number * 7 % byteCount)...].prefix(byteCount))
  }
}
