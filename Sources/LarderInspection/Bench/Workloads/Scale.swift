/// How many records a workload has; keys and values have `db_bench`'s sizes at every scale.
struct Scale {
  static let keyBytes = 16
  static let valueBytes = 100
  /// The share of a value that is random; the rest repeats it, so values compress to about half.
  static let compressedShare = 0.5
  /// The size of the prepared value bytes, which the records share.
  static let poolBytes = 1 << 20
  static let seed: UInt64 = 301
  /// The share of the records that the hot workloads read.
  static let hotShare = 0.01

  /// Records in the database that is read and overwritten.
  var records: Int
  /// Records that a fill writes into an empty database.
  var filled: Int
  /// Records that one run reads or overwrites; `readseq` scans all records.
  var visited: Int
}
