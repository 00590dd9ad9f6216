/// How much work one run of larder-bench does.
struct BenchScale {
  let name: String
  /// The sizes of the workloads shared with `kvinspect bench`.
  let workloads: Scale
  /// Small records that are saved, read and swept, in other stores too.
  let small: Int
  /// Numbers of records of the stores in the suite `sizes`.
  var grown: [Int]
  /// Numbers of live entries of the stores in the suite `expiry`.
  var live: [Int]
  /// The sizes of the suite `growth`.
  let growth: Growth
  /// The sizes of large values, and the bytes of all values of a size from 20 KB on.
  let largeSizes: [Int]
  let largeBytes: Int
  /// The maximum number of rounds against other stores.
  let peerRounds: Int
  let rounds: Int
  /// Saves per simulated day.
  let savesADay: Int
  /// Seconds between two overwrites of a key in the simulated week of overwrites.
  let secondsBetweenOverwrites: Int
  /// Whether the times are meaningful enough to compare with goals.
  let hasGoals: Bool

  var records: Int { workloads.records }
  var filled: Int { workloads.filled }
  var visited: Int { workloads.visited }

  static let full = BenchScale(
    name: "full", workloads: Scale(records: 1_000_000, filled: 200_000, visited: 200_000),
    small: 100_000, grown: [10_000, 100_000, 1_000_000, 5_000_000],
    live: [10_000, 100_000, 1_000_000], growth: .full,
    largeSizes: [1000, 2000, 4096, 8000, 20_000, 100_000, 1_000_000], largeBytes: 256_000_000,
    peerRounds: 6, rounds: 11, savesADay: 1_000_000, secondsBetweenOverwrites: 1, hasGoals: true)
  static let quick = BenchScale(
    name: "quick", workloads: Scale(records: 20_000, filled: 10_000, visited: 10_000),
    small: 200, grown: [1000, 10_000], live: [1000, 10_000], growth: .quick,
    largeSizes: [4096, 100_000], largeBytes: 1_000_000, peerRounds: 1, rounds: 3,
    savesADay: 5000, secondsBetweenOverwrites: 600, hasGoals: false)
}
