import LarderTestSupport

/// Lets LevelDB's work in the background go on between the operations of a script, by chance.
///
/// It is held meanwhile, and nobody may have to wait for it. Writing waits when a log is full while
/// the one before it is being made a table, so before as much is written the work is finished.
package struct HeldBackground {
  /// The size that databases are to have their write buffer of.
  package static let writeBufferBytes = 64 << 10

  private let disk: SimulatedDisk
  private var random: SplitMix64
  /// What may have been written since the work was last finished.
  private var writtenBytes = 0

  /// Holds the background of a disk.
  package init(of disk: SimulatedDisk, seed: UInt64) {
    self.disk = disk
    random = SplitMix64(seed: ~seed)
    disk.holdBackground()
  }

  /// Comes before an operation that writes about so many bytes.
  package mutating func willWrite(_ byteCount: Int) {
    writtenBytes += byteCount + 2000
    if writtenBytes > Self.writeBufferBytes * 3 / 4 { finish(writing: byteCount) }
  }

  /// Lets some of the work be done, or none.
  package mutating func goOn() {
    switch Int.random(in: 0..<8, using: &random) {
    case 0..<3: break
    case 3..<7: disk.runBackground(calls: Int.random(in: 1...12, using: &random))
    default: finish()
    }
  }

  /// Lets all of the work be done.
  package mutating func finish() { finish(writing: 0) }

  /// Finishes the work, and runs an operation that waits for more of it.
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
