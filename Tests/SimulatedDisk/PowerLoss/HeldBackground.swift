import LarderTestSupport

/// Lets LevelDB's background work continue in random steps between the operations of a script.
///
/// The work is held during an operation, which must not depend on it. A write blocks when a log is
/// full while the table of the log before is unfinished, so the work is finished before that.
package struct HeldBackground {
  /// The write buffer size for databases on the disk.
  package static let writeBufferBytes = 64 << 10

  private let disk: SimulatedDisk
  private var random: SplitMix64
  /// The most bytes that may have been written since the work was last finished.
  private var writtenBytes = 0

  /// Holds the background work of a disk.
  package init(of disk: SimulatedDisk, seed: UInt64) {
    self.disk = disk
    random = SplitMix64(seed: ~seed)
    disk.holdBackground()
  }

  /// Must be called before an operation that writes about `byteCount` bytes.
  package mutating func willWrite(_ byteCount: Int) {
    writtenBytes += byteCount + 2000
    if writtenBytes > Self.writeBufferBytes * 3 / 4 { finish(writing: byteCount) }
  }

  /// Lets a random part of the work run, or nothing.
  package mutating func advance() {
    switch Int.random(in: 0..<8, using: &random) {
    case 0..<3: break
    case 3..<7: disk.runBackground(calls: Int.random(in: 1...12, using: &random))
    default: finish()
    }
  }

  /// Lets the work run to its end.
  package mutating func finish() { finish(writing: 0) }

  /// Finishes the work, and runs an operation that depends on more of it.
  package mutating func letRun<R>(_ body: () throws -> R) rethrows -> R {
    finish()
    disk.preferBackground()
    defer {
      disk.runBackground()
      disk.holdBackground()
    }
    return try body()
  }

  private mutating func finish(writing byteCount: Int) {
    disk.runBackground()
    writtenBytes = byteCount
  }
}
