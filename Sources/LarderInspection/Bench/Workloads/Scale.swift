import Dispatch
import Foundation
import Larder

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

/// Wrong results of a benchmark, which make its times meaningless and end the run.
struct WrongResults: Error, CustomStringConvertible {
  let description: String
}

/// The duration of `work`, which returns its number of right results.
///
/// Throws ``WrongResults`` if that number is not `expected`.
func timed(expecting expected: Int, _ work: () throws -> Int) throws -> Duration {
  let start = DispatchTime.monotonicNow
  let right = try work()
  let end = DispatchTime.monotonicNow
  guard right == expected else {
    throw WrongResults(description: "\(right) of \(expected) results were right")
  }
  return .nanoseconds(end.uptimeNanoseconds - start.uptimeNanoseconds)
}

/// The directories of a run, all inside one root directory.
struct Workspace {
  private let root: URL

  /// Creates the directory `root`.
  init(at root: URL) throws {
    self.root = root
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
  }

  func directory(_ name: String) -> URL { root.appending(path: name, directoryHint: .isDirectory) }

  /// Replaces `name` with a copy of `original`, and returns it.
  func copy(of original: URL, as name: String) throws -> URL {
    try remove(name)
    try FileManager.default.copyItem(at: original, to: directory(name))
    return directory(name)
  }

  /// Removes `name` if it exists.
  func remove(_ name: String) throws {
    let path = directory(name).path(percentEncoded: false)
    guard FileManager.default.fileExists(atPath: path) else { return }
    try FileManager.default.removeItem(at: directory(name))
  }
}

extension Store.Options {
  /// The default options without memory for values, so that every read is from disk.
  static var withoutMemory: Store.Options {
    var options = Store.Options()
    options.memoryBytes = 0
    return options
  }
}
