/// How much a run does; keys and values have `db_bench`'s sizes at every scale.
struct Scale {
  static let keyBytes = 16
  static let valueBytes = 100
  /// The share of a value that is random; the rest repeats it, so that it compresses to about half.
  static let compressedShare = 0.5
  /// How many bytes of values are prepared; records share them.
  static let poolBytes = 1 << 20
  static let seed: UInt64 = 301
  /// `readhot` keeps to this share of the records.
  static let hotShare = 0.01

  let name: String
  /// Records in the database that is read and overwritten.
  var records: Int
  /// Records that a fill writes into an empty database.
  var filled: Int
  /// Records read or overwritten by one run; `readseq` walks all records.
  var visited: Int
  /// Small records saved, read and swept in stores of other makers too.
  let small: Int
  /// How many records the stores have that are compared by size.
  var grown: [Int]
  /// How many bytes of values one run writes or reads where those are large.
  let largeBytes: Int
  /// How many rounds are enough against stores of other makers.
  let peerRounds: Int
  let rounds: Int
  /// Saves of a simulated day.
  let savesADay: Int
  /// How far apart a key is overwritten that is overwritten for a simulated week.
  let secondsBetweenOverwrites: Int
  /// Whether the times mean enough to hold them against a goal.
  let hasGoals: Bool

  static let full = Scale(
    name: "full", records: 1_000_000, filled: 200_000, visited: 200_000, small: 100_000,
    grown: [10_000, 100_000, 1_000_000, 5_000_000], largeBytes: 16 << 20, peerRounds: 6,
    rounds: 11, savesADay: 1_000_000, secondsBetweenOverwrites: 1, hasGoals: true)
  static let quick = Scale(
    name: "quick", records: 20_000, filled: 10_000, visited: 10_000, small: 200,
    grown: [1000, 10_000], largeBytes: 256 << 10, peerRounds: 1, rounds: 3,
    savesADay: 5000, secondsBetweenOverwrites: 600, hasGoals: false)
}
